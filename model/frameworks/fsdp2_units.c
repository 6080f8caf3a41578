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

enum { FREED = OC_FSDP2_FREED, REDUCES = OC_FSDP2_REDUCES, REDUCED = OC_FSDP2_REDUCED, LAST = OC_FSDP2_ENDS };

/* What rows depend on. */
enum {
    RESHARD = 1,  /* weights are freed after forward */
    STAYS = 2,    /* ... or stay until backward */
    AHEAD = 4,    /* the next layer is gathered while this one runs forward */
    BEHIND = 8,   /* ... runs backward */
    SHARED = 16,  /* more than one rank */
    RECAST = 32,  /* gradients are reduced in another type than the shards have */
    SYNCS = 64,   /* every micro-batch reduces its gradients */
    HELD = 128,   /* sharded gradients stay until the step */
    PASSING = 256 /* ... go to the host, or to an optimizer that runs in backward */
};

/* What of a unit a tensor holds. */
enum measure { GATHERED, TRAINED, OWN };

/* Streams that allocate: all-gathers and reduce-scatters put their output out on streams of their own. */
enum { COMPUTES, GATHERS, REDUCER };

/* More of a row. */
enum {
    REDUCING = 1,   /* of a reduction: under no_sync in the last of several micro-batches only */
    IN_STORAGE = 2, /* in the type of the shards, else in that of the reduction */
    BELOW_TOP = 4   /* not in the layer that runs backward first */
};

struct row {
    const char *name, *why, *source;
    uint16_t need;
    uint8_t class, measure, stream, when, more;
    struct oc_tick birth, death;
};

/* Tables, one row a tensor. */
/* clang-format off */
/* What becomes of a unit's gradients, in the backward of `part`, in the micro-batches that reduce; `of` ends the names. */
#define REDUCTION(part, of, whose) \
    {"reduce-scatter input" of, whose " gradients in the type of the reduction", COLLECTIVES, SHARED, OC_BUFFERS, TRAINED, COMPUTES, 0, REDUCING, OC_BWD(part, REDUCES), OC_BWD(part, LAST)}, \
    {"reduce-scatter output" of, "until it is cast to the type of the shard", COLLECTIVES, RECAST, OC_BUFFERS, OWN, REDUCER, 0, REDUCING, OC_BWD(part, REDUCED), OC_BWD(part, LAST)}, \
    {"sharded gradients" of, "views of the reduce-scatter's output", COLLECTIVES, HELD, OC_GRADIENTS, OWN, REDUCER, 0, REDUCING | IN_STORAGE, OC_BWD(part, REDUCED), {OC_PH_IDLE, OC_PART_NONE, 0}}, \
    {"sharded gradients" of, "until they are on the host, or used in backward", COLLECTIVES, PASSING, OC_GRADIENTS, OWN, REDUCER, 0, REDUCING | IN_STORAGE, OC_BWD(part, REDUCED), OC_BWD(part, LAST)}, \
    {"sharded gradients" of ", later", "of a later micro-batch, until they are added", COLLECTIVES, SYNCS | HELD, OC_GRADIENTS, OWN, REDUCER, OC_LATER_MICRO_BATCHES, IN_STORAGE, OC_BWD(part, REDUCED), OC_BWD(part, LAST)}

static const struct row layer_rows[] = {
    {"gathered layer", "all-gather output, kept until the next layer's has been copied out", GROUP, 0, OC_BUFFERS,
     GATHERED, GATHERS, 0, 0, OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"prefetched layer", "the next layer's all-gather", GROUP, AHEAD, OC_BUFFERS, GATHERED, GATHERS, 0, 0,
     OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"unsharded layer", "the weights that the layer reads", GROUP, RESHARD, OC_BUFFERS, GATHERED, COMPUTES, 0, 0,
     OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"unsharded layer", "the weights, until backward", GROUP, STAYS, OC_BUFFERS, GATHERED, COMPUTES, 0, 0,
     OC_FWD(LAYER, 0), OC_BWD(LAYER, FREED)},
    {"reduce-scatter input, layer above", "freed when the next reduction begins", GROUP, SHARED, OC_BUFFERS, TRAINED,
     COMPUTES, 0, REDUCING | BELOW_TOP, OC_AGAIN, OC_BWD(LAYER, REDUCES)},
    {"unsharded layer", "gathered again for backward", GROUP, RESHARD, OC_BUFFERS, GATHERED, COMPUTES, 0, 0, OC_AGAIN,
     OC_BWD(LAYER, FREED)},
    {"prefetched layer", "the all-gather of the layer below", GROUP, RESHARD | BEHIND, OC_BUFFERS, GATHERED, GATHERS, 0,
     0, OC_AGAIN, OC_BWD(LAYER, LAST)},
    REDUCTION(LAYER, "", "the layer's"),
    {0}};

static const struct row root_rows[] = {
    {"gathered root", "all-gather output of embedding, last norm and output layer", GROUP, 0, OC_BUFFERS, GATHERED,
     GATHERS, 0, 0, OC_FWD(EMBED, 0), OC_FWD(EMBED, LAST)},
    {"unsharded root", "trainers reshard the root, too, when the model returns", GROUP, RESHARD, OC_BUFFERS, GATHERED,
     COMPUTES, 0, 0, OC_FWD(EMBED, 0), OC_FWD(HEAD, LAST)},
    {"unsharded root", "kept from forward to backward", GROUP, STAYS, OC_BUFFERS, GATHERED, COMPUTES, 0, 0,
     OC_FWD(EMBED, 0), OC_BWD(EMBED, FREED)},
    {"gathered root", "gathered again when the gradient of the logits is there", GROUP, RESHARD, OC_BUFFERS, GATHERED,
     GATHERS, 0, 0, OC_BWD(HEAD, 3), OC_BWD(HEAD, 4)},
    {"unsharded root", "until backward has ended", GROUP, RESHARD, OC_BUFFERS, GATHERED, COMPUTES, 0, 0,
     OC_BWD(HEAD, 3), OC_BWD(EMBED, FREED)},
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
    if (!oc_torch_waits(plan)) have |= SYNCS;
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

bool oc_fsdp2_in_layer(const struct oc_build *build, const struct oc_param *param)
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
        const bool layer = oc_fsdp2_in_layer(build, param);
        if (layer != (kind < OC_MAX_KINDS) || (layer && param->kind != kind)) continue;
        const uint64_t own = oc_mul(oc_fsdp2_share(build, param), layer ? 1 : param->count);
        const uint64_t ranks = oc_plan_shard(build->plan, param->expert);
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
                                    : row->more & IN_STORAGE ? oc_fsdp2_storage(plan)
                                                             : oc_fsdp2_reduce(plan);
        const struct oc_entry entry = {.name = row->name,
                                       .why = row->why,
                                       .source = row->source,
                                       .elements = unit->size[row->measure],
                                       .count = unit->count,
                                       .class = row->class,
                                       .dtype = (uint8_t)dtype,
                                       .kind = unit->kind < OC_MAX_KINDS ? (uint8_t)unit->kind : OC_END_ANY,
                                       .when =
                                           row->more & REDUCING && !(have & SYNCS) ? OC_LAST_MICRO_BATCH : row->when,
                                       .spares_top = (row->more & BELOW_TOP) != 0,
                                       .stream = row->stream,
                                       .birth = row->birth,
                                       .death = row->death};
        oc_build_add(build, &entry);
    }
}

/* The lowest layer's reduce-scatter input is there until the root's reduction begins. */
static void add_last_input(struct oc_build *build)
{
    static const struct row rows[] = {{"reduce-scatter input, lowest layer", "freed when the next reduction begins",
                                       GROUP, SHARED, OC_BUFFERS, TRAINED, COMPUTES, 0, REDUCING, OC_BWD(EMBED, 0),
                                       OC_BWD(EMBED, REDUCES)},
                                      {0}};
    const struct oc_chunk *chunk = &build->ledger->chunks[0];
    if (build->plan->c.fsdp_wrap != OC_WRAP_LAYER || !chunk->n_runs) return;
    struct unit unit = unit_of(build, chunk->runs[0].kind);
    unit.kind = OC_MAX_KINDS;
    unit.count = 1;
    add_rows(build, &unit, rows);
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
    add_last_input(build);
    oc_fsdp2_gradients(build);
}
