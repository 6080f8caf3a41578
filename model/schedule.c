/* Which micro-batches are in flight on which stage, in which order.
 *
 * Source: Megatron-LM core/pipeline_parallel/schedules.py: 1F1B runs p - r - 1 forwards ahead of the first backward;
 * the interleaved schedule 2 (p - r - 1) + (v - 1) G chunk forwards, in groups of G micro-batches per chunk. */
#include "model/build.h"
#include "model/frameworks/framework.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The order in which chunks run forward: G micro-batches through chunk 0, the same through chunk 1, ...; backward is
 * the same order with chunks counted from the last. */
struct cursor {
    int64_t micro_batches, chunks, group; /* of all */
    int64_t first, chunk, inside;         /* where it stands: first micro-batch of the group, chunk, and in the group */
    bool backward;
};

static struct oc_slot next(struct cursor *at)
{
    const struct oc_slot slot = {.micro_batch = (uint16_t)(at->first + at->inside),
                                 .chunk = (uint8_t)(at->backward ? at->chunks - 1 - at->chunk : at->chunk),
                                 .backward = at->backward};
    if (++at->inside < least(at->group, at->micro_batches - at->first)) return slot;
    at->inside = 0;
    if (++at->chunk < at->chunks) return slot;
    at->chunk = 0;
    at->first += at->group;
    return slot;
}

/* Chunk forwards before the first backward, and the micro-batches that show the whole pattern. */
static void extent(const struct oc_plan *plan, int64_t stage, int64_t *warmup, int64_t *micro_batches)
{
    const int64_t p = plan->c.parallel_pp, v = plan->c.parallel_vpp, left = p - stage - 1;
    const int64_t group = plan->c.megatron_microbatch_group ? plan->c.megatron_microbatch_group : p;
    if (v == 1) {
        /* Where the last micro-batch is unlike the others, one that is neither first nor last. */
        *micro_batches = least(plan->accum, left + 2 + oc_torch_waits(plan));
        *warmup = least(left, *micro_batches);
        return;
    }
    const int64_t fill = 2 * left + (v - 1) * group;
    const int64_t groups = (fill + 2 + v * group - 1) / (v * group);
    *micro_batches = least(plan->accum, groups * group);
    *warmup = least(fill, *micro_batches * v);
}

void oc_schedule(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger)
{
    const int64_t v = plan->c.parallel_vpp;
    const int64_t group = v == 1                              ? 1
                          : plan->c.megatron_microbatch_group ? plan->c.megatron_microbatch_group
                                                              : plan->c.parallel_pp;
    int64_t warmup, micro_batches;
    extent(plan, stage, &warmup, &micro_batches);
    const int64_t total = micro_batches * v;
    struct cursor forward = {.micro_batches = micro_batches, .chunks = v, .group = group}, backward = forward;
    backward.backward = true;
    ledger->n_slots = 0;
    ledger->left_out = oc_torch_waits(plan) ? plan->accum - micro_batches : 0;
    if (2 * total > OC_MAX_SLOTS) return;
    for (int64_t n = 0; n < total; n++) {
        ledger->slots[ledger->n_slots++] = next(&forward);
        if (n >= warmup) ledger->slots[ledger->n_slots++] = next(&backward);
    }
    for (int64_t n = total - warmup; n < total; n++) ledger->slots[ledger->n_slots++] = next(&backward);
}
