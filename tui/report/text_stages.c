/* What the ranks of each stage hold, and when: tables when the stages are few, else the fullest one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/report/text.h"

/* "15.01 to 16.09 GiB", or one figure when both ends are the same. */
static const char *range_text(struct oc_range range, enum oc_unit unit, char *text, size_t size)
{
    char low[OC_BYTES_TEXT], high[OC_BYTES_TEXT];
    oc_format_bytes(range.high, unit, high, sizeof high);
    if (range.low == range.high)
        snprintf(text, size, "%s", high);
    else
        snprintf(text, size, "%s to %s", oc_format_amount(range.low, unit, 0, low, sizeof low), high);
    return text;
}

/* Stages that hold the same are told once. Returns the first stage that is the same as `i`. */
static int first_like(const struct oc_answer *answer, int i)
{
    const struct oc_rank *rank = &answer->ranks[i];
    for (int j = 0; j < i; j++) {
        const struct oc_rank *other = &answer->ranks[j];
        bool same = rank->params == other->params && rank->reserved == other->reserved &&
                    rank->peak.allocated == other->peak.allocated &&
                    rank->first_peak.allocated == other->first_peak.allocated;
        for (int m = 0; m < OC_MOMENTS && same; m++)
            same = !memcmp(rank->moments[OC_STEADY][m].classes, other->moments[OC_STEADY][m].classes,
                           sizeof rank->peak.classes);
        if (same) return j;
    }
    return i;
}

/* "Stage 0", "Stages 1-6", "Stages 1, 3, 5": all that are like stage `i`. */
static void put_stage_names(struct oc_buffer *out, const struct oc_answer *answer, int i)
{
    int members = 0;
    for (int j = i; j < answer->n_ranks; j++) members += first_like(answer, j) == i;
    oc_put(out, members > 1 ? "Stages " : "Stage ");
    const char *separator = "";
    for (int j = i; j < answer->n_ranks; j++) {
        if (first_like(answer, j) != i) continue;
        int last = j;
        while (last + 1 < answer->n_ranks && first_like(answer, last + 1) == i) last++;
        oc_putf(out, last > j ? "%s%d-%d" : "%s%d", separator, j, last);
        separator = ", ";
        j = last;
    }
}

/* The classes at the moments of a steady iteration and at its peak. */
static void put_table(struct oc_buffer *out, const struct oc_rank *rank, enum oc_unit unit)
{
    const bool narrow = unit != OC_UNIT_BYTES; /* exact bytes need columns so wide that only four fit */
    const int width = narrow ? 12 : 16;
    const struct {
        const char *name;
        const struct oc_instant *instant;
        bool always;
    } columns[] = {{"forward", &rank->moments[OC_STEADY][OC_M_FORWARD], true},
                   {"backward", &rank->moments[OC_STEADY][OC_M_BACKWARD], true},
                   {"step", &rank->moments[OC_STEADY][OC_M_STEP], true},
                   {"idle", &rank->moments[OC_STEADY][OC_M_IDLE], false},
                   {"peak", &rank->peak, true}};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };

    char text[OC_BYTES_TEXT];
    oc_putf(out, "  allocated, %-4s", oc_unit_name(unit));
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].always || narrow) oc_putf(out, "%*s", i ? width : width - 2, columns[i].name);
    oc_put(out, "\n");
    for (int class = 0; class <= OC_CLASSES; class ++) {
        const bool sum = class == OC_CLASSES;
        if (sum)
            oc_putf(out, "  %-13s", "= all");
        else
            oc_putf(out, "  %c %-11s", oc_class_letter((enum oc_class) class), oc_class_name((enum oc_class) class));
        for (int i = 0; i < COLUMNS; i++) {
            const struct oc_instant *instant = columns[i].instant;
            if (!columns[i].always && !narrow) continue;
            uint64_t bytes = sum ? instant->allocated : instant->classes[class];
            oc_putf(out, "%*s", width,
                    instant->exists ? oc_format_amount(bytes, unit, width - 1, text, sizeof text) : "-");
        }
        oc_put(out, "\n");
    }
}

/* "16.00 B in the step (weights 2.00, master 4.00, ...)": what the recipe costs whatever the model's size. */
static void put_per_parameter(struct oc_buffer *out, const struct oc_rank *rank)
{
    static const enum oc_class states[] = {OC_WEIGHTS, OC_MASTER, OC_GRADIENTS, OC_OPTIMIZER};
    const struct oc_instant *step = &rank->moments[OC_STEADY][OC_M_STEP],
                            *backward = &rank->moments[OC_STEADY][OC_M_BACKWARD];
    if (!step->exists || rank->params == 0) return;
    const double params = (double)rank->params;
    double in_step = 0, in_backward = 0;
    char parts[160] = "", line[300];
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        const double bytes = (double)step->classes[states[i]] / params;
        size_t used = strlen(parts);
        in_step += bytes;
        in_backward += (double)backward->classes[states[i]] / params;
        if (step->classes[states[i]] == 0) continue;
        snprintf(parts + used, sizeof parts - used, "%s%s %.2f", used ? ", " : "", oc_class_name(states[i]), bytes);
    }
    snprintf(line, sizeof line, "%.2f B in the step (%s)", in_step, parts);
    if (backward->exists) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "; %.2f B in backward, beside activations", in_backward);
    }
    oc_text_field(out, "Per param", line);
}

/* Peak, first iteration, reserved, device: each names its counter and how it is known. */
static void put_totals(struct oc_buffer *out, const struct oc_plan *plan, const struct oc_rank *rank, enum oc_unit unit)
{
    char bytes[OC_BYTES_TEXT], other[OC_BYTES_TEXT], where[96], line[320], context[72], nccl[72];
    oc_place_text(&rank->peak.place, where, sizeof where);
    snprintf(line, sizeof line, "%s allocated (%s), in %s%s%s",
             oc_format_bytes(rank->peak.allocated, unit, bytes, sizeof bytes), oc_evidence_name(rank->allocated_by),
             oc_moment_name(rank->peak.place.moment), where[0] ? ": " : "", where);
    oc_text_field(out, "Peak", line);

    const uint64_t first = rank->first_peak.allocated, steady = rank->peak.allocated;
    const char *moment = oc_moment_name(rank->first_peak.place.moment);
    oc_format_bytes(first, unit, bytes, sizeof bytes);
    if (!rank->first_peak.exists)
        line[0] = '\0';
    else if (first == steady)
        snprintf(line, sizeof line, "the same %s allocated at the first iteration's peak, in %s", bytes, moment);
    else
        snprintf(line, sizeof line, "%s allocated at the first iteration's peak, in %s: %s %s than later ones", bytes,
                 moment, oc_format_bytes(first < steady ? steady - first : first - steady, unit, other, sizeof other),
                 first < steady ? "less" : "more");
    if (line[0]) oc_text_field(out, "First", line);

    if (rank->reserved) {
        snprintf(line, sizeof line, "%s in the allocator's segments (%s)",
                 oc_format_bytes(rank->reserved, unit, bytes, sizeof bytes), oc_evidence_name(rank->reserved_by));
        oc_text_field(out, "Reserved", line);
    }
    char device[72];
    snprintf(line, sizeof line, "%s, what nvidia-smi shows: %s + CUDA context %s + NCCL %s",
             range_text(oc_device(plan, rank), unit, device, sizeof device), rank->reserved ? "reserved" : "allocated",
             range_text(plan->context, unit, context, sizeof context), range_text(plan->nccl, unit, nccl, sizeof nccl));
    oc_text_field(out, "Device", line);
}

static void put_stage(struct oc_buffer *out, const struct oc_report *report, int i)
{
    const struct oc_rank *rank = &report->answer->ranks[i];
    char params[OC_BYTES_TEXT];
    oc_put(out, "\n");
    put_stage_names(out, report->answer, i);
    oc_putf(out, ": %s parameters on each of %" PRId64 " %s%s\n\n",
            oc_format_count(rank->params, params, sizeof params), rank->ranks, rank->ranks == 1 ? "rank" : "ranks",
            report->answer->n_ranks > 1 && i == report->answer->verdict.worst_stage ? ", the fullest" : "");
    put_table(out, rank, report->unit);
    oc_put(out, "\n");
    put_per_parameter(out, rank);
    put_totals(out, &report->answer->plan, rank, report->unit);
    if (report->ledgers) oc_text_entries(out, &report->ledgers[i], &report->answer->ranks[i].peak, report->unit);
}

/* One line per distinct stage, for pipelines. */
static void put_overview(struct oc_buffer *out, const struct oc_report *report)
{
    const struct oc_answer *answer = report->answer;
    const int width = report->unit == OC_UNIT_BYTES ? 19 : 11;
    oc_putf(out, "\n  %-22s%*s%*s  in\n", "peak of each stage", width, "allocated", width, "reserved");
    for (int i = 0; i < answer->n_ranks; i++) {
        if (first_like(answer, i) != i) continue;
        const struct oc_rank *rank = &answer->ranks[i];
        struct oc_buffer names = {0};
        char allocated[OC_BYTES_TEXT], reserved[OC_BYTES_TEXT];
        put_stage_names(&names, answer, i);
        oc_putf(out, "  %-22s%*s%*s  %s%s\n", names.data ? names.data : "", width,
                oc_format_bytes(rank->peak.allocated, report->unit, allocated, sizeof allocated), width,
                rank->reserved ? oc_format_bytes(rank->reserved, report->unit, reserved, sizeof reserved) : "-",
                oc_moment_name(rank->peak.place.moment), i == answer->verdict.worst_stage ? ", the fullest" : "");
        out->failed |= names.failed;
        oc_buffer_free(&names);
    }
}

void oc_text_stages(struct oc_buffer *out, const struct oc_report *report)
{
    enum { FEW = 3 };
    const struct oc_answer *answer = report->answer;
    int distinct = 0;
    for (int i = 0; i < answer->n_ranks; i++) distinct += first_like(answer, i) == i;
    if (distinct > 1) put_overview(out, report);
    for (int i = 0; i < answer->n_ranks; i++) {
        bool told =
            distinct <= FEW ? first_like(answer, i) == i : first_like(answer, (int)answer->verdict.worst_stage) == i;
        if (told) put_stage(out, report, i);
    }
}
