/* What passing one slot of the pipeline schedule does to the sums of a ledger: its change, and its highest point in
 * each moment. Closed over layers: passing n equal layers changes the sums by n times the change of one, and the
 * highest point over them lies in the first or in the last, because the level is linear in between.
 *
 * Ownership: plain values that the caller owns. */
#ifndef OC_MODEL_BASE_SLOTS_H
#define OC_MODEL_BASE_SLOTS_H

#include "model/base/program.h"

/* All sums that are carried along, bytes. */
struct oc_level {
    int64_t allocated, requested;
    int64_t classes[OC_CLASSES];
};

static inline void oc_level_add(struct oc_level *restrict sum, const struct oc_level *restrict term, int64_t times)
{
    sum->allocated += term->allocated * times;
    sum->requested += term->requested * times;
    for (int c = 0; c < OC_CLASSES; c++) sum->classes[c] += term->classes[c] * times;
}

/* The birth or death of n instances. */
static inline void oc_level_step(struct oc_level *level, const struct oc_entry *entry, const struct oc_step *step,
                                 int64_t n)
{
    const int64_t blocks = step->bytes * n,
                  bytes = oc_step_is_birth(step) ? (int64_t)entry->bytes * n : -(int64_t)entry->bytes * n;
    level->allocated += blocks;
    level->requested += entry->is_rounding ? 0 : bytes;
    level->classes[entry->class] += bytes;
    level->classes[OC_BUFFERS] += blocks - bytes;
}

/* One passage of a stretch. */
struct oc_profile {
    struct oc_level net; /* change from begin to end */
    int64_t height;      /* highest point at or after the first birth, allocated bytes above the begin */
    int peak;            /* index of the step that reaches it; -1: nothing is born */
};

/* Forward, recompute and backward of a layer. */
enum { OC_LAYER_STRETCHES = 3 };

/* The moments of a slot: forward and loss, or backward. */
enum { OC_SLOT_MOMENTS = 2 };

/* Where in a slot a point lies. */
struct oc_point {
    int64_t height; /* allocated bytes above the begin of the slot; OC_NOWHERE: nothing is born in this moment */
    uint16_t step;  /* index in the program's steps */
    uint8_t leg;    /* of the slot's way, and whether in the last of its layers */
    bool in_last;
};

/* Below every level that a ledger can have: oc_estimate() keeps them below 2^62 / OC_MAX_SLOTS bytes. */
#define OC_NOWHERE (INT64_MIN / 2)

struct oc_slot_sums {
    struct oc_level net;
    struct oc_point high[OC_SLOT_MOMENTS];
    bool ready;
};

/* The sums of all slots of a ledger, made when they are first asked for. */
struct oc_slots {
    const struct oc_ledger *ledger;
    const struct oc_program *program;
    uint8_t class[OC_MAX_CHUNKS]; /* the first chunk that is equal */
    uint8_t like[2][OC_VARIANTS]; /* [backward]: the lowest variant that has the same steps */
    struct oc_slot_sums sums[OC_MAX_CHUNKS][2][OC_VARIANTS]; /* [class][backward] */
    uint8_t layers_like[OC_LAYER_STRETCHES][OC_MAX_KINDS][OC_VARIANTS];
    struct oc_profile layers[OC_LAYER_STRETCHES][OC_MAX_KINDS][OC_VARIANTS];
    bool has_layers[OC_LAYER_STRETCHES][OC_MAX_KINDS][OC_VARIANTS];
};

void oc_slots_begin(struct oc_slots *slots, const struct oc_ledger *ledger, const struct oc_program *program);

/* Makes the sums of a slot like this one. */
void oc_slots_make(struct oc_slots *slots, const struct oc_slot *slot, enum oc_variant variant,
                   struct oc_slot_sums *sums);

static inline const struct oc_slot_sums *oc_slots_sums(struct oc_slots *slots, const struct oc_slot *slot,
                                                       enum oc_variant variant)
{
    const uint8_t like = slots->like[slot->backward][variant];
    struct oc_slot_sums *sums = &slots->sums[slots->class[slot->chunk]][slot->backward][like];
    if (!sums->ready) oc_slots_make(slots, slot, (enum oc_variant)like, sums);
    return sums;
}

/* What has changed from the begin of a slot to a point of it, and where that is. */
struct oc_reached {
    struct oc_level level;
    int32_t layer; /* counted in the chunk; -1: none */
    struct oc_tick tick;
};

void oc_slots_reach(struct oc_slots *slots, const struct oc_slot *slot, enum oc_variant variant,
                    const struct oc_point *point, struct oc_reached *reached);

#endif
