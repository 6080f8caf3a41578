/* oc_sweep(): the largest instant of every moment, without expanding layers or micro-batches. The cost is that of the
 * entries plus a few additions per slot: only where a moment is at its highest are the classes summed. */
#include <string.h>

#include "model/base/slots.h"

/* The highest point of a moment of the slots. */
struct top {
    int64_t allocated; /* bytes */
    int slot;
    struct oc_level before; /* at the begin of that slot */
    struct oc_reached reached;
    const struct oc_slot_sums *reached_in; /* what `reached` is of, NULL: nothing yet */
};

/* Forward and loss, then backward. */
enum { TOPS = OC_SLOT_MOMENTS + 1 };

struct sweep {
    const struct oc_ledger *ledger;
    struct oc_program program;
    struct oc_slots slots;
    struct oc_rank *rank;
    struct oc_level level;
    enum oc_iteration iteration;
    struct top tops[TOPS];
};

/* Keeps the level as the moment's figure if it is the highest so far. */
static void record(struct sweep *s, const struct oc_level *level, const struct oc_place *place)
{
    struct oc_instant *best = &s->rank->moments[s->iteration][place->moment];
    if (best->exists && (uint64_t)level->allocated <= best->allocated) return;
    best->exists = true;
    best->allocated = (uint64_t)level->allocated;
    best->requested = (uint64_t)level->requested;
    for (int c = 0; c < OC_CLASSES; c++) best->classes[c] = (uint64_t)level->classes[c];
    best->place = *place;
    best->place.iteration = s->iteration;
}

/* ---- slots ---- */

static enum oc_variant variant_of(const struct sweep *s, const struct oc_slot *slot)
{
    return oc_slot_variant(s->ledger, slot, s->iteration);
}

/* Passes one slot, whose moments are kept from `top` on. */
static void pass_slot(struct sweep *s, int index, const struct oc_slot_sums *sums, struct top *top, int moments)
{
    for (int m = 0; m < moments; m++) {
        const int64_t allocated = s->level.allocated + sums->high[m].height;
        if (allocated <= top[m].allocated) continue;
        top[m].slot = index;
        top[m].allocated = allocated;
        top[m].before = s->level;
    }
    oc_level_add(&s->level, &sums->net, 1);
}

/* Sums the classes at the highest point of a moment. Both iterations often have it in equal slots. */
static void record_top(struct sweep *s, struct top *top, int moment)
{
    const struct oc_slot *slot = &s->ledger->slots[top->slot];
    const struct oc_slot_sums *sums = oc_slots_sums(&s->slots, slot, variant_of(s, slot));
    if (top->reached_in != sums)
        oc_slots_reach(&s->slots, slot, variant_of(s, slot), &sums->high[moment], &top->reached);
    top->reached_in = sums;
    const struct oc_reached *reached = &top->reached;
    oc_level_add(&top->before, &reached->level, 1);
    const int32_t first = (int32_t)s->ledger->chunks[slot->chunk].first_layer;
    const struct oc_place place = {.moment = oc_phase_moment((enum oc_phase)reached->tick.phase),
                                   .micro_batch = oc_slot_micro_batch(s->ledger, slot),
                                   .layer = reached->layer < 0 ? -1 : first + reached->layer,
                                   .tick = reached->tick};
    record(s, &top->before, &place);
}

static void pass_slots(struct sweep *s)
{
    for (int m = 0; m < TOPS; m++) s->tops[m].allocated = OC_NOWHERE / 2;
    for (int i = 0; i < s->ledger->n_slots; i++) {
        const struct oc_slot *slot = &s->ledger->slots[i];
        const struct oc_slot_sums *sums = oc_slots_sums(&s->slots, slot, variant_of(s, slot));
        if (slot->backward)
            pass_slot(s, i, sums, &s->tops[OC_SLOT_MOMENTS], 1);
        else
            pass_slot(s, i, sums, s->tops, OC_SLOT_MOMENTS);
    }
    for (int m = 0; m < TOPS; m++)
        if (s->tops[m].allocated >= 0) record_top(s, &s->tops[m], m % OC_SLOT_MOMENTS);
}

/* ---- outside slots ---- */

static struct oc_place place_outside(enum oc_stretch stretch)
{
    const struct oc_tick tick = oc_stretch_tick(stretch);
    return (struct oc_place){
        .moment = oc_phase_moment((enum oc_phase)tick.phase), .micro_batch = -1, .layer = -1, .tick = tick};
}

/* Whether a step outside slots happens in this iteration: what is never freed is born once, and in the first iteration
 * nothing has outlived one yet. */
static bool happens(const struct sweep *s, const struct oc_step *step, enum oc_stretch stretch)
{
    if (s->iteration == OC_FIRST) return oc_step_is_birth(step) || stretch != OC_ST_START;
    return !oc_step_is_birth(step) || s->ledger->entries[step->entry].death.phase != OC_PH_END;
}

/* A stretch outside slots. It is reported from the level that it has after its first deaths. */
static void pass_outside(struct sweep *s, enum oc_stretch stretch, bool reported)
{
    struct oc_place place = place_outside(stretch), top = place;
    struct oc_level high = s->level;
    bool born = false;
    for (int i = s->program.begin[stretch][0]; i < s->program.begin[stretch][OC_MAX_KINDS]; i++) {
        const struct oc_step *step = &s->program.steps[i];
        if (!happens(s, step, stretch)) continue;
        const struct oc_entry *entry = &s->ledger->entries[step->entry];
        if (!born) high = s->level;
        oc_level_step(&s->level, entry, step, entry->count);
        born = born || oc_step_is_birth(step);
        if (!oc_step_is_birth(step) || s->level.allocated <= high.allocated) continue;
        high = s->level;
        top.tick.sub = oc_step_sub(step);
    }
    if (reported) record(s, born ? &high : &s->level, &top);
}

/* A moment of the slots in which nothing was born (only parameters are known, say) has the level around it. */
static void record_quiet(struct sweep *s, enum oc_stretch stretch, const struct oc_level *level)
{
    struct oc_place place = place_outside(stretch);
    place.tick.part = OC_PART_NONE;
    if (!s->rank->moments[s->iteration][place.moment].exists) record(s, level, &place);
}

void oc_sweep(const struct oc_ledger *ledger, struct oc_rank *rank)
{
    struct sweep s;
    s.ledger = ledger;
    s.rank = rank;
    s.iteration = OC_FIRST;
    memset(&s.level, 0, sizeof s.level);
    for (int m = 0; m < TOPS; m++) s.tops[m].reached_in = NULL;
    memset(rank, 0, sizeof *rank);
    rank->stage = ledger->stage;
    rank->ranks = ledger->ranks;
    rank->params = ledger->params;
    rank->allocated_by = OC_MODELLED;
    oc_program_build(ledger, &s.program);
    oc_slots_begin(&s.slots, ledger, &s.program);
    pass_outside(&s, OC_ST_INIT, true);
    for (int iteration = OC_FIRST; iteration < OC_ITERATIONS; iteration++) {
        s.iteration = (enum oc_iteration)iteration;
        pass_outside(&s, OC_ST_START, false);
        const struct oc_level before = s.level;
        pass_slots(&s);
        record_quiet(&s, OC_ST_FORWARD_EMBED, &before);
        record_quiet(&s, OC_ST_BACKWARD_EMBED, &s.level);
        for (int stretch = OC_ST_REDUCE; stretch <= OC_ST_IDLE; stretch++)
            pass_outside(&s, (enum oc_stretch)stretch, true);
    }
    oc_rank_find_peaks(rank);
}
