#include "print.h"

#include <stdlib.h>
#include <string.h>

static double percent(double x)
{
    return 100 * x;
}

/* ---- text ---- */

static void print_groups(const struct score *score)
{
    struct group *groups;
    const int n = score_groups(score, &groups);
    printf("%-58s %5s %5s %8s %8s %8s %8s  %s\n", "", "n", "fail", "bias", "median", "p90", "max",
           "within 1 / 2 / 5 / 10 %");
    for (int i = 0; i < n; i++) {
        const struct spread s = score_spread(groups[i].rows, groups[i].n);
        printf("%-58s %5d %5d", groups[i].name, s.n, s.failed);
        if (s.failed < s.n)
            printf(" %+7.2f%% %7.2f%% %7.2f%% %7.2f%%  %3.0f %3.0f %3.0f %3.0f", percent(s.bias), percent(s.median),
                   percent(s.p90), percent(s.most), percent(s.within[0]), percent(s.within[1]), percent(s.within[2]),
                   percent(s.within[3]));
        putchar('\n');
    }
    score_free_groups(groups, n);
}

static void print_worst(const struct score *score, int worst)
{
    const struct row **rows;
    const int n = score_sorted(score, NULL, &rows);
    for (int i = 0; i < n && i < worst; i++)
        printf("worst %+7.1f%%  %-26s %12llu for %12llu  %s %s\n", percent(rows[i]->error),
               quantity_key(rows[i]->quantity), (unsigned long long)rows[i]->predicted,
               (unsigned long long)rows[i]->measured, rows[i]->c->id, rows[i]->run->gpu ? rows[i]->run->gpu : "");
    free(rows);
}

/* Every reason once, with the number of figures that lack an answer for it. */
static void print_failures(const struct score *score)
{
    for (int i = 0; i < score->n_rows; i++) {
        if (score->rows[i].answered) continue;
        int same = 0, before = 0;
        for (int j = 0; j < score->n_rows; j++)
            if (!score->rows[j].answered && !strcmp(score->rows[i].why, score->rows[j].why)) same++, before += j < i;
        if (!before) printf("failed %4d  %s (%s)\n", same, score->rows[i].why, score->rows[i].c->id);
    }
}

void print_summary(const struct score *score, int worst)
{
    print_groups(score);
    print_worst(score, worst);
    print_failures(score);
}

void print_rows(const struct score *score)
{
    for (int i = 0; i < score->n_rows; i++) {
        const struct row *row = &score->rows[i];
        printf("%-72s %-9s %-30s %13llu %13llu %+8.2f%% %s\n", row->c->id, row->run->gpu ? row->run->gpu : "-",
               quantity_key(row->quantity), (unsigned long long)row->measured, (unsigned long long)row->predicted,
               percent(row->error), row->why);
    }
}

void print_wrong_pairs(const struct score *score)
{
    for (int i = 0; i < score->n_rows; i++)
        for (int j = i + 1; j < score->n_rows; j++) {
            const struct row *a = &score->rows[i], *b = &score->rows[j];
            if (!score_is_pair(a, b) || score_is_ordered(a, b)) continue;
            printf("pair  %-14s measured %+6.1f%%, predicted %+6.1f%%  from %s to %s\n", quantity_short(a->quantity),
                   percent((double)b->measured / (double)a->measured - 1),
                   a->predicted ? percent((double)b->predicted / (double)a->predicted - 1) : 0, a->c->id, b->c->id);
        }
}

bool print_contract(const struct score *score)
{
    bool all = true;
    for (int i = 0; i < PROMISES; i++) {
        const struct row **rows;
        const int n = score_rows_under(score, i, &rows);
        const struct promise *promise = score_promise(i);
        const struct spread s = score_spread(rows, n);
        free(rows);
        if (!n) continue;
        const bool kept = score_is_kept(promise, &s);
        printf("%-6s %-28s n %4d  median %6.2f%% (%.1f)  p90 %6.2f%% (%.0f)\n", kept ? "ok" : "SHORT", promise->name, n,
               percent(s.median), percent(promise->median), percent(s.p90), percent(promise->p90));
        all = all && kept;
    }
    const struct pairs pairs = score_pairs(score);
    const bool kept = pairs.right >= PAIRS_PROMISED * pairs.total;
    if (pairs.total)
        printf("%-6s pairs in the right order       %d of %d (97 %%)\n", kept ? "ok" : "SHORT", pairs.right,
               pairs.total);
    puts(all && kept ? "all rows met" : "some rows fall short");
    return all && kept;
}
