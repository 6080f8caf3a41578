/* The report for people: what run this is, what a rank holds when, whether it fits, why, and what was taken for
 * granted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/report/text.h"

enum { LABEL = 11 };

void oc_text_field(struct oc_buffer *out, const char *label, const char *text)
{
    oc_putf(out, "  %-*s", LABEL, label);
    oc_put_wrapped(out, text, 2 + LABEL, 2 + LABEL, OC_TEXT_WIDTH);
}

static const char *value(const struct oc_config *config, enum oc_option_id id, char text[OC_NAME_MAX])
{
    return oc_option_text(config, id, text, OC_NAME_MAX);
}

/* ---- what run this is ---- */

static void put_run(struct oc_buffer *out, const struct oc_plan *plan)
{
    char precision[OC_NAME_MAX], optimizer[OC_NAME_MAX], recompute[OC_NAME_MAX];
    struct oc_buffer line = {0};
    oc_putf(&line, "%s, %s, %s", oc_plan_framework(plan), value(&plan->c, OC_OPT_precision, precision),
            value(&plan->c, OC_OPT_optimizer, optimizer));
    if (plan->c.optimizer == OC_OPTIM_SGD)
        oc_put(&line, oc_plan_has_moment1(plan) ? " with momentum" : " without momentum");
    if (plan->has_shape) oc_putf(&line, ", recompute %s", value(&plan->c, OC_OPT_recompute, recompute));
    if (line.data) oc_text_field(out, "Run", line.data);
    out->failed |= line.failed;
    oc_buffer_free(&line);

    const struct {
        const char *what;
        enum oc_dtype dtype;
    } types[] = {{"weights", oc_stored_weights(plan)},
                 {"gradients", plan->dt.grads},
                 {"their copy in the step", plan->dt.step_grads},
                 {"master", plan->dt.master},
                 {"moment 1", plan->dt.moment1},
                 {"moment 2", plan->dt.moment2}};
    char text[200] = "";
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].dtype == OC_NONE) continue;
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "", types[i].what,
                 oc_dtype_name(types[i].dtype));
    }
    if (text[0]) oc_text_field(out, "Types", text);
}

static void put_model(struct oc_buffer *out, const struct oc_answer *answer)
{
    const struct oc_plan *plan = &answer->plan;
    char params[OC_BYTES_TEXT], text[480], name[OC_NAME_MAX + 2] = "";
    oc_format_count(answer->params_total, params, sizeof params);
    if (plan->c.model_name[0]) snprintf(name, sizeof name, "%s: ", plan->c.model_name);
    if (!plan->has_shape) {
        snprintf(text, sizeof text, "%s%s parameters without a shape: states are exact, activations are not modelled",
                 name, params);
    } else {
        char padded[48] = "", active[OC_BYTES_TEXT], experts[120] = "";
        oc_format_count(answer->params_active, active, sizeof active);
        if (plan->c.model_experts)
            snprintf(experts, sizeof experts, ", %s of them for one token (%" PRId64 " of %" PRId64 " experts)", active,
                     plan->c.model_experts_per_token, plan->c.model_experts);
        if (plan->vocab != plan->c.model_vocab) snprintf(padded, sizeof padded, " padded to %" PRId64, plan->vocab);
        snprintf(text, sizeof text,
                 "%s%s parameters%s; %" PRId64 " layers, hidden %" PRId64 ", %" PRId64 " heads (%" PRId64
                 " for keys and values), ffn %" PRId64 ", vocabulary %" PRId64 "%s, %s head",
                 name, params, experts, plan->c.model_layers, plan->c.model_hidden, plan->c.model_heads,
                 plan->c.model_kv_heads, plan->c.model_ffn, plan->c.model_vocab, padded,
                 plan->c.model_tied ? "tied" : "untied");
    }
    oc_text_field(out, "Model", text);
}

static void put_parallel(struct oc_buffer *out, const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    char text[300];
    snprintf(text, sizeof text, "%" PRId64 " %s = tp %" PRId64 "%s x pp %" PRId64 " x cp %" PRId64 " x dp %" PRId64,
             c->parallel_world, c->parallel_world == 1 ? "GPU" : "GPUs", c->parallel_tp,
             c->parallel_sp && c->parallel_tp > 1 ? " (with sequence parallelism)" : "", c->parallel_pp, c->parallel_cp,
             plan->dp);
    if (c->parallel_vpp > 1) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, ", %" PRId64 " chunks per stage", c->parallel_vpp);
    }
    if (c->model_experts) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "; experts over ep %" PRId64 " x etp %" PRId64, c->parallel_ep,
                 c->parallel_etp);
    }
    if (c->parallel_zero > 0) {
        static const char *const shared[] = {"", "optimizer states", "optimizer states and gradients",
                                             "optimizer states, gradients and weights"};
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "; %s shared by %" PRId64 " ranks", shared[c->parallel_zero & 3],
                 plan->shard);
        used = strlen(text);
        if (plan->expert_shard != plan->shard && c->model_experts)
            snprintf(text + used, sizeof text - used, ", of experts by %" PRId64, plan->expert_shard);
    }
    oc_text_field(out, "Parallel", text);
    if (!plan->has_shape) return;
    snprintf(text, sizeof text,
             "%" PRId64 " x %" PRId64 " tokens a micro-batch, %" PRId64 " micro-batch%s a step and rank",
             c->batch_micro, c->batch_seq, plan->accum, plan->accum == 1 ? "" : "es");
    oc_text_field(out, "Batch", text);
}

/* ---- what follows from it ---- */

/* "h100-80g", " (assumed)" where nobody said so, or "the GPU" where only its capacity is known. */
static void put_gpu(struct oc_buffer *out, const struct oc_config *c)
{
    const bool named = oc_given(c, OC_OPT_gpu), sized = oc_given(c, OC_OPT_gpu_capacity);
    oc_put(out, c->gpu[0] && (named || !sized) ? c->gpu : "the GPU");
    if (!named && !sized) oc_put(out, " (assumed)");
}

void oc_verdict_text(const struct oc_answer *answer, enum oc_unit unit, struct oc_buffer *out)
{
    const struct oc_verdict *verdict = &answer->verdict;
    const struct oc_rank *worst = &answer->ranks[verdict->worst_stage];
    char top[OC_BYTES_TEXT], capacity[OC_BYTES_TEXT], rest[OC_BYTES_TEXT], allocated[OC_BYTES_TEXT];
    oc_format_bytes(verdict->device.high, unit, top, sizeof top);
    if (!verdict->known) {
        oc_putf(out, "No GPU is named, so nothing says whether %s fits: --set gpu=h100-80g (see `oomcast gpus`).", top);
        return;
    }
    const bool over = verdict->headroom < 0;
    const uint64_t distance = over ? 0 - (uint64_t)verdict->headroom : (uint64_t)verdict->headroom;
    oc_put(out, verdict->fits ? "FITS" : "DOES NOT FIT");
    if (verdict->fits && verdict->tight) oc_put(out, ", but tightly");
    if (!answer->plan.has_shape) oc_put(out, " before activations, which are not modelled");
    oc_putf(out, ": up to %s of the %s of ", top,
            oc_format_bytes(answer->plan.capacity, unit, capacity, sizeof capacity));
    put_gpu(out, &answer->plan.c);
    oc_putf(out, ", %s %s; the fullest is stage %" PRId64 ", in %s (%s allocated).",
            oc_format_bytes(distance, unit, rest, sizeof rest), over ? "too much" : "to spare", verdict->worst_stage,
            oc_moment_name(worst->peak.place.moment),
            oc_format_bytes(worst->peak.allocated, unit, allocated, sizeof allocated));
}

static void put_verdict(struct oc_buffer *out, const struct oc_report *report)
{
    struct oc_buffer line = {0};
    oc_verdict_text(report->answer, report->unit, &line);
    oc_put(out, "\n");
    if (line.data) oc_put_wrapped(out, line.data, 0, 0, OC_TEXT_WIDTH);
    out->failed |= line.failed;
    oc_buffer_free(&line);
}

static void put_item(struct oc_buffer *out, const char *text)
{
    oc_put(out, "  ");
    oc_put_wrapped(out, text, 2, 4, OC_TEXT_WIDTH);
}

static void put_reason(struct oc_buffer *out, const struct oc_reason *reason)
{
    if (!reason || reason->n == 0) return;
    oc_put(out, "\nWhy\n");
    for (int i = 0; i < reason->n; i++) put_item(out, reason->sentence[i]);
}

/* " (run.sh:38)", or nothing when the place is unknown. */
static const char *place_text(const struct oc_input *input, const struct oc_note *note, char *text, size_t size)
{
    text[0] = '\0';
    if (note->file < input->n_files && note->line > 0)
        snprintf(text, size, " (%s:%" PRId32 ")", input->files[note->file], note->line);
    else if (note->file < input->n_files)
        snprintf(text, size, " (%s)", input->files[note->file]);
    return text;
}

/* The notes of one kind under a heading of their own; what --set has answered since is no longer assumed. */
static void put_notes(struct oc_buffer *out, const struct oc_report *report, enum oc_note_kind kind,
                      const char *heading)
{
    const struct oc_input *input = report->input;
    for (int i = 0; i < input->n_notes; i++) {
        const struct oc_note *note = &input->notes[i];
        char place[224], text[640], chosen[OC_NAME_MAX];
        if (note->kind != kind) continue;
        if (kind == OC_NOTE_ASSUMED) {
            if (!oc_still_assumed(input, note)) continue;
            const enum oc_option_id id = (enum oc_option_id)note->option;
            snprintf(text, sizeof text, "%s=%s: %s%s", oc_option(id)->key, value(&report->answer->plan.c, id, chosen),
                     note->text, place_text(input, note, place, sizeof place));
        } else {
            snprintf(text, sizeof text, "%s%s%s%s", note->name, note->name[0] && note->text[0] ? ": " : "", note->text,
                     place_text(input, note, place, sizeof place));
        }
        if (heading) oc_putf(out, "\n%s\n", heading);
        heading = NULL;
        put_item(out, text);
    }
    if (kind != OC_NOTE_WARNING) return;
    for (int i = 0; i < report->answer->warnings.n; i++) {
        if (heading) oc_putf(out, "\n%s\n", heading);
        heading = NULL;
        put_item(out, report->answer->warnings.text[i]);
    }
}

static void put_title(struct oc_buffer *out, const struct oc_input *input)
{
    oc_put(out, "oomcast " OOMCAST_VERSION);
    for (int i = 0; i < input->n_files; i++)
        oc_putf(out, "%s%s", i ? ", " : ": ", strcmp(input->files[i], "-") ? input->files[i] : "standard input");
    oc_put(out, "\n\n");
}

void oc_report_text(const struct oc_report *report, struct oc_buffer *out)
{
    put_title(out, report->input);
    put_run(out, &report->answer->plan);
    put_model(out, report->answer);
    put_parallel(out, &report->answer->plan);
    oc_text_stages(out, report);
    put_verdict(out, report);
    put_reason(out, report->reason);
    put_notes(out, report, OC_NOTE_ASSUMED, "Assumed, because the input leaves it open (say otherwise with --set)");
    put_notes(out, report, OC_NOTE_UNMODELLED, "Changes memory and is not modelled");
    put_notes(out, report, OC_NOTE_WARNING, "Warnings");
    if (report->input->notes_lost > 0)
        oc_putf(out, "\n%d more notes about the input had no room here.\n", report->input->notes_lost);
}
