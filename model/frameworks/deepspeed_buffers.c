/* What DeepSpeed keeps beside copies of parameters: reduction buckets, gathered parameters, the pipeline engine's
 * tensors.
 *
 * Source: shared/reference/memory-pytorch.md 3.3; deepspeed/runtime/pipe/engine.py. */
#include "model/frameworks/deepspeed_parts.h"
#include "model/frameworks/framework.h"
#include "model/frameworks/shards.h"

#define ZERO12 "deepspeed/runtime/zero/stage_1_and_2.py:2493-2514"
#define ZERO3  "deepspeed/runtime/zero/stage3.py"
#define PIPE   "deepspeed/runtime/pipe/engine.py"

/* Stage 3 splits a parameter only above the persistence threshold. */
static bool is_persistent(const struct oc_build *build, const struct oc_param *param)
{
    return param->elements <= (uint64_t)build->plan->c.zero_persistence;
}

uint64_t oc_deepspeed_padded(const struct oc_build *build, bool expert)
{
    const struct oc_plan *plan = build->plan;
    const uint64_t ranks = oc_plan_shard(plan, expert);
    const enum oc_engine engine = oc_deepspeed_engine(plan);
    if (engine == OC_ENGINE_PLAIN || engine == OC_ENGINE_FP16 || !plan->c.parallel_zero)
        return oc_build_part(build, expert);
    if (engine != OC_ENGINE_ZERO3) return oc_mul(oc_shard_zero12(oc_build_part(build, expert), ranks), ranks);
    uint64_t total = 0;
    for (int i = 0; i < build->n_params; i++)
        if (build->params[i].expert == expert)
            total = oc_add(
                total, oc_mul(oc_mul(oc_shard_zero3(build->params[i].elements, ranks), ranks), build->params[i].count));
    return total;
}

/* On V100s, the software of 2021 is taken: stage 1 had a file of its own then. */
static bool is_stage1_of_2021(const struct oc_plan *plan)
{
    return oc_is_2021(plan) && plan->sm == 70 && plan->c.parallel_zero == 1;
}

/* Buckets that gradients are copied into on their way to the other ranks. */
static void add_buckets(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    const struct oc_config *c = &plan->c;
    const enum oc_engine engine = oc_deepspeed_engine(plan);
    if (is_stage1_of_2021(plan)) return;
    if (!c->zero_contiguous_gradients || (engine != OC_ENGINE_ZERO12 && engine != OC_ENGINE_ZERO3)) return;
    struct oc_entry bucket =
        oc_buffer_entry("ipg bucket", "reduce_bucket_size elements in the model's type, full or not", ZERO12,
                        (uint64_t)c->zero_reduce_bucket, plan->dt.weights);
    if (engine == OC_ENGINE_ZERO3) {
        bucket.source = ZERO3 ":722-734";
        bucket.why = "stage 3 keeps one bucket for good";
        bucket.birth = OC_AT_SUB(INIT, 4);
        oc_build_add(build, &bucket);
        return;
    }
    bucket.count = c->zero_overlap_comm ? 2 : 1;
    if (oc_deepspeed_reduces_in_backward(plan)) {
        bucket.birth = (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, 0};
        bucket.death = (struct oc_tick){OC_PH_BACKWARD, OC_PART_EMBED, OC_MAX_SUB - 1};
    } else {
        bucket.birth = OC_AT_SUB(REDUCE, 1);
        bucket.death = OC_AT_SUB(REDUCE, 4);
    }
    for (uint32_t left = bucket.count; left > 0; left--) {
        bucket.count = 1; /* one entry each: an entry inside slots has one instance a slot */
        oc_build_add(build, &bucket);
    }
}

/* A bucket is flattened once more on its way through NCCL: all of it that backward or the reduction fills. Stage 1 of
 * 2021 (stage1.py, before 0.4.4) flattens all gradients at once, and one bucket of them for NCCL. */
static void add_flattened(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    const enum oc_engine engine = oc_deepspeed_engine(plan);
    if (engine != OC_ENGINE_ZERO12) return;
    const uint64_t all = oc_build_total(build), bucket = (uint64_t)plan->c.zero_reduce_bucket;
    struct oc_entry flat = oc_buffer_entry("flattened bucket", "the slices of a bucket, joined for the reduction",
                                           "deepspeed/runtime/zero/stage_1_and_2.py allreduce_bucket",
                                           all < bucket ? all : bucket, plan->dt.weights);
    if (oc_deepspeed_reduces_in_backward(plan)) {
        flat.birth = (struct oc_tick){OC_PH_BACKWARD, OC_PART_EMBED, OC_MAX_SUB - 2};
        flat.death = (struct oc_tick){OC_PH_BACKWARD, OC_PART_EMBED, OC_MAX_SUB - 1};
    } else {
        flat.birth = OC_AT_SUB(REDUCE, 2);
        flat.death = OC_AT_SUB(REDUCE, 3);
    }
    if (plan->shard > 1) oc_build_add(build, &flat);
    if (!is_stage1_of_2021(plan)) return;
    flat.name = "flattened gradients";
    flat.why = "all gradients, cut into each rank's partitions";
    flat.source = "deepspeed/runtime/zero/stage1.py reduce_scatter_gradients";
    flat.elements = all;
    oc_build_add(build, &flat);
}

/* BF16_Optimizer adds each parameter's gradient to the fp32 sums after a backward, through an fp32 copy. */
static void add_widened(struct oc_build *build)
{
    if (oc_deepspeed_engine(build->plan) != OC_ENGINE_BF16) return;
    struct oc_entry wide =
        oc_buffer_entry("gradient in fp32", "one parameter at a time is widened and added; the largest decides",
                        "deepspeed/runtime/bf16_optimizer.py update_hp_grads", oc_build_largest(build), OC_FP32);
    wide.class = OC_GRADIENTS;
    wide.birth = (struct oc_tick){OC_PH_BACKWARD, OC_PART_EMBED, OC_MAX_SUB - 2};
    wide.death = (struct oc_tick){OC_PH_BACKWARD, OC_PART_EMBED, OC_MAX_SUB - 1};
    oc_build_add(build, &wide);
}

/* BF16_Optimizer hands the pipeline engine one flat tensor of sums a group, each larger than a bucket of 5e8 elements,
 * so that none is joined; the engine reduces in 16 bits (communication_data_type), through a copy of the whole of it.
 */
static void add_narrowed_sums(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    if (oc_deepspeed_engine(plan) != OC_ENGINE_BF16 || plan->dp == 1) return;
    struct oc_entry narrow =
        oc_buffer_entry("sums in 16 bits", "a group's fp32 sums are cast whole for the reduction",
                        "deepspeed/runtime/engine.py allreduce_bucket", oc_build_total(build), plan->dt.weights);
    narrow.class = OC_GRADIENTS;
    narrow.birth = OC_AT_SUB(REDUCE, 1);
    narrow.death = OC_AT_SUB(REDUCE, 2);
    oc_build_add(build, &narrow);
}

/* PyTorch before 1.13 gathered a list of shards through a flat tensor as large as all of them. */
static void add_gathered_list(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    const enum oc_engine engine = oc_deepspeed_engine(plan);
    const uint64_t all = oc_build_total(build), bucket = (uint64_t)plan->c.zero_allgather_bucket;
    if (!oc_is_2021(plan) || plan->shard == 1 || (engine != OC_ENGINE_ZERO12 && engine != OC_ENGINE_BF16)) return;
    struct oc_entry flat = oc_buffer_entry(
        "gathered shards", "allgather_bucket_size elements at a time come back from the ranks",
        "deepspeed/runtime/utils.py all_gather_dp_groups", all < bucket ? all : bucket, plan->dt.weights);
    flat.birth = OC_AT_SUB(STEP, 5);
    flat.death = OC_AT_SUB(STEP, 6);
    oc_build_add(build, &flat);
}

/* The largest parameter of a layer of that kind. */
static uint64_t largest_of(const struct oc_build *build, int kind)
{
    uint64_t most = 0;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (param->part == OC_PART_LAYER && param->kind == kind && param->elements > most) most = param->elements;
    }
    return most;
}

/* A layer's parameters are gathered while it runs, through a flat buffer as large as themselves. */
static void add_gathered_layers(struct oc_build *build)
{
    static const uint8_t phases[] = {OC_PH_FORWARD, OC_PH_RECOMPUTE};
    for (int kind = 0; kind < OC_MAX_KINDS; kind++) {
        const uint64_t prefetch = (uint64_t)build->plan->c.zero_prefetch_bucket;
        const uint64_t elements = oc_build_unit(build, kind);
        for (size_t i = 0; i < sizeof phases; i++) {
            struct oc_entry gathered = oc_buffer_entry("gathered layer", "parameters of the layer that runs", ZERO3,
                                                       elements, build->plan->dt.weights);
            gathered.kind = (uint8_t)kind;
            gathered.count = build->layers[kind];
            gathered.birth = (struct oc_tick){phases[i], OC_PART_LAYER, 0};
            gathered.death = (struct oc_tick){phases[i] == OC_PH_FORWARD ? OC_PH_FORWARD : OC_PH_BACKWARD,
                                              OC_PART_LAYER, OC_MAX_SUB - 1};
            oc_build_add(build, &gathered);
            struct oc_entry ahead = gathered;
            ahead.name = "prefetched parameters";
            ahead.why = "stage3_prefetch_bucket_size elements of what comes next";
            ahead.elements = elements < prefetch ? elements : prefetch;
            oc_build_add(build, &ahead);
            gathered.name = "gather buffer";
            gathered.why = "the flat tensor that the largest parameter is gathered into before it is joined";
            gathered.elements = largest_of(build, kind);
            gathered.death = (struct oc_tick){phases[i], OC_PART_LAYER, 1};
            oc_build_add(build, &gathered);
        }
    }
}

/* Parameters that are used again soon stay gathered: the distance from a layer's forward to its backward is twice what
 * comes after it. Source: partitioned_param_coordinator.py __params_to_release. */
static void add_gathered_tail(struct oc_build *build)
{
    const uint64_t outside = oc_build_unit(build, OC_MAX_KINDS);
    const uint64_t total = oc_build_total(build), near = (uint64_t)build->plan->c.zero_live_params / 2;
    struct oc_entry tail =
        oc_buffer_entry("gathered around the loss", "reused within the reuse distance: not released between", ZERO3,
                        outside > near ? outside
                        : near < total ? near
                                       : total,
                        build->plan->dt.weights);
    tail.birth = (struct oc_tick){OC_PH_FORWARD, OC_PART_HEAD, 0};
    tail.death = (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, OC_MAX_SUB - 1};
    tail.kind = OC_END_HERE;
    oc_build_add(build, &tail);
}

static void add_stage3(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    uint64_t persistent = 0;
    for (int i = 0; i < build->n_params; i++)
        if (is_persistent(build, &build->params[i]))
            persistent = oc_add(persistent, oc_mul(build->params[i].elements, build->params[i].count));
    struct oc_entry kept = oc_buffer_entry("persistent parameters", "too small to share: whole beside their partition",
                                           ZERO3, persistent, plan->dt.weights);
    kept.birth = OC_AT_SUB(INIT, 4);
    oc_build_add(build, &kept);
    add_gathered_layers(build);
    add_gathered_tail(build);
    const uint64_t own = oc_deepspeed_padded(build, false) / (uint64_t)plan->shard, group = 1000000000;
    struct oc_entry wide = oc_buffer_entry("fp32 gradients for the step", "sub_group_size elements at a time", ZERO3,
                                           own < group ? own : group, plan->dt.step_grads);
    wide.class = OC_GRADIENTS;
    wide.birth = OC_AT_SUB(STEP, 2);
    wide.death = OC_AT_SUB(STEP, 4);
    if (plan->c.offload_optimizer == OC_OFFLOAD_NONE) oc_build_add(build, &wide);
}

/* The last stage returns from its backward before it lets go of what its two buffers hold: for each, logits (4 B each)
 * and two hidden tensors; so one set beside the micro-batch that runs, and two after it. Which tensors these are is
 * inferred from one exact measurement (bs-meg_ds_3d rank 60: 652.2 MiB = 2 x 198 + 4 x 64). */
static void add_last_outputs(struct oc_build *build)
{
    const uint64_t *d = build->sizes.dim;
    struct oc_entry logits =
        oc_buffer_entry("outputs of the last stage", "a pipeline buffer is let go when it is used again",
                        PIPE " _exec_backward_pass", oc_mul(d[OC_D_TOKENS], d[OC_D_VOCAB]), OC_FP32);
    logits.class = OC_ACTIVATIONS;
    logits.birth = (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, 0};
    logits.death = OC_AT(START);
    logits.kind = OC_END_HERE;
    struct oc_entry hidden = logits;
    hidden.elements = oc_mul(2 * d[OC_D_TOKENS], d[OC_D_HIDDEN]);
    hidden.dtype = (uint8_t)build->plan->dt.residual;
    oc_build_add(build, &logits);
    oc_build_add(build, &hidden);
    logits.birth = hidden.birth = OC_AT(REDUCE);
    oc_build_add(build, &logits);
    oc_build_add(build, &hidden);
}

/* The pipeline engine: what it receives lies in buffers of its own, in 1 / tp parts forwards and whole backwards; each
 * micro-batch in flight keeps the part of its output that was sent. Measured: shared/corpus, bs-meg_ds_3d (exact). */
static void add_pipeline(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    /* Megatron-DeepSpeed runs through the pipeline engine even as one stage. */
    if (plan->c.kernels_transformer == OC_OPSET_LOCAL && plan->c.parallel_pp == 1) add_last_outputs(build);
    if (plan->c.parallel_pp == 1) return;
    const uint64_t whole = oc_mul(build->sizes.dim[OC_D_TOKENS], build->sizes.dim[OC_D_HIDDEN]);
    const uint64_t part = whole / (uint64_t)plan->c.parallel_tp;
    const bool first = build->stage == 0, last = build->stage == plan->c.parallel_pp - 1;
    struct oc_entry received =
        oc_buffer_entry("received activations", "kept: one part of 1 / tp", PIPE, part, plan->dt.residual);
    if (!first) oc_build_add(build, &received);
    received.name = "received gradients";
    received.why = "kept: whole";
    received.elements = whole;
    if (!last) oc_build_add(build, &received);
    struct oc_entry sent = oc_buffer_entry("sent activations", "a micro-batch in flight keeps the part it sent", PIPE,
                                           part, plan->dt.residual);
    sent.class = OC_ACTIVATIONS;
    sent.birth = (struct oc_tick){OC_PH_FORWARD, OC_PART_HEAD, 1};
    sent.death = (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, 1};
    if (!last) oc_build_add(build, &sent);
    if (last) add_last_outputs(build);
}

void oc_deepspeed_buffers(struct oc_build *build)
{
    if (!build->plan->has_shape) return;
    add_buckets(build);
    add_flattened(build);
    add_widened(build);
    add_narrowed_sums(build);
    add_gathered_list(build);
    if (oc_deepspeed_engine(build->plan) == OC_ENGINE_ZERO3) add_stage3(build);
    add_pipeline(build);
    oc_add_cublas(build);
}
