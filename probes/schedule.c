/* Which micro-batch runs forward and which backward, in which order: Megatron's 1F1B, and its interleaved form. Source:
 * Megatron-LM core/pipeline_parallel/schedules.py. */
#include <stdlib.h>

#include "probes/te.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Chunk forwards (or backwards) in their order: a group of micro-batches through one chunk after another. */
static void list_passes(struct oc_slot *passes, int64_t micro_batches, int64_t chunks, int64_t group, bool backward)
{
    for (int64_t first = 0; first < micro_batches; first += group)
        for (int64_t chunk = 0; chunk < chunks; chunk++)
            for (int64_t i = first; i < smaller(first + group, micro_batches); i++)
                *passes++ = (struct oc_slot){.micro_batch = (uint16_t)i,
                                             .chunk = (uint8_t)(backward ? chunks - 1 - chunk : chunk),
                                             .backward = backward};
}

bool oc_te_schedule(struct oc_te *te, const struct oc_plan *plan)
{
    const int64_t stages = plan->c.parallel_pp, chunks = plan->c.parallel_vpp, ahead = stages - te->stage - 1;
    const int64_t group = chunks == 1                         ? 1
                          : plan->c.megatron_microbatch_group ? plan->c.megatron_microbatch_group
                                                              : stages;
    /* Passes that fill the pipeline before the first backward; then two micro-batches more show the whole pattern. */
    const int64_t fill = chunks == 1 ? ahead : 2 * ahead + (chunks - 1) * group;
    const int64_t whole_groups = (fill + 2 + chunks * group - 1) / (chunks * group) * group;
    const int64_t micro_batches = smaller(plan->accum, chunks == 1 ? fill + 2 : whole_groups);
    const int64_t passes = micro_batches * chunks, before = smaller(fill, passes);

    struct oc_slot *forward = calloc(2 * (size_t)passes, sizeof *forward), *backward = forward + passes;
    te->slots = calloc(2 * (size_t)passes, sizeof *te->slots);
    if (!forward || !te->slots) {
        free(forward);
        return false;
    }
    list_passes(forward, micro_batches, chunks, group, false);
    list_passes(backward, micro_batches, chunks, group, true);
    te->in_flight = (int)micro_batches;
    for (int64_t n = 0; n < passes + before; n++) {
        if (n < passes) te->slots[te->n_slots++] = forward[n];
        if (n >= before) te->slots[te->n_slots++] = backward[n - before];
    }
    free(forward);
    return true;
}
