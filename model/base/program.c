#include "model/base/program.h"

#include <string.h>

#include "oomcast/alloc.h"

_Static_assert(2 * OC_MAX_SUB <= 256, "a step's key is one byte");
enum { KEYS = 2 * OC_MAX_SUB, GROUPS = OC_STRETCHES * OC_MAX_KINDS };

static bool in_slot(struct oc_tick tick)
{
    return tick.phase >= OC_PH_FORWARD && tick.phase <= OC_PH_BACKWARD;
}

enum oc_life oc_entry_life(const struct oc_entry *entry)
{
    if (!in_slot(entry->birth)) return OC_LIFE_STATIC;
    if (!in_slot(entry->death)) return OC_LIFE_GRADIENT;
    return entry->when == OC_FIRST_TO_LAST ? OC_LIFE_WAITING : OC_LIFE_SLOT;
}

/* [phase][part]; a slot's ticks of no part count as the head's, as the loss does. OC_STRETCHES: never. */
static const uint8_t stretches[OC_PHASES][4] = {
#define EVERYWHERE(stretch)                                                                                            \
    {                                                                                                                  \
        stretch, stretch, stretch, stretch                                                                             \
    }
    [OC_PH_INIT] = EVERYWHERE(OC_ST_INIT),
    [OC_PH_START] = EVERYWHERE(OC_ST_START),
    [OC_PH_FORWARD] = {OC_ST_FORWARD_HEAD, OC_ST_FORWARD_EMBED, OC_ST_FORWARD_LAYER, OC_ST_FORWARD_HEAD},
    [OC_PH_LOSS] = EVERYWHERE(OC_ST_LOSS),
    [OC_PH_RECOMPUTE] = EVERYWHERE(OC_ST_RECOMPUTE_LAYER),
    [OC_PH_BACKWARD] = {OC_ST_BACKWARD_HEAD, OC_ST_BACKWARD_EMBED, OC_ST_BACKWARD_LAYER, OC_ST_BACKWARD_HEAD},
    [OC_PH_REDUCE] = EVERYWHERE(OC_ST_REDUCE),
    [OC_PH_CLIP] = EVERYWHERE(OC_ST_CLIP),
    [OC_PH_STEP] = EVERYWHERE(OC_ST_STEP),
    [OC_PH_AFTER_STEP] = EVERYWHERE(OC_ST_AFTER_STEP),
    [OC_PH_IDLE] = EVERYWHERE(OC_ST_IDLE),
    [OC_PH_END] = EVERYWHERE(OC_STRETCHES),
#undef EVERYWHERE
};

struct oc_tick oc_stretch_tick(enum oc_stretch stretch)
{
    static const struct oc_tick ticks[OC_STRETCHES] = {[OC_ST_INIT] = {OC_PH_INIT, OC_PART_NONE, 0},
                                                       [OC_ST_START] = {OC_PH_START, OC_PART_NONE, 0},
                                                       [OC_ST_FORWARD_EMBED] = {OC_PH_FORWARD, OC_PART_EMBED, 0},
                                                       [OC_ST_FORWARD_LAYER] = {OC_PH_FORWARD, OC_PART_LAYER, 0},
                                                       [OC_ST_FORWARD_HEAD] = {OC_PH_FORWARD, OC_PART_HEAD, 0},
                                                       [OC_ST_LOSS] = {OC_PH_LOSS, OC_PART_HEAD, 0},
                                                       [OC_ST_BACKWARD_HEAD] = {OC_PH_BACKWARD, OC_PART_HEAD, 0},
                                                       [OC_ST_RECOMPUTE_LAYER] = {OC_PH_RECOMPUTE, OC_PART_LAYER, 0},
                                                       [OC_ST_BACKWARD_LAYER] = {OC_PH_BACKWARD, OC_PART_LAYER, 0},
                                                       [OC_ST_BACKWARD_EMBED] = {OC_PH_BACKWARD, OC_PART_EMBED, 0},
                                                       [OC_ST_REDUCE] = {OC_PH_REDUCE, OC_PART_NONE, 0},
                                                       [OC_ST_CLIP] = {OC_PH_CLIP, OC_PART_NONE, 0},
                                                       [OC_ST_STEP] = {OC_PH_STEP, OC_PART_NONE, 0},
                                                       [OC_ST_AFTER_STEP] = {OC_PH_AFTER_STEP, OC_PART_NONE, 0},
                                                       [OC_ST_IDLE] = {OC_PH_IDLE, OC_PART_NONE, 0}};
    return ticks[stretch];
}

uint64_t oc_entry_rounding(const struct oc_entry *entry)
{
    return entry->pooled || entry->is_rounding ? 0 : oc_alloc_round(entry->bytes) - entry->bytes;
}

int64_t oc_chunk_layers(const struct oc_chunk *chunk, int kind)
{
    int64_t layers = 0;
    for (int i = 0; i < chunk->n_runs; i++)
        if (chunk->runs[i].kind == kind) layers += chunk->runs[i].layers;
    return layers;
}

/* In which variants of a slot an entry is born: one bit each. It dies in them, too, unless it waits for the last. */
static uint8_t variants_of(const struct oc_entry *entry)
{
    enum {
        VERY_FIRST = 1 << OC_VERY_FIRST,
        FIRST = 1 << OC_FIRST_OF_ITERATION,
        LATER = 1 << OC_LATER,
        LAST = 1 << OC_LAST
    };
    static const uint8_t by_when[] = {[OC_ALWAYS] = VERY_FIRST | FIRST | LATER | LAST,
                                      [OC_FIRST_MICRO_BATCH] = VERY_FIRST | FIRST,
                                      [OC_LATER_MICRO_BATCHES] = LATER | LAST,
                                      [OC_ALL_BUT_THE_FIRST] = FIRST | LATER | LAST,
                                      [OC_LAST_MICRO_BATCH] = LAST,
                                      [OC_FIRST_TO_LAST] = VERY_FIRST | FIRST};
    if (in_slot(entry->birth) && !in_slot(entry->death) && entry->when != OC_LAST_MICRO_BATCH)
        return entry->death.phase == OC_PH_END ? VERY_FIRST : VERY_FIRST | FIRST;
    return by_when[entry->when];
}

/* The group of a step: layer stretches keep kinds apart, the others have one group. */
static uint8_t group_of(const struct oc_entry *entry, uint8_t stretch)
{
    const bool layer =
        stretch == OC_ST_FORWARD_LAYER || stretch == OC_ST_RECOMPUTE_LAYER || stretch == OC_ST_BACKWARD_LAYER;
    return (uint8_t)(stretch * OC_MAX_KINDS + (layer ? entry->kind : 0));
}

/* Births and deaths as they stand in the ledger, still to be sorted. */
struct draft {
    struct oc_step steps[2 * OC_MAX_ENTRIES];
    uint8_t groups[2 * OC_MAX_ENTRIES];
    int n;
    bool spares_top;
    uint16_t of_key[KEYS + 1], of_group[GROUPS + 1]; /* how many steps have the key (group) one below the index */
};

static void add_step(struct draft *draft, const struct oc_step *step, uint8_t group)
{
    draft->of_key[step->key + 1]++;
    draft->of_group[group + 1]++;
    draft->groups[draft->n] = group;
    draft->steps[draft->n++] = *step;
}

static void fill_draft(const struct oc_ledger *ledger, struct draft *draft)
{
    draft->n = 0;
    draft->spares_top = false;
    memset(draft->of_key, 0, sizeof draft->of_key);
    memset(draft->of_group, 0, sizeof draft->of_group);
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *entry = &ledger->entries[i];
        const uint8_t born = stretches[entry->birth.phase][entry->birth.part],
                      dies = stretches[entry->death.phase][entry->death.part];
        const uint8_t born_in = variants_of(entry);
        const int64_t bytes = (int64_t)(entry->bytes + oc_entry_rounding(entry));
        struct oc_step step = {.entry = (uint16_t)i, .life = (uint8_t)oc_entry_life(entry), .part = entry->birth.part};
        draft->spares_top |= entry->spares_top;
        if (dies < OC_STRETCHES) {
            step.bytes = -bytes;
            step.variants = entry->when == OC_FIRST_TO_LAST ? 1 << OC_LAST : born_in;
            step.key = (uint8_t)(entry->death.sub * 2);
            add_step(draft, &step, group_of(entry, dies));
        }
        step.bytes = bytes;
        step.variants = born_in;
        step.key = (uint8_t)(entry->birth.sub * 2 + 1);
        add_step(draft, &step, group_of(entry, born));
    }
}

/* Counts become places: the first of those with the key (group) of the index. */
static void sum_up(uint16_t *counts, int n)
{
    for (int i = 1; i < n; i++) counts[i] = (uint16_t)(counts[i] + counts[i - 1]);
}

void oc_program_build(const struct oc_ledger *ledger, struct oc_program *program)
{
    /* Two stable counting sorts, by key and then by group, so that equal steps stay in the order of the entries. */
    struct draft draft;
    uint16_t by_key[2 * OC_MAX_ENTRIES];
    fill_draft(ledger, &draft);
    program->spares_top = draft.spares_top;
    sum_up(draft.of_key, KEYS + 1);
    sum_up(draft.of_group, GROUPS + 1);
    for (int s = 0; s < OC_STRETCHES; s++)
        memcpy(program->begin[s], draft.of_group + s * OC_MAX_KINDS, sizeof program->begin[s]);
    for (int i = 0; i < draft.n; i++) by_key[draft.of_key[draft.steps[i].key]++] = (uint16_t)i;
    for (int i = 0; i < draft.n; i++)
        program->steps[draft.of_group[draft.groups[by_key[i]]]++] = draft.steps[by_key[i]];
}
