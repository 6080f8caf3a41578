/* oc_walk(): the program of a rank in its long form, event by event. */
#include "model/base/program.h"

struct walk {
    const struct oc_ledger *ledger;
    struct oc_program program;
    bool (*visit)(const struct oc_event *event, void *user);
    void *user;
    bool going;
    enum oc_iteration iteration;
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

static void emit(struct walk *w, int entry, int instance, bool birth, const struct oc_place *place)
{
    if (!w->going) return;
    const struct oc_event event = {.entry = entry, .instance = instance, .birth = birth, .place = *place};
    w->going = w->visit(&event, w->user);
}

/* Numbers the instance of an entry for a slot and, in part LAYER, a layer of the chunk. */
static int instance_of(const struct walk *w, const struct oc_entry *entry, const struct oc_slot *slot, int layer)
{
    const bool gradient = oc_entry_life(entry) == OC_LIFE_GRADIENT;
    if (entry->birth.part == OC_PART_LAYER)
        return (gradient ? 0 : slot->micro_batch * w->layers) + w->offset[slot->chunk] + layer;
    return (gradient ? 0 : slot->micro_batch * w->ledger->n_chunks) + slot->chunk;
}

/* Ends, at a tick outside their layer, every instance of a layer entry in the chunk of this slot. */
static void emit_all_layers(struct walk *w, int entry, const struct oc_slot *slot, const struct oc_place *place)
{
    const struct oc_chunk *chunk = &w->ledger->chunks[slot->chunk];
    int layer = 0;
    for (int i = 0; i < chunk->n_runs; i++)
        for (int n = 0; n < chunk->runs[i].layers; n++, layer++)
            if (chunk->runs[i].kind == w->ledger->entries[entry].kind)
                emit(w, entry, instance_of(w, &w->ledger->entries[entry], slot, layer), false, place);
}

/* One passage of a stretch of a slot; `layer` counts in the chunk, -1 outside layer stretches. */
static void pass(struct walk *w, enum oc_stretch stretch, int kind, const struct oc_slot *slot, int layer,
                 struct oc_tick tick)
{
    const struct oc_chunk *chunk = &w->ledger->chunks[slot->chunk];
    const enum oc_variant variant = slot->micro_batch          ? OC_LATER
                                    : w->iteration == OC_FIRST ? OC_VERY_FIRST
                                                               : OC_FIRST_OF_ITERATION;
    for (int i = w->program.begin[stretch][kind]; i < w->program.begin[stretch][kind + 1] && w->going; i++) {
        const struct oc_step *step = &w->program.steps[i];
        const struct oc_entry *entry = &w->ledger->entries[step->entry];
        if (!oc_step_in(step, variant) || !oc_entry_on(entry, chunk)) continue;
        tick.sub = oc_step_sub(step);
        const struct oc_place place = {.iteration = w->iteration,
                                       .moment = oc_phase_moment((enum oc_phase)tick.phase),
                                       .micro_batch = slot->micro_batch,
                                       .layer = layer < 0 ? -1 : (int32_t)chunk->first_layer + layer,
                                       .tick = tick};
        if (entry->birth.part == OC_PART_LAYER && layer < 0)
            emit_all_layers(w, step->entry, slot, &place);
        else
            emit(w, step->entry, instance_of(w, entry, slot, layer), oc_step_is_birth(step), &place);
    }
}

static void pass_layers_backward(struct walk *w, const struct oc_slot *slot, const struct oc_run *run, int first)
{
    const int group = w->ledger->group[run->kind] > 1 ? w->ledger->group[run->kind] : 1;
    for (int end = run->layers; end > 0;) {
        const int begin = (end - 1) / group * group;
        for (int i = begin; i < end; i++)
            pass(w, OC_ST_RECOMPUTE_LAYER, run->kind, slot, first + i,
                 (struct oc_tick){OC_PH_RECOMPUTE, OC_PART_LAYER, 0});
        for (int i = end - 1; i >= begin; i--)
            pass(w, OC_ST_BACKWARD_LAYER, run->kind, slot, first + i,
                 (struct oc_tick){OC_PH_BACKWARD, OC_PART_LAYER, 0});
        end = begin;
    }
}

static void pass_slot(struct walk *w, const struct oc_slot *slot)
{
    const struct oc_chunk *chunk = &w->ledger->chunks[slot->chunk];
    int layer = 0;
    if (!slot->backward) {
        pass(w, OC_ST_FORWARD_EMBED, 0, slot, -1, (struct oc_tick){OC_PH_FORWARD, OC_PART_EMBED, 0});
        for (int i = 0; i < chunk->n_runs; i++)
            for (int n = 0; n < chunk->runs[i].layers; n++, layer++)
                pass(w, OC_ST_FORWARD_LAYER, chunk->runs[i].kind, slot, layer,
                     (struct oc_tick){OC_PH_FORWARD, OC_PART_LAYER, 0});
        pass(w, OC_ST_FORWARD_HEAD, 0, slot, -1, (struct oc_tick){OC_PH_FORWARD, OC_PART_HEAD, 0});
        pass(w, OC_ST_LOSS, 0, slot, -1, (struct oc_tick){OC_PH_LOSS, OC_PART_HEAD, 0});
        return;
    }
    layer = count_layers(chunk);
    pass(w, OC_ST_BACKWARD_HEAD, 0, slot, -1, (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, 0});
    for (int i = chunk->n_runs - 1; i >= 0; i--) {
        layer -= chunk->runs[i].layers;
        pass_layers_backward(w, slot, &chunk->runs[i], layer);
    }
    pass(w, OC_ST_BACKWARD_EMBED, 0, slot, -1, (struct oc_tick){OC_PH_BACKWARD, OC_PART_EMBED, 0});
}

/* Where the instances of a gradient lie: every layer (chunk) that bore one. */
static void emit_gradients(struct walk *w, int index, const struct oc_place *place)
{
    const struct oc_entry *entry = &w->ledger->entries[index];
    for (int c = 0; c < w->ledger->n_chunks; c++) {
        const struct oc_slot slot = {.chunk = (uint8_t)c};
        if (entry->birth.part == OC_PART_LAYER)
            emit_all_layers(w, index, &slot, place);
        else if (oc_entry_on(entry, &w->ledger->chunks[c]))
            emit(w, index, instance_of(w, entry, &slot, -1), false, place);
    }
}

static void pass_outside(struct walk *w, enum oc_stretch stretch, enum oc_phase phase, bool first)
{
    for (int i = w->program.begin[stretch][0]; i < w->program.begin[stretch][OC_MAX_KINDS] && w->going; i++) {
        const struct oc_step *step = &w->program.steps[i];
        const struct oc_entry *entry = &w->ledger->entries[step->entry];
        const bool birth = oc_step_is_birth(step);
        if (!first && birth && entry->death.phase == OC_PH_END) continue;
        if (first && !birth && phase == OC_PH_START) continue;
        const struct oc_place place = {.iteration = w->iteration,
                                       .moment = oc_phase_moment(phase),
                                       .micro_batch = -1,
                                       .layer = -1,
                                       .tick = {(uint8_t)phase, OC_PART_NONE, oc_step_sub(step)}};
        if (oc_entry_life(entry) == OC_LIFE_GRADIENT)
            emit_gradients(w, step->entry, &place);
        else
            for (uint32_t n = 0; n < entry->count; n++) emit(w, step->entry, (int)n, birth, &place);
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
    pass_outside(&w, OC_ST_INIT, OC_PH_INIT, true);
    for (int i = 0; i < iterations && w.going; i++) {
        w.iteration = i ? OC_STEADY : OC_FIRST;
        pass_outside(&w, OC_ST_START, OC_PH_START, i == 0);
        for (int n = 0; n < ledger->n_slots && w.going; n++) pass_slot(&w, &ledger->slots[n]);
        pass_outside(&w, OC_ST_REDUCE, OC_PH_REDUCE, i == 0);
        pass_outside(&w, OC_ST_CLIP, OC_PH_CLIP, i == 0);
        pass_outside(&w, OC_ST_STEP, OC_PH_STEP, i == 0);
        pass_outside(&w, OC_ST_AFTER_STEP, OC_PH_AFTER_STEP, i == 0);
        pass_outside(&w, OC_ST_IDLE, OC_PH_IDLE, i == 0);
    }
}
