/* Megatron-LM core: parameters in 16 bits with an fp32 master copy, gradients summed into a buffer that always exists.
 *
 * Source: NVIDIA/Megatron-LM @d98e8a64; shared/reference/memory-megatron.md sections 1 and 8. */
#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/frameworks/megatron_parts.h"

#define OPTIMIZER "Megatron-LM core/optimizer/optimizer.py"
#define BUFFER    "Megatron-LM core/distributed/param_and_grad_buffer.py"

static void defaults(struct oc_config *c)
{
    oc_default(c, OC_OPT_kernels_transformer, OC_OPSET_TE);
    oc_default(c, OC_OPT_kernels_norm, OC_NORMK_FUSED);
    oc_default(c, OC_OPT_kernels_logits_fp32, 1);
    oc_default(c, OC_OPT_model_vocab_multiple, 128);
    oc_default(c, OC_OPT_optimizer_impl, OC_IMPL_FUSED);
    oc_default_float(c, OC_OPT_optimizer_momentum, 0.9); /* --sgd-momentum */
}

/* The type of main_grad. Source: megatron/training/arguments.py:1194-1217. */
static enum oc_dtype main_grads(const struct oc_config *c, enum oc_dtype weights)
{
    if (oc_given(c, OC_OPT_precision_grads)) return (enum oc_dtype)c->precision_grads;
    if (weights == OC_FP16) return c->megatron_accumulate_allreduce_grads_in_fp32 ? OC_FP32 : OC_FP16;
    if (weights == OC_BF16) return c->megatron_grad_reduce_in_bf16 ? OC_BF16 : OC_FP32;
    return OC_FP32;
}

/* Which attention kernel runs. Source: TransformerEngine attention backend selection; FlashAttention and cuDNN's fused
 * attention exist in 16 bits only. */
static void decide_attention(struct oc_plan *plan, struct oc_warnings *warnings)
{
    struct oc_config *c = &plan->c;
    const bool backend = oc_given(c, OC_OPT_megatron_attention_backend);
    const bool unfused =
        c->megatron_attention_backend == OC_BACKEND_UNFUSED || c->megatron_attention_backend == OC_BACKEND_LOCAL;
    if (!oc_given(c, OC_OPT_kernels_attention))
        c->kernels_attention =
            (backend && unfused) || c->kernels_transformer == OC_OPSET_LOCAL ? OC_ATTN_UNFUSED : OC_ATTN_FLASH;
    if (c->kernels_attention == OC_ATTN_EAGER) c->kernels_attention = OC_ATTN_UNFUSED;
    if (plan->dt.compute == OC_FP32 && c->kernels_attention == OC_ATTN_FLASH) {
        c->kernels_attention = OC_ATTN_UNFUSED;
        oc_warn(warnings, "attention runs unfused: flash and fused kernels exist in 16 bits only, so fp32 keeps the "
                          "seq x seq scores");
    }
}

static bool decide_sharding(struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (c->parallel_zero > 1) {
        oc_fail(error, OC_E_CONFLICT, "parallel.zero=%d: Megatron's distributed optimizer is zero=1",
                (int)c->parallel_zero);
        return oc_hint(error, "parallel.zero=1");
    }
    if (c->parallel_zero && c->optimizer == OC_OPTIM_SGD) {
        oc_fail(error, OC_E_CONFLICT,
                "Megatron's distributed optimizer refuses sgd (AssertionError in distrib_optimizer.py)");
        return oc_hint(error, "optimizer=adam, or parallel.zero=0");
    }
    return true;
}

static enum oc_dtype given_or(const struct oc_config *c, enum oc_option_id id, enum oc_dtype otherwise)
{
    const enum oc_dtype given = (enum oc_dtype)oc_option_get(c, id);
    return oc_given(c, id) && given != OC_NONE ? given : otherwise;
}

/* --use-precision-aware-optimizer: states may be narrower than fp32; an fp32 master of bf16 weights is kept as the 16
 * bits that the weights lack, and gradients are read where they are. Source: core/optimizer/optimizer_config.py:165, TE
 * fused_adam.py. */
static bool decide_precision_aware(struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (!c->optimizer_precision_aware) return true;
    if (!c->parallel_zero || c->optimizer == OC_OPTIM_SGD) {
        oc_fail(error, OC_E_CONFLICT, "optimizer.precision_aware needs adam and the distributed optimizer");
        return oc_hint(error, "optimizer=adam and parallel.zero=1");
    }
    const enum oc_dtype master = given_or(c, OC_OPT_precision_master, OC_FP32);
    plan->dt.master = plan->dt.weights == OC_FP32                        ? OC_NONE
                      : master == OC_FP32 && plan->dt.weights == OC_BF16 ? OC_BF16
                                                                         : master;
    plan->dt.moment1 = given_or(c, OC_OPT_precision_moment1, OC_FP32);
    plan->dt.moment2 = given_or(c, OC_OPT_precision_moment2, OC_FP32);
    plan->dt.step_grads = OC_NONE;
    return true;
}

static bool decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    struct oc_config *c = &plan->c;
    if (!decide_sharding(plan, error)) return false;
    if (c->kernels_transformer == OC_OPSET_HF) {
        oc_fail(error, OC_E_CONFLICT, "kernels.transformer=hf belongs to PyTorch");
        return oc_hint(error, "kernels.transformer=te or local, or framework=pytorch");
    }
    enum oc_dtype weights = oc_precision_weights(c->precision);
    if (oc_precision_autocast(c->precision) != OC_NONE || c->precision == OC_PREC_PURE_FP16 ||
        c->precision == OC_PREC_PURE_BF16) {
        if (weights == OC_FP32) weights = oc_precision_autocast(c->precision);
        oc_warn(warnings, "Megatron has neither autocast nor training without a master copy: read as precision=%s",
                oc_dtype_name(weights));
        c->precision = weights == OC_FP16 ? OC_PREC_FP16 : OC_PREC_BF16;
    }
    plan->dt.weights = plan->dt.compute = plan->dt.residual = weights;
    plan->dt.grads = main_grads(c, weights);
    plan->dt.step_grads = plan->dt.grads != OC_FP32 ? OC_FP32 : OC_NONE;
    plan->dt.master = weights != OC_FP32 ? OC_FP32 : OC_NONE;
    /* TransformerEngine's and apex's FusedSGD allocate a momentum buffer whatever the momentum is (TE
     * fused_sgd.py:150-172). */
    const bool momentum =
        c->optimizer == OC_OPTIM_SGD && (c->optimizer_momentum > 0 || c->kernels_transformer == OC_OPSET_TE);
    const bool adam = c->optimizer != OC_OPTIM_SGD;
    plan->dt.moment1 = adam || momentum ? OC_FP32 : OC_NONE;
    plan->dt.moment2 = adam ? OC_FP32 : OC_NONE;
    decide_attention(plan, warnings);
    return decide_precision_aware(plan, error);
}

static bool weights(const struct oc_plan *plan, struct oc_state *state)
{
    const bool buffer = plan->c.parallel_zero >= 1;
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = plan->dt.weights,
                               .pooled = buffer,
                               .birth = buffer ? OC_AT_SUB(INIT, 1) : OC_AT(INIT),
                               .death = OC_AT(END),
                               .why = buffer ? "views of the distributed optimizer's parameter buffer"
                                             : "parameters in the training type"};
    return true;
}

/* The model is built first; the buffer then takes over its parameters one by one. What they leave in the allocator's
 * cache is used by activations later. */
static bool first_weights(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = plan->dt.weights,
                               .birth = OC_AT(INIT),
                               .death = OC_AT_SUB(INIT, 2),
                               .why = "parameters as the model is built, until the buffer has taken them over"};
    return plan->c.parallel_zero >= 1;
}

static bool master(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){
        .class = OC_MASTER,
        .dtype = plan->dt.master,
        .sharded = plan->c.parallel_zero >= 1,
        .birth = OC_AT_SUB(INIT, 2),
        .death = OC_AT(END),
        .why = plan->c.optimizer_precision_aware && plan->dt.master == OC_BF16
                   ? "the 16 bits that bf16 weights lack of fp32"
                   : "param.detach().clone().float(): the fp32 weights that the optimizer updates, for good"};
    return true;
}

/* Megatron-LM 2.x under its local DDP: gradients are PyTorch's own until they are copied to fp32. */
static bool has_own_gradients(const struct oc_plan *plan)
{
    return oc_is_2021(plan) && plan->dt.weights == OC_FP16 && plan->dt.step_grads == OC_FP32 &&
           plan->c.parallel_zero == 0;
}

static bool own_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .timing = OC_AS_GRADIENT,
                               .death = OC_AT_SUB(REDUCE, 1),
                               .why = "param.grad, made anew in each iteration"};
    return has_own_gradients(plan);
}

/* Local DDP joins all gradients for its all-reduce, whatever the number of ranks. */
static bool joined_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .pooled = true,
                               .birth = OC_AT_SUB(REDUCE, 1),
                               .death = OC_AT_SUB(REDUCE, 2),
                               .why = "all gradients flattened into one tensor for the all-reduce"};
    return has_own_gradients(plan);
}

/* Measured: 22 B a parameter in backward and 20 after the step, on 12 ranks of three runs (shared/corpus, bs-meg_gpt2).
 * That it is the last iteration's gradients that are still there is inferred. */
static bool last_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .birth = OC_AT_SUB(REDUCE, 1),
                               .death = OC_AT(END),
                               .why = "the gradients of the last iteration, still there in the next backward"};
    return has_own_gradients(plan);
}

static bool main_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.grads,
                               .pooled = true,
                               .birth = OC_AT_SUB(INIT, 1),
                               .death = OC_AT(END),
                               .why = plan->dt.weights == OC_BF16 && plan->dt.grads == OC_FP32
                                          ? "main_grad: one buffer that always exists; fp32 whenever weights are bf16"
                                          : "main_grad: one buffer that always exists"};
    return !has_own_gradients(plan);
}

static bool fp32_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.step_grads,
                               .sharded = plan->c.parallel_zero >= 1,
                               .birth = OC_AT(STEP),
                               .death = has_own_gradients(plan) ? OC_AT(END) : OC_AT(IDLE),
                               .why = has_own_gradients(plan)
                                          ? "made in the step; Megatron 2.x frees fp16 gradients only"
                                          : "main_grad.float(): made in the step, freed by the next zero_grad"};
    return true;
}

/* Without the fused kernel each weight gradient is a tensor of its own until it has been added. */
static bool fresh_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .timing = OC_WHILE_ACCUMULATED,
                               .why = "param.grad, until the hook adds it to main_grad"};
    return plan->has_shape && !plan->c.megatron_gradient_accumulation_fusion && !has_own_gradients(plan);
}

static bool moment(const struct oc_plan *plan, struct oc_state *state, enum oc_dtype dtype, const char *why)
{
    *state = (struct oc_state){.class = OC_OPTIMIZER,
                               .dtype = dtype,
                               .sharded = plan->c.parallel_zero >= 1,
                               .birth = oc_states_birth(plan),
                               .death = OC_AT(END),
                               .why = why};
    return true;
}

static bool moment1(const struct oc_plan *plan, struct oc_state *state)
{
    const bool sgd = plan->c.optimizer == OC_OPTIM_SGD;
    return moment(plan, state, plan->dt.moment1,
                  sgd ? "momentum_buffer: FusedSGD makes it whatever the momentum"
                      : "made in the first step that is not skipped");
}

static bool moment2(const struct oc_plan *plan, struct oc_state *state)
{
    return moment(plan, state, plan->dt.moment2, "made in the first step that is not skipped");
}

/* FusedAdam makes fp32 copies of all states of a kind that is not fp32, unless both moments are bf16. */
static bool unscaled(const struct oc_plan *plan, struct oc_state *state, enum oc_dtype dtype)
{
    const bool both_bf16 = plan->dt.moment1 == OC_BF16 && plan->dt.moment2 == OC_BF16;
    *state = (struct oc_state){.class = OC_BUFFERS,
                               .dtype = OC_FP32,
                               .sharded = true,
                               .birth = OC_AT_SUB(STEP, 2),
                               .death = OC_AT_SUB(STEP, 3),
                               .why = "an fp32 copy of a narrower state, while the step runs (Megatron-LM#1477)"};
    return plan->c.optimizer_precision_aware && dtype != OC_FP32 && dtype != OC_NONE && !both_bf16;
}

static bool unscaled1(const struct oc_plan *plan, struct oc_state *state)
{
    return unscaled(plan, state, plan->dt.moment1);
}

static bool unscaled2(const struct oc_plan *plan, struct oc_state *state)
{
    return unscaled(plan, state, plan->dt.moment2);
}

static const struct oc_state_rule states[] = {
    {"weights at first", BUFFER, "", first_weights},
    {"weights", BUFFER, "", weights},
    {"main params", OPTIMIZER ":550 Float16OptimizerWithFloat16Params", "", master},
    {"main grads", BUFFER, "", main_gradients},
    {"gradients", "Megatron-LM v2.2 megatron/model/distributed.py", "", own_gradients},
    {"flattened gradients", "Megatron-LM v2.2 megatron/model/distributed.py allreduce_params", "", joined_gradients},
    {"gradients of the last iteration", "Megatron-LM v2.2 megatron/optimizer/optimizer.py", "", last_gradients},
    {"fp32 gradient copy", OPTIMIZER " _copy_model_grads_to_main_grads", "", fp32_gradients},
    {"fresh gradients", "Megatron-LM core/distributed/distributed_data_parallel.py:555-585", "", fresh_gradients},
    {"momentum or exp_avg", "TransformerEngine pytorch/optimizers", "", moment1},
    {"exp_avg_sq", "TransformerEngine pytorch/optimizers", "", moment2},
    {"exp_avg in fp32", "TransformerEngine pytorch/optimizers/fused_adam.py get_unscaled_state", "", unscaled1},
    {"exp_avg_sq in fp32", "TransformerEngine pytorch/optimizers/fused_adam.py get_unscaled_state", "", unscaled2},
    {0}};

const struct oc_framework_rules oc_megatron_rules = {.name = "Megatron-LM",
                                                     .source = "NVIDIA/Megatron-LM @d98e8a64, core",
                                                     .defaults = defaults,
                                                     .decide = decide,
                                                     .states = states,
                                                     .buffers = oc_megatron_buffers,
                                                     .padded = oc_megatron_padded,
                                                     .counts_activations = true};
