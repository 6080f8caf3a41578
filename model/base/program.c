#include "model/base/program.h"

#include <string.h>

#include "oomcast/alloc.h"

static bool in_slot(struct oc_tick tick)
{
    return tick.phase >= OC_PH_FORWARD && tick.phase <= OC_PH_BACKWARD;
}

enum oc_life oc_entry_life(const struct oc_entry *entry)
{
    if (!in_slot(entry->birth)) return OC_LIFE_STATIC;
    return in_slot(entry->death) ? OC_LIFE_SLOT : OC_LIFE_GRADIENT;
}

enum oc_stretch oc_tick_stretch(struct oc_tick tick)
{
    static const uint8_t outside[OC_PHASES] = {[OC_PH_INIT] = OC_ST_INIT,
                                               [OC_PH_START] = OC_ST_START,
                                               [OC_PH_LOSS] = OC_ST_LOSS,
                                               [OC_PH_REDUCE] = OC_ST_REDUCE,
                                               [OC_PH_CLIP] = OC_ST_CLIP,
                                               [OC_PH_STEP] = OC_ST_STEP,
                                               [OC_PH_AFTER_STEP] = OC_ST_AFTER_STEP,
                                               [OC_PH_IDLE] = OC_ST_IDLE,
                                               [OC_PH_END] = OC_STRETCHES};
    switch (tick.phase) {
    case OC_PH_FORWARD:
        return tick.part == OC_PART_EMBED   ? OC_ST_FORWARD_EMBED
               : tick.part == OC_PART_LAYER ? OC_ST_FORWARD_LAYER
                                            : OC_ST_FORWARD_HEAD;
    case OC_PH_RECOMPUTE: return OC_ST_RECOMPUTE_LAYER;
    case OC_PH_BACKWARD:
        return tick.part == OC_PART_EMBED   ? OC_ST_BACKWARD_EMBED
               : tick.part == OC_PART_LAYER ? OC_ST_BACKWARD_LAYER
                                            : OC_ST_BACKWARD_HEAD;
    default: return (enum oc_stretch)outside[tick.phase];
    }
}

uint64_t oc_entry_rounding(const struct oc_entry *entry)
{
    return entry->pooled || entry->is_rounding ? 0 : oc_alloc_round(entry->bytes) - entry->bytes;
}

bool oc_entry_in(const struct oc_entry *entry, enum oc_variant variant)
{
    if (oc_entry_life(entry) == OC_LIFE_GRADIENT)
        return variant == OC_VERY_FIRST || (variant == OC_FIRST_OF_ITERATION && entry->death.phase != OC_PH_END);
    switch (entry->when) {
    case OC_FIRST_MICRO_BATCH: return variant != OC_LATER;
    case OC_LATER_MICRO_BATCHES: return variant == OC_LATER;
    case OC_ALL_BUT_THE_FIRST: return variant != OC_VERY_FIRST;
    default: return true;
    }
}

static bool end_matches(uint8_t kind, bool here)
{
    return kind == OC_END_ANY || (kind == OC_END_HERE) == here;
}

bool oc_entry_on(const struct oc_entry *entry, const struct oc_chunk *chunk)
{
    if (entry->birth.part == OC_PART_EMBED) return end_matches(entry->kind, chunk->embedding);
    if (entry->birth.part == OC_PART_HEAD) return end_matches(entry->kind, chunk->head);
    return true;
}

int64_t oc_chunk_layers(const struct oc_chunk *chunk, int kind)
{
    int64_t layers = 0;
    for (int i = 0; i < chunk->n_runs; i++)
        if (chunk->runs[i].kind == kind) layers += chunk->runs[i].layers;
    return layers;
}

uint64_t oc_entry_per_chunk(const struct oc_entry *entry, const struct oc_chunk *chunk)
{
    if (entry->birth.part == OC_PART_LAYER) return (uint64_t)oc_chunk_layers(chunk, entry->kind);
    return oc_entry_on(entry, chunk) ? 1 : 0;
}

/* The group of a step: layer stretches keep kinds apart, the others have one group. */
static int group_of(const struct oc_entry *entry, enum oc_stretch stretch)
{
    bool layer = stretch == OC_ST_FORWARD_LAYER || stretch == OC_ST_RECOMPUTE_LAYER || stretch == OC_ST_BACKWARD_LAYER;
    return layer ? entry->kind : 0;
}

void oc_program_build(const struct oc_ledger *ledger, struct oc_program *program)
{
    /* A counting sort by (stretch, kind), then an insertion sort of each small group, which is nearly in order already.
     */
    int count[OC_STRETCHES][OC_MAX_KINDS];
    memset(count, 0, sizeof count);
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *entry = &ledger->entries[i];
        enum oc_stretch born = oc_tick_stretch(entry->birth), dies = oc_tick_stretch(entry->death);
        count[born][group_of(entry, born)]++;
        if (dies < OC_STRETCHES) count[dies][group_of(entry, dies)]++;
    }
    int total = 0;
    int fill[OC_STRETCHES][OC_MAX_KINDS];
    for (int s = 0; s < OC_STRETCHES; s++) {
        for (int k = 0; k < OC_MAX_KINDS; k++) {
            program->begin[s][k] = fill[s][k] = total;
            total += count[s][k];
        }
        program->begin[s][OC_MAX_KINDS] = total;
    }
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *entry = &ledger->entries[i];
        for (int birth = 0; birth < 2; birth++) {
            struct oc_tick tick = birth ? entry->birth : entry->death;
            enum oc_stretch stretch = oc_tick_stretch(tick);
            if (stretch == OC_STRETCHES) continue;
            int k = group_of(entry, stretch), at = fill[stretch][k]++;
            struct oc_step step = {.key = (uint16_t)(tick.sub * 2 + birth), .entry = (uint16_t)i};
            for (; at > program->begin[stretch][k] && program->steps[at - 1].key > step.key; at--)
                program->steps[at] = program->steps[at - 1];
            program->steps[at] = step;
        }
    }
}
