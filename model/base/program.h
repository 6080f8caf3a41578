/* A ledger's births and deaths in the order in which the program of one slot passes them. oc_sweep() sums them,
 * oc_walk() expands them; what a tick means is decided here and nowhere else. */
#ifndef OOMCAST_PROGRAM_H
#define OOMCAST_PROGRAM_H

#include "oomcast/ledger.h"

/* The stretches of a program, in order. Slot stretches repeat with slots and layers. */
enum oc_stretch {
    OC_ST_INIT,
    OC_ST_START,
    OC_ST_FORWARD_EMBED,
    OC_ST_FORWARD_LAYER,
    OC_ST_FORWARD_HEAD,
    OC_ST_LOSS,
    OC_ST_BACKWARD_HEAD,
    OC_ST_RECOMPUTE_LAYER,
    OC_ST_BACKWARD_LAYER,
    OC_ST_BACKWARD_EMBED,
    OC_ST_REDUCE,
    OC_ST_CLIP,
    OC_ST_STEP,
    OC_ST_AFTER_STEP,
    OC_ST_IDLE,
    OC_STRETCHES
};

/* How an entry repeats: follows from its ticks. */
enum oc_life {
    OC_LIFE_STATIC,   /* born and dead outside slots */
    OC_LIFE_SLOT,     /* once per slot pair (and layer) */
    OC_LIFE_GRADIENT, /* born once (per layer) in an iteration, outlives the slots */
    OC_LIFE_WAITING   /* born in the first micro-batch, dies in a slot of the last */
};

/* Which of four situations a slot is in decides which entries it has: the last is the last of several. */
enum oc_variant { OC_VERY_FIRST, OC_FIRST_OF_ITERATION, OC_LATER, OC_LAST, OC_VARIANTS };

struct oc_step {      /* one birth or death of an entry */
    int64_t bytes;    /* what one instance changes `allocated` by: negative for a death */
    uint16_t entry;   /* index in ledger->entries */
    uint8_t key;      /* sub * 2 + (birth ? 1 : 0): the order inside a stretch */
    uint8_t variants; /* bit v: it happens in slots of variant v */
    uint8_t life;     /* enum oc_life, and enum oc_part of the birth, of the entry */
    uint8_t part;
};

struct oc_program {
    struct oc_step steps[2 * OC_MAX_ENTRIES];       /* grouped by stretch and kind, each group in order */
    uint16_t begin[OC_STRETCHES][OC_MAX_KINDS + 1]; /* group of kind k: steps begin[s][k] to begin[s][k + 1] */
    bool spares_top;                                /* some entry does */
};

static inline bool oc_step_is_birth(const struct oc_step *step)
{
    return step->key & 1;
}

static inline uint8_t oc_step_sub(const struct oc_step *step)
{
    return step->key >> 1;
}

static inline bool oc_step_in(const struct oc_step *step, enum oc_variant variant)
{
    return step->variants >> variant & 1;
}

/* The schedule ends with the last micro-batch's backward. */
static inline bool oc_slot_is_last(const struct oc_ledger *ledger, const struct oc_slot *slot)
{
    return slot->micro_batch && slot->micro_batch == ledger->slots[ledger->n_slots - 1].micro_batch;
}

static inline enum oc_variant oc_slot_variant(const struct oc_ledger *ledger, const struct oc_slot *slot,
                                              enum oc_iteration iteration)
{
    if (!slot->micro_batch) return iteration == OC_FIRST ? OC_VERY_FIRST : OC_FIRST_OF_ITERATION;
    return oc_slot_is_last(ledger, slot) ? OC_LAST : OC_LATER;
}

/* The number of its micro-batch in the whole step. */
static inline int32_t oc_slot_micro_batch(const struct oc_ledger *ledger, const struct oc_slot *slot)
{
    return (int32_t)(slot->micro_batch + (oc_slot_is_last(ledger, slot) ? ledger->left_out : 0));
}

enum oc_life oc_entry_life(const struct oc_entry *entry);

/* The phase and part whose ticks a stretch holds, sub-step 0. */
struct oc_tick oc_stretch_tick(enum oc_stretch stretch);

/* Bytes the allocator adds to one instance. */
uint64_t oc_entry_rounding(const struct oc_entry *entry);

static inline bool oc_end_matches(uint8_t end, bool here)
{
    return end == OC_END_ANY || (end == OC_END_HERE) == here;
}

/* Whether an entry of part EMBED or HEAD exists on this chunk; true for the other parts. */
static inline bool oc_entry_on(const struct oc_entry *entry, const struct oc_chunk *chunk)
{
    if (entry->birth.part == OC_PART_EMBED) return oc_end_matches(entry->kind, chunk->embedding);
    if (entry->birth.part == OC_PART_HEAD) return oc_end_matches(entry->kind, chunk->head);
    return true;
}

/* Layers of kind `kind` in a chunk. */
int64_t oc_chunk_layers(const struct oc_chunk *chunk, int kind);

void oc_program_build(const struct oc_ledger *ledger, struct oc_program *program);

#endif
