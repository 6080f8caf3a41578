/* One entry of the layers view in full: its sum, its life, its rule and source. */
#include "tui/views/layers.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/base/program.h"

#include "tui/report/units.h"

/* How often it exists. */
static const char *repetition(const struct oc_entry *entry)
{
    const bool layer = entry->birth.part == OC_PART_LAYER;
    switch (oc_entry_life(entry)) {
    case OC_LIFE_STATIC: return entry->count > 1 ? "all instances at once" : "once";
    case OC_LIFE_SLOT: return layer ? "for each layer and micro-batch in flight" : "for each micro-batch in flight";
    case OC_LIFE_GRADIENT: return layer ? "in each layer, with the first micro-batch" : "with the first micro-batch";
    case OC_LIFE_WAITING:
        return layer ? "in each layer, from the first micro-batch to the last"
                     : "from the first micro-batch to the last";
    }
    return "";
}

/* "31 alive x 58,720,256 x 2 B (bf16)", or with the bytes of one where these are not elements times a type. */
static void write_product(const struct oc_layers_state *state, const struct oc_entry *entry, int index, char *text,
                          size_t size)
{
    char elements[OC_BYTES_TEXT], each[OC_BYTES_TEXT];
    const int bits = oc_dtype_bits((enum oc_dtype)entry->dtype);
    const char *type = oc_dtype_name((enum oc_dtype)entry->dtype);
    oc_format_count(entry->elements, elements, sizeof elements);
    oc_format_count(entry->bytes, each, sizeof each);
    if (entry->bytes == oc_bytes(entry->elements, (enum oc_dtype)entry->dtype) && bits % 8 == 0)
        snprintf(text, size, "%" PRIu32 " alive x %s x %d B (%s)", state->alive.instances[index], elements, bits / 8,
                 type);
    else
        snprintf(text, size, "%" PRIu32 " alive x %s B (%s elements in %s)", state->alive.instances[index], each,
                 elements, type);
}

void oc_layers_tell(const struct oc_layers_state *state, const struct oc_ledger *ledger, char *text, size_t size)
{
    const struct oc_layers_row *row = &state->rows[state->focus];
    const struct oc_entry *entry = oc_layers_entry(state, ledger, row->entry);
    char name[160], exact[OC_BYTES_TEXT], product[160] = "added by the allocator";
    oc_layers_name(entry, name, sizeof name);
    oc_format_count(row->bytes, exact, sizeof exact);
    if (row->entry < ledger->n_entries) write_product(state, entry, row->entry, product, sizeof product);
    snprintf(text, size, "%s = %s B\nWhy: %s\n%s: from %s to %s, %s%s.%s%s", product, exact,
             entry->why ? entry->why : "", name, oc_phase_name((enum oc_phase)entry->birth.phase),
             oc_phase_name((enum oc_phase)entry->death.phase), repetition(entry),
             entry->pooled ? ", a view of a larger block" : "", entry->source && entry->source[0] ? "\nSource: " : "",
             entry->source ? entry->source : "");
}
