/* Source: Megatron-LM core/optimizer/param_layout.py, distrib_optimizer.py:506-590: parameters in reverse order of
 * registration, each start aligned to 64 elements; a bucket closes once it has bucket_size elements and its end is
 * padded to lcm(d, 128), d being the ranks that share it. Buckets exist only with --overlap-grad-reduce, on the first
 * pipeline stage's first chunk; elsewhere there is one. A tied embedding over several stages has a bucket of its own.
 */
#include "model/frameworks/megatron_parts.h"

struct layout {
    uint64_t start, bucket_start; /* elements */
    uint64_t bucket_size;         /* 0: one bucket */
    uint64_t divisor;             /* of a bucket's end */
    bool open;                    /* the current bucket holds something */
};

static uint64_t up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static void close_bucket(struct layout *layout)
{
    layout->start = layout->bucket_start = up(layout->start, layout->divisor);
    layout->open = false;
}

static void place(struct layout *layout, uint64_t elements, bool own_bucket)
{
    layout->start = (layout->start + 63) & ~(uint64_t)63;
    if (own_bucket && layout->open) close_bucket(layout);
    layout->start = oc_add(layout->start, elements);
    layout->open = true;
    if (own_bucket || (layout->bucket_size && layout->start - layout->bucket_start >= layout->bucket_size))
        close_bucket(layout);
}

static uint64_t lcm(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* The layer parameters of `layers` equal layers, last first. */
static void place_layers(struct layout *layout, const struct oc_build *build, int64_t layers, int kind, bool expert)
{
    for (int64_t n = 0; n < layers; n++)
        for (int i = build->n_params - 1; i >= 0; i--)
            if (build->params[i].part == OC_PART_LAYER && build->params[i].kind == kind &&
                build->params[i].expert == expert)
                place(layout, build->params[i].elements, false);
}

static void place_part(struct layout *layout, const struct oc_build *build, uint8_t part)
{
    const bool tied_stages = build->plan->c.model_tied && build->plan->c.parallel_pp > 1;
    for (int i = build->n_params - 1; i >= 0; i--) {
        const struct oc_param *param = &build->params[i];
        if (param->part != part) continue;
        const bool word = param->elements == oc_mul(build->sizes.dim[OC_D_VOCAB], build->sizes.dim[OC_D_HIDDEN]);
        place(layout, param->elements, tied_stages && word);
    }
}

uint64_t oc_megatron_padded(const struct oc_build *build, bool expert)
{
    const struct oc_plan *plan = build->plan;
    if (plan->c.parallel_zero != 1 || oc_megatron_layer_wise(plan))
        return oc_build_part(build,
                             expert); /* Megatron-FSDP's padding is too little to know; whole parameters have none */
    uint64_t total = 0;
    for (int c = 0; c < build->ledger->n_chunks; c++) {
        const struct oc_chunk *chunk = &build->ledger->chunks[c];
        const uint64_t ranks = (uint64_t)(plan->dp * plan->c.parallel_cp), floor = ranks * 1000000;
        const bool buckets = plan->c.parallel_overlap_grad_reduce && build->stage == 0 && c == 0;
        struct layout layout = {.divisor = lcm(oc_plan_shard(plan, expert), plan->c.megatron_pad_buckets ? 65536 : 128),
                                .bucket_size = buckets ? (floor > 40000000 ? floor : 40000000) : 0};
        if (chunk->head && !expert) place_part(&layout, build, OC_PART_HEAD);
        for (int r = chunk->n_runs - 1; r >= 0; r--)
            place_layers(&layout, build, chunk->runs[r].layers, chunk->runs[r].kind, expert);
        if (chunk->embedding && !expert) place_part(&layout, build, OC_PART_EMBED);
        if (layout.open) close_bucket(&layout);
        total = oc_add(total, layout.start);
    }
    return total;
}
