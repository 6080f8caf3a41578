/* What a probe found, for people: beside the model at the same shape. */
#include <inttypes.h>
#include <stdio.h>

#include "tui/cli/probe.h"

static void put_line(struct oc_buffer *out, const char *name, uint64_t model, uint64_t measured, enum oc_unit unit)
{
    char a[OC_BYTES_TEXT], b[OC_BYTES_TEXT], c[OC_BYTES_TEXT];
    oc_putf(out, "  %-24s%16s%16s%20s\n", name, oc_format_amount(model, unit, 15, a, sizeof a),
            oc_format_amount(measured, unit, 15, b, sizeof b),
            oc_format_change(model, measured, OC_UNIT_BYTES, 19, c, sizeof c));
}

/* The classes at the steady peak and the sum at each moment, beside the model at the same shape. */
static void put_comparison(const struct oc_probe_run *run, struct oc_buffer *out)
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

/* Host memory: by how much the process's largest resident set grew, to hold against what was allocated. */
static void put_resident(const struct oc_probe_run *run, struct oc_buffer *out)
{
    const struct oc_rank *rank = &run->result.rank;
    char note[64];
    if (!run->result.resident) return;
    uint64_t peak = rank->peak.allocated;
    if (rank->first_peak.allocated > peak) peak = rank->first_peak.allocated;
    snprintf(note, sizeof note, "%.1f %% of allocated",
             100 * oc_probe_share((double)run->result.resident, (double)peak));
    put_amount(out, "resident (VmHWM)", run->result.resident, run->args->unit, note);
}

/* Below the allocator: what the driver took, and whether it gave what it was asked for. */
static void put_device(const struct oc_probe_run *run, struct oc_buffer *out)
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

/* What follows for the whole model: of a cut in layers alone its peak is known, of any other nothing. */
static void put_extrapolated(const struct oc_probe_run *run, struct oc_buffer *out)
{
    char amount[OC_BYTES_TEXT], reserved[OC_BYTES_TEXT];
    const enum oc_unit unit = run->args->unit;
    if (!run->cut[0]) return;
    if (!run->extrapolated) {
        oc_put(out, "  nothing follows for the full size: more than layers was cut\n");
        return;
    }
    oc_putf(out, "  extrapolated to %" PRId64 " layers: %s allocated, %s reserved\n", run->whole.c.model_layers,
            oc_format_bytes(run->full.rank.peak.allocated, unit, amount, sizeof amount),
            oc_format_bytes(run->full.rank.reserved, unit, reserved, sizeof reserved));
}

/* Why loss scaling and master copies exist, in this run's own numbers. */
static void put_numerics(const struct oc_probe_run *run, struct oc_buffer *out)
{
    const struct oc_probe_numerics *n = &run->result.numerics;
    const struct oc_dtypes *dt = &run->plan.dt;
    if (run->result.n_losses == 0 || n->gradients == 0) return;
    oc_putf(out,
            "\n  gradients that fp16 holds as zero     %6.2f %%\n"
            "    with the loss scaled by 65536 first %6.2f %%\n",
            100 * oc_probe_share(n->flushed, n->gradients), 100 * oc_probe_share(n->flushed_scaled, n->gradients));
    oc_putf(out, "  updates lost to rounding, this run    %6.2f %% (%s %s)\n",
            100 * oc_probe_share(n->lost, n->updates), oc_dtype_name(dt->master != OC_NONE ? dt->master : dt->weights),
            dt->master != OC_NONE ? "master copies" : "weights");
    oc_putf(out, "    with 16-bit weights and no master   %6.2f %% in bf16, %.2f %% in fp16\n",
            100 * oc_probe_share(n->lost_bf16, n->updates), 100 * oc_probe_share(n->lost_fp16, n->updates));
    if (n->loss_scale > 1 || n->skipped > 0)
        oc_putf(out, "  steps skipped, gradients overflowed   %6d   (the loss scale is now %.0f)\n", n->skipped,
                n->loss_scale);
}

void oc_probe_put_text(const struct oc_probe_run *run, struct oc_buffer *out)
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
    put_resident(run, out);
    put_device(run, out);
    put_extrapolated(run, out);
    put_losses(result, out);
    put_numerics(run, out);
}
