#include "oomcast/ledger.h"

#include <stdio.h>

static const struct {
    const char *name;
    char letter;
} classes[OC_CLASSES] = {{"weights", 'W'},   {"master", 'M'},      {"gradients", 'G'},
                         {"optimizer", 'O'}, {"activations", 'A'}, {"buffers", 'B'}};

static const char *const moments[OC_MOMENTS] = {"init", "forward", "loss",       "backward", "reduce",
                                                "clip", "step",    "after_step", "idle"};

static const uint8_t phase_moments[OC_PHASES] = {
    [OC_PH_INIT] = OC_M_INIT,          [OC_PH_START] = OC_M_FORWARD,
    [OC_PH_FORWARD] = OC_M_FORWARD,    [OC_PH_LOSS] = OC_M_LOSS,
    [OC_PH_RECOMPUTE] = OC_M_BACKWARD, [OC_PH_BACKWARD] = OC_M_BACKWARD,
    [OC_PH_REDUCE] = OC_M_REDUCE,      [OC_PH_CLIP] = OC_M_CLIP,
    [OC_PH_STEP] = OC_M_STEP,          [OC_PH_AFTER_STEP] = OC_M_AFTER_STEP,
    [OC_PH_IDLE] = OC_M_IDLE,          [OC_PH_END] = OC_M_IDLE};

const char *oc_class_name(enum oc_class class)
{
    return classes[class].name;
}

char oc_class_letter(enum oc_class class)
{
    return classes[class].letter;
}

const char *oc_moment_name(enum oc_moment moment)
{
    return moments[moment];
}

const char *oc_iteration_name(enum oc_iteration iteration)
{
    return iteration == OC_FIRST ? "first" : "steady";
}

enum oc_moment oc_phase_moment(enum oc_phase phase)
{
    return (enum oc_moment)phase_moments[phase];
}

struct oc_entry *oc_ledger_add(struct oc_ledger *ledger, const struct oc_entry *entry)
{
    if (ledger->n_entries == OC_MAX_ENTRIES) return NULL;
    ledger->entries[ledger->n_entries] = *entry;
    return &ledger->entries[ledger->n_entries++];
}

/* The highest instant of an iteration, init excluded. */
static const struct oc_instant *highest(const struct oc_instant *instants)
{
    const struct oc_instant *best = &instants[OC_M_FORWARD];
    for (int m = OC_M_LOSS; m < OC_MOMENTS; m++)
        if (instants[m].exists && (!best->exists || instants[m].allocated > best->allocated)) best = &instants[m];
    return best;
}

void oc_rank_find_peaks(struct oc_rank *rank)
{
    rank->first_peak = *highest(rank->moments[OC_FIRST]);
    rank->peak = *highest(rank->moments[OC_STEADY]);
}

const char *oc_place_text(const struct oc_place *place, char *text, int size)
{
    if (place->micro_batch < 0)
        snprintf(text, (size_t)size, "%s", "");
    else if (place->layer >= 0)
        snprintf(text, (size_t)size, "layer %d, micro-batch %d", (int)place->layer, (int)place->micro_batch + 1);
    else
        snprintf(text, (size_t)size, "%s, micro-batch %d",
                 place->tick.part == OC_PART_EMBED ? "embedding"
                 : place->moment == OC_M_LOSS      ? "cross entropy"
                                                   : "output layer",
                 (int)place->micro_batch + 1);
    return text;
}
