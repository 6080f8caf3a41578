/* One run of the probe: a plan in, what was measured out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probes/train.h"

enum { STEPS_AT_LEAST = 2 };

static void fail(struct oc_probe_result *result, enum oc_probe_status status, const char *why)
{
    result->status = status;
    snprintf(result->why, sizeof result->why, "%s", why);
}

/* The rows of the largest instant, the largest first. */
static void take_entries(const struct oc_books *books, struct oc_probe_result *result)
{
    for (int i = 0; i < books->n_at_peak; i++) {
        const struct oc_book_row *row = &books->at_peak[i];
        if (row->count == 0) continue;
        struct oc_measured_entry entry = {
            .class = row->class, .dtype = row->dtype, .count = row->count, .bytes = row->bytes};
        snprintf(entry.name, sizeof entry.name, "%s.%s", row->block, row->name);
        int at = result->n_entries++;
        for (; at > 0 && result->entries[at - 1].bytes < entry.bytes; at--)
            result->entries[at] = result->entries[at - 1];
        result->entries[at] = entry;
    }
}

static void say_out_of_memory(const struct oc_books *books, struct oc_probe_result *result)
{
    char place[64];
    result->status = OC_PROBE_OOM;
    snprintf(result->why, sizeof result->why,
             "no room for %llu more bytes in %s (%s): %llu are allocated and %llu reserved",
             (unsigned long long)books->wanted, oc_moment_name(books->place.moment),
             oc_place_text(&books->place, place, sizeof place), (unsigned long long)books->allocated,
             (unsigned long long)oc_books_reserved(books));
}

static void run_steps(struct oc_train *train, struct oc_probe_result *result)
{
    const int steps = train->options->steps;
    for (train->step = 0; train->step < steps && !oc_train_stopped(train); train->step++) {
        oc_train_step(train);
        if (oc_train_stopped(train)) break;
        if (train->backend->device != OC_DEVICE_DRY && result->n_losses < OC_MAX_LOSSES)
            result->losses[result->n_losses++] = train->loss;
    }
    result->numerics = train->numerics;
    result->numerics.loss_scale = (double)train->loss_scale;
    if (train->backend->failed)
        fail(result, OC_PROBE_FAILED, train->backend->why);
    else if (train->books->out_of_memory)
        say_out_of_memory(train->books, result);
    else if (train->cancelled)
        fail(result, OC_PROBE_CANCELLED, "the run was cancelled");
    else
        result->status = OC_PROBE_DONE;
}

static void run_on(struct oc_probe_backend *backend, const struct oc_plan *plan, const struct oc_probe_options *options,
                   struct oc_probe_result *result)
{
    struct oc_books books;
    struct oc_train train;
    if (options->drop) backend->segments.unused = NULL; /* a dropped tensor keeps its poison */
    if (!oc_books_open(&books, backend, plan->c.allocator_expandable_segments != 0, options->poison, &result->rank)) {
        fail(result, OC_PROBE_FAILED, "there is no host memory for the allocator");
        return;
    }
    books.trace = options->trace;
    books.trace_user = options->user;
    if (oc_train_open(&train, plan, options, backend, &books))
        run_steps(&train, result);
    else
        fail(result, OC_PROBE_FAILED, "there is no host memory for the list of parameters");
    oc_books_finish(&books);
    take_entries(&books, result);
    oc_train_close(&train);
    oc_books_close(&books);
}

int64_t oc_device_overhead(const struct oc_probe_result *result)
{
    return (int64_t)(result->bytes.peak - result->bytes.before) - (int64_t)result->rank.reserved;
}

/* Opens what `options` ask for, or for AUTO what there is. False with the reason in the result. */
static bool open_backend(struct oc_probe_backend *backend, const struct oc_probe_options *options,
                         struct oc_probe_result *result)
{
    if (options->device == OC_DEVICE_DRY) {
        oc_backend_dry(backend, options->limit);
        return true;
    }
    if (options->device != OC_DEVICE_HOST) {
        if (oc_backend_cuda(backend, options->ordinal, options->wrap, options->limit)) {
            const bool taken = options->alone && options->device == OC_DEVICE_AUTO && backend->bytes.others != 0;
            if (!taken) return true;
            backend->close(backend);
            snprintf(backend->why, sizeof backend->why, "other processes may be computing on the GPU");
        }
        if (options->device == OC_DEVICE_CUDA) {
            fail(result, OC_PROBE_FAILED, backend->why);
            return false;
        }
        snprintf(result->fallback, sizeof result->fallback, "%s", backend->why);
    }
    oc_backend_host(backend, options->limit);
    return true;
}

bool oc_probe_run(const struct oc_plan *plan, const struct oc_probe_options *options, struct oc_probe_result *result)
{
    const double start = oc_seconds();
    struct oc_probe_options own = *options;
    if (own.steps < STEPS_AT_LEAST) own.steps = STEPS_AT_LEAST;
    memset(result, 0, sizeof *result);
    result->device = options->device == OC_DEVICE_AUTO ? OC_DEVICE_HOST : options->device;
    result->plan_hash = plan->hash;
    result->rank.ranks = 1;
    result->rank.stage = options->stage;

    const char *reason = oc_probe_covers(plan);
    struct oc_probe_backend backend;
    if (reason) {
        fail(result, OC_PROBE_FAILED, reason);
    } else if (open_backend(&backend, &own, result)) {
        const bool watched = backend.device == OC_DEVICE_HOST && !own.poison;
        const uint64_t high_water = watched ? oc_host_high_water() : 0;
        result->device = backend.device;
        run_on(&backend, plan, &own, result);
        if (watched) result->resident = oc_host_high_water() - high_water;
        result->bytes = backend.bytes;
        backend.close(&backend);
    }
    result->seconds = oc_seconds() - start;
    return result->status == OC_PROBE_DONE;
}
