#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/alive.h"
#include "tui/report/report.h"

uint64_t oc_middle(struct oc_range range)
{
    return range.low + (range.high - range.low) / 2;
}

const char *oc_evidence_name(enum oc_evidence evidence)
{
    static const char *const names[] = {
        [OC_MODELLED] = "modelled", [OC_SIMULATED] = "simulated", [OC_MEASURED] = "measured"};
    return names[evidence];
}

/* ---- one rank ---- */

void oc_json_classes(struct oc_json *json, const char *key, const uint64_t classes[OC_CLASSES])
{
    oc_json_object(json, key, true);
    for (int i = 0; i < OC_CLASSES; i++) oc_json_unsigned(json, oc_class_name((enum oc_class)i), classes[i]);
    oc_json_close(json);
}

static void put_range(struct oc_json *json, const char *key, struct oc_range range)
{
    oc_json_array(json, key, true);
    oc_json_unsigned(json, NULL, range.low);
    oc_json_unsigned(json, NULL, range.high);
    oc_json_close(json);
}

/* A moment that this run does not have is null. */
static void put_instant(struct oc_json *json, const char *key, const struct oc_instant *instant, bool with_moment)
{
    if (!instant->exists) {
        oc_json_null(json, key);
        return;
    }
    oc_json_object(json, key, true);
    if (with_moment) oc_json_string(json, "moment", oc_moment_name(instant->place.moment));
    oc_json_unsigned(json, "allocated", instant->allocated);
    oc_json_classes(json, "classes", instant->classes);
    oc_json_close(json);
}

static void put_moments(struct oc_json *json, const struct oc_rank *rank)
{
    oc_json_array(json, "moments", false);
    for (int i = 0; i < OC_ITERATIONS; i++) {
        for (int m = 0; m < OC_MOMENTS; m++) {
            const struct oc_instant *instant = &rank->moments[i][m];
            if (!instant->exists) continue;
            oc_json_object(json, NULL, true);
            oc_json_string(json, "iteration", oc_iteration_name((enum oc_iteration)i));
            oc_json_string(json, "name", oc_moment_name((enum oc_moment)m));
            oc_json_unsigned(json, "allocated", instant->allocated);
            oc_json_classes(json, "classes", instant->classes);
            oc_json_close(json);
        }
    }
    oc_json_close(json);
}

static void put_peak(struct oc_json *json, const struct oc_plan *plan, const struct oc_rank *rank)
{
    const struct oc_instant *peak = &rank->peak;
    char where[96];
    oc_json_object(json, "peak", false);
    oc_json_string(json, "moment", oc_moment_name(peak->place.moment));
    oc_json_string(json, "where", oc_place_text(&peak->place, where, sizeof where));
    oc_json_unsigned(json, "requested", peak->requested);
    oc_json_unsigned(json, "allocated", peak->allocated);
    if (rank->reserved)
        oc_json_unsigned(json, "reserved", rank->reserved);
    else
        oc_json_null(json, "reserved");
    oc_json_unsigned(json, "device", oc_middle(oc_device(plan, rank)));
    oc_json_object(json, "outside", true);
    put_range(json, "context", plan->context);
    put_range(json, "nccl", plan->nccl);
    oc_json_close(json);
    oc_json_classes(json, "classes", peak->classes);
    oc_json_object(json, "by", true);
    oc_json_string(json, "allocated", oc_evidence_name(rank->allocated_by));
    if (rank->reserved)
        oc_json_string(json, "reserved", oc_evidence_name(rank->reserved_by));
    else
        oc_json_null(json, "reserved");
    oc_json_close(json);
    oc_json_close(json);
}

/* `at_peak` is what the entry holds at the steady peak; these add up to the peak's allocated bytes. */
static void put_entry(struct oc_json *json, const struct oc_entry *entry, uint64_t at_peak)
{
    oc_json_object(json, NULL, true);
    oc_json_string(json, "class", oc_class_name((enum oc_class)entry->class));
    oc_json_string(json, "name", entry->name);
    oc_json_unsigned(json, "elements", entry->elements);
    oc_json_string(json, "dtype", oc_dtype_name((enum oc_dtype)entry->dtype));
    oc_json_unsigned(json, "bytes", entry->bytes);
    oc_json_unsigned(json, "count", entry->count);
    oc_json_string(json, "birth", oc_phase_name((enum oc_phase)entry->birth.phase));
    oc_json_string(json, "death", oc_phase_name((enum oc_phase)entry->death.phase));
    oc_json_unsigned(json, "at_peak", at_peak);
    oc_json_string(json, "why", entry->why ? entry->why : "");
    oc_json_string(json, "source", entry->source ? entry->source : "");
    oc_json_close(json);
}

static void put_entries(struct oc_json *json, const struct oc_ledger *ledger, const struct oc_instant *peak)
{
    struct oc_alive *alive = malloc(sizeof *alive);
    if (!alive) {
        json->out->failed = true;
        return;
    }
    oc_alive_at(ledger, peak, alive);
    oc_json_array(json, "entries", false);
    for (int i = 0; i < ledger->n_entries; i++) put_entry(json, &ledger->entries[i], alive->bytes[i]);
    if (alive->rounding) {
        const struct oc_entry rounding = oc_rounding_entry(alive);
        put_entry(json, &rounding, alive->rounding);
    }
    if (alive->unsplit) {
        const struct oc_entry unsplit = oc_unsplit_entry(alive);
        put_entry(json, &unsplit, alive->unsplit);
    }
    oc_json_close(json);
    free(alive);
}

void oc_json_rank(struct oc_json *json, const char *key, const struct oc_plan *plan, const struct oc_rank *rank,
                  const struct oc_ledger *ledger)
{
    oc_json_object(json, key, false);
    oc_json_signed(json, "stage", rank->stage);
    oc_json_signed(json, "ranks", rank->ranks);
    oc_json_unsigned(json, "params", rank->params);
    put_moments(json, rank);
    put_instant(json, "after_step", &rank->moments[OC_STEADY][OC_M_AFTER_STEP], false);
    put_instant(json, "idle", &rank->moments[OC_STEADY][OC_M_IDLE], false);
    put_instant(json, "first_iteration_peak", &rank->first_peak, true);
    put_peak(json, plan, rank);
    if (ledger) put_entries(json, ledger, &rank->peak);
    oc_json_close(json);
}

/* ---- the whole report ---- */

void oc_json_option(struct oc_json *json, const char *key, const struct oc_config *config, enum oc_option_id id)
{
    const struct oc_option *option = oc_option(id);
    char text[256];
    switch (option->type) {
    case OC_T_INT: oc_json_signed(json, key, oc_option_get(config, id)); break;
    case OC_T_BOOL: oc_json_bool(json, key, oc_option_get(config, id) != 0); break;
    case OC_T_FLOAT:
        oc_json_number(json, key, *(const double *)(const void *)((const char *)config + option->offset));
        break;
    case OC_T_ENUM:
    case OC_T_SET:
    case OC_T_STRING: oc_json_string(json, key, oc_option_text(config, id, text, sizeof text)); break;
    }
}

/* Where a file index and a line point to: "file" and "line" when they are known. */
static void put_place(struct oc_json *json, const struct oc_input *input, int file, int line)
{
    if (file >= input->n_files) return;
    oc_json_string(json, "file", input->files[file]);
    if (line > 0) oc_json_signed(json, "line", line);
}

/* Only what somebody said: a key that is not here followed from the framework, the model or other options. */
static void put_origins(struct oc_json *json, const struct oc_input *input)
{
    oc_json_object(json, "origin", false);
    for (int id = 0; id < OC_OPTIONS; id++) {
        const struct oc_origin *origin = &input->c.origin[id];
        if (origin->from == OC_FROM_DEFAULT) continue;
        oc_json_object(json, oc_option((enum oc_option_id)id)->key, true);
        oc_json_string(json, "from", oc_from_name((enum oc_from)origin->from));
        if (origin->from == OC_FROM_FILE || origin->from == OC_FROM_ASSUMED)
            put_place(json, input, origin->file, origin->line);
        oc_json_close(json);
    }
    oc_json_close(json);
}

bool oc_still_assumed(const struct oc_input *input, const struct oc_note *note)
{
    return note->kind == OC_NOTE_ASSUMED && note->option >= 0 && note->option < OC_OPTIONS &&
           input->c.origin[note->option].from == OC_FROM_ASSUMED;
}

static void put_assumed(struct oc_json *json, const struct oc_report *report)
{
    const struct oc_input *input = report->input;
    oc_json_array(json, "assumed", false);
    for (int i = 0; i < input->n_notes; i++) {
        const struct oc_note *note = &input->notes[i];
        if (!oc_still_assumed(input, note)) continue;
        char text[256];
        oc_json_object(json, NULL, true);
        oc_json_string(json, "key", oc_option((enum oc_option_id)note->option)->key);
        if (oc_option((enum oc_option_id)note->option)->type == OC_T_INT)
            oc_json_signed(json, "value", oc_option_get(&report->answer->plan.c, (enum oc_option_id)note->option));
        else
            oc_json_string(json, "value",
                           oc_option_text(&report->answer->plan.c, (enum oc_option_id)note->option, text, sizeof text));
        oc_json_string(json, "why", note->text);
        put_place(json, input, note->file, note->line);
        oc_json_close(json);
    }
    oc_json_close(json);
}

static void put_unmodelled(struct oc_json *json, const struct oc_input *input)
{
    oc_json_array(json, "unmodelled", false);
    for (int i = 0; i < input->n_notes; i++) {
        const struct oc_note *note = &input->notes[i];
        if (note->kind != OC_NOTE_UNMODELLED) continue;
        oc_json_object(json, NULL, true);
        oc_json_string(json, "name", note->name);
        put_place(json, input, note->file, note->line);
        oc_json_close(json);
    }
    oc_json_close(json);
}

static void put_warnings(struct oc_json *json, const struct oc_report *report)
{
    const struct oc_input *input = report->input;
    oc_json_array(json, "warnings", false);
    for (int i = 0; i < input->n_notes; i++) {
        const struct oc_note *note = &input->notes[i];
        if (note->kind != OC_NOTE_WARNING) continue;
        char text[512];
        if (note->file < input->n_files && note->line > 0)
            snprintf(text, sizeof text, "%s:%" PRId32 ": %s", input->files[note->file], note->line, note->text);
        else
            snprintf(text, sizeof text, "%s", note->text);
        oc_json_string(json, NULL, text);
    }
    for (int i = 0; i < report->answer->warnings.n; i++) oc_json_string(json, NULL, report->answer->warnings.text[i]);
    if (input->notes_lost > 0) {
        char text[80];
        snprintf(text, sizeof text, "%d more notes about the input had no room here", input->notes_lost);
        oc_json_string(json, NULL, text);
    }
    oc_json_close(json);
}

void oc_json_verdict(struct oc_json *json, const struct oc_plan *plan, const struct oc_verdict *verdict)
{
    if (!verdict->known) { /* no GPU was named */
        static const char *const keys[] = {"capacity", "fits", "tight", "headroom"};
        for (int i = 0; i < 4; i++) oc_json_null(json, keys[i]);
        return;
    }
    oc_json_unsigned(json, "capacity", plan->capacity);
    oc_json_bool(json, "fits", verdict->fits);
    oc_json_bool(json, "tight", verdict->tight);
    oc_json_signed(json, "headroom", verdict->headroom);
}

void oc_json_gpu(struct oc_json *json, const struct oc_config *config)
{
    if (config->gpu[0])
        oc_json_string(json, "gpu", config->gpu);
    else
        oc_json_null(json, "gpu");
}

void oc_json_begin(struct oc_json *json)
{
    oc_json_object(json, NULL, false);
    oc_json_signed(json, "schema", 1);
    oc_json_string(json, "tool", "oomcast " OOMCAST_VERSION);
}

void oc_report_json(const struct oc_report *report, struct oc_buffer *out)
{
    const struct oc_answer *answer = report->answer;
    struct oc_json json = {.out = out};
    oc_json_begin(&json);
    oc_json_object(&json, "config", false);
    for (int id = 0; id < OC_OPTIONS; id++)
        oc_json_option(&json, oc_option((enum oc_option_id)id)->key, &answer->plan.c, (enum oc_option_id)id);
    oc_json_close(&json);
    put_origins(&json, report->input);
    put_assumed(&json, report);
    oc_json_object(&json, "params", true);
    oc_json_unsigned(&json, "total", answer->params_total);
    oc_json_unsigned(&json, "active", answer->params_active);
    oc_json_close(&json);
    oc_json_array(&json, "ranks", false);
    for (int i = 0; i < answer->n_ranks; i++)
        oc_json_rank(&json, NULL, &answer->plan, &answer->ranks[i], report->ledgers ? &report->ledgers[i] : NULL);
    oc_json_close(&json);
    oc_json_signed(&json, "worst_stage", answer->verdict.worst_stage);
    oc_json_gpu(&json, &answer->plan.c);
    oc_json_verdict(&json, &answer->plan, &answer->verdict);
    put_unmodelled(&json, report->input);
    put_warnings(&json, report);
    oc_json_close(&json);
}
