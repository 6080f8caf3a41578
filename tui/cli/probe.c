/* `oomcast probe`: runs the workload in this process, for a person or, with --json, for the process that started it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "tui/cli/probe.h"

static const uint64_t default_limit = 256u << 20; /* bytes; polite enough to run without being asked */
static const double default_seconds = 2;          /* on a core that has nothing else to do */

/* ---- the process that started it ---- */

/* Dies with its parent; false when the parent is gone already. The second check closes the gap before the first took
 * hold. */
static bool tie_to_parent(int64_t parent)
{
    if (parent == 0) return true;
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    return (int64_t)getppid() == parent;
}

/* TERM and INT cancel: they wait, blocked, until a progress call looks for them. */
static void hold_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static bool is_cancelled(void)
{
    sigset_t set;
    return sigpending(&set) == 0 && (sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1);
}

/* A process that somebody waits for ends itself when nothing happens for so long, whatever it is stuck in: the next
 * sign of life puts the end off again. */
static void set_watch(const struct oc_args *args)
{
    if (args->parent != 0) alarm((unsigned)args->quiet);
}

/* ---- progress ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Progress goes to a file of the rank's own, or to the one reader that there is: launchers tear the lines of many. */
static bool speaks(const struct oc_probe_run *run)
{
    return run->file >= 0 || (run->args->json && run->launch.world < 2);
}

static bool write_all(int file, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(file, text, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text += n, size -= (size_t)n;
    }
    return true;
}

/* A line when the phase changes, and otherwise ten a second: the reader draws them. */
static bool say_progress(void *user, const char *phase, int step, int steps)
{
    struct oc_probe_run *run = user;
    set_watch(run->args);
    if (is_cancelled()) return false;
    if (!speaks(run)) return true;
    const double time = now();
    if (!strcmp(run->phase, phase) && time - run->said < 0.1) return true;
    snprintf(run->phase, sizeof run->phase, "%s", phase);
    run->said = time;

    struct oc_buffer line = {0};
    struct oc_json json = {.out = &line, .inline_all = true};
    oc_json_object(&json, NULL, true);
    oc_json_string(&json, "event", "progress");
    oc_json_string(&json, "phase", phase);
    oc_json_signed(&json, "step", step);
    oc_json_number(&json, "fraction", steps > 0 ? (double)step / steps : 0);
    oc_json_close(&json);
    bool written = !line.failed &&
                   (run->file >= 0 ? write_all(run->file, line.data, line.size) : oc_cli_print(line.data, line.size));
    oc_buffer_free(&line);
    return written;
}

/* ---- the command ---- */

/* The model beside it: the same plan and stage, from formulas. Of the replay only the segments are taken: the books of
 * the probe count blocks as they were rounded, without what large blocks hold beyond that. */
static bool estimate(struct oc_probe_run *run, struct oc_error *error)
{
    const struct oc_plan *plan = &run->plan;
    if (!oc_estimate(plan, run->result.rank.stage, &run->ledger, error)) return false;
    oc_sweep(&run->ledger, &run->model);
    struct oc_rank replayed = run->model;
    const struct oc_alloc_provider imaginary = {.expandable_segments = plan->c.allocator_expandable_segments != 0};
    struct oc_alloc *alloc = oc_alloc_create(&imaginary);
    bool done = alloc && oc_reserve(plan, &run->ledger, alloc, &replayed);
    oc_alloc_destroy(alloc);
    run->model.reserved = replayed.reserved;
    run->model.reserved_by = replayed.reserved_by;
    return done || oc_fail(error, OC_E_INTERNAL, "out of memory");
}

/* DIR/rank-00007.jsonl, anew. */
static bool open_file(struct oc_probe_run *run, struct oc_error *error)
{
    char path[4200];
    run->file = -1;
    if (!run->args->out) return true;
    if (mkdir(run->args->out, 0777) != 0 && errno != EEXIST)
        return oc_fail(error, OC_E_IO, "%s: %s", run->args->out, strerror(errno));
    snprintf(path, sizeof path, "%.4096s/rank-%05d.jsonl", run->args->out, run->launch.rank);
    run->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return run->file >= 0 || oc_fail(error, OC_E_IO, "%s: %s", path, strerror(errno));
}

/* A job of as many ranks as were started, where nothing else was said of it. */
static void take_world(struct oc_probe_run *run)
{
    struct oc_config *c = &run->input.c.config;
    const int64_t model_ranks = c->parallel_tp * c->parallel_pp * c->parallel_cp;
    if (run->launch.world < 2 || oc_given(c, OC_OPT_parallel_world) || run->launch.world % model_ranks) return;
    c->parallel_world = run->launch.world;
    oc_set_given(c, OC_OPT_parallel_world, true);
}

/* Megatron deals ranks out to stages last: the first world / pp of them are stage 0. */
static int stage_of(const struct oc_probe_run *run)
{
    const int64_t stages = run->plan.c.parallel_pp, rank = run->launch.rank, world = run->launch.world;
    const int64_t stage = run->args->stage ? run->args->stage : rank * stages / world;
    return (int)(stage < stages ? stage : stages - 1);
}

/* Cuts the plan to its budget, unless it runs at full size. */
static void cut(struct oc_probe_run *run, uint64_t *limit)
{
    const struct oc_args *args = run->args;
    const bool budgeted = args->budget_bytes > 0 || args->budget_seconds > 0;
    const bool full = args->full || (args->device == OC_DEVICE_DRY && !budgeted); /* dry costs nothing at any size */
    const uint64_t own = full ? 0 : default_limit;
    *limit = args->limit ? (uint64_t)args->limit : args->budget_bytes ? (uint64_t)args->budget_bytes : own;
    run->whole = run->plan;
    if (full) return;
    const double seconds = args->budget_seconds > 0 ? (double)args->budget_seconds : default_seconds;
    oc_probe_fit(&run->plan, *limit, seconds, run->cut, sizeof run->cut);
}

/* A peak is linear in layers: where only they were cut, the same step in no memory knows that of the whole. */
static void extrapolate(struct oc_probe_run *run, int stage)
{
    if (run->plan.c.model_layers == run->whole.c.model_layers || !oc_probe_cut_layers_alone(&run->whole, &run->plan))
        return;
    struct oc_plan full = run->plan;
    full.c.model_layers = run->whole.c.model_layers;
    const struct oc_probe_options options = {.device = OC_DEVICE_DRY, .stage = stage, .steps = 3};
    run->extrapolated = oc_probe_run(&full, &options, &run->full);
}

static bool say_result(struct oc_probe_run *run, struct oc_buffer *out, struct oc_error *error)
{
    const struct oc_args *args = run->args;
    const bool many = run->launch.world > 1, done = run->result.status == OC_PROBE_DONE;
    if (run->file >= 0) {
        struct oc_buffer line = {0};
        oc_probe_put_json(run, &line);
        const bool written = !line.failed && write_all(run->file, line.data, line.size);
        oc_buffer_free(&line);
        if (!written) return oc_fail(error, OC_E_IO, "%s: %s", args->out, strerror(errno));
    }
    if (args->json && (many || run->file >= 0)) {
        oc_probe_put_short(run, out);
    } else if (args->json) {
        oc_probe_put_json(run, out);
    } else if (!done) {
        if (many) oc_putf(out, "Rank %d of %d: ", run->launch.rank, run->launch.world);
        oc_putf(out, "The probe %s: %s.\n", oc_probe_event(run->result.status), run->result.why);
    } else {
        if (!estimate(run, error)) return false;
        oc_probe_put_text(run, out);
    }
    return true;
}

static enum oc_exit probe(struct oc_probe_run *run, struct oc_buffer *out, struct oc_error *error)
{
    const struct oc_args *args = run->args;
    uint64_t limit;
    run->launch = (struct oc_launch){.world = 1, .by = ""};
    if (args->parent == 0) oc_find_rank(&run->launch); /* a screen's child is that screen's alone */
    if (!oc_cli_load(args, &run->input, error)) return oc_cli_status(error);
    take_world(run);
    if (!oc_resolve(&run->input.c.config, &run->plan, NULL, error) || !open_file(run, error))
        return oc_cli_status(error);
    cut(run, &limit);
    const int stage = stage_of(run);
    const struct oc_probe_options options = {.device = args->device,
                                             .ordinal = run->launch.local,
                                             .wrap = run->launch.world > 1,
                                             .stage = stage,
                                             .steps = args->steps,
                                             .limit = limit,
                                             .alone = args->polite,
                                             .progress = say_progress,
                                             .user = run};
    hold_signals();
    set_watch(args);
    const bool done = oc_probe_run(&run->plan, &options, &run->result);
    if (done) extrapolate(run, stage);
    const bool said = say_result(run, out, error);
    if (run->file >= 0) close(run->file);
    if (!said) return oc_cli_status(error);
    return done ? OC_EXIT_DONE : OC_EXIT_PROBE;
}

enum oc_exit oc_cli_probe(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    if (args->merge) return oc_cli_merge(args, out, error);
    if (!tie_to_parent(args->parent)) {
        oc_fail(error, OC_E_USAGE, "process %" PRId64 ", which started this probe, is gone", args->parent);
        return OC_EXIT_PROBE;
    }
    struct oc_probe_run *run = calloc(1, sizeof *run);
    if (!run) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        return OC_EXIT_INTERNAL;
    }
    run->args = args;
    enum oc_exit status = probe(run, out, error);
    free(run);
    return status;
}
