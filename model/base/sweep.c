/* oc_sweep(): the largest instant of every moment, without expanding layers or micro-batches.
 *
 * Each stretch of the program is summed once into a net change and its highest point. Passing n equal layers changes
 * the level by n times the net, and the highest point over them lies in the first or in the last layer, because the
 * level is linear in between. So the cost is that of the entries plus a few additions per slot. */
#include <string.h>

#include "model/base/program.h"

/* requested, then the classes: all sums that are carried along. */
struct level {
    int64_t allocated, requested;
    int64_t classes[OC_CLASSES];
};

struct profile {
    struct level net;  /* change from begin to end */
    struct level peak; /* level relative to the begin, at the highest point at or after the first birth */
    bool any;          /* has a birth: peak holds */
    uint8_t peak_sub;
};

/* The stretches of one slot, for one variant on one class of chunks. */
struct slot_profile {
    bool ready;
    struct profile embed[2], head[2], loss; /* [backward] */
    struct profile forward[OC_MAX_KINDS], recompute[OC_MAX_KINDS], backward[OC_MAX_KINDS];
};

struct sweep {
    const struct oc_ledger *ledger;
    struct oc_program program;
    struct oc_rank *rank;
    struct level level;
    enum oc_iteration iteration;
    struct slot_profile slots[OC_MAX_RUNS][OC_VARIANTS]; /* [distinct chunk class] */
    int class_of[OC_MAX_RUNS], n_classes;
};

static void add(struct level *sum, const struct level *term, int64_t times)
{
    sum->allocated += term->allocated * times;
    sum->requested += term->requested * times;
    for (int c = 0; c < OC_CLASSES; c++) sum->classes[c] += term->classes[c] * times;
}

static void count(struct level *level, const struct oc_entry *entry, int64_t instances)
{
    int64_t bytes = (int64_t)entry->bytes * instances, rounding = (int64_t)oc_entry_rounding(entry) * instances;
    level->allocated += bytes + rounding;
    if (!entry->is_rounding) level->requested += bytes;
    level->classes[entry->class] += bytes;
    level->classes[OC_BUFFERS] += rounding;
}

/* Keeps the level as the moment's figure if it is the highest so far. */
static void record(struct sweep *s, const struct level *level, const struct oc_place *place)
{
    struct oc_instant *best = &s->rank->moments[s->iteration][place->moment];
    if (best->exists && (uint64_t)level->allocated <= best->allocated) return;
    best->exists = true;
    best->allocated = (uint64_t)level->allocated;
    best->requested = (uint64_t)level->requested;
    for (int c = 0; c < OC_CLASSES; c++) best->classes[c] = (uint64_t)level->classes[c];
    best->place = *place;
}

/* ---- profiles of the stretches of a slot ---- */

/* How many instances this step adds (births) or ends (deaths) when the stretch is passed once. */
static int64_t instances_of(const struct oc_entry *entry, bool birth, bool layer_stretch, const struct oc_chunk *chunk)
{
    if (birth && entry->birth.part != OC_PART_LAYER) return oc_entry_on(entry, chunk) ? 1 : 0;
    if (layer_stretch) return 1;
    return (int64_t)oc_entry_per_chunk(entry, chunk);
}

static void profile_stretch(const struct sweep *s, enum oc_stretch stretch, int kind, enum oc_variant variant,
                            const struct oc_chunk *chunk, bool layer_stretch, struct profile *profile)
{
    memset(profile, 0, sizeof *profile);
    const int begin = s->program.begin[stretch][kind], end = s->program.begin[stretch][kind + 1];
    for (int i = begin; i < end; i++) {
        const struct oc_step step = s->program.steps[i];
        const struct oc_entry *entry = &s->ledger->entries[step.entry];
        const bool birth = step.key & 1;
        if (!oc_entry_in(entry, variant)) continue;
        const int64_t n = instances_of(entry, birth, layer_stretch, chunk);
        if (!n) continue;
        count(&profile->net, entry, birth ? n : -n);
        if (birth && (!profile->any || profile->net.allocated > profile->peak.allocated)) {
            profile->any = true;
            profile->peak = profile->net;
            profile->peak_sub = (uint8_t)(step.key >> 1);
        }
    }
}

static bool same_chunk(const struct oc_chunk *a, const struct oc_chunk *b)
{
    if (a->n_runs != b->n_runs || a->embedding != b->embedding || a->head != b->head) return false;
    for (int i = 0; i < a->n_runs; i++)
        if (a->runs[i].kind != b->runs[i].kind || a->runs[i].layers != b->runs[i].layers) return false;
    return true;
}

/* The profiles for a slot, made the first time a (class of chunks, variant) is met. When a rank has more classes of
 * chunks than fit, the last place is made anew each time. */
static const struct slot_profile *profiles(struct sweep *s, const struct oc_chunk *chunk, enum oc_variant variant)
{
    int class = 0;
    while (class < s->n_classes && !same_chunk(chunk, &s->ledger->chunks[s->class_of[class]])) class ++;
    if (class == s->n_classes) {
        if (class == OC_MAX_RUNS) class --, s->n_classes--;
        s->class_of[class] = (int)(chunk - s->ledger->chunks);
        s->n_classes++;
        for (int v = 0; v < OC_VARIANTS; v++) s->slots[class][v].ready = false;
    }
    struct slot_profile *p = &s->slots[class][variant];
    if (p->ready) return p;
    p->ready = true;
    profile_stretch(s, OC_ST_FORWARD_EMBED, 0, variant, chunk, false, &p->embed[0]);
    profile_stretch(s, OC_ST_BACKWARD_EMBED, 0, variant, chunk, false, &p->embed[1]);
    profile_stretch(s, OC_ST_FORWARD_HEAD, 0, variant, chunk, false, &p->head[0]);
    profile_stretch(s, OC_ST_BACKWARD_HEAD, 0, variant, chunk, false, &p->head[1]);
    profile_stretch(s, OC_ST_LOSS, 0, variant, chunk, false, &p->loss);
    for (int i = 0; i < chunk->n_runs; i++) {
        const int kind = chunk->runs[i].kind;
        profile_stretch(s, OC_ST_FORWARD_LAYER, kind, variant, chunk, true, &p->forward[kind]);
        profile_stretch(s, OC_ST_RECOMPUTE_LAYER, kind, variant, chunk, true, &p->recompute[kind]);
        profile_stretch(s, OC_ST_BACKWARD_LAYER, kind, variant, chunk, true, &p->backward[kind]);
    }
    return p;
}

/* ---- passing the program ---- */

/* Considers the peak of a profile when `ahead` has changed the level before it. */
static void consider(struct sweep *s, const struct profile *profile, const struct level *ahead, struct oc_place place)
{
    if (!profile->any) return;
    struct level level = s->level;
    add(&level, ahead, 1);
    add(&level, &profile->peak, 1);
    place.tick.sub = profile->peak_sub;
    record(s, &level, &place);
}

static void pass(struct sweep *s, const struct profile *profile, const struct oc_slot *slot, struct oc_tick tick)
{
    static const struct level nothing;
    consider(s, profile, &nothing,
             (struct oc_place){.iteration = s->iteration,
                               .moment = oc_phase_moment((enum oc_phase)tick.phase),
                               .micro_batch = slot->micro_batch,
                               .layer = -1,
                               .tick = tick});
    add(&s->level, &profile->net, 1);
}

/* Forward through a run of equal layers: the first and the last decide. */
static void pass_forward(struct sweep *s, const struct profile *p, const struct oc_slot *slot, int64_t first,
                         int64_t layers)
{
    for (int last = 0; last < (layers > 1 ? 2 : 1); last++) {
        int64_t at = last ? layers - 1 : 0;
        struct level ahead = {0};
        add(&ahead, &p->net, at);
        consider(s, p, &ahead,
                 (struct oc_place){.iteration = s->iteration,
                                   .moment = OC_M_FORWARD,
                                   .micro_batch = slot->micro_batch,
                                   .layer = (int32_t)(first + at),
                                   .tick = {OC_PH_FORWARD, OC_PART_LAYER, 0}});
    }
    add(&s->level, &p->net, layers);
}

/* Backward through one group of layers that are recomputed together; `ahead` is the change of the groups before it. */
static void consider_group(struct sweep *s, const struct profile *recompute, const struct profile *backward,
                           const struct oc_slot *slot, int64_t first, int64_t layers, const struct level *ahead)
{
    for (int last = 0; last < (layers > 1 ? 2 : 1); last++) {
        int64_t at = last ? layers - 1 : 0;
        struct level before = *ahead;
        add(&before, &recompute->net, at);
        struct oc_place place = {.iteration = s->iteration,
                                 .moment = OC_M_BACKWARD,
                                 .micro_batch = slot->micro_batch,
                                 .layer = (int32_t)(first + at),
                                 .tick = {OC_PH_RECOMPUTE, OC_PART_LAYER, 0}};
        consider(s, recompute, &before, place);
    }
    for (int last = 0; last < (layers > 1 ? 2 : 1); last++) {
        int64_t at = last ? layers - 1 : 0;
        struct level before = *ahead;
        add(&before, &recompute->net, layers);
        add(&before, &backward->net, at);
        struct oc_place place = {.iteration = s->iteration,
                                 .moment = OC_M_BACKWARD,
                                 .micro_batch = slot->micro_batch,
                                 .layer = (int32_t)(first + layers - 1 - at),
                                 .tick = {OC_PH_BACKWARD, OC_PART_LAYER, 0}};
        consider(s, backward, &before, place);
    }
}

/* Backward through a run of equal layers: groups from the top, of which the topmost may be short. */
static void pass_backward(struct sweep *s, const struct slot_profile *p, int kind, const struct oc_slot *slot,
                          int64_t first, int64_t layers)
{
    const struct profile *recompute = &p->recompute[kind], *backward = &p->backward[kind];
    const int64_t group = s->ledger->group[kind] > 1 ? s->ledger->group[kind] : 1;
    struct level both = recompute->net;
    add(&both, &backward->net, 1);
    const int64_t rest = layers % group, whole = layers / group;
    struct level ahead = {0};
    if (rest) {
        consider_group(s, recompute, backward, slot, first + whole * group, rest, &ahead);
        add(&ahead, &both, rest);
    }
    if (whole > 0) consider_group(s, recompute, backward, slot, first + (whole - 1) * group, group, &ahead);
    if (whole > 1) {
        add(&ahead, &both, (whole - 1) * group);
        consider_group(s, recompute, backward, slot, first, group, &ahead);
    }
    add(&s->level, &both, layers);
}

static void pass_slot(struct sweep *s, const struct oc_slot *slot)
{
    const struct oc_chunk *chunk = &s->ledger->chunks[slot->chunk];
    const enum oc_variant variant = slot->micro_batch          ? OC_LATER
                                    : s->iteration == OC_FIRST ? OC_VERY_FIRST
                                                               : OC_FIRST_OF_ITERATION;
    const struct slot_profile *p = profiles(s, chunk, variant);
    int64_t layer = chunk->first_layer;
    if (!slot->backward) {
        pass(s, &p->embed[0], slot, (struct oc_tick){OC_PH_FORWARD, OC_PART_EMBED, 0});
        for (int i = 0; i < chunk->n_runs; layer += chunk->runs[i++].layers)
            pass_forward(s, &p->forward[chunk->runs[i].kind], slot, layer, chunk->runs[i].layers);
        pass(s, &p->head[0], slot, (struct oc_tick){OC_PH_FORWARD, OC_PART_HEAD, 0});
        pass(s, &p->loss, slot, (struct oc_tick){OC_PH_LOSS, OC_PART_HEAD, 0});
        return;
    }
    for (int i = 0; i < chunk->n_runs; i++) layer += chunk->runs[i].layers;
    pass(s, &p->head[1], slot, (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, 0});
    for (int i = chunk->n_runs - 1; i >= 0; i--) {
        layer -= chunk->runs[i].layers;
        pass_backward(s, p, chunk->runs[i].kind, slot, layer, chunk->runs[i].layers);
    }
    pass(s, &p->embed[1], slot, (struct oc_tick){OC_PH_BACKWARD, OC_PART_EMBED, 0});
}

/* A stretch outside slots. A moment in which nothing is born has the level it begins with, after its first deaths. */
static void pass_outside(struct sweep *s, enum oc_stretch stretch, enum oc_phase phase, bool reported)
{
    const int begin = s->program.begin[stretch][0], end = s->program.begin[stretch][OC_MAX_KINDS];
    struct oc_place place = {.iteration = s->iteration,
                             .moment = oc_phase_moment(phase),
                             .micro_batch = -1,
                             .layer = -1,
                             .tick = {(uint8_t)phase, OC_PART_NONE, 0}};
    bool born = false;
    for (int i = begin; i < end; i++) {
        const struct oc_step step = s->program.steps[i];
        const struct oc_entry *entry = &s->ledger->entries[step.entry];
        const bool birth = step.key & 1;
        if (s->iteration == OC_STEADY && birth && entry->death.phase == OC_PH_END) continue;
        if (s->iteration == OC_FIRST && !birth && phase == OC_PH_START)
            continue; /* nothing has outlived anything yet */
        if (birth && !born && reported) record(s, &s->level, &place);
        born = born || birth;
        count(&s->level, entry, birth ? entry->count : -(int64_t)entry->count);
        place.tick.sub = (uint8_t)(step.key >> 1);
        if (birth && reported) record(s, &s->level, &place);
    }
    if (!born && reported) record(s, &s->level, &place);
}

/* A moment of the slots in which nothing was born (only parameters are known, say) has the level around it. */
static void record_quiet(struct sweep *s, enum oc_phase phase, const struct level *level)
{
    const enum oc_moment moment = oc_phase_moment(phase);
    if (s->rank->moments[s->iteration][moment].exists) return;
    const struct oc_place place = {.iteration = s->iteration,
                                   .moment = moment,
                                   .micro_batch = -1,
                                   .layer = -1,
                                   .tick = {(uint8_t)phase, OC_PART_NONE, 0}};
    record(s, level, &place);
}

static const struct {
    uint8_t stretch, phase;
} tail[] = {{OC_ST_REDUCE, OC_PH_REDUCE},
            {OC_ST_CLIP, OC_PH_CLIP},
            {OC_ST_STEP, OC_PH_STEP},
            {OC_ST_AFTER_STEP, OC_PH_AFTER_STEP},
            {OC_ST_IDLE, OC_PH_IDLE}};

void oc_sweep(const struct oc_ledger *ledger, struct oc_rank *rank)
{
    struct sweep s;
    s.ledger = ledger;
    s.rank = rank;
    s.iteration = OC_FIRST;
    s.n_classes = 0;
    memset(&s.level, 0, sizeof s.level);
    memset(rank, 0, sizeof *rank);
    rank->stage = ledger->stage;
    rank->ranks = ledger->ranks;
    rank->params = ledger->params;
    rank->allocated_by = OC_MODELLED;
    oc_program_build(ledger, &s.program);
    pass_outside(&s, OC_ST_INIT, OC_PH_INIT, true);
    for (int iteration = OC_FIRST; iteration < OC_ITERATIONS; iteration++) {
        s.iteration = (enum oc_iteration)iteration;
        pass_outside(&s, OC_ST_START, OC_PH_START, false);
        const struct level before = s.level;
        for (int i = 0; i < ledger->n_slots; i++) pass_slot(&s, &ledger->slots[i]);
        record_quiet(&s, OC_PH_FORWARD, &before);
        record_quiet(&s, OC_PH_BACKWARD, &s.level);
        for (size_t i = 0; i < sizeof tail / sizeof *tail; i++)
            pass_outside(&s, (enum oc_stretch)tail[i].stretch, (enum oc_phase)tail[i].phase, true);
    }
    oc_rank_find_peaks(rank);
}
