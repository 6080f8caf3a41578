/* What Megatron-LM and TransformerEngine keep beside parameters and activations.
 *
 * Source: shared/reference/memory-megatron.md section 8: each mechanism was read in the source named and found in the
 * residuals of measured runs. */
#include "model/frameworks/framework.h"
#include "model/frameworks/megatron_parts.h"
#include "model/frameworks/optimizers.h"
#include "model/shapes/opset.h"

#define TE_BASE    "TransformerEngine pytorch/module/base.py:134 get_dummy_wgrad"
#define TE_GEMM    "TransformerEngine pytorch/cpp_extensions/gemm.py:40-70"
#define LAYER_WISE "Megatron-LM core/optimizer/layer_wise_optimizer.py allgather_params"
#define GLOBAL     "Megatron-LM core/utils.py:727 GlobalMemoryBuffer"
#define SCHEDULES  "Megatron-LM core/pipeline_parallel/schedules.py"

static bool uses_te(const struct oc_plan *plan)
{
    return plan->c.kernels_transformer == OC_OPSET_TE;
}

static bool has_head(const struct oc_build *build)
{
    return oc_plan_has_head(build->plan, build->stage, build->plan->c.parallel_vpp - 1);
}

/* A buffer that stays from its first use on. */
static void add_persistent(struct oc_build *build, const char *name, const char *why, const char *source,
                           uint64_t elements, enum oc_dtype dtype, struct oc_tick birth)
{
    struct oc_entry entry = oc_buffer_entry(name, why, source, elements, dtype);
    entry.birth = birth;
    oc_build_add(build, &entry);
}

static bool same_shape(const struct oc_param *a, const struct oc_param *b)
{
    return b->cast == OC_CAST_KEPT && a->elements == b->elements && a->rows == b->rows;
}

/* One dummy weight gradient for each distinct shape of a matrix. The output layer has none when its gradient is
 * deferred. */
static void add_dummy_gradients(struct oc_build *build)
{
    if (!uses_te(build->plan) || !build->plan->c.megatron_gradient_accumulation_fusion) return;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        bool skip = param->cast != OC_CAST_KEPT ||
                    (param->part == OC_PART_HEAD && build->plan->c.megatron_defer_embedding_wgrad);
        for (int j = 0; j < i && !skip; j++) skip = same_shape(param, &build->params[j]);
        if (skip) continue;
        add_persistent(build, "dummy weight gradient",
                       "TransformerEngine caches one per shape when gradients are fused into main_grad", TE_BASE,
                       param->elements, build->plan->dt.weights, oc_first_backward(build));
        /* Experts are products of their own, and share one. */
        if (param->expert)
            build->ledger->entries[build->ledger->n_entries - 1].elements =
                param->elements / (uint64_t)(build->plan->c.model_experts / build->plan->c.parallel_ep);
    }
}

/* 4 MiB; 32 MiB + 1 KiB on Hopper and later. A router's product runs through TransformerEngine whatever the other
 * modules are (Megatron-LM core/transformer/moe/moe_utils.py RouterGatingLinearFunction). Grouped products run on four
 * streams with a workspace each; userbuffers take three. */
static void add_te_workspaces(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    if (!(uses_te(plan) || plan->c.model_experts) || !plan->sm) return;
    const uint64_t one = plan->sm >= 90 ? 33554432 + 1024 : 4194304;
    add_persistent(build, "TransformerEngine GEMM workspace", "4 MiB; 32 MiB + 1 KiB on Hopper and later", TE_GEMM,
                   one * (plan->c.megatron_tp_comm_overlap ? 3 : 1), OC_INT8, OC_AT(START));
    if (plan->c.model_experts && plan->c.moe_grouped_gemm)
        add_persistent(build, "TransformerEngine grouped GEMM workspaces", "one for each of four streams", TE_GEMM,
                       one * 4, OC_INT8, OC_AT(START));
}

/* One buffer per name, as large as its largest user. */
static void add_global_buffer(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    const uint64_t *d = build->sizes.dim;
    const uint64_t head = plan->c.parallel_sp && has_head(build) ? oc_mul(d[OC_D_TOKENS], d[OC_D_HIDDEN]) : 0;
    const uint64_t scores =
        !oc_is_2021(plan) && plan->c.kernels_transformer == OC_OPSET_LOCAL && plan->c.kernels_attention != OC_ATTN_FLASH
            ? d[OC_D_SCORES]
            : 0;
    uint64_t tokens = 0;
    if (plan->c.model_experts && plan->c.moe_dispatcher == OC_DISPATCH_ALLGATHER &&
        plan->c.parallel_ep * plan->c.parallel_tp > 1)
        tokens =
            oc_mul(oc_mul(d[OC_D_TOKENS_SP], d[OC_D_HIDDEN]), (uint64_t)(plan->c.parallel_tp * plan->c.parallel_ep));
    uint64_t most = head;
    const char *why = "sequence parallelism gathers the output layer's input here";
    if (scores > most) most = scores, why = "local attention computes its scores here";
    if (tokens > most) most = tokens, why = "the all-gather dispatcher collects every rank's tokens here";
    add_persistent(build, "global memory buffer", why, GLOBAL, most, plan->dt.compute, OC_AT(START));
}

/* Weights that share one scale, and its bytes: one for 32 in mxfp8, one for a tile of 128 x 128 blockwise, one for the
 * tensor otherwise. Source: TransformerEngine pytorch/tensor/mxfp8_tensor.py, float8_blockwise_tensor.py. */
static uint64_t scale_bytes(const struct oc_plan *plan, uint64_t elements)
{
    switch (plan->c.precision_fp8_recipe) {
    case OC_FP8_MXFP8: return elements / 32;
    case OC_FP8_BLOCKWISE: return elements / (128 * 128) * 4;
    default: return 0;
    }
}

/* fp8 copies of the weights of linear layers: row-wise, and transposed for backward. */
static void add_fp8_weights(struct oc_build *build)
{
    if (build->plan->c.precision != OC_PREC_FP8 || build->plan->c.precision_fp8_params) return;
    uint64_t elements = 0;
    for (int i = 0; i < build->n_params; i++)
        if (build->params[i].cast == OC_CAST_KEPT && build->params[i].part == OC_PART_LAYER)
            elements = oc_add(elements, oc_mul(build->params[i].elements, build->params[i].count));
    add_persistent(build, "fp8 weights", "linear layers keep fp8 copies of their weights, row-wise and transposed",
                   "TransformerEngine pytorch/module", oc_mul(elements, 2), OC_FP8, OC_AT(START));
    add_persistent(build, "fp8 scales", "what the recipe scales the fp8 copies by", "TransformerEngine pytorch/tensor",
                   oc_mul(scale_bytes(build->plan, elements), 2), OC_INT8, OC_AT(START));
}

/* Tensors of the pipeline that its last calls still refer to: they go when the next iteration's first calls return. */
static void add_pipeline_tensors(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    if (plan->c.parallel_pp == 1) return;
    const struct oc_entry kept = {.name = "pipeline tensors kept",
                                  .why = "two a model chunk outlive the step",
                                  .source = SCHEDULES,
                                  .elements = oc_mul(build->sizes.dim[OC_D_TOKENS_SP], build->sizes.dim[OC_D_HIDDEN]),
                                  .count = (uint32_t)(2 * plan->c.parallel_vpp),
                                  .class = OC_BUFFERS,
                                  .dtype = (uint8_t)plan->dt.residual,
                                  .birth = OC_AT(REDUCE),
                                  .death = OC_AT(START)};
    oc_build_add(build, &kept);
}

/* Megatron-LM 2.x does not shrink what it has sent to the next stage: the output lives until its backward. */
static void add_sent_outputs(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    if (!oc_is_2021(plan) || plan->c.parallel_pp == 1) return;
    const struct oc_entry output = {.name = "pipeline.output",
                                    .why = "Megatron 2.x keeps what it has sent until its backward",
                                    .source = "Megatron-LM v2.2 megatron/schedules.py",
                                    .elements = oc_mul(build->sizes.dim[OC_D_TOKENS_SP], build->sizes.dim[OC_D_HIDDEN]),
                                    .count = 1,
                                    .class = OC_ACTIVATIONS,
                                    .dtype = (uint8_t)plan->dt.residual,
                                    .kind = OC_END_ELSEWHERE,
                                    .birth = {OC_PH_FORWARD, OC_PART_HEAD, 1},
                                    .death = {OC_PH_BACKWARD, OC_PART_HEAD, 1}};
    oc_build_add(build, &output);
}

/* Gradients of the logits that wait for the pipeline's flush, and the one weight gradient that is made of them. */
static void add_deferred_gradients(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    if (!plan->c.megatron_defer_embedding_wgrad || plan->c.parallel_pp == 1 || !has_head(build)) return;
    const int64_t limit = plan->c.megatron_wgrad_deferral_limit;
    const int64_t kept = limit && limit < plan->accum ? limit : plan->accum;
    const uint64_t *d = build->sizes.dim;
    struct oc_entry entry = {.name = "deferred logit gradients",
                             .why = "kept until the pipeline's flush computes the output layer's gradient",
                             .source = "Megatron-LM core/tensor_parallel/layers.py:661",
                             .elements = oc_mul(d[OC_D_TOKENS], d[OC_D_VOCAB]),
                             .count = (uint32_t)kept,
                             .class = OC_BUFFERS,
                             .dtype = (uint8_t)plan->dt.compute,
                             .birth = OC_AT(START),
                             .death = OC_AT_SUB(REDUCE, 1)};
    oc_build_add(build, &entry);
    entry.name = "deferred weight gradient";
    entry.elements = oc_mul(d[OC_D_VOCAB], d[OC_D_HIDDEN]);
    entry.count = 1;
    entry.birth = OC_AT(REDUCE);
    oc_build_add(build, &entry);
}

/* Behind the step each rank's updated parameters are joined, and those of all ranks arrive in tensors of their own. */
static void add_layer_wise_gather(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    if (!oc_megatron_layer_wise(plan) || plan->shard == 1) return;
    const uint64_t all = oc_build_total(build);
    struct oc_entry joined = oc_buffer_entry("updated weights, joined", "this rank's parameters, in one tensor",
                                             LAYER_WISE, all / (uint64_t)plan->shard, plan->dt.weights);
    joined.birth = OC_AT_SUB(STEP, 5);
    joined.death = OC_AT_SUB(STEP, 6);
    oc_build_add(build, &joined);
    joined.name = "updated weights, gathered";
    joined.why = "those of all ranks, until they are copied into the model";
    joined.elements = all;
    oc_build_add(build, &joined);
}

void oc_megatron_buffers(struct oc_build *build)
{
    if (!build->plan->has_shape) return;
    add_dummy_gradients(build);
    add_te_workspaces(build);
    add_global_buffer(build);
    add_fp8_weights(build);
    add_pipeline_tensors(build);
    add_sent_outputs(build);
    oc_add_optimizer_states(build, oc_megatron_layer_wise(build->plan));
    add_layer_wise_gather(build);
    add_deferred_gradients(build);
    oc_megatron_fsdp_units(build);
    oc_add_cublas(build);
}
