#include "model/base/slots.h"

#include <string.h>

/* A slot's way is made of legs: a stretch, passed once or once for each of some equal layers. */
struct leg {
    uint8_t stretch, kind;
    bool top;      /* the group that runs backward first */
    bool silent;   /* groups between the first and the last: no point of them can be the highest */
    int8_t toward; /* layer by layer: 1 upwards, -1 downwards */
    int32_t times;
    int32_t layer; /* the first layer passed, counted in the chunk; -1: none */
};

/* Three for head, loss and embedding; a run of layers takes at most ten: a short group, the first, the second, those
 * between, the last, each recomputed and passed backward. */
enum { MOST_LEGS = 3 + 10 * OC_MAX_RUNS };

struct way {
    struct leg legs[MOST_LEGS];
    int n;
};

static void add_leg(struct way *way, enum oc_stretch stretch)
{
    way->legs[way->n++] = (struct leg){.stretch = (uint8_t)stretch, .times = 1, .layer = -1};
}

/* Layers `first` to `first + layers - 1` of a kind that are recomputed together: upwards again, then backward. */
static void add_group(struct way *way, int kind, int32_t first, int32_t layers, bool top, bool silent)
{
    way->legs[way->n++] = (struct leg){.stretch = OC_ST_RECOMPUTE_LAYER,
                                       .kind = (uint8_t)kind,
                                       .top = top,
                                       .silent = silent,
                                       .toward = 1,
                                       .times = layers,
                                       .layer = first};
    way->legs[way->n++] = (struct leg){.stretch = OC_ST_BACKWARD_LAYER,
                                       .kind = (uint8_t)kind,
                                       .top = top,
                                       .silent = silent,
                                       .toward = -1,
                                       .times = layers,
                                       .layer = first + layers - 1};
}

/* Backward through a run of equal layers: groups from the top, of which the topmost may be short. Where the topmost
 * lacks entries that the others have, the second is the first of equal ones. */
static void add_run_backward(struct way *way, const struct oc_slots *slots, const struct oc_run *run, int32_t first,
                             bool top)
{
    const struct oc_ledger *ledger = slots->ledger;
    const int32_t group = ledger->group[run->kind] > 1 ? ledger->group[run->kind] : 1;
    const int32_t rest = run->layers % group, whole = run->layers / group;
    if (rest) add_group(way, run->kind, first + whole * group, rest, top, false);
    if (whole > 0) add_group(way, run->kind, first + (whole - 1) * group, group, top && !rest, false);
    const int32_t apart = slots->program->spares_top && top && !rest;
    if (whole > 2 && apart) add_group(way, run->kind, first + (whole - 2) * group, group, false, false);
    if (whole > 2 + apart) add_group(way, run->kind, first + group, (whole - 2 - apart) * group, false, true);
    if (whole > 1) add_group(way, run->kind, first, group, false, false);
}

static void find_way(const struct oc_slots *slots, const struct oc_chunk *chunk, bool backward, struct way *way)
{
    int32_t layer = 0;
    way->n = 0;
    if (!backward) {
        add_leg(way, OC_ST_FORWARD_EMBED);
        for (int i = 0; i < chunk->n_runs; layer += chunk->runs[i++].layers)
            way->legs[way->n++] = (struct leg){.stretch = OC_ST_FORWARD_LAYER,
                                               .kind = (uint8_t)chunk->runs[i].kind,
                                               .toward = 1,
                                               .times = chunk->runs[i].layers,
                                               .layer = layer};
        add_leg(way, OC_ST_FORWARD_HEAD);
        add_leg(way, OC_ST_LOSS);
        return;
    }
    for (int i = 0; i < chunk->n_runs; i++) layer += chunk->runs[i].layers;
    add_leg(way, OC_ST_BACKWARD_HEAD);
    for (int i = chunk->n_runs - 1; i >= 0; i--) {
        layer -= chunk->runs[i].layers;
        add_run_backward(way, slots, &chunk->runs[i], layer, i == chunk->n_runs - 1);
    }
    add_leg(way, OC_ST_BACKWARD_EMBED);
}

/* ---- one stretch ---- */

/* Passes the steps of a leg once, up to and with step `last` (-1: to the end). */
static void pass_once(const struct oc_slots *slots, const struct leg *leg, const struct oc_chunk *chunk,
                      enum oc_variant variant, int last, struct oc_profile *profile)
{
    const uint16_t *group = &slots->program->begin[leg->stretch][leg->kind];
    const int end = last < 0 ? group[1] : last + 1;
    memset(profile, 0, sizeof *profile);
    profile->peak = -1;
    for (int i = group[0]; i < end; i++) {
        const struct oc_step *step = &slots->program->steps[i];
        if (!oc_step_in(step, variant)) continue;
        const struct oc_entry *entry = &slots->ledger->entries[step->entry];
        if (leg->top && entry->spares_top) continue;
        int64_t n = 1;
        if (leg->layer < 0)
            n = step->part == OC_PART_LAYER ? oc_chunk_layers(chunk, entry->kind) : oc_entry_on(entry, chunk);
        if (!n) continue;
        oc_level_step(&profile->net, entry, step, n);
        if (!oc_step_is_birth(step) || (profile->peak >= 0 && profile->net.allocated <= profile->height)) continue;
        profile->peak = i;
        profile->height = profile->net.allocated;
    }
}

static const uint8_t layer_stretches[OC_LAYER_STRETCHES] = {OC_ST_FORWARD_LAYER, OC_ST_RECOMPUTE_LAYER,
                                                            OC_ST_BACKWARD_LAYER};

/* A layer is the same in every chunk, so its stretches are passed once per kind, and per variant that differs. */
static const struct oc_profile *profile_of(struct oc_slots *slots, const struct leg *leg, const struct oc_chunk *chunk,
                                           enum oc_variant variant, struct oc_profile *scratch)
{
    if (leg->layer < 0 || (leg->top && slots->program->spares_top)) {
        pass_once(slots, leg, chunk, variant, -1, scratch);
        return scratch;
    }
    int of = 0;
    while (layer_stretches[of] != leg->stretch) of++;
    const uint8_t like = slots->layers_like[of][leg->kind][variant];
    if (!slots->has_layers[of][leg->kind][like]) {
        slots->has_layers[of][leg->kind][like] = true;
        pass_once(slots, leg, chunk, (enum oc_variant)like, -1, &slots->layers[of][leg->kind][like]);
    }
    return &slots->layers[of][leg->kind][like];
}

/* ---- one slot ---- */

static void consider(struct oc_point *high, const struct oc_point *point)
{
    if (point->height > high->height) *high = *point;
}

void oc_slots_make(struct oc_slots *slots, const struct oc_slot *slot, enum oc_variant variant,
                   struct oc_slot_sums *sums)
{
    const struct oc_chunk *chunk = &slots->ledger->chunks[slot->chunk];
    struct way way;
    struct oc_profile scratch;
    find_way(slots, chunk, slot->backward, &way);
    memset(sums, 0, sizeof *sums);
    sums->ready = true;
    for (int m = 0; m < OC_SLOT_MOMENTS; m++) sums->high[m].height = OC_NOWHERE;
    for (int i = 0; i < way.n; i++) {
        const struct leg *leg = &way.legs[i];
        const struct oc_profile *profile = profile_of(slots, leg, chunk, variant, &scratch);
        if (profile->peak >= 0 && !leg->silent) {
            struct oc_point *high = &sums->high[leg->stretch == OC_ST_LOSS];
            struct oc_point point = {
                .height = sums->net.allocated + profile->height, .step = (uint16_t)profile->peak, .leg = (uint8_t)i};
            consider(high, &point);
            point.height += profile->net.allocated * (leg->times - 1);
            point.in_last = true;
            consider(high, &point);
        }
        oc_level_add(&sums->net, &profile->net, leg->times);
    }
}

void oc_slots_reach(struct oc_slots *slots, const struct oc_slot *slot, enum oc_variant variant,
                    const struct oc_point *point, struct oc_reached *reached)
{
    const struct oc_chunk *chunk = &slots->ledger->chunks[slot->chunk];
    struct way way;
    struct oc_profile scratch;
    find_way(slots, chunk, slot->backward, &way);
    const struct leg *leg = &way.legs[point->leg];
    const int32_t before = point->in_last ? leg->times - 1 : 0; /* layers of its leg that lie behind it */
    pass_once(slots, leg, chunk, variant, point->step, &scratch);
    reached->level = scratch.net;
    for (int i = 0; i < point->leg; i++)
        oc_level_add(&reached->level, &profile_of(slots, &way.legs[i], chunk, variant, &scratch)->net,
                     way.legs[i].times);
    if (before) oc_level_add(&reached->level, &profile_of(slots, leg, chunk, variant, &scratch)->net, before);
    reached->layer = leg->layer < 0 ? -1 : leg->layer + leg->toward * before;
    reached->tick = oc_stretch_tick((enum oc_stretch)leg->stretch);
    reached->tick.sub = oc_step_sub(&slots->program->steps[point->step]);
}

/* ---- what is equal ---- */

static bool same_chunk(const struct oc_chunk *a, const struct oc_chunk *b)
{
    if (a->n_runs != b->n_runs || a->embedding != b->embedding || a->head != b->head) return false;
    for (int i = 0; i < a->n_runs; i++)
        if (a->runs[i].kind != b->runs[i].kind || a->runs[i].layers != b->runs[i].layers) return false;
    return true;
}

/* For each variant the lowest one that has the same steps among those of a range: variants differ only where some step
 * is in one and not in the other. */
static void compare_variants(const struct oc_program *program, int begin, int end, uint8_t *like)
{
    uint8_t differ[OC_VARIANTS] = {0}; /* [n], bit v: variants v and v + n do */
    for (int i = begin; i < end; i++) {
        const uint8_t v = program->steps[i].variants;
        if (v == (1 << OC_VARIANTS) - 1) continue;
        for (int n = 1; n < OC_VARIANTS; n++) differ[n] |= (uint8_t)(v ^ v >> n);
    }
    for (int v = 0; v < OC_VARIANTS; v++) {
        int first = 0;
        while (first < v && differ[v - first] >> first & 1) first++;
        like[v] = (uint8_t)first;
    }
}

void oc_slots_begin(struct oc_slots *slots, const struct oc_ledger *ledger, const struct oc_program *program)
{
    const uint16_t(*group)[OC_MAX_KINDS + 1] = program->begin;
    slots->ledger = ledger;
    slots->program = program;
    memset(slots->has_layers, 0, sizeof slots->has_layers);
    compare_variants(program, group[OC_ST_FORWARD_EMBED][0], group[OC_ST_BACKWARD_HEAD][0], slots->like[false]);
    compare_variants(program, group[OC_ST_BACKWARD_HEAD][0], group[OC_ST_REDUCE][0], slots->like[true]);
    for (int of = 0; of < OC_LAYER_STRETCHES; of++)
        for (int kind = 0; kind < OC_MAX_KINDS; kind++) {
            const uint16_t *begin = &group[layer_stretches[of]][kind];
            compare_variants(program, begin[0], begin[1], slots->layers_like[of][kind]);
        }
    for (int i = 0; i < ledger->n_chunks; i++) {
        int class = 0;
        while (class < i && (slots->class[class] != class || !same_chunk(&ledger->chunks[class], &ledger->chunks[i])))
            class ++;
        slots->class[i] = (uint8_t) class;
        for (int n = 0; class == i && n < 2 * OC_VARIANTS; n++)
            slots->sums[i][n / OC_VARIANTS][n % OC_VARIANTS].ready = false;
    }
}
