/* What FSDP2 gathers and reduces: one unit for each layer, and one for everything outside layers (the root).
 *
 * In the order in which the host allocates: a layer's forward holds the all-gather's output and the weights copied out
 * of it; backward holds the weights, the next layer's all-gather, the layer's own gradients and the reduce-scatter
 * input of the layer before, which is freed only when the next reduction begins.
 *
 * Source: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py @62a45b6f, _fsdp_collectives.py @8fc2039d, read in
 * shared/reference/memory-pytorch.md section 2.1. */
#include "model/frameworks/framework.h"
#include "model/frameworks/fsdp2_parts.h"
#include "model/shapes/opset.h"

#define GROUP       "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py @62a45b6f"
#define COLLECTIVES "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py @8fc2039d"

enum { LAST = OC_MAX_SUB - 1 };

/* A layer of one kind, or the root: kind OC_MAX_KINDS. Sizes of one unit. */
struct unit {
    int kind;
    uint32_t count;
    uint64_t gathered; /* bytes that the all-gather puts out */
    uint64_t trained;  /* elements with gradients, all ranks, padding included */
    uint64_t own;      /* elements of them on this rank */
};

/* A quantized weight travels as it is: 4 or 8 bits and scales. */
static uint64_t gathered_bytes(const struct oc_build *build, const struct oc_param *param, uint64_t elements)
{
    const struct oc_plan *plan = build->plan;
    if (!param->quantized)
        return oc_bytes(elements, param->frozen || !param->adapter ? plan->dt.weights : plan->dt.compute);
    const bool eight = plan->c.lora_base == OC_BASE_INT8_GPTQ;
    return elements / (eight ? 1 : 2) + elements / 64;
}

static struct unit unit_of(const struct oc_build *build, int kind)
{
    struct unit unit = {.kind = kind, .count = 1};
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        const bool layer = param->part == OC_PART_LAYER && build->plan->c.fsdp_wrap == OC_WRAP_LAYER;
        if (layer != (kind < OC_MAX_KINDS) || (layer && param->kind != kind)) continue;
        const uint64_t copies = layer ? 1 : param->count, own = oc_mul(oc_fsdp2_share(build, param), copies);
        const uint64_t ranks = (uint64_t)(param->expert ? build->plan->expert_shard : build->plan->shard);
        const uint64_t whole = oc_mul(own, ranks);
        if (layer) unit.count = param->count;
        unit.gathered = oc_add(unit.gathered, gathered_bytes(build, param, whole));
        if (param->frozen) continue;
        unit.trained = oc_add(unit.trained, whole);
        unit.own = oc_add(unit.own, own);
    }
    return unit;
}

static void add(struct oc_build *build, const struct unit *unit, const char *name, const char *why, const char *source,
                enum oc_class class, uint64_t elements, enum oc_dtype dtype, struct oc_tick birth, struct oc_tick death,
                enum oc_when when)
{
    const struct oc_entry entry = {.name = name,
                                   .why = why,
                                   .source = source,
                                   .elements = elements,
                                   .count = unit->count,
                                   .class = (uint8_t) class,
                                   .dtype = (uint8_t)dtype,
                                   .kind = unit->kind < OC_MAX_KINDS ? (uint8_t)unit->kind : OC_END_ANY,
                                   .when = (uint8_t)when,
                                   .birth = birth,
                                   .death = death};
    oc_build_add(build, &entry);
}

static void add_buffer(struct oc_build *build, const struct unit *unit, const char *name, const char *why,
                       const char *source, uint64_t elements, enum oc_dtype dtype, struct oc_tick birth,
                       struct oc_tick death)
{
    add(build, unit, name, why, source, OC_BUFFERS, elements, dtype, birth, death, OC_ALWAYS);
}

/* ---- weights ---- */

static void gather_layer(struct oc_build *build, const struct unit *unit)
{
    const struct oc_config *c = &build->plan->c;
    const bool reshard = c->fsdp_reshard_after_forward;
    const struct oc_tick begin = OC_FWD(LAYER, 0), end = OC_FWD(LAYER, LAST);
    const struct oc_tick again = {OC_PH_RECOMPUTE, OC_PART_LAYER, 0}, done = OC_BWD(LAYER, LAST - 1);
    add_buffer(build, unit, "gathered layer", "all-gather output, kept until the next layer's has been copied out",
               GROUP, unit->gathered, OC_INT8, begin, end);
    if (c->fsdp_forward_prefetch)
        add_buffer(build, unit, "prefetched layer", "the next layer's all-gather", GROUP, unit->gathered, OC_INT8,
                   begin, end);
    add_buffer(build, unit, "unsharded layer",
               reshard ? "the weights that the layer reads" : "the weights, until backward", GROUP, unit->gathered,
               OC_INT8, begin, reshard ? end : done);
    if (!reshard) return;
    add_buffer(build, unit, "unsharded layer", "gathered again for backward", GROUP, unit->gathered, OC_INT8, again,
               done);
    if (c->fsdp_backward_prefetch)
        add_buffer(build, unit, "prefetched layer", "the all-gather of the layer below", GROUP, unit->gathered, OC_INT8,
                   again, (struct oc_tick)OC_BWD(LAYER, LAST));
}

static void gather_root(struct oc_build *build, const struct unit *unit)
{
    const bool reshard = build->plan->c.fsdp_reshard_after_forward;
    const struct oc_tick begin = OC_FWD(EMBED, 0), end = OC_FWD(HEAD, LAST), again = OC_BWD(HEAD, 3),
                         done = OC_BWD(EMBED, LAST);
    add_buffer(build, unit, "gathered root", "all-gather output of embedding, last norm and output layer", GROUP,
               unit->gathered, OC_INT8, begin, (struct oc_tick)OC_FWD(EMBED, LAST));
    add_buffer(build, unit, "unsharded root", "trainers reshard the root, too, when the model returns", GROUP,
               unit->gathered, OC_INT8, begin, reshard ? end : done);
    if (!reshard) return;
    add_buffer(build, unit, "gathered root", "gathered again when the gradient of the logits is there", GROUP,
               unit->gathered, OC_INT8, again, (struct oc_tick)OC_BWD(HEAD, 4));
    add_buffer(build, unit, "unsharded root", "until backward has ended", GROUP, unit->gathered, OC_INT8, again, done);
}

/* ---- gradients ---- */

/* A tied output layer makes the embedding's gradient; the look-up's is added to it. */
static void add_tied(struct oc_build *build, struct oc_entry gradient)
{
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)build->plan->c.kernels_transformer);
    gradient.birth = (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, ops->use[OC_USE_HEAD].backward};
    gradient.kind = OC_END_HERE;
    oc_build_add(build, &gradient);
}

/* Autograd's gradients of the unsharded weights: a layer's until its reduction, the root's until the end. */
static void add_fresh(struct oc_build *build)
{
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (param->frozen) continue;
        const bool layer = param->part == OC_PART_LAYER && build->plan->c.fsdp_wrap == OC_WRAP_LAYER;
        struct oc_entry fresh = {
            .name = param->name,
            .copy = "unsharded gradient",
            .why = "from where backward makes it to its reduction",
            .source = GROUP,
            .elements = param->elements,
            .count = param->count,
            .class = OC_GRADIENTS,
            .dtype = (uint8_t)(param->adapter ? oc_fsdp2_storage(build->plan) : build->plan->dt.weights),
            .kind = param->kind,
            .birth = {OC_PH_BACKWARD, param->part, param->backward},
            .death = {OC_PH_BACKWARD, layer ? OC_PART_LAYER : OC_PART_EMBED, LAST - 1}};
        if (param->tied_gradient) add_tied(build, fresh);
        if (param->tied_gradient) fresh.death.sub = (uint8_t)(param->backward + 1);
        oc_build_add(build, &fresh);
    }
}

/* Under no_sync gradients are summed unsharded, in the type of the reduction, until the last micro-batch. */
static void accumulate_unsharded(struct oc_build *build, const struct unit *unit, struct oc_tick at)
{
    if (!build->plan->c.parallel_no_sync || build->plan->accum < 2) return;
    add(build, unit, "unsharded gradient sums", "no_sync: gradients stay whole until the last micro-batch", GROUP,
        OC_GRADIENTS, unit->trained, oc_fsdp2_reduce(build->plan), at, OC_AT_SUB(REDUCE, 1), OC_ALWAYS);
}

/* The reduction of a unit at the end of its backward, and the sharded gradient that comes of it. */
static void reduce(struct oc_build *build, const struct unit *unit, uint8_t part)
{
    const struct oc_plan *plan = build->plan;
    const enum oc_dtype reduced = oc_fsdp2_reduce(plan), storage = oc_fsdp2_storage(plan);
    const struct oc_tick at = {OC_PH_BACKWARD, part, LAST - 2}, after = {OC_PH_BACKWARD, part, LAST - 1},
                         end = {OC_PH_BACKWARD, part, LAST};
    if (plan->shard > 1) {
        add_buffer(build, unit, "reduce-scatter input", "the layer's gradients in the type of the reduction",
                   COLLECTIVES, unit->trained, reduced, at, end);
        if (part == OC_PART_LAYER)
            add_buffer(build, unit, "reduce-scatter input, layer above", "freed when the next reduction begins", GROUP,
                       unit->trained, reduced, (struct oc_tick){OC_PH_RECOMPUTE, OC_PART_LAYER, 0}, at);
    }
    if (reduced != storage)
        add_buffer(build, unit, "reduce-scatter output", "until it is cast to the type of the shard", COLLECTIVES,
                   unit->own, reduced, at, end);
    add(build, unit, "sharded gradients", "views of the reduce-scatter's output", COLLECTIVES, OC_GRADIENTS, unit->own,
        storage, after, plan->c.offload_params == OC_OFFLOAD_NONE ? OC_AT(IDLE) : OC_AT(REDUCE), OC_ALWAYS);
    if (!plan->c.parallel_no_sync)
        add(build, unit, "sharded gradients, later", "of a later micro-batch, until they are added", COLLECTIVES,
            OC_GRADIENTS, unit->own, storage, after, end, OC_LATER_MICRO_BATCHES);
    accumulate_unsharded(build, unit, after);
}

void oc_fsdp2_units(struct oc_build *build)
{
    for (int kind = 0; kind < OC_MAX_KINDS && build->plan->c.fsdp_wrap == OC_WRAP_LAYER; kind++) {
        if (!build->layers[kind]) continue;
        const struct unit unit = unit_of(build, kind);
        gather_layer(build, &unit);
        reduce(build, &unit, OC_PART_LAYER);
    }
    const struct unit root = unit_of(build, OC_MAX_KINDS);
    gather_root(build, &root);
    add_fresh(build);
    reduce(build, &root, OC_PART_EMBED);
}
