/* How long the model takes, beside its budgets (docs/DESIGN.md, "Budgets"): Llama-3-70B on Megatron-LM, TP 8, PP 4,
 * VPP 5.
 *
 *     bench               every row: best and median time
 *     bench ROW TIMES     runs one row and prints nothing: tests/bench/instructions counts what it executes */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oomcast/model.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* What is timed works on these. Ledgers and answers are large, so they live on the heap. */
struct subject {
    struct oc_config config;
    struct oc_plan plan;
    struct oc_ledger *ledgers; /* one per stage */
    struct oc_rank *ranks;
    struct oc_answer *answer;
    struct oc_alloc *alloc;
    struct oc_error error;
    int stages, worst;
    long events; /* births and deaths of the replay */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool estimate_entries(struct subject *s)
{
    for (int i = 0; i < s->stages; i++)
        if (!oc_estimate(&s->plan, i, &s->ledgers[i], &s->error)) return false;
    return true;
}

static bool estimate_all(struct subject *s)
{
    for (int i = 0; i < s->stages; i++) {
        if (!oc_estimate(&s->plan, i, &s->ledgers[i], &s->error)) return false;
        oc_sweep(&s->ledgers[i], &s->ranks[i]);
    }
    return true;
}

static bool reserve_worst(struct subject *s)
{
    return oc_reserve(&s->plan, &s->ledgers[s->worst], s->alloc, &s->ranks[s->worst]);
}

static bool answer(struct subject *s)
{
    return oc_answer(&s->config, s->answer, NULL, s->alloc, &s->error);
}

/* The whole search space of advice, on a GPU that no single change and no pair makes it fit. */
static bool advise(struct subject *s)
{
    static struct oc_advices advices;
    struct oc_config config = s->config;
    return oc_config_assign(&config, "gpu=t4", NULL, &s->error) && oc_advise(&config, s->alloc, &advices, &s->error);
}

/* The program itself, on a launch script. */
static bool check_script(struct subject *s)
{
    (void)s;
    int status =
        system(OOMCAST_BIN " check " OOMCAST_SOURCE "/examples/llama3-8b-adam-distopt-bf16.sh >/dev/null 2>&1");
    return WIFEXITED(status) && WEXITSTATUS(status) <= 1; /* 0 fits, 1 does not */
}

static bool resolve(struct subject *s)
{
    return oc_resolve(&s->config, &s->plan, NULL, &s->error);
}

static bool start_program(struct subject *s)
{
    (void)s;
    return system(OOMCAST_BIN " --version >/dev/null 2>&1") == 0;
}

static const struct {
    const char *what;
    bool (*run)(struct subject *s);
    double budget; /* microseconds; 0: none of its own */
    int times;
} rows[] = {
    {"resolve", resolve, 0, 2000},
    {"estimate all stages, entries alone", estimate_entries, 20, 2000},
    {"estimate all stages, with their peaks", estimate_all, 20, 2000},
    {"reserve of the worst stage", reserve_worst, 2000, 100},
    {"answer: all stages estimated and reserved", answer, 4000, 50},
    {"advise: the whole search space", advise, 200000, 5},
    {"process start: --version", start_program, 30000, 20},
    {"process: check on a launch script", check_script, 10000, 20},
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs a row and prints its best and median time. Returns whether the best is within the budget. */
static bool measure(struct subject *s, int row)
{
    static double times[2000]; /* microseconds */
    for (int i = 0; i < rows[row].times; i++) {
        double begin = now();
        if (!rows[row].run(s)) {
            printf("%-44s failed: %s\n", rows[row].what, s->error.message);
            return false;
        }
        times[i] = now() - begin;
    }
    qsort(times, (size_t)rows[row].times, sizeof *times, compare);
    double best = times[0], median = times[rows[row].times / 2];
    printf("%-44s %10.1f %10.1f", rows[row].what, best, median);
    bool within = rows[row].budget == 0 || best <= rows[row].budget;
    if (rows[row].budget > 0)
        printf(" %10.0f %8.2f %s", rows[row].budget, best / rows[row].budget, within ? "" : "over");
    putchar('\n');
    return within;
}

static bool count_event(const struct oc_event *event, void *user)
{
    (void)event;
    ++*(long *)user;
    return true;
}

static void print_figures(struct subject *s)
{
    for (int i = 0; i < s->stages; i++) {
        const struct oc_rank *rank = &s->ranks[i];
        printf("stage %d: %3d entries, %4d slots, %.3f GiB allocated at the peak", i, s->ledgers[i].n_entries,
               s->ledgers[i].n_slots, (double)rank->peak.allocated / GIB);
        if (i == s->worst)
            printf(", %.3f GiB reserved after %ld births and deaths", (double)rank->reserved / GIB, s->events);
        putchar('\n');
    }
}

static bool set_up(struct subject *s)
{
    static const char *const settings[] = {
        "framework=megatron", "model.name=llama-3-70b", "parallel.tp=8",   "parallel.sp=true", "parallel.pp=4",
        "parallel.vpp=5",     "parallel.world=64",      "parallel.zero=1", "batch.seq=8192",   "batch.micro=1",
        "batch.global=256",   "precision=bf16",         "optimizer=adam",  "gpu=h100-80g",
    };
    s->config = oc_config_default();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        enum oc_option_id id;
        if (!oc_config_assign(&s->config, settings[i], &id, &s->error)) return false;
    }
    if (!oc_resolve(&s->config, &s->plan, NULL, &s->error)) return false;
    s->stages = (int)s->plan.c.parallel_pp;
    s->ledgers = calloc((size_t)s->stages, sizeof *s->ledgers);
    s->ranks = calloc((size_t)s->stages, sizeof *s->ranks);
    s->answer = calloc(1, sizeof *s->answer);
    s->alloc = oc_alloc_create(NULL);
    if (!s->ledgers || !s->ranks || !s->answer || !s->alloc) return oc_fail(&s->error, OC_E_INTERNAL, "out of memory");
    if (!estimate_all(s)) return false;
    for (int i = 1; i < s->stages; i++)
        if (s->ranks[i].peak.allocated > s->ranks[s->worst].peak.allocated) s->worst = i;
    oc_walk(&s->ledgers[s->worst], 3, count_event, &s->events);
    return true;
}

static bool repeat(struct subject *s, int row, int times)
{
    bool good = row >= 0 && row < (int)(sizeof rows / sizeof *rows);
    for (int i = 0; i < times && good; i++) good = rows[row].run(s);
    return good;
}

int main(int argc, char **argv)
{
    struct subject s = {0};
    bool good = set_up(&s);
    if (good && argc == 3) {
        good = repeat(&s, atoi(argv[1]), atoi(argv[2]));
    } else if (good) {
        printf("%-44s %10s %10s %10s %8s\n", "microseconds", "best", "median", "budget", "ratio");
        for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) good = measure(&s, i) && good;
        print_figures(&s);
    } else {
        char text[1024];
        fprintf(stderr, "bench: %s\n", oc_error_text(&s.error, text, sizeof text));
    }
    free(s.ledgers);
    free(s.ranks);
    free(s.answer);
    oc_alloc_destroy(s.alloc);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
