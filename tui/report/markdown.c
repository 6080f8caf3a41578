/* The report as Markdown, for issues and pull requests: the verdict, what the fullest rank holds when, every stage, and
 * why. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/alive.h"

#include "tui/report/report.h"

/* Text in which no character is taken for markup. */
static void put_plain(struct oc_buffer *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>#|", *text)) oc_put(out, "\\");
        oc_put_bytes(out, text, 1);
    }
}

static void put_amount(struct oc_buffer *out, uint64_t bytes, enum oc_unit unit)
{
    char text[OC_BYTES_TEXT];
    oc_putf(out, " %s |", oc_format_amount(bytes, unit, 0, text, sizeof text));
}

/* ---- tables ---- */

static void put_moments(struct oc_buffer *out, const struct oc_rank *rank, enum oc_unit unit)
{
    oc_putf(out, "| allocated, %s |", oc_unit_name(unit));
    for (int m = 0; m < OC_MOMENTS; m++)
        if (rank->moments[OC_STEADY][m].exists) {
            oc_put(out, " ");
            put_plain(out, oc_moment_name((enum oc_moment)m));
            oc_put(out, " |");
        }
    oc_put(out, " peak |\n|---|");
    for (int m = 0; m < OC_MOMENTS; m++)
        if (rank->moments[OC_STEADY][m].exists) oc_put(out, "---:|");
    oc_put(out, "---:|\n");
    for (int c = 0; c <= OC_CLASSES; c++) {
        oc_putf(out, "| %s |", c < OC_CLASSES ? oc_class_name((enum oc_class)c) : "**all**");
        for (int m = 0; m < OC_MOMENTS; m++) {
            const struct oc_instant *instant = &rank->moments[OC_STEADY][m];
            if (instant->exists) put_amount(out, c < OC_CLASSES ? instant->classes[c] : instant->allocated, unit);
        }
        put_amount(out, c < OC_CLASSES ? rank->peak.classes[c] : rank->peak.allocated, unit);
        oc_put(out, "\n");
    }
}

static void put_stages(struct oc_buffer *out, const struct oc_answer *answer, enum oc_unit unit)
{
    oc_putf(out, "| stage | parameters | peaks in | allocated, %s | reserved | on the device, up to |\n",
            oc_unit_name(unit));
    oc_put(out, "|---:|---:|---|---:|---:|---:|\n");
    for (int i = 0; i < answer->n_ranks; i++) {
        const struct oc_rank *rank = &answer->ranks[i];
        char params[OC_BYTES_TEXT];
        oc_putf(out, "| %d%s | %s | ", i,
                i == answer->verdict.worst_stage && answer->n_ranks > 1 ? ", the fullest" : "",
                oc_format_count(rank->params, params, sizeof params));
        put_plain(out, oc_moment_name(rank->peak.place.moment));
        oc_put(out, " |");
        put_amount(out, rank->peak.allocated, unit);
        put_amount(out, rank->reserved, unit);
        put_amount(out, oc_device(&answer->plan, rank).high, unit);
        oc_put(out, "\n");
    }
}

static void put_entry(struct oc_buffer *out, const struct oc_entry *entry, uint64_t at_peak, enum oc_unit unit)
{
    oc_put(out, "|");
    put_amount(out, at_peak, unit);
    oc_putf(out, " %s | ", oc_class_name((enum oc_class)entry->class));
    put_plain(out, entry->name);
    if (entry->copy) {
        oc_put(out, ", ");
        put_plain(out, entry->copy);
    }
    oc_putf(out, " | %s | %" PRIu32 " | ", oc_dtype_name((enum oc_dtype)entry->dtype), entry->count);
    put_plain(out, entry->why ? entry->why : "");
    oc_put(out, " |\n");
}

static void put_entries(struct oc_buffer *out, const struct oc_report *report)
{
    const int64_t stage = report->answer->verdict.worst_stage;
    const struct oc_ledger *ledger = &report->ledgers[stage];
    struct oc_alive *alive = malloc(sizeof *alive);
    if (!alive) {
        out->failed = true;
        return;
    }
    oc_alive_at(ledger, &report->answer->ranks[stage].peak, alive);
    oc_putf(out,
            "\n## Entries\n\n| at the peak, %s | class | entry | type | count | why |\n|---:|---|---|---|---:|---|\n",
            oc_unit_name(report->unit));
    for (int i = 0; i < ledger->n_entries; i++) put_entry(out, &ledger->entries[i], alive->bytes[i], report->unit);
    const struct oc_entry rounding = oc_rounding_entry(alive), unsplit = oc_unsplit_entry(alive);
    if (alive->rounding) put_entry(out, &rounding, alive->rounding, report->unit);
    if (alive->unsplit) put_entry(out, &unsplit, alive->unsplit, report->unit);
    free(alive);
}

/* ---- text ---- */

static void put_notes(struct oc_buffer *out, const struct oc_report *report, enum oc_note_kind kind, const char *title)
{
    bool first = true;
    for (int i = 0; i < report->input->n_notes; i++) {
        const struct oc_note *note = &report->input->notes[i];
        if (note->kind != kind || (kind == OC_NOTE_ASSUMED && !oc_still_assumed(report->input, note))) continue;
        if (first) oc_putf(out, "\n## %s\n\n", title);
        first = false;
        oc_put(out, "- ");
        put_plain(out, note->name[0] ? note->name
                       : note->option >= 0 && note->option < (int)OC_OPTIONS
                           ? oc_option((enum oc_option_id)note->option)->key
                           : "");
        oc_put(out, (note->name[0] || note->option < (int)OC_OPTIONS) && note->text[0] ? ": " : "");
        put_plain(out, note->text);
        oc_put(out, "\n");
    }
}

static void put_given(struct oc_buffer *out, const struct oc_config *c)
{
    bool first = true;
    for (int i = 0; i < OC_OPTIONS; i++) {
        char text[OC_NAME_MAX + 16];
        if (!oc_given(c, (enum oc_option_id)i)) continue;
        oc_option_text(c, (enum oc_option_id)i, text, sizeof text);
        oc_putf(out, "%s`%s=%s`", first ? "" : " ", oc_option((enum oc_option_id)i)->key, text);
        first = false;
    }
    oc_put(out, first ? "Nothing is given: everything is a default.\n" : "\n");
}

void oc_report_markdown(const struct oc_report *report, struct oc_buffer *out)
{
    const struct oc_answer *answer = report->answer;
    struct oc_buffer verdict = {0};
    oc_put(out, "# oomcast " OOMCAST_VERSION);
    for (int i = 0; i < report->input->n_files; i++) {
        oc_put(out, i ? ", " : ": ");
        put_plain(out, report->input->files[i]);
    }
    oc_put(out, "\n\n");
    oc_verdict_text(answer, report->unit, &verdict);
    put_plain(out, verdict.data ? verdict.data : "");
    out->failed |= verdict.failed;
    oc_buffer_free(&verdict);
    oc_putf(out, "\n\n## Stage %d%s\n\n", (int)answer->verdict.worst_stage, answer->n_ranks > 1 ? ", the fullest" : "");
    put_moments(out, &answer->ranks[answer->verdict.worst_stage], report->unit);
    oc_put(out, "\n");
    put_stages(out, answer, report->unit);
    if (report->reason && report->reason->n) oc_put(out, "\n## Why\n\n");
    for (int i = 0; report->reason && i < report->reason->n; i++) {
        oc_put(out, "- ");
        put_plain(out, report->reason->sentence[i]);
        oc_put(out, "\n");
    }
    if (report->ledgers) put_entries(out, report);
    put_notes(out, report, OC_NOTE_ASSUMED, "Assumed, because the input leaves it open");
    put_notes(out, report, OC_NOTE_UNMODELLED, "Changes memory and is not modelled");
    put_notes(out, report, OC_NOTE_WARNING, "Warnings");
    oc_put(out, "\n## Given\n\n");
    put_given(out, &answer->plan.c);
}
