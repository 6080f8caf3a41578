/* oc_walk(): the program of a rank in its long form, event by event. */
#include "model/base/program.h"

struct walk {
    const struct oc_ledger *ledger;
    struct oc_program program;
    bool (*visit)(const struct oc_event *event, void *user);
    void *user;
    bool going;
    struct oc_event event;     /* what `visit` is shown: its place is set once per stretch */
    bool top;                  /* it passes the layers that run backward first */
    int layers;                /* on this rank, all chunks */
    int offset[OC_MAX_CHUNKS]; /* layers in the chunks before */
};

static int count_layers(const struct oc_chunk *chunk)
{
    int layers = 0;
    for (int i = 0; i < chunk->n_runs; i++) layers += chunk->runs[i].layers;
    return layers;
}

int oc_walk_instances(const struct oc_ledger *ledger)
{
    int layers = 0, micro_batches = 1, most = 1;
    for (int i = 0; i < ledger->n_chunks; i++) layers += count_layers(&ledger->chunks[i]);
    for (int i = 0; i < ledger->n_slots; i++)
        if (ledger->slots[i].micro_batch >= micro_batches) micro_batches = ledger->slots[i].micro_batch + 1;
    for (int i = 0; i < ledger->n_entries; i++)
        if (oc_entry_life(&ledger->entries[i]) == OC_LIFE_STATIC && (int)ledger->entries[i].count > most)
            most = (int)ledger->entries[i].count;
    const int per_micro_batch = layers > ledger->n_chunks ? layers : ledger->n_chunks;
    return per_micro_batch * micro_batches > most ? per_micro_batch * micro_batches : most;
}

static void emit(struct walk *w, const struct oc_step *step, int instance)
{
    if (!w->going) return;
    w->event.entry = step->entry;
    w->event.instance = instance;
    w->event.birth = oc_step_is_birth(step);
    w->event.place.tick.sub = oc_step_sub(step);
    w->going = w->visit(&w->event, w->user);
}

/* Events from here on happen in this stretch. */
static void enter(struct walk *w, enum oc_stretch stretch, int32_t micro_batch, int64_t layer)
{
    struct oc_place *place = &w->event.place;
    place->tick = oc_stretch_tick(stretch);
    place->moment = oc_phase_moment((enum oc_phase)place->tick.phase);
    place->micro_batch = micro_batch;
    place->layer = (int32_t)layer;
}

/* Numbers the instance of a step's entry for a slot and, in part LAYER, a layer of the chunk. */
static int instance_of(const struct walk *w, const struct oc_step *step, const struct oc_slot *slot, int layer)
{
    const int micro_batch = step->life == OC_LIFE_SLOT ? slot->micro_batch : 0;
    if (step->part == OC_PART_LAYER) return micro_batch * w->layers + w->offset[slot->chunk] + layer;
    return micro_batch * w->ledger->n_chunks + slot->chunk;
}

/* Ends, at a tick outside their layer, every instance of a layer entry in the chunk of this slot. */
static void emit_all_layers(struct walk *w, const struct oc_step *step, const struct oc_slot *slot)
{
    const struct oc_chunk *chunk = &w->ledger->chunks[slot->chunk];
    const int kind = w->ledger->entries[step->entry].kind;
    int layer = 0;
    for (int i = 0; i < chunk->n_runs; layer += chunk->runs[i++].layers)
        for (int n = 0; chunk->runs[i].kind == kind && n < chunk->runs[i].layers; n++)
            emit(w, step, instance_of(w, step, slot, layer + n));
}

/* One passage of a stretch of a slot; `layer` counts in the chunk, -1 outside layer stretches. */
static void pass(struct walk *w, enum oc_stretch stretch, int kind, const struct oc_slot *slot, int layer)
{
    const struct oc_chunk *chunk = &w->ledger->chunks[slot->chunk];
    const enum oc_variant variant = oc_slot_variant(w->ledger, slot, w->event.place.iteration);
    enter(w, stretch, oc_slot_micro_batch(w->ledger, slot), layer < 0 ? -1 : chunk->first_layer + layer);
    for (int i = w->program.begin[stretch][kind]; i < w->program.begin[stretch][kind + 1] && w->going; i++) {
        const struct oc_step *step = &w->program.steps[i];
        if (!oc_step_in(step, variant) || (w->top && w->ledger->entries[step->entry].spares_top)) continue;
        if (step->part != OC_PART_LAYER && !oc_entry_on(&w->ledger->entries[step->entry], chunk)) continue;
        if (step->part == OC_PART_LAYER && layer < 0)
            emit_all_layers(w, step, slot);
        else
            emit(w, step, instance_of(w, step, slot, layer));
    }
}

static void pass_layers_backward(struct walk *w, const struct oc_slot *slot, const struct oc_run *run, int first,
                                 bool top)
{
    const int group = w->ledger->group[run->kind] > 1 ? w->ledger->group[run->kind] : 1;
    for (int end = run->layers; end > 0;) {
        const int begin = (end - 1) / group * group;
        w->top = top && end == run->layers;
        for (int i = begin; i < end; i++) pass(w, OC_ST_RECOMPUTE_LAYER, run->kind, slot, first + i);
        for (int i = end - 1; i >= begin; i--) pass(w, OC_ST_BACKWARD_LAYER, run->kind, slot, first + i);
        end = begin;
    }
    w->top = false;
}

static void pass_slot(struct walk *w, const struct oc_slot *slot)
{
    const struct oc_chunk *chunk = &w->ledger->chunks[slot->chunk];
    int layer = 0;
    if (!slot->backward) {
        pass(w, OC_ST_FORWARD_EMBED, 0, slot, -1);
        for (int i = 0; i < chunk->n_runs; i++)
            for (int n = 0; n < chunk->runs[i].layers; n++, layer++)
                pass(w, OC_ST_FORWARD_LAYER, chunk->runs[i].kind, slot, layer);
        pass(w, OC_ST_FORWARD_HEAD, 0, slot, -1);
        pass(w, OC_ST_LOSS, 0, slot, -1);
        return;
    }
    layer = count_layers(chunk);
    pass(w, OC_ST_BACKWARD_HEAD, 0, slot, -1);
    for (int i = chunk->n_runs - 1; i >= 0; i--) {
        layer -= chunk->runs[i].layers;
        pass_layers_backward(w, slot, &chunk->runs[i], layer, i == chunk->n_runs - 1);
    }
    pass(w, OC_ST_BACKWARD_EMBED, 0, slot, -1);
}

/* Where the instances of a gradient lie: every layer (chunk) that bore one. */
static void emit_gradients(struct walk *w, const struct oc_step *step)
{
    for (int c = 0; c < w->ledger->n_chunks; c++) {
        const struct oc_slot slot = {.chunk = (uint8_t)c};
        if (step->part == OC_PART_LAYER)
            emit_all_layers(w, step, &slot);
        else if (oc_entry_on(&w->ledger->entries[step->entry], &w->ledger->chunks[c]))
            emit(w, step, instance_of(w, step, &slot, -1));
    }
}

static void pass_outside(struct walk *w, enum oc_stretch stretch, bool first)
{
    enter(w, stretch, -1, -1);
    for (int i = w->program.begin[stretch][0]; i < w->program.begin[stretch][OC_MAX_KINDS] && w->going; i++) {
        const struct oc_step *step = &w->program.steps[i];
        const struct oc_entry *entry = &w->ledger->entries[step->entry];
        const bool birth = oc_step_is_birth(step);
        if (!first && birth && entry->death.phase == OC_PH_END) continue;
        if (first && !birth && stretch == OC_ST_START) continue;
        if (step->life == OC_LIFE_GRADIENT)
            emit_gradients(w, step);
        else
            for (uint32_t n = 0; n < entry->count; n++) emit(w, step, (int)n);
    }
}

void oc_walk(const struct oc_ledger *ledger, int iterations, bool (*visit)(const struct oc_event *event, void *user),
             void *user)
{
    struct walk w = {.ledger = ledger, .visit = visit, .user = user, .going = true};
    for (int i = 0; i < ledger->n_chunks; i++) {
        w.offset[i] = w.layers;
        w.layers += count_layers(&ledger->chunks[i]);
    }
    oc_program_build(ledger, &w.program);
    pass_outside(&w, OC_ST_INIT, true);
    for (int i = 0; i < iterations && w.going; i++) {
        w.event.place.iteration = i ? OC_STEADY : OC_FIRST;
        pass_outside(&w, OC_ST_START, i == 0);
        for (int n = 0; n < ledger->n_slots && w.going; n++) pass_slot(&w, &ledger->slots[n]);
        for (int stretch = OC_ST_REDUCE; stretch <= OC_ST_IDLE; stretch++)
            pass_outside(&w, (enum oc_stretch)stretch, i == 0);
    }
}
