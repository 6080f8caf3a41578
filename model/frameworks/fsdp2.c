/* FSDP2 (torch.distributed.fsdp.fully_shard): every parameter is split by rows over the ranks; a layer's weights are
 * gathered while it runs.
 *
 * Source: pytorch torch/distributed/fsdp/_fully_shard, read in shared/reference/memory-pytorch.md section 2.1. */
#include "model/frameworks/fsdp2_parts.h"
#include "model/frameworks/framework.h"
#include "model/frameworks/optimizers.h"
#include "model/frameworks/shards.h"
#include "model/frameworks/torch.h"

#define PARAM "torch/distributed/fsdp/_fully_shard/_fsdp_param.py @17a7e1e0"

enum oc_dtype oc_fsdp2_storage(const struct oc_plan *plan)
{
    return (enum oc_dtype)plan->c.precision_weights; /* set by decide() */
}

enum oc_dtype oc_fsdp2_reduce(const struct oc_plan *plan)
{
    return (enum oc_dtype)plan->c.precision_reduce;
}

uint64_t oc_fsdp2_share(const struct oc_build *build, const struct oc_param *param)
{
    const uint64_t ranks = oc_plan_shard(build->plan, param->expert);
    const uint64_t rows = param->rows ? param->rows : param->columns ? param->elements / param->columns : 0;
    if (!rows) return oc_shard_fsdp2(param->elements, 1, ranks);
    return oc_shard_fsdp2(rows, param->elements / rows, ranks);
}

static void defaults(struct oc_config *c)
{
    oc_default(c, OC_OPT_parallel_zero, 3);
    oc_torch_defaults(c);
    oc_default(c, OC_OPT_fsdp_reshard_after_forward, c->parallel_zero == 3);
    oc_default(c, OC_OPT_fsdp_backward_prefetch, 1); /* implicit: _fsdp_param_group.py _backward_prefetch */
    /* Only accelerate's accumulate() calls set_requires_gradient_sync(False); torchtitan and torchtune reduce every
     * micro-batch's gradients. */
    oc_default(c, OC_OPT_parallel_no_sync, c->kernels_transformer == OC_OPSET_HF);
    /* accelerate utils/fsdp_utils.py:802-812. */
    oc_default(c, OC_OPT_fsdp_upcast, c->kernels_transformer == OC_OPSET_HF);
}

/* Mixed precision casts what is gathered; the shards keep the type that the model was made in, or fp32 where the
 * trainer upcasts them first. */
static enum oc_dtype storage_of(const struct oc_config *c)
{
    if (oc_given(c, OC_OPT_precision_weights)) return (enum oc_dtype)c->precision_weights;
    switch (c->precision) {
    case OC_PREC_BF16:
    case OC_PREC_FP16: return c->fsdp_upcast ? OC_FP32 : oc_precision_weights(c->precision);
    case OC_PREC_FP8: return OC_FP32; /* torchtitan float8: only the linears' products are in fp8 */
    default: return oc_precision_weights(c->precision);
    }
}

static bool check_kernels(struct oc_config *c, struct oc_error *error)
{
    if (c->kernels_transformer == OC_OPSET_TE || c->kernels_transformer == OC_OPSET_LOCAL) {
        oc_fail(error, OC_E_CONFLICT, "kernels.transformer=te and local belong to Megatron");
        return oc_hint(error, "kernels.transformer=torchtitan or hf, or framework=megatron");
    }
    const bool listed =
        c->kernels_transformer == OC_OPSET_TORCHTITAN && (c->recompute_modules & OC_MODULE_TORCHTITAN_OP);
    if (c->recompute == OC_RECOMPUTE_SELECTIVE && !listed) {
        oc_fail(error, OC_E_CONFLICT, "only torchtitan has a selective recompute here: its list of ops");
        return oc_hint(error, "kernels.transformer=torchtitan with recompute.modules=torchtitan-op, or recompute=full");
    }
    if (c->kernels_attention == OC_ATTN_UNFUSED) c->kernels_attention = OC_ATTN_EAGER;
    if (c->kernels_transformer == OC_OPSET_HF && c->kernels_loss == OC_LOSS_CHUNKED)
        c->kernels_loss = OC_LOSS_FUSED_LINEAR; /* Liger's */
    if (c->kernels_transformer == OC_OPSET_HF && c->kernels_loss == OC_LOSS_TE_FUSED) c->kernels_loss = OC_LOSS_FUSED;
    return true;
}

static bool decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    struct oc_config *c = &plan->c;
    if (c->parallel_zero < 2) {
        oc_fail(error, OC_E_CONFLICT, "parallel.zero=%d: FSDP2 always shares parameters", (int)c->parallel_zero);
        return oc_hint(error, "parallel.zero=3, or 2 to keep them gathered from forward to backward");
    }
    if (!check_kernels(c, error)) return false;
    if (c->parallel_zero == 2 && c->fsdp_reshard_after_forward) {
        oc_warn(warnings, "parallel.zero=2 keeps weights gathered from forward to backward");
        c->fsdp_reshard_after_forward = 0;
    }
    const enum oc_dtype storage = storage_of(c);
    const enum oc_dtype autocast = oc_precision_autocast(c->precision);
    const enum oc_dtype compute = autocast != OC_NONE            ? autocast
                                  : c->precision == OC_PREC_FP8  ? OC_BF16
                                  : c->precision == OC_PREC_FP32 ? OC_FP32
                                                                 : oc_precision_weights(c->precision);
    c->precision_weights = storage;
    plan->dt.weights = plan->dt.compute = plan->dt.residual = compute;
    plan->dt.grads = storage;
    if (!oc_given(c, OC_OPT_precision_reduce)) c->precision_reduce = storage;
    if (!oc_given(c, OC_OPT_lora_dtype) && c->kernels_transformer != OC_OPSET_HF) c->lora_dtype = storage;
    oc_optimizer_dtypes(c, storage, &plan->dt.moment1, &plan->dt.moment2);
    return true;
}

static bool weights(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = oc_fsdp2_storage(plan),
                               .sharded = true,
                               .birth = OC_AT(INIT),
                               .death = OC_AT(END),
                               .why = "ceil(rows / ranks) rows of each parameter, on every rank"};
    return plan->c.offload_params == OC_OFFLOAD_NONE;
}

static bool moment(const struct oc_plan *plan, struct oc_state *state, enum oc_dtype dtype)
{
    *state = (struct oc_state){.class = OC_OPTIMIZER,
                               .dtype = dtype,
                               .sharded = true,
                               .birth = oc_states_birth(plan),
                               .death = OC_AT(END),
                               .why = "zeros like the shard, made in the first step"};
    return plan->c.offload_params == OC_OFFLOAD_NONE && plan->c.offload_optimizer == OC_OFFLOAD_NONE;
}

static bool moment1(const struct oc_plan *plan, struct oc_state *state)
{
    return moment(plan, state, plan->dt.moment1) && oc_optimizer_is_plain(plan, 1);
}

static bool moment2(const struct oc_plan *plan, struct oc_state *state)
{
    return moment(plan, state, plan->dt.moment2) && oc_optimizer_is_plain(plan, 2);
}

static bool square_roots(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_BUFFERS,
                               .dtype = plan->dt.moment2,
                               .sharded = true,
                               .birth = OC_AT_SUB(STEP, 2),
                               .death = OC_AT_SUB(STEP, 3),
                               .why = "foreach: the square roots of all second moments at once"};
    return plan->c.optimizer_impl == OC_IMPL_FOREACH && oc_optimizer_is_plain(plan, 2) &&
           plan->c.offload_params == OC_OFFLOAD_NONE;
}

static const struct oc_state_rule states[] = {
    {"weights", PARAM, "2.4", weights},
    {"momentum or exp_avg", "torch/optim", "", moment1},
    {"exp_avg_sq", "torch/optim", "", moment2},
    {"optimizer scratch", "torch/optim/adam.py _multi_tensor_adam", "2.0", square_roots},
    {0}};

static uint64_t largest_share(const struct oc_build *build)
{
    uint64_t most = 0;
    for (int i = 0; i < build->n_params; i++) {
        const uint64_t own = build->params[i].frozen ? 0 : oc_fsdp2_share(build, &build->params[i]);
        if (own > most) most = own;
    }
    return most;
}

static void buffers(struct oc_build *build)
{
    if (build->plan->c.offload_optimizer == OC_OFFLOAD_NONE && build->plan->c.offload_params == OC_OFFLOAD_NONE) {
        oc_add_optimizer_states(build, false);
        oc_add_optimizer_scratch(build, largest_share(build), oc_build_tensors(build));
    }
    if (build->plan->has_shape) oc_fsdp2_units(build);
    oc_add_cublas(build);
}

const struct oc_framework_rules oc_fsdp2_rules = {.name = "FSDP2",
                                                  .source = "pytorch torch/distributed/fsdp/_fully_shard",
                                                  .defaults = defaults,
                                                  .decide = decide,
                                                  .states = states,
                                                  .buffers = buffers,
                                                  .share = oc_fsdp2_share,
                                                  .casts_shards = true,
                                                  .counts_activations = true};
