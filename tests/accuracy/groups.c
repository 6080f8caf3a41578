/* Ways of choosing rows: groups of one source, the largest errors, what a promise covers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "score.h"

static void name_group(const struct row *row, char *name, size_t size)
{
    const int end = (int)strcspn(row->c->source, "@ ,");
    snprintf(name, size, "%-7s %-34.*s %s", row->c->tier, end, row->c->source, quantity_short(row->quantity));
}

static int by_group_name(const void *a, const void *b)
{
    return strcmp(((const struct group *)a)->name, ((const struct group *)b)->name);
}

int score_groups(const struct score *score, struct group **groups)
{
    struct group *all = calloc((size_t)score->n_rows + 1, sizeof *all);
    int n = 0;
    for (int i = 0; all && i < score->n_rows; i++) {
        char name[sizeof all->name];
        name_group(&score->rows[i], name, sizeof name);
        int at = 0;
        while (at < n && strcmp(all[at].name, name)) at++;
        if (at == n) {
            memcpy(all[n].name, name, sizeof name);
            all[n++].rows = calloc((size_t)score->n_rows, sizeof *all->rows);
        }
        if (all[at].rows) all[at].rows[all[at].n++] = &score->rows[i];
    }
    if (all) qsort(all, (size_t)n, sizeof *all, by_group_name);
    *groups = all;
    return n;
}

void score_free_groups(struct group *groups, int n)
{
    for (int i = 0; i < n; i++) free(groups[i].rows);
    free(groups);
}

static double size_of(const struct row *row)
{
    return row->error < 0 ? -row->error : row->error;
}

static int by_error(const void *a, const void *b)
{
    const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
    const double sx = size_of(x), sy = size_of(y);
    if (sx != sy) return sx < sy ? 1 : -1;
    return x < y ? -1 : x > y;
}

int score_sorted(const struct score *score, const char *tier, const struct row ***sorted)
{
    const struct row **rows = calloc((size_t)score->n_rows + 1, sizeof *rows);
    int n = 0;
    for (int i = 0; rows && i < score->n_rows; i++) {
        const struct row *row = &score->rows[i];
        if (row->answered && (!tier || !strcmp(row->c->tier, tier))) rows[n++] = row;
    }
    if (rows) qsort(rows, (size_t)n, sizeof *rows, by_error);
    *sorted = rows;
    return n;
}

int score_rows_under(const struct score *score, int promise, const struct row ***rows)
{
    int n = 0;
    *rows = calloc((size_t)score->n_rows + 1, sizeof **rows);
    for (int i = 0; *rows && i < score->n_rows; i++)
        if (score_promise_of(&score->rows[i]) == promise) (*rows)[n++] = &score->rows[i];
    return n;
}

bool score_is_kept(const struct promise *promise, const struct spread *spread)
{
    return spread->median <= promise->median && spread->p90 <= promise->p90;
}
