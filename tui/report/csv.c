/* The report as comma-separated values, RFC 4180 with plain line ends: a row for each moment of each stage, or, with
 * entries, a row for each entry. Bytes are exact. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/alive.h"

#include "tui/report/report.h"

static void put_field(struct oc_buffer *out, const char *text)
{
    oc_put(out, ",");
    if (!strpbrk(text, ",\"\n\r")) {
        oc_put(out, text);
        return;
    }
    oc_put(out, "\"");
    for (; *text; text++) oc_put_bytes(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    oc_put(out, "\"");
}

/* ---- moments ---- */

static void put_instant(struct oc_buffer *out, const struct oc_rank *rank, const char *iteration, const char *moment,
                        const struct oc_instant *instant)
{
    char where[96];
    if (!instant->exists) return;
    oc_putf(out, "%" PRId64 ",%" PRId64 ",%" PRIu64, rank->stage, rank->ranks, rank->params);
    put_field(out, iteration);
    put_field(out, moment);
    put_field(out, oc_moment_name(instant->place.moment));
    put_field(out, oc_place_text(&instant->place, where, sizeof where));
    oc_putf(out, ",%" PRIu64 ",%" PRIu64, instant->requested, instant->allocated);
    for (int c = 0; c < OC_CLASSES; c++) oc_putf(out, ",%" PRIu64, instant->classes[c]);
}

static void put_moments(struct oc_buffer *out, const struct oc_answer *answer)
{
    oc_put(out, "stage,ranks,params,iteration,moment,in,where,requested,allocated");
    for (int c = 0; c < OC_CLASSES; c++) put_field(out, oc_class_name((enum oc_class)c));
    oc_put(out, ",reserved,device_low,device_high,capacity\n");
    for (int i = 0; i < answer->n_ranks; i++) {
        const struct oc_rank *rank = &answer->ranks[i];
        const struct oc_range device = oc_device(&answer->plan, rank);
        for (int n = 0; n < OC_ITERATIONS; n++)
            for (int m = 0; m < OC_MOMENTS; m++) {
                const struct oc_instant *instant = &rank->moments[n][m];
                put_instant(out, rank, oc_iteration_name((enum oc_iteration)n), oc_moment_name((enum oc_moment)m),
                            instant);
                if (instant->exists) oc_put(out, ",,,,\n");
            }
        put_instant(out, rank, "steady", "peak", &rank->peak);
        oc_putf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", rank->reserved, device.low, device.high,
                answer->plan.capacity);
    }
}

/* ---- entries ---- */

static void put_entry(struct oc_buffer *out, int64_t stage, const struct oc_entry *entry, uint64_t at_peak)
{
    oc_putf(out, "%" PRId64, stage);
    put_field(out, oc_class_name((enum oc_class)entry->class));
    put_field(out, entry->name);
    put_field(out, entry->copy ? entry->copy : "");
    oc_putf(out, ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu32 ",%s,%s,%" PRIu64, entry->elements,
            oc_dtype_name((enum oc_dtype)entry->dtype), entry->bytes, entry->count,
            oc_phase_name((enum oc_phase)entry->birth.phase), oc_phase_name((enum oc_phase)entry->death.phase),
            at_peak);
    put_field(out, entry->why ? entry->why : "");
    put_field(out, entry->source ? entry->source : "");
    oc_put(out, "\n");
}

static void put_entries(struct oc_buffer *out, const struct oc_report *report)
{
    struct oc_alive *alive = malloc(sizeof *alive);
    out->failed |= !alive;
    oc_put(out, "stage,class,name,copy,elements,dtype,bytes,count,birth,death,at_peak,why,source\n");
    for (int i = 0; alive && i < report->answer->n_ranks; i++) {
        const struct oc_ledger *ledger = &report->ledgers[i];
        oc_alive_at(ledger, &report->answer->ranks[i].peak, alive);
        for (int e = 0; e < ledger->n_entries; e++) put_entry(out, i, &ledger->entries[e], alive->bytes[e]);
        const struct oc_entry rounding = oc_rounding_entry(alive), unsplit = oc_unsplit_entry(alive);
        if (alive->rounding) put_entry(out, i, &rounding, alive->rounding);
        if (alive->unsplit) put_entry(out, i, &unsplit, alive->unsplit);
    }
    free(alive);
}

void oc_report_csv(const struct oc_report *report, struct oc_buffer *out)
{
    if (report->ledgers)
        put_entries(out, report);
    else
        put_moments(out, report->answer);
}
