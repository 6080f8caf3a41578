/* docs/accuracy.md, made from a score. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

enum { WORST_CASES = 5 };

static void print_promises(const struct score *score)
{
    puts("| figure | n | median | allowed | 90th percentile | allowed | |\n|---|---:|---:|---:|---:|---:|---|");
    for (int i = 0; i < PROMISES; i++) {
        const struct row **rows;
        const int n = score_rows_under(score, i, &rows);
        const struct promise *promise = score_promise(i);
        const struct spread s = score_spread(rows, n);
        free(rows);
        if (n)
            printf("| %s | %d | %.2f %% | %.1f %% | %.2f %% | %.0f %% | %s |\n", promise->name, n, 100 * s.median,
                   100 * promise->median, 100 * s.p90, 100 * promise->p90,
                   score_is_kept(promise, &s) ? "kept" : "**short**");
    }
    const struct pairs pairs = score_pairs(score);
    printf("\nPairs in the right order: %d of %d (%.1f %%; 97 %% are promised).\n", pairs.right, pairs.total,
           pairs.total ? 100.0 * pairs.right / pairs.total : 0.0);
}

static void print_sources(const struct score *score)
{
    struct group *groups;
    const int n = score_groups(score, &groups);
    puts("| tier | source | quantity | n | not answered | bias | median | p90 | largest | within 1 / 2 / 5 / 10 % |\n"
         "|---|---|---|---:|---:|---:|---:|---:|---:|---|");
    for (int i = 0; i < n; i++) {
        const struct row *first = groups[i].rows[0];
        const struct spread s = score_spread(groups[i].rows, groups[i].n);
        printf("| %s | %.*s | %s | %d | %d | %+.2f %% | %.2f %% | %.2f %% | %.2f %% | %.0f / %.0f / %.0f / %.0f |\n",
               first->c->tier, (int)strcspn(first->c->source, "@ ,"), first->c->source, quantity_key(first->quantity),
               s.n, s.failed, 100 * s.bias, 100 * s.median, 100 * s.p90, 100 * s.most, 100 * s.within[0],
               100 * s.within[1], 100 * s.within[2], 100 * s.within[3]);
    }
    score_free_groups(groups, n);
}

/* ---- what is known of single cases ---- */

/* Prints words with single spaces, whatever stands between them. */
static void print_words(const char *text)
{
    for (const char *at = text; *at && *at != '\n'; at++)
        if (*at != ' ' || at[1] != ' ') putchar(*at == '|' ? '/' : *at);
}

/* Prints the sentence of the first line of `notes` whose pattern matches the case, else what the corpus doubts. */
static void print_known(const char *notes, const struct corpus_case *c)
{
    FILE *file = fopen(notes, "r");
    char line[1024];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *sentence = strstr(line, ": ");
        if (*line == '#' || !sentence) continue;
        *sentence = 0;
        if (fnmatch(line, c->id, 0)) continue;
        found = true;
        print_words(sentence + 2);
    }
    if (file) fclose(file);
    if (!found && c->doubt) {
        fputs("The corpus doubts it: ", stdout);
        print_words(c->doubt);
    }
}

static bool is_shown(const struct row *const *shown, int n, const struct row *row)
{
    for (int i = 0; i < n; i++)
        if (shown[i]->c == row->c) return true;
    return false;
}

/* The cases of a tier with the largest errors, each once. */
static void print_worst(const struct score *score, const char *tier, const char *notes)
{
    const struct row **rows, *shown[WORST_CASES];
    const int n = score_sorted(score, tier, &rows);
    int n_shown = 0;
    printf("\n### Tier %s\n\n| error | quantity | predicted, GiB | measured, GiB | case | what is known |\n"
           "|---:|---|---:|---:|---|---|\n",
           tier);
    for (int i = 0; i < n && n_shown < WORST_CASES; i++) {
        const struct row *row = rows[i];
        if (is_shown(shown, n_shown, row)) continue;
        shown[n_shown++] = row;
        printf("| %+.1f %% | %s | %.3f | %.3f | %s%s%s | ", 100 * row->error, quantity_key(row->quantity),
               (double)row->predicted / GIB, (double)row->measured / GIB, row->c->id, row->run->gpu ? ", " : "",
               row->run->gpu ? row->run->gpu : "");
        print_known(notes, row->c);
        puts(" |");
    }
    free(rows);
}

static void print_unanswered(const struct score *score)
{
    puts("\n## Not answered\n");
    int n = 0;
    for (int i = 0; i < score->n_rows; i++) {
        const struct row *row = &score->rows[i];
        if (row->answered || (i && score->rows[i - 1].c == row->c)) continue;
        printf("- %s: %s\n", row->c->id, row->why);
        n++;
    }
    if (!n) puts("Every case is answered.");
}

void print_page(const struct score *score, const char *notes)
{
    puts("# Accuracy\n\n"
         "How far the model is from memory that other people measured in real training runs. The runs, with their\n"
         "sources, are in `tests/corpus`; `./test --accuracy` prints these figures, and `./test --accuracy --write`\n"
         "made this page. An error is (predicted - measured) / measured; a figure without an answer counts as 999 %.\n"
         "\n## What is promised\n");
    print_promises(score);
    puts("\n## By source\n");
    print_sources(score);
    puts("\n## The largest errors\n\nFive cases of each tier. In tier `trend` only the order of related runs counts.");
    print_worst(score, "exact", notes);
    print_worst(score, "rounded", notes);
    print_worst(score, "trend", notes);
    print_unanswered(score);
}
