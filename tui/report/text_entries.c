/* The ledger itself: every entry, with what it holds at the peak, largest first. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/alive.h"
#include "tui/report/text.h"

struct line {
    const struct oc_entry *entry;
    uint64_t at_peak; /* bytes */
    int order;        /* in the ledger: keeps equals in their order */
};

static int larger_first(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->at_peak != y->at_peak) return x->at_peak < y->at_peak ? 1 : -1;
    return x->order - y->order;
}

static void put_line(struct oc_buffer *out, const struct line *line, enum oc_unit unit)
{
    const struct oc_entry *entry = line->entry;
    const int width = unit == OC_UNIT_BYTES ? 17 : 9;
    char bytes[OC_BYTES_TEXT], life[40];
    snprintf(life, sizeof life, "%s to %s", oc_phase_name((enum oc_phase)entry->birth.phase),
             oc_phase_name((enum oc_phase)entry->death.phase));
    oc_putf(out, "  %*s %c %s", width, oc_format_amount(line->at_peak, unit, width, bytes, sizeof bytes),
            oc_class_letter((enum oc_class)entry->class), entry->name);
    if (entry->dtype != OC_NONE) oc_putf(out, ", %s", oc_dtype_name((enum oc_dtype)entry->dtype));
    if (entry->count > 1) oc_putf(out, ", %" PRIu32 " times", entry->count);
    oc_putf(out, ", %s\n", life);

    struct oc_buffer reason = {0};
    oc_putf(&reason, "%s", entry->why ? entry->why : "");
    if (entry->source && entry->source[0]) oc_putf(&reason, " [%s]", entry->source);
    oc_putf(out, "  %*s", width + 3, "");
    if (reason.data) oc_put_wrapped(out, reason.data, width + 5, width + 5, OC_TEXT_WIDTH);
    out->failed |= reason.failed;
    oc_buffer_free(&reason);
}

void oc_text_entries(struct oc_buffer *out, const struct oc_ledger *ledger, const struct oc_instant *peak,
                     enum oc_unit unit)
{
    struct oc_alive *alive = malloc(sizeof *alive);
    struct line *lines = calloc(OC_MAX_ENTRIES + 2, sizeof *lines);
    if (alive && lines) {
        int n = 0;
        oc_alive_at(ledger, peak, alive);
        for (; n < ledger->n_entries; n++) lines[n] = (struct line){&ledger->entries[n], alive->bytes[n], n};
        const struct oc_entry rounding = oc_rounding_entry(alive), unsplit = oc_unsplit_entry(alive);
        if (alive->rounding) lines[n] = (struct line){&rounding, alive->rounding, n}, n++;
        if (alive->unsplit) lines[n] = (struct line){&unsplit, alive->unsplit, n}, n++;
        qsort(lines, (size_t)n, sizeof *lines, larger_first);

        char sum[OC_BYTES_TEXT];
        oc_putf(out, "\n  Entries: %s at the peak (these add up to %s), class, name, type, life\n", oc_unit_name(unit),
                oc_format_bytes(alive->allocated, unit, sum, sizeof sum));
        for (int i = 0; i < n; i++) put_line(out, &lines[i], unit);
    } else {
        out->failed = true;
    }
    free(alive);
    free(lines);
}
