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

/* What rows depend on. */
enum {
    RESHARD = 1,       /* weights are freed after forward */
    STAYS = 2,         /* ... or stay until backward */
    AHEAD = 4,         /* the next layer is gathered while this one runs forward */
    BEHIND = 8,        /* ... runs backward */
    SHARED = 16,       /* more than one rank */
    RECAST = 32,       /* gradients are reduced in another type than the shards have */
    SYNCS = 64,        /* every micro-batch reduces its gradients */
    ACCUMULATES = 128, /* several micro-batches, of which only the last does */
    HELD = 256,        /* sharded gradients stay until the step */
    PASSING = 512      /* ... go to the host, or to an optimizer that runs in backward */
};

/* What of a unit a tensor holds. */
enum measure { GATHERED, TRAINED, OWN };

/* Streams that allocate: all-gathers and reduce-scatters put their output out on streams of their own. */
enum { COMPUTES, GATHERS, REDUCES };

struct row {
    const char *name, *why, *source;
    uint16_t need;
    uint8_t class, measure, stream, when;
    bool in_storage; /* in the type of the shards, else in that of the reduction */
    struct oc_tick birth, death;
};

/* Tables, one row a tensor. */
/* clang-format off */
#define AGAIN                                                                                                          \
    {                                                                                                                  \
        OC_PH_RECOMPUTE, OC_PART_LAYER, 0                                                                              \
    }
/* What becomes of a unit's gradients, in the backward of `part`; `of` ends the names. */
#define REDUCTION(part, of, whose) \
    {"reduce-scatter input" of, whose " gradients in the type of the reduction", COLLECTIVES, SHARED, OC_BUFFERS, TRAINED, COMPUTES, 0, false, OC_BWD(part, LAST - 2), OC_BWD(part, LAST)}, \
    {"reduce-scatter output" of, "until it is cast to the type of the shard", COLLECTIVES, RECAST, OC_BUFFERS, OWN, REDUCES, 0, false, OC_BWD(part, LAST - 2), OC_BWD(part, LAST)}, \
    {"sharded gradients" of, "views of the reduce-scatter's output", COLLECTIVES, HELD, OC_GRADIENTS, OWN, REDUCES, 0, true, OC_BWD(part, LAST - 1), {OC_PH_IDLE, OC_PART_NONE, 0}}, \
    {"sharded gradients" of, "until they are on the host, or used in backward", COLLECTIVES, PASSING, OC_GRADIENTS, OWN, REDUCES, 0, true, OC_BWD(part, LAST - 1), OC_BWD(part, LAST)}, \
    {"sharded gradients" of ", later", "of a later micro-batch, until they are added", COLLECTIVES, SYNCS | HELD, OC_GRADIENTS, OWN, REDUCES, OC_LATER_MICRO_BATCHES, true, OC_BWD(part, LAST - 1), OC_BWD(part, LAST)}, \
    {"unsharded gradient sums" of, "no_sync: gradients stay whole until the last micro-batch", GROUP, ACCUMULATES, OC_GRADIENTS, TRAINED, COMPUTES, 0, false, OC_BWD(part, LAST - 1), {OC_PH_REDUCE, OC_PART_NONE, 1}}

static const struct row layer_rows[] = {
    {"gathered layer", "all-gather output, kept until the next layer's has been copied out", GROUP, 0, OC_BUFFERS,
     GATHERED, GATHERS, 0, false, OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"prefetched layer", "the next layer's all-gather", GROUP, AHEAD, OC_BUFFERS, GATHERED, GATHERS, 0, false,
     OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"unsharded layer", "the weights that the layer reads", GROUP, RESHARD, OC_BUFFERS, GATHERED, COMPUTES, 0, false,
     OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"unsharded layer", "the weights, until backward", GROUP, STAYS, OC_BUFFERS, GATHERED, COMPUTES, 0, false,
     OC_FWD(LAYER, 0), OC_BWD(LAYER, LAST - 1)},
    {"unsharded layer", "gathered again for backward", GROUP, RESHARD, OC_BUFFERS, GATHERED, COMPUTES, 0, false, AGAIN,
     OC_BWD(LAYER, LAST - 1)},
    {"prefetched layer", "the all-gather of the layer below", GROUP, RESHARD | BEHIND, OC_BUFFERS, GATHERED, GATHERS, 0,
     false, AGAIN, OC_BWD(LAYER, LAST)},
    {"reduce-scatter input, layer above", "freed when the next reduction begins", GROUP, SHARED, OC_BUFFERS, TRAINED,
     COMPUTES, 0, false, AGAIN, OC_BWD(LAYER, LAST - 2)},
    REDUCTION(LAYER, "", "the layer's"),
    {0}};

static const struct row root_rows[] = {
    {"gathered root", "all-gather output of embedding, last norm and output layer", GROUP, 0, OC_BUFFERS, GATHERED,
     GATHERS, 0, false, OC_FWD(EMBED, 0), OC_FWD(EMBED, LAST)},
    {"unsharded root", "trainers reshard the root, too, when the model returns", GROUP, RESHARD, OC_BUFFERS, GATHERED,
     COMPUTES, 0, false, OC_FWD(EMBED, 0), OC_FWD(HEAD, LAST)},
    {"unsharded root", "kept from forward to backward", GROUP, STAYS, OC_BUFFERS, GATHERED, COMPUTES, 0, false,
     OC_FWD(EMBED, 0), OC_BWD(EMBED, LAST)},
    {"gathered root", "gathered again when the gradient of the logits is there", GROUP, RESHARD, OC_BUFFERS, GATHERED,
     GATHERS, 0, false, OC_BWD(HEAD, 3), OC_BWD(HEAD, 4)},
    {"unsharded root", "until backward has ended", GROUP, RESHARD, OC_BUFFERS, GATHERED, COMPUTES, 0, false,
     OC_BWD(HEAD, 3), OC_BWD(EMBED, LAST)},
    REDUCTION(EMBED, ", root", "its"),
    {0}};
/* clang-format on */

static unsigned conditions(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    unsigned have = c->fsdp_reshard_after_forward ? RESHARD : STAYS;
    if (c->fsdp_forward_prefetch) have |= AHEAD;
    if (c->fsdp_backward_prefetch) have |= BEHIND;
    if (plan->shard > 1) have |= SHARED;
    if (oc_fsdp2_reduce(plan) != oc_fsdp2_storage(plan)) have |= RECAST;
    if (!c->parallel_no_sync) have |= SYNCS;
    if (c->parallel_no_sync && plan->accum > 1) have |= ACCUMULATES;
    have |= c->offload_params == OC_OFFLOAD_NONE && !c->optimizer_in_backward ? HELD : PASSING;
    return have;
}

/* A layer of one kind, or the root: kind OC_MAX_KINDS. */
struct unit {
    int kind;
    uint32_t count;
    uint64_t size[3]; /* of one unit, by enum measure: bytes gathered; elements with gradients, padding included, of all
                         ranks and of this one */
};

static bool in_layer_unit(const struct oc_build *build, const struct oc_param *param)
{
    return param->part == OC_PART_LAYER && build->plan->c.fsdp_wrap == OC_WRAP_LAYER;
}

/* A quantized weight travels as it is: 4 or 8 bits, and scales. */
static uint64_t gathered_bytes(const struct oc_build *build, const struct oc_param *param, uint64_t elements)
{
    const struct oc_plan *plan = build->plan;
    if (!param->quantized) return oc_bytes(elements, plan->dt.weights);
    return elements / (plan->c.lora_base == OC_BASE_INT8_GPTQ ? 1 : 2) + elements / 64;
}

static struct unit unit_of(const struct oc_build *build, int kind)
{
    struct unit unit = {.kind = kind, .count = 1};
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        const bool layer = in_layer_unit(build, param);
        if (layer != (kind < OC_MAX_KINDS) || (layer && param->kind != kind)) continue;
        const uint64_t own = oc_mul(oc_fsdp2_share(build, param), layer ? 1 : param->count);
        const uint64_t ranks = (uint64_t)(param->expert ? build->plan->expert_shard : build->plan->shard);
        if (layer) unit.count = param->count;
        unit.size[GATHERED] = oc_add(unit.size[GATHERED], gathered_bytes(build, param, oc_mul(own, ranks)));
        if (param->frozen) continue;
        unit.size[TRAINED] = oc_add(unit.size[TRAINED], oc_mul(own, ranks));
        unit.size[OWN] = oc_add(unit.size[OWN], own);
    }
    return unit;
}

static void add_rows(struct oc_build *build, const struct unit *unit, const struct row *rows)
{
    const struct oc_plan *plan = build->plan;
    const unsigned have = conditions(plan);
    for (const struct row *row = rows; row->name; row++) {
        if ((row->need & have) != row->need) continue;
        const enum oc_dtype dtype = row->measure == GATHERED ? OC_INT8
                                    : row->in_storage        ? oc_fsdp2_storage(plan)
                                                             : oc_fsdp2_reduce(plan);
        const struct oc_entry entry = {.name = row->name,
                                       .why = row->why,
                                       .source = row->source,
                                       .elements = unit->size[row->measure],
                                       .count = unit->count,
                                       .class = row->class,
                                       .dtype = (uint8_t)dtype,
                                       .kind = unit->kind < OC_MAX_KINDS ? (uint8_t)unit->kind : OC_END_ANY,
                                       .when = row->when,
                                       .stream = row->stream,
                                       .birth = row->birth,
                                       .death = row->death};
        oc_build_add(build, &entry);
    }
}

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
        const uint8_t end = in_layer_unit(build, param) ? OC_PART_LAYER : OC_PART_EMBED;
        struct oc_entry fresh = {.name = param->name,
                                 .copy = "unsharded gradient",
                                 .why = "from where backward makes it to its reduction",
                                 .source = GROUP,
                                 .elements = param->elements,
                                 .count = param->count,
                                 .class = OC_GRADIENTS,
                                 .dtype = (uint8_t)build->plan->dt.weights,
                                 .kind = param->kind,
                                 .birth = {OC_PH_BACKWARD, param->part, param->backward},
                                 .death = {OC_PH_BACKWARD, end, LAST - 1}};
        if (param->tied_gradient) {
            add_tied(build, fresh);
            fresh.death.sub = (uint8_t)(param->backward + 1);
        }
        oc_build_add(build, &fresh);
    }
}

void oc_fsdp2_units(struct oc_build *build)
{
    for (int kind = 0; kind < OC_MAX_KINDS && build->plan->c.fsdp_wrap == OC_WRAP_LAYER; kind++) {
        if (!build->layers[kind]) continue;
        const struct unit unit = unit_of(build, kind);
        add_rows(build, &unit, layer_rows);
    }
    const struct unit root = unit_of(build, OC_MAX_KINDS);
    add_rows(build, &root, root_rows);
    add_fresh(build);
}
