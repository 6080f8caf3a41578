#include "score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomcast/import.h"
#include "oomcast/model.h"

/* What answering one run works on: large, so it is made once. */
struct runner {
    struct oc_input input;
    struct oc_plan plan;
    struct oc_ledger ledger;
    struct oc_rank ranks[OC_MAX_STAGES];
    int n_ranks;
    struct oc_alloc *alloc;
    struct oc_error error;
};

/* ---- one run ---- */

static bool set(struct runner *r, const char *key, const char *value)
{
    char assignment[512];
    snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    return oc_config_assign(&r->input.c.config, assignment, NULL, &r->error);
}

static bool import_script(struct runner *r, const struct corpus_case *c)
{
    const size_t size = strlen(c->env ? c->env : "") + strlen(c->launch) + strlen(c->flags) + 64;
    char *script = malloc(size);
    if (!script) return oc_fail(&r->error, OC_E_INTERNAL, "out of memory");
    snprintf(script, size, "export %s\n%s %s\n", c->env ? c->env : "", c->launch, c->flags);
    const bool good = oc_import_text(&r->input, "run.sh", script, strlen(script), &r->error);
    free(script);
    return good;
}

/* The configuration of a run: its script, then its keys, then what belongs to this measurement. */
static bool configure(struct runner *r, const struct corpus_case *c, const struct measurement *run)
{
    memset(&r->input, 0, sizeof r->input);
    r->input.c.config = oc_config_default();
    if (c->launch && !import_script(r, c)) return false;
    if (c->launch && c->world && !set(r, "parallel.world", c->world)) return false;
    for (int i = 0; i < c->n_sets; i++)
        if (!oc_config_assign(&r->input.c.config, c->sets[i], NULL, &r->error)) return false;
    if (run->gpu && !set(r, "gpu", run->gpu)) return false;
    return !run->stack || set(r, "kernels.stack", run->stack);
}

static bool is_chosen(const struct measurement *run, int stage, int stages)
{
    if (!strcmp(run->rank, "last")) return stage == stages - 1;
    if (!strncmp(run->rank, "stage:", 6)) return stage == atoi(run->rank + 6);
    return true;
}

static bool answer(struct runner *r, const struct measurement *run)
{
    if (!oc_resolve(&r->input.c.config, &r->plan, NULL, &r->error)) return false;
    r->n_ranks = (int)r->plan.c.parallel_pp;
    for (int i = 0; i < r->n_ranks; i++) {
        if (!oc_estimate(&r->plan, i, &r->ledger, &r->error)) return false;
        oc_sweep(&r->ledger, &r->ranks[i]);
        if (is_chosen(run, i, r->n_ranks) && !oc_reserve(&r->plan, &r->ledger, r->alloc, &r->ranks[i]))
            return oc_fail(&r->error, OC_E_INTERNAL, "out of memory");
    }
    return true;
}

static uint64_t bytes_of(const struct runner *r, const struct oc_rank *rank, enum quantity quantity)
{
    const struct oc_range device = oc_device(&r->plan, rank);
    switch (quantity) {
    case Q_AFTER_STEP: return rank->moments[OC_STEADY][OC_M_AFTER_STEP].allocated;
    case Q_FIRST_PEAK: return rank->first_peak.allocated;
    case Q_IDLE: return rank->moments[OC_STEADY][OC_M_IDLE].allocated;
    case Q_RESERVED: return rank->reserved;
    case Q_DEVICE: return device.low + (device.high - device.low) / 2;
    default: return rank->peak.allocated;
    }
}

static bool pick(const struct runner *r, struct row *row)
{
    bool found = false;
    for (int i = 0; i < r->n_ranks; i++) {
        if (!is_chosen(row->run, i, r->n_ranks)) continue;
        const uint64_t bytes = bytes_of(r, &r->ranks[i], row->quantity);
        if (!found || bytes > row->predicted) row->predicted = bytes;
        found = true;
    }
    return found;
}

static void add_rows(struct runner *r, const struct corpus_case *c, const struct measurement *run, struct score *score)
{
    const bool answered = configure(r, c, run) && answer(r, run);
    for (int q = 0; q < QUANTITIES; q++) {
        if (!run->bytes[q]) continue;
        struct row *row = &score->rows[score->n_rows++];
        memset(row, 0, sizeof *row);
        row->c = c;
        row->run = run;
        row->quantity = (enum quantity)q;
        row->measured = run->bytes[q];
        row->answered = answered && pick(r, row);
        row->error = UNANSWERED;
        if (row->answered) row->error = ((double)row->predicted - (double)row->measured) / (double)row->measured;
        if (!row->answered)
            snprintf(row->why, sizeof row->why, "%s", answered ? "there is no such stage" : r->error.message);
    }
}

bool score_run(const struct corpus *corpus, const char *only, struct score *score)
{
    struct runner *r = calloc(1, sizeof *r);
    score->n_rows = 0;
    score->rows = calloc((size_t)corpus->n_cases * MOST_RUNS * QUANTITIES, sizeof *score->rows);
    if (r) r->alloc = oc_alloc_create(NULL);
    const bool good = r && r->alloc && score->rows;
    for (int i = 0; good && i < corpus->n_cases; i++) {
        const struct corpus_case *c = &corpus->cases[i];
        if (!strstr(c->id, only)) continue;
        for (int n = 0; n < c->n_runs; n++) add_rows(r, c, &c->runs[n], score);
    }
    if (r && r->alloc) oc_alloc_destroy(r->alloc);
    free(r);
    return good;
}

void score_free(struct score *score)
{
    free(score->rows);
}

/* ---- statistics ---- */

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread score_spread(const struct row *const *rows, int n)
{
    static const double bounds[4] = {.01, .02, .05, .10};
    struct spread s = {.n = n};
    double *sizes = calloc((size_t)n + 1, sizeof *sizes), sum = 0;
    if (!sizes || !n) {
        free(sizes);
        return s;
    }
    for (int i = 0; i < n; i++) {
        sizes[i] = magnitude(rows[i]->error);
        s.failed += !rows[i]->answered;
        if (rows[i]->answered) sum += rows[i]->error;
        for (int b = 0; b < 4; b++) s.within[b] += sizes[i] <= bounds[b];
    }
    qsort(sizes, (size_t)n, sizeof *sizes, by_size);
    for (int b = 0; b < 4; b++) s.within[b] /= n;
    s.bias = n > s.failed ? sum / (n - s.failed) : 0;
    s.median = n % 2 ? sizes[n / 2] : (sizes[n / 2 - 1] + sizes[n / 2]) / 2;
    const int at = (int)(0.9 * n);
    s.p90 = sizes[at < n ? at : n - 1];
    s.most = sizes[n - 1];
    free(sizes);
    return s;
}

/* ---- the contract ---- */

enum { P_DEVICE, P_IDLE, P_RESERVED, P_TUNING, P_FULL, P_ROUNDED };

static const struct promise promises[PROMISES] = {
    [P_DEVICE] = {"device", .05, .12},
    [P_IDLE] = {"exact, after step or idle", .005, .02},
    [P_RESERVED] = {"exact, peak reserved", .02, .06},
    [P_TUNING] = {"exact, peak, fine-tuning", .02, .06},
    [P_FULL] = {"exact, peak, full training", .01, .04},
    [P_ROUNDED] = {"rounded, anything", .05, .12},
};

const struct promise *score_promise(int index)
{
    return &promises[index];
}

static bool has_adapters(const struct corpus_case *c)
{
    for (int i = 0; i < c->n_sets; i++)
        if (!strncmp(c->sets[i], "lora.rank=", 10)) return true;
    return false;
}

int score_promise_of(const struct row *row)
{
    if (!strcmp(row->c->tier, "trend")) return -1;
    if (row->quantity == Q_DEVICE) return P_DEVICE;
    if (!strcmp(row->c->tier, "rounded")) return P_ROUNDED;
    if (row->quantity == Q_AFTER_STEP || row->quantity == Q_IDLE) return P_IDLE;
    if (row->quantity == Q_RESERVED) return P_RESERVED;
    return has_adapters(row->c) ? P_TUNING : P_FULL;
}

bool score_is_pair(const struct row *a, const struct row *b)
{
    if (!a->c->pair || !b->c->pair || strcmp(a->c->pair, b->c->pair) || a->quantity != b->quantity) return false;
    const double x = (double)a->measured, y = (double)b->measured;
    return magnitude(x - y) > 0.02 * (x > y ? x : y);
}

bool score_is_ordered(const struct row *a, const struct row *b)
{
    return a->measured > b->measured ? a->predicted > b->predicted : a->predicted < b->predicted;
}

struct pairs score_pairs(const struct score *score)
{
    struct pairs pairs = {0};
    for (int i = 0; i < score->n_rows; i++)
        for (int j = i + 1; j < score->n_rows; j++) {
            const struct row *a = &score->rows[i], *b = &score->rows[j];
            if (!score_is_pair(a, b)) continue;
            pairs.total++;
            pairs.right += score_is_ordered(a, b);
        }
    return pairs;
}
