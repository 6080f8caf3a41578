/* What a probe found, for programs: the last line of `oomcast probe --json`. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tui/cli/probe.h"

const char *oc_probe_event(enum oc_probe_status status)
{
    static const char *const events[] = {[OC_PROBE_DONE] = "done",
                                         [OC_PROBE_OOM] = "oom",
                                         [OC_PROBE_CANCELLED] = "cancelled",
                                         [OC_PROBE_FAILED] = "failed"};
    return events[status];
}

double oc_probe_share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* What the GPU itself said; without one, what the system says of this process's memory. */
static void put_device_json(struct oc_json *json, const struct oc_probe_result *result)
{
    const struct oc_device_bytes *bytes = &result->bytes;
    if (result->resident) oc_json_unsigned(json, "resident", result->resident);
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

static void put_numerics_json(struct oc_json *json, const struct oc_probe_result *result)
{
    const struct oc_probe_numerics *n = &result->numerics;
    if (result->n_losses == 0) return;
    oc_json_object(json, "numerics", true);
    oc_json_number(json, "gradient_norm", n->norm);
    oc_json_number(json, "loss_scale", n->loss_scale);
    oc_json_signed(json, "skipped_steps", n->skipped);
    oc_json_number(json, "fp16_underflow_unscaled", oc_probe_share(n->flushed, n->gradients));
    oc_json_number(json, "fp16_underflow_scaled", oc_probe_share(n->flushed_scaled, n->gradients));
    oc_json_number(json, "updates_lost", oc_probe_share(n->lost, n->updates));
    oc_json_number(json, "updates_lost_bf16_no_master", oc_probe_share(n->lost_bf16, n->updates));
    oc_json_number(json, "updates_lost_fp16_no_master", oc_probe_share(n->lost_fp16, n->updates));
    oc_json_close(json);
}

/* The whole number of layers, from the slope of the same step: only of a cut in layers alone anything is known. */
static void put_extrapolated(struct oc_json *json, const struct oc_probe_run *run)
{
    if (!run->extrapolated) {
        oc_json_null(json, "extrapolated");
        return;
    }
    const struct oc_rank *rank = &run->full.rank;
    oc_json_object(json, "extrapolated", true);
    oc_json_signed(json, "layers", run->whole.c.model_layers);
    oc_json_unsigned(json, "requested", rank->peak.requested);
    oc_json_unsigned(json, "allocated", rank->peak.allocated);
    oc_json_unsigned(json, "reserved", rank->reserved);
    oc_json_classes(json, "classes", rank->peak.classes);
    oc_json_string(json, "by", oc_evidence_name(rank->allocated_by));
    oc_json_close(json);
}

static void put_launch(struct oc_json *json, const struct oc_probe_run *run)
{
    char host[65] = "";
    if (run->launch.world < 2) return;
    gethostname(host, sizeof host - 1);
    oc_json_object(json, "launch", true);
    oc_json_signed(json, "rank", run->launch.rank);
    oc_json_signed(json, "world", run->launch.world);
    oc_json_signed(json, "local", run->launch.local);
    oc_json_string(json, "by", run->launch.by);
    oc_json_string(json, "host", host);
    oc_json_close(json);
}

void oc_probe_put_json(const struct oc_probe_run *run, struct oc_buffer *out)
{
    const struct oc_probe_result *result = &run->result;
    struct oc_json json = {.out = out, .inline_all = true};
    char hash[24];
    snprintf(hash, sizeof hash, "%016" PRIx64, run->plan.hash);
    oc_json_object(&json, NULL, true);
    oc_json_string(&json, "event", oc_probe_event(result->status));
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
    put_extrapolated(&json, run);
    put_launch(&json, run);
    put_numerics_json(&json, result);
    put_device_json(&json, result);
    oc_json_close(&json);
}

/* The line says its own length, so that a reader knows one that was torn: launchers cut what is longer than a pipe's
 * atomic write (4096 bytes), and may cut what comes in more than one. */
void oc_probe_put_short(const struct oc_probe_run *run, struct oc_buffer *out)
{
    const struct oc_probe_result *result = &run->result;
    const struct oc_rank *rank = &result->rank;
    static const char length[] = "\"0000\"}\n";
    char hash[24], digits[24];
    const size_t start = out->size;
    struct oc_json json = {.out = out, .inline_all = true};
    snprintf(hash, sizeof hash, "%016" PRIx64, run->plan.hash);
    oc_json_object(&json, NULL, true);
    oc_json_string(&json, "event", oc_probe_event(result->status));
    oc_json_string(&json, "plan", hash);
    oc_json_string(&json, "device", oc_device_name(result->device));
    put_launch(&json, run);
    if (result->fallback[0]) oc_json_string(&json, "fallback", result->fallback);
    if (result->status != OC_PROBE_DONE) oc_json_string(&json, "why", result->why);
    if (result->status == OC_PROBE_DONE) {
        oc_json_object(&json, "rank", true);
        oc_json_signed(&json, "stage", rank->stage);
        oc_json_unsigned(&json, "params", rank->params);
        oc_json_object(&json, "peak", true);
        oc_json_string(&json, "moment", oc_moment_name(rank->peak.place.moment));
        oc_json_unsigned(&json, "requested", rank->peak.requested);
        oc_json_unsigned(&json, "allocated", rank->peak.allocated);
        oc_json_unsigned(&json, "reserved", rank->reserved);
        oc_json_classes(&json, "classes", rank->peak.classes);
        oc_json_close(&json);
        oc_json_close(&json);
    }
    if (result->n_losses > 0) oc_json_number(&json, "loss", result->losses[result->n_losses - 1]);
    put_device_json(&json, result);
    oc_json_number(&json, "seconds", result->seconds);
    oc_json_string(&json, "length", "0000");
    oc_json_close(&json);
    if (out->failed || out->size < start + sizeof length) return;
    snprintf(digits, sizeof digits, "%04zu", out->size - start - 1);
    memcpy(out->data + out->size - sizeof length + 2, digits, 4);
}
