/* What may be changed so that a run takes less memory. A row says what is set and for whom; what it costs is computed
 * from the resulting plan (model/cost.c), and whether the framework takes it is asked of oc_resolve(). */
#include "model/advise.h"

enum {
    TORCH = 1 << OC_FW_PYTORCH,
    FSDP = 1 << OC_FW_FSDP1 | 1 << OC_FW_FSDP2,
    DEEPSPEED = 1 << OC_FW_DEEPSPEED,
    MEGATRON = 1 << OC_FW_MEGATRON,
    EAGER = TORCH | FSDP | DEEPSPEED, /* frameworks whose model code is the user's own */
    REAL = EAGER | MEGATRON,
    ACCOUNTS = 1 << OC_FW_ARTICLE | 1 << OC_FW_ZERO_PAPER,
    ALL = REAL | ACCOUNTS
};

/* ---- when a row applies, asked of the plan with the change in place ---- */

static bool splits_tensors(const struct oc_plan *plan)
{
    return plan->c.parallel_tp > 1;
}

/* Megatron refuses distribute_saved_activations beside sequence parallelism (core/transformer/transformer_config.py).
 */
static bool partitions(const struct oc_plan *plan)
{
    return plan->c.parallel_tp > 1 && !plan->c.parallel_sp && plan->c.recompute == OC_RECOMPUTE_FULL;
}

/* Fewer layers than a chunk has: all of them would be the uniform method. */
static bool recomputes_some(const struct oc_plan *plan)
{
    return plan->c.recompute_layers * plan->c.parallel_pp * plan->c.parallel_vpp < plan->c.model_layers;
}

static bool has_experts(const struct oc_plan *plan)
{
    return plan->c.model_experts > 0;
}

static bool has_dense_mlp(const struct oc_plan *plan)
{
    return !plan->c.model_experts || plan->c.model_dense_layers > 0;
}

static bool is_latent(const struct oc_plan *plan)
{
    return plan->c.model_kv_lora_rank > 0;
}

static bool is_te(const struct oc_plan *plan)
{
    return plan->c.kernels_transformer == OC_OPSET_TE;
}

static bool is_lm(const struct oc_plan *plan)
{
    return plan->c.model_head == OC_HEAD_LM;
}

static bool is_adam(const struct oc_plan *plan)
{
    return plan->c.optimizer == OC_OPTIM_ADAM || plan->c.optimizer == OC_OPTIM_ADAMW;
}

/* A parameter that is updated in backward cannot wait for a second micro-batch's gradient. */
static bool is_one_pass(const struct oc_plan *plan)
{
    return plan->accum == 1;
}

/* Megatron refuses --cpu-offloading beside a pipeline or recompute (core/transformer/transformer_config.py). */
static bool offloads_activations(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    return c->framework != OC_FW_MEGATRON || (c->parallel_pp == 1 && c->recompute == OC_RECOMPUTE_NONE);
}

static bool is_sharded(const struct oc_plan *plan)
{
    return plan->shard > 1;
}

static bool is_trained_whole(const struct oc_plan *plan)
{
    return plan->has_shape && plan->c.model_head == OC_HEAD_LM && !plan->c.model_experts;
}

enum {
    FP32 = 1 << OC_PREC_FP32,
    AMP = 1 << OC_PREC_AMP_FP16 | 1 << OC_PREC_AMP_BF16,
    HALF = 1 << OC_PREC_FP16 | 1 << OC_PREC_BF16,
    ADAM = 1 << OC_OPTIM_ADAM | 1 << OC_OPTIM_ADAMW
};

/* clang-format off */
const struct oc_advice_row oc_advice_rows[] = {
    /* the same numbers, nothing lost */
    {OC_OPT_run_zero_grad_to_none, OC_TRY_VALUE, 1, TORCH | FSDP, .note = "gradients are freed, not zeroed"},
    {OC_OPT_parallel_bucket_view, OC_TRY_VALUE, 1, TORCH, .note = "gradients live in the reduction's buckets"},
    {OC_OPT_optimizer_impl, OC_TRY_VALUE, OC_IMPL_FUSED, TORCH | FSDP, .note = "no scratch in the step"},
    {OC_OPT_kernels_attention, OC_TRY_VALUE, OC_ATTN_FLASH, ALL, .note = "no seq x seq scores are kept; usually faster"},
    {OC_OPT_kernels_norm, OC_TRY_VALUE, OC_NORMK_FUSED, EAGER, .note = "a norm keeps its input only; needs that kernel"},
    {OC_OPT_kernels_loss, OC_TRY_VALUE, OC_LOSS_FUSED, MEGATRON, .applies = is_lm, .note = "one kernel for the cross entropy"},
    {OC_OPT_kernels_loss, OC_TRY_VALUE, OC_LOSS_TE_FUSED, MEGATRON, .applies = is_lm, .note = "the gradient replaces the logits"},
    {OC_OPT_kernels_loss, OC_TRY_VALUE, OC_LOSS_FUSED_LINEAR, EAGER, .applies = is_lm, .note = "the logits are never whole; needs that kernel (Liger)"},
    {OC_OPT_kernels_loss, OC_TRY_VALUE, OC_LOSS_CHUNKED, EAGER, .applies = is_lm, .note = "the logits are made in pieces"},
    {OC_OPT_kernels_compile, OC_TRY_VALUE, 1, TORCH | FSDP, .note = "torch.compile: element-wise chains are made again"},
    {OC_OPT_allocator_expandable_segments, OC_TRY_VALUE, 1, REAL, .note = "segments grow: less is lost between blocks"},
    {OC_OPT_megatron_tp_comm_overlap, OC_TRY_VALUE, 0, MEGATRON, .note = "tensor-parallel communication no longer overlaps"},
    {OC_OPT_parallel_sp, OC_TRY_VALUE, 1, MEGATRON, .applies = splits_tensors, .note = "norms and the residual stream are split over tp"},
    {OC_OPT_parallel_zero, OC_TRY_RAISE, 3, ALL, .note = "states are shared by the data-parallel ranks"},
    {OC_OPT_optimizer_precision_aware, OC_TRY_VALUE, 1, MEGATRON, .applies = is_adam, .note = "the master copy keeps what bf16 lacks of fp32"},
    {OC_OPT_fsdp_reshard_after_forward, OC_TRY_VALUE, 1, FSDP, .note = "weights are gathered again for backward"},
    {OC_OPT_fsdp_wrap, OC_TRY_VALUE, OC_WRAP_LAYER, FSDP, .note = "one layer is gathered at a time"},
    {OC_OPT_parallel_no_sync, OC_TRY_VALUE, 0, FSDP, .note = "gradients are reduced with every micro-batch"},
    {OC_OPT_fsdp_forward_prefetch, OC_TRY_VALUE, 0, FSDP, .note = "a layer is gathered when it is needed"},
    {OC_OPT_fsdp_backward_prefetch, OC_TRY_VALUE, 0, FSDP, .note = "a layer is gathered when it is needed"},
    {OC_OPT_zero_overlap_comm, OC_TRY_VALUE, 0, DEEPSPEED, .note = "one bucket instead of two; reduction no longer overlaps"},
    {OC_OPT_zero_reduce_bucket, OC_TRY_VALUE, 50000000, DEEPSPEED, .note = "smaller messages"},
    {OC_OPT_zero_allgather_bucket, OC_TRY_VALUE, 50000000, DEEPSPEED, .note = "smaller messages"},
    {OC_OPT_zero_live_params, OC_TRY_VALUE, 100000000, DEEPSPEED, .note = "gathered weights are given back sooner"},

    /* the same numbers, more work or more traffic */
    {OC_OPT_batch_micro, OC_TRY_HALVE, 1, REAL, .note = "smaller products: a GPU does them less efficiently"},
    {OC_OPT_recompute, OC_TRY_VALUE, OC_RECOMPUTE_SELECTIVE, REAL, .from = 1 << OC_RECOMPUTE_NONE, .note = "the attention's inside is computed again"},
    {OC_OPT_recompute_modules, OC_TRY_VALUE, OC_MODULE_CORE_ATTN | OC_MODULE_LAYERNORM, MEGATRON, .also = {{OC_OPT_recompute, OC_RECOMPUTE_SELECTIVE}}, .n_also = 1, .applies = is_te, .note = "norms are computed again too"},
    {OC_OPT_recompute_modules, OC_TRY_VALUE, OC_MODULE_CORE_ATTN | OC_MODULE_MLA_UP_PROJ, MEGATRON, .also = {{OC_OPT_recompute, OC_RECOMPUTE_SELECTIVE}}, .n_also = 1, .applies = is_latent, .note = "latents are projected up again"},
    {OC_OPT_recompute_modules, OC_TRY_VALUE, OC_MODULE_CORE_ATTN | OC_MODULE_MOE_ACT, MEGATRON, .also = {{OC_OPT_recompute, OC_RECOMPUTE_SELECTIVE}}, .n_also = 1, .applies = has_experts, .note = "the experts' activation is computed again"},
    {OC_OPT_recompute_modules, OC_TRY_VALUE, OC_MODULE_CORE_ATTN | OC_MODULE_MLP, MEGATRON, .also = {{OC_OPT_recompute, OC_RECOMPUTE_SELECTIVE}}, .n_also = 1, .applies = has_dense_mlp, .note = "the MLP is computed again"},
    {OC_OPT_recompute_modules, OC_TRY_VALUE, OC_MODULE_CORE_ATTN | OC_MODULE_MOE, MEGATRON, .also = {{OC_OPT_recompute, OC_RECOMPUTE_SELECTIVE}}, .n_also = 1, .applies = has_experts, .note = "the experts are computed again"},
    {OC_OPT_recompute_layers, OC_TRY_COUNT, 64, MEGATRON, .also = {{OC_OPT_recompute, OC_RECOMPUTE_FULL}, {OC_OPT_recompute_method, OC_METHOD_BLOCK}}, .n_also = 2, .applies = recomputes_some, .note = "the first layers of each chunk are computed again"},
    {OC_OPT_recompute, OC_TRY_VALUE, OC_RECOMPUTE_FULL, REAL, .note = "only the inputs of layers are kept"},
    {OC_OPT_recompute_layers, OC_TRY_DOUBLE, 16, MEGATRON, .also = {{OC_OPT_recompute, OC_RECOMPUTE_FULL}, {OC_OPT_recompute_method, OC_METHOD_UNIFORM}}, .n_also = 2, .note = "one input is kept for so many layers"},
    {OC_OPT_recompute_partition_activations, OC_TRY_VALUE, 1, MEGATRON, .applies = partitions, .note = "kept inputs are split over tp"},
    {OC_OPT_parallel_vpp, OC_TRY_HALVE, 1, MEGATRON, .note = "fewer micro-batches in flight, a longer bubble"},
    {OC_OPT_parallel_tp, OC_TRY_DOUBLE, 8, MEGATRON | DEEPSPEED, .note = "matrices are split; best inside one node"},
    {OC_OPT_parallel_tp, OC_TRY_DOUBLE, 8, MEGATRON, .also = {{OC_OPT_parallel_sp, 1}}, .n_also = 1, .note = "matrices and the sequence are split; best inside one node"},
    {OC_OPT_parallel_cp, OC_TRY_DOUBLE, 64, MEGATRON, .note = "the sequence is split"},
    {OC_OPT_parallel_pp, OC_TRY_DOUBLE, 64, MEGATRON | DEEPSPEED, .note = "layers are dealt out over more stages"},
    {OC_OPT_parallel_ep, OC_TRY_DOUBLE, 64, MEGATRON | DEEPSPEED, .applies = has_experts, .note = "experts are dealt out over more ranks"},
    {OC_OPT_offload_optimizer, OC_TRY_VALUE, OC_OFFLOAD_CPU, REAL, .note = "the step runs on the host"},
    {OC_OPT_offload_params, OC_TRY_VALUE, OC_OFFLOAD_CPU, REAL, .applies = is_sharded, .note = "weights come up for each use"},
    {OC_OPT_offload_activations, OC_TRY_VALUE, OC_OFFLOAD_CPU, REAL, .applies = offloads_activations, .note = "what backward needs waits on the host"},

    /* other roundings */
    {OC_OPT_precision, OC_TRY_VALUE, OC_PREC_AMP_BF16, TORCH | FSDP, OC_EFFECT_ROUNDING, .from = FP32, .resets_types = true, .note = "products run in bf16"},
    {OC_OPT_precision, OC_TRY_VALUE, OC_PREC_BF16, MEGATRON | DEEPSPEED | ACCOUNTS, OC_EFFECT_ROUNDING, .from = FP32 | 1 << OC_PREC_FP16, .resets_types = true, .note = "16-bit weights under an fp32 master copy"},
    {OC_OPT_megatron_grad_reduce_in_bf16, OC_TRY_VALUE, 1, MEGATRON, OC_EFFECT_ROUNDING, .note = "gradients are summed in bf16"},
    {OC_OPT_optimizer_precision_aware, OC_TRY_VALUE, 1, MEGATRON, OC_EFFECT_ROUNDING, .also = {{OC_OPT_precision_moment1, OC_BF16}, {OC_OPT_precision_moment2, OC_BF16}}, .n_also = 2, .applies = is_adam, .note = "Adam's moments in bf16"},

    /* more GPUs */
    {OC_OPT_parallel_world, OC_TRY_DOUBLE, 4096, ALL, OC_EFFECT_RANKS, .note = "more GPUs share the states"},

    /* another training */
    {OC_OPT_batch_accum, OC_TRY_HALVE, 1, REAL, OC_EFFECT_TRAINING, .keeps_accum = true, .note = "fewer samples in a step"},
    {OC_OPT_optimizer, OC_TRY_VALUE, OC_OPTIM_ADAM8BIT, EAGER, OC_EFFECT_TRAINING, .from = ADAM, .note = "moments in one byte each"},
    {OC_OPT_optimizer, OC_TRY_VALUE, OC_OPTIM_LION, EAGER, OC_EFFECT_TRAINING, .from = ADAM, .note = "one state; wants another learning rate"},
    {OC_OPT_optimizer, OC_TRY_VALUE, OC_OPTIM_ADAFACTOR, EAGER, OC_EFFECT_TRAINING, .from = ADAM, .note = "no whole second moment"},
    {OC_OPT_optimizer, OC_TRY_VALUE, OC_OPTIM_SGD, ALL, OC_EFFECT_TRAINING, .from = ADAM, .note = "one state or none; transformers train worse with it"},
    {OC_OPT_optimizer_in_backward, OC_TRY_VALUE, 1, TORCH | FSDP, OC_EFFECT_TRAINING, .applies = is_one_pass, .note = "gradients cannot be clipped as a whole"},
    {OC_OPT_precision, OC_TRY_VALUE, OC_PREC_PURE_BF16, EAGER, OC_EFFECT_TRAINING, .from = FP32 | AMP | HALF, .resets_types = true, .note = "no fp32 copy: small updates are lost"},
    {OC_OPT_lora_rank, OC_TRY_VALUE, 16, TORCH | FSDP, OC_EFFECT_TRAINING, .applies = is_trained_whole, .note = "only adapters are trained"},
    {OC_OPT_lora_rank, OC_TRY_VALUE, 16, TORCH | FSDP, OC_EFFECT_TRAINING, .also = {{OC_OPT_lora_base, OC_BASE_NF4}}, .n_also = 1, .applies = is_trained_whole, .note = "only adapters are trained, over weights in 4 bits"},
    {OC_OPT_batch_seq, OC_TRY_HALVE, 512, REAL, OC_EFFECT_TRAINING, .note = "shorter samples"},
};

/* A run that fits may take the costly things back: less work, less traffic, fewer GPUs, larger products. */
const struct oc_advice_row oc_advice_back_rows[] = {
    {OC_OPT_recompute, OC_TRY_VALUE, OC_RECOMPUTE_SELECTIVE, MEGATRON, .from = 1 << OC_RECOMPUTE_FULL, .note = "less is computed again"},
    {OC_OPT_recompute, OC_TRY_VALUE, OC_RECOMPUTE_NONE, REAL, .note = "nothing is computed again"},
    {OC_OPT_batch_micro, OC_TRY_DOUBLE, 64, REAL, .note = "larger products: a GPU does them more efficiently"},
    {OC_OPT_parallel_tp, OC_TRY_HALVE, 1, MEGATRON | DEEPSPEED, .note = "fewer messages between ranks"},
    {OC_OPT_parallel_pp, OC_TRY_HALVE, 1, MEGATRON | DEEPSPEED, .note = "a shorter bubble"},
    {OC_OPT_parallel_cp, OC_TRY_HALVE, 1, MEGATRON, .note = "fewer messages between ranks"},
    {OC_OPT_parallel_vpp, OC_TRY_DOUBLE, 16, MEGATRON, .note = "a shorter bubble"},
    {OC_OPT_parallel_zero, OC_TRY_LOWER, 0, EAGER, .note = "less is gathered"},
    {OC_OPT_parallel_world, OC_TRY_HALVE, 1, ALL, .note = "fewer GPUs, longer steps"},
    {OC_OPT_fsdp_reshard_after_forward, OC_TRY_VALUE, 0, FSDP, .note = "weights stay until backward"},
    {OC_OPT_parallel_no_sync, OC_TRY_VALUE, 1, FSDP, .note = "gradients are reduced once a step"},
    {OC_OPT_offload_optimizer, OC_TRY_VALUE, OC_OFFLOAD_NONE, REAL, .note = "the step runs on the GPU"},
    {OC_OPT_offload_params, OC_TRY_VALUE, OC_OFFLOAD_NONE, REAL, .note = "weights stay on the GPU"},
    {OC_OPT_offload_activations, OC_TRY_VALUE, OC_OFFLOAD_NONE, REAL, .note = "what backward needs stays on the GPU"},
};
/* clang-format on */

const int oc_n_advice_rows = sizeof oc_advice_rows / sizeof oc_advice_rows[0];
const int oc_n_advice_back_rows = sizeof oc_advice_back_rows / sizeof oc_advice_back_rows[0];

/* The value after `at` that a row tries; false when there is none. */
static bool next_value(const struct oc_advice_row *row, int64_t at, int64_t *next)
{
    switch (row->how) {
    case OC_TRY_VALUE: *next = row->value; return at != row->value;
    case OC_TRY_COUNT:
    case OC_TRY_DOUBLE: *next = at * 2; return *next <= row->value;
    case OC_TRY_HALVE: *next = at / 2; return at % 2 == 0 && *next >= row->value;
    case OC_TRY_RAISE: *next = at + 1; return *next <= row->value;
    case OC_TRY_LOWER: *next = at - 1; return *next >= row->value;
    }
    return false;
}

int oc_advice_values(const struct oc_advice_row *row, int64_t present, int64_t values[OC_ADVISE_VALUES])
{
    int n = 0;
    int64_t at = present;
    const bool is_enum = oc_option(row->option)->type == OC_T_ENUM;
    if (row->from && !(is_enum && present >= 0 && present < 32 && row->from >> present & 1)) return 0;
    if (row->how == OC_TRY_COUNT) values[n++] = at = 1;
    while (n < OC_ADVISE_VALUES && next_value(row, at, &values[n])) at = values[n++];
    return n;
}
