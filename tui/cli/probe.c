/* `oomcast probe`: runs the workload in this process, for a person or, with --json, for the process that started it. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "tui/cli/cli.h"
#include "tui/report/report.h"

static const uint64_t default_limit = 256u << 20; /* bytes; polite enough to run without being asked */
static const double default_seconds = 2;          /* on a core that has nothing else to do */

static const char *const events[] = {
    [OC_PROBE_DONE] = "done", [OC_PROBE_OOM] = "oom", [OC_PROBE_CANCELLED] = "cancelled", [OC_PROBE_FAILED] = "failed"};

/* What a run needs and makes; large, so on the heap. */
struct run {
    const struct oc_args *args;
    struct oc_input input;
    struct oc_plan plan;
    struct oc_probe_result result;
    struct oc_ledger ledger; /* the model's, at the same shape */
    struct oc_rank model;
    char cut[224];  /* what was made smaller, "" if nothing */
    char phase[32]; /* of the last progress line, */
    double said;    /* and when it was written, seconds */
};

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

/* A line when the phase changes, and otherwise ten a second: the reader draws them. */
static bool say_progress(void *user, const char *phase, int step, int steps)
{
    struct run *run = user;
    set_watch(run->args);
    if (is_cancelled()) return false;
    if (!run->args->json) return true;
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
    bool written = !line.failed && oc_cli_print(line.data, line.size);
    oc_buffer_free(&line);
    return written;
}

/* ---- the result, for programs ---- */

/* What the GPU itself said. Without one there is nothing: host memory is not a GPU's. */
static void put_device_json(struct oc_json *json, const struct oc_probe_result *result)
{
    const struct oc_device_bytes *bytes = &result->bytes;
    if (!bytes->measured) return;
    oc_json_object(json, "gpu", true);
    oc_json_string(json, "name", bytes->name);
    oc_json_unsigned(json, "total", bytes->total);
    oc_json_unsigned(json, "before", bytes->before);
    oc_json_unsigned(json, "peak", bytes->peak);
    oc_json_signed(json, "overhead", oc_device_overhead(result));
    if (bytes->context_known)
        oc_json_unsigned(json, "context", bytes->context);
    else
        oc_json_null(json, "context");
    if (bytes->others >= 0)
        oc_json_signed(json, "others", bytes->others);
    else
        oc_json_null(json, "others");
    oc_json_string(json, "by", oc_evidence_name(OC_MEASURED));
    oc_json_close(json);
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void put_numerics_json(struct oc_json *json, const struct oc_probe_result *result)
{
    const struct oc_probe_numerics *n = &result->numerics;
    if (result->n_losses == 0) return;
    oc_json_object(json, "numerics", true);
    oc_json_number(json, "gradient_norm", n->norm);
    oc_json_number(json, "loss_scale", n->loss_scale);
    oc_json_signed(json, "skipped_steps", n->skipped);
    oc_json_number(json, "fp16_underflow_unscaled", share(n->flushed, n->gradients));
    oc_json_number(json, "fp16_underflow_scaled", share(n->flushed_scaled, n->gradients));
    oc_json_number(json, "updates_lost", share(n->lost, n->updates));
    oc_json_number(json, "updates_lost_bf16_no_master", share(n->lost_bf16, n->updates));
    oc_json_number(json, "updates_lost_fp16_no_master", share(n->lost_fp16, n->updates));
    oc_json_close(json);
}

static void put_json(const struct run *run, struct oc_buffer *out)
{
    const struct oc_probe_result *result = &run->result;
    struct oc_json json = {.out = out, .inline_all = true};
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, run->plan.hash);
    oc_json_object(&json, NULL, true);
    oc_json_string(&json, "event", events[result->status]);
    oc_json_string(&json, "plan", hash);
    oc_json_string(&json, "device", oc_device_name(result->device));
    if (result->fallback[0]) oc_json_string(&json, "fallback", result->fallback);
    if (result->status != OC_PROBE_DONE) oc_json_string(&json, "why", result->why);
    oc_json_string(&json, "cut", run->cut);
    oc_json_number(&json, "seconds", result->seconds);
    if (result->status == OC_PROBE_DONE) oc_json_rank(&json, "rank", &run->plan, &result->rank, NULL);
    oc_json_array(&json, "losses", true);
    for (int i = 0; i < result->n_losses; i++) oc_json_number(&json, NULL, result->losses[i]);
    oc_json_close(&json);
    oc_json_array(&json, "entries", true);
    for (int i = 0; i < result->n_entries; i++) {
        const struct oc_measured_entry *entry = &result->entries[i];
        oc_json_object(&json, NULL, true);
        oc_json_string(&json, "class", oc_class_name((enum oc_class)entry->class));
        oc_json_string(&json, "name", entry->name);
        oc_json_string(&json, "dtype", oc_dtype_name((enum oc_dtype)entry->dtype));
        oc_json_unsigned(&json, "count", entry->count);
        oc_json_unsigned(&json, "bytes", entry->bytes);
        oc_json_close(&json);
    }
    oc_json_close(&json);
    put_numerics_json(&json, result);
    put_device_json(&json, result);
    oc_json_close(&json);
}

/* ---- the result, for people ---- */

static void put_line(struct oc_buffer *out, const char *name, uint64_t model, uint64_t measured, enum oc_unit unit)
{
    char a[OC_BYTES_TEXT], b[OC_BYTES_TEXT], c[OC_BYTES_TEXT];
    oc_putf(out, "  %-24s%16s%16s%20s\n", name, oc_format_amount(model, unit, 15, a, sizeof a),
            oc_format_amount(measured, unit, 15, b, sizeof b),
            oc_format_change(model, measured, OC_UNIT_BYTES, 19, c, sizeof c));
}

/* The classes at the steady peak and the sum at each moment, beside the model at the same shape. */
static void put_comparison(const struct run *run, struct oc_buffer *out)
{
    const struct oc_rank *model = &run->model, *rank = &run->result.rank;
    const enum oc_unit unit = run->args->unit;
    oc_putf(out, "\n  %-24s%16s%16s%20s\n", "steady iteration", "model", oc_evidence_name(rank->allocated_by),
            "difference, B");
    oc_putf(out, "  allocated at its peak, %s\n", oc_unit_name(unit));
    for (int class = 0; class < OC_CLASSES; class ++) {
        char name[24];
        snprintf(name, sizeof name, "  %c %s", oc_class_letter((enum oc_class) class),
                 oc_class_name((enum oc_class) class));
        put_line(out, name, model->peak.classes[class], rank->peak.classes[class], unit);
    }
    put_line(out, "  = all", model->peak.allocated, rank->peak.allocated, unit);
    oc_putf(out, "  allocated at most in, %s\n", oc_unit_name(unit));
    for (int m = 0; m < OC_MOMENTS; m++) {
        const struct oc_instant *a = &model->moments[OC_STEADY][m], *b = &rank->moments[OC_STEADY][m];
        char name[24];
        snprintf(name, sizeof name, "  %s", oc_moment_name((enum oc_moment)m));
        if (a->exists && b->exists) put_line(out, name, a->allocated, b->allocated, unit);
    }
    put_line(out, "reserved", model->reserved, rank->reserved, unit);
}

static void put_amount(struct oc_buffer *out, const char *name, uint64_t bytes, enum oc_unit unit, const char *note)
{
    char amount[OC_BYTES_TEXT];
    oc_putf(out, "  %-24s%16s%16s  %s\n", name, "", oc_format_amount(bytes, unit, 15, amount, sizeof amount), note);
}

/* Below the allocator: what the driver took, and whether it gave what it was asked for. */
static void put_device(const struct run *run, struct oc_buffer *out)
{
    const struct oc_device_bytes *bytes = &run->result.bytes;
    const enum oc_unit unit = run->args->unit;
    if (!bytes->measured) return;
    const int64_t overhead = oc_device_overhead(&run->result);
    char more[OC_BYTES_TEXT], others[64] = "of every process";
    if (bytes->others == 0) snprintf(others, sizeof others, "this process alone");
    if (bytes->others > 0) snprintf(others, sizeof others, "%d other processes too", bytes->others);
    oc_putf(out, "  on the device, %s\n", oc_unit_name(unit));
    if (bytes->context_known) put_amount(out, "  context", bytes->context, unit, "measured");
    put_amount(out, "  before the run", bytes->before, unit, others);
    snprintf(more, sizeof more, "%+" PRId64 " B beyond reserved", overhead);
    put_amount(out, "  at its peak", bytes->peak, unit, more);
}

static void put_losses(const struct oc_probe_result *result, struct oc_buffer *out)
{
    if (result->n_losses == 0) return;
    struct oc_buffer line = {0};
    for (int i = 0; i < result->n_losses; i++) oc_putf(&line, "%s%.4f", i ? " " : "", result->losses[i]);
    oc_put(out, "\n  loss  ");
    if (line.data) oc_put_wrapped(out, line.data, 8, 8, 78);
    out->failed |= line.failed;
    oc_buffer_free(&line);
}

/* Why loss scaling and master copies exist, in this run's own numbers. */
static void put_numerics(const struct run *run, struct oc_buffer *out)
{
    const struct oc_probe_numerics *n = &run->result.numerics;
    const struct oc_dtypes *dt = &run->plan.dt;
    if (run->result.n_losses == 0 || n->gradients == 0) return;
    oc_putf(out,
            "\n  gradients that fp16 holds as zero     %6.2f %%\n"
            "    with the loss scaled by 65536 first %6.2f %%\n",
            100 * share(n->flushed, n->gradients), 100 * share(n->flushed_scaled, n->gradients));
    oc_putf(out, "  updates lost to rounding, this run    %6.2f %% (%s %s)\n", 100 * share(n->lost, n->updates),
            oc_dtype_name(dt->master != OC_NONE ? dt->master : dt->weights),
            dt->master != OC_NONE ? "master copies" : "weights");
    oc_putf(out, "    with 16-bit weights and no master   %6.2f %% in bf16, %.2f %% in fp16\n",
            100 * share(n->lost_bf16, n->updates), 100 * share(n->lost_fp16, n->updates));
    if (n->loss_scale > 1 || n->skipped > 0)
        oc_putf(out, "  steps skipped, gradients overflowed   %6d   (the loss scale is now %.0f)\n", n->skipped,
                n->loss_scale);
}

static void put_text(const struct run *run, struct oc_buffer *out)
{
    const struct oc_probe_result *result = &run->result;
    const struct oc_config *c = &run->plan.c;
    oc_putf(out,
            "%s on %s: %" PRId64 " layers, hidden %" PRId64 ", vocabulary %" PRId64 ", %" PRId64 " x %" PRId64
            " tokens, %.2f s\n",
            result->device == OC_DEVICE_DRY ? "Simulated" : "Measured",
            result->bytes.measured ? result->bytes.name : oc_device_name(result->device), c->model_layers,
            c->model_hidden, run->plan.vocab, c->batch_micro, c->batch_seq, result->seconds);
    if (run->cut[0]) {
        oc_put(out, "  cut to this size: ");
        oc_put_wrapped(out, run->cut, 20, 4, 78);
    }
    if (result->fallback[0]) {
        oc_put(out, "  No GPU was used: ");
        oc_put_wrapped(out, result->fallback, 19, 4, 78);
    }
    put_comparison(run, out);
    put_device(run, out);
    put_losses(result, out);
    put_numerics(run, out);
}

/* ---- the command ---- */

/* The model beside it: the same plan, from formulas. */
static bool estimate(struct run *run, struct oc_error *error)
{
    const struct oc_plan *plan = &run->plan;
    if (!oc_estimate(plan, 0, &run->ledger, error)) return false;
    oc_sweep(&run->ledger, &run->model);
    const struct oc_alloc_provider imaginary = {.expandable_segments = plan->c.allocator_expandable_segments != 0};
    struct oc_alloc *alloc = oc_alloc_create(&imaginary);
    bool done = alloc && oc_reserve(plan, &run->ledger, alloc, &run->model);
    oc_alloc_destroy(alloc);
    return done || oc_fail(error, OC_E_INTERNAL, "out of memory");
}

static enum oc_exit probe(struct run *run, struct oc_buffer *out, struct oc_error *error)
{
    const struct oc_args *args = run->args;
    if (!oc_cli_load(args, &run->input, error) || !oc_resolve(&run->input.c.config, &run->plan, NULL, error))
        return oc_cli_status(error);
    const bool full = args->full || args->device == OC_DEVICE_DRY; /* which costs nothing at any size */
    const uint64_t limit = args->limit ? (uint64_t)args->limit : full ? 0 : default_limit;
    if (!full) oc_probe_fit(&run->plan, limit, default_seconds, run->cut, sizeof run->cut);

    const struct oc_probe_options options = {.device = args->device,
                                             .steps = args->steps,
                                             .limit = limit,
                                             .alone = args->polite,
                                             .progress = say_progress,
                                             .user = run};
    hold_signals();
    set_watch(args);
    const bool done = oc_probe_run(&run->plan, &options, &run->result);
    if (args->json) {
        put_json(run, out);
    } else if (!done) {
        oc_putf(out, "The probe %s: %s.\n", events[run->result.status], run->result.why);
    } else {
        if (!estimate(run, error)) return oc_cli_status(error);
        put_text(run, out);
    }
    return done ? OC_EXIT_DONE : OC_EXIT_PROBE;
}

enum oc_exit oc_cli_probe(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    if (!tie_to_parent(args->parent)) {
        oc_fail(error, OC_E_USAGE, "process %" PRId64 ", which started this probe, is gone", args->parent);
        return OC_EXIT_PROBE;
    }
    struct run *run = calloc(1, sizeof *run);
    if (!run) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        return OC_EXIT_INTERNAL;
    }
    run->args = args;
    enum oc_exit status = probe(run, out, error);
    free(run);
    return status;
}
