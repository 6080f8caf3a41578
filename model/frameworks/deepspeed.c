/* DeepSpeed: 16-bit parameters under an optimizer wrapper that keeps fp32 master copies; ZeRO shares states (1),
 * gradients (2) and parameters (3) over data-parallel ranks.
 *
 * Source: deepspeedai/DeepSpeed @edaa7221, read in shared/reference/memory-pytorch.md section 3. */
#include "model/frameworks/deepspeed_parts.h"
#include "model/frameworks/framework.h"

#define FP16   "deepspeed/runtime/fp16/fused_optimizer.py"
#define BF16   "deepspeed/runtime/bf16_optimizer.py"
#define ZERO12 "deepspeed/runtime/zero/stage_1_and_2.py"
#define ZERO3  "deepspeed/runtime/zero/stage3.py"

/* Sub-steps of the step: gradients are joined (1), widened (2), the narrow ones freed (3), the update run, the wide
 * ones freed (4). */
enum { JOINED = 1, WIDENED = 2, NARROW_FREED = 3, STEPPED = 4 };

enum oc_engine oc_deepspeed_engine(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const bool fp32_sums = plan->dt.weights == OC_BF16 && plan->dt.grads == OC_FP32;
    if (c->parallel_zero == 3) return OC_ENGINE_ZERO3;
    if (plan->dt.weights == OC_BF16 && c->parallel_pp > 1) return OC_ENGINE_BF16;
    if (c->parallel_zero == 1 && fp32_sums && c->offload_optimizer == OC_OFFLOAD_NONE) return OC_ENGINE_BF16;
    if (c->parallel_zero) return OC_ENGINE_ZERO12;
    return plan->dt.weights == OC_FP32 ? OC_ENGINE_PLAIN : OC_ENGINE_FP16;
}

bool oc_deepspeed_reduces_in_backward(const struct oc_plan *plan)
{
    return plan->c.parallel_zero >= 2 || (plan->c.parallel_zero == 1 && plan->accum == 1 && plan->c.parallel_pp == 1);
}

static void defaults(struct oc_config *c)
{
    const bool megatron = c->parallel_tp > 1 || c->parallel_pp > 1;
    oc_default(c, OC_OPT_kernels_transformer, megatron ? OC_OPSET_LOCAL : OC_OPSET_HF);
    const bool hf = c->kernels_transformer == OC_OPSET_HF;
    if (!hf) oc_default(c, OC_OPT_kernels_norm, OC_NORMK_FUSED);
    if (c->kernels_transformer == OC_OPSET_LOCAL) oc_default(c, OC_OPT_kernels_attention, OC_ATTN_UNFUSED);
    /* Llama and its kin cast their logits to fp32; Qwen, of equally many query and key heads with biases, does not. */
    const bool qwen = hf && c->model_qkv_bias && (!c->model_kv_heads || c->model_kv_heads == c->model_heads);
    oc_default(c, OC_OPT_kernels_logits_fp32, !qwen);
    oc_default(c, OC_OPT_model_vocab_multiple, hf ? 1 : 128);
    oc_default(c, OC_OPT_optimizer_impl, OC_IMPL_FUSED);
    oc_default(c, OC_OPT_zero_overlap_comm, c->parallel_zero == 3); /* zero/config.py */
    if (hf && c->model_hidden && c->parallel_zero == 3) {
        /* "auto" under Hugging Face: accelerate accelerator.py:2288-2321. */
        oc_default(c, OC_OPT_zero_reduce_bucket, c->model_hidden * c->model_hidden);
        oc_default(c, OC_OPT_zero_prefetch_bucket, c->model_hidden * c->model_hidden * 9 / 10);
        oc_default(c, OC_OPT_zero_persistence, 10 * c->model_hidden);
    }
}

static bool decide_sharding(const struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (c->parallel_zero >= 2 && c->parallel_pp > 1) {
        oc_fail(error, OC_E_CONFLICT, "parallel.zero=%d: DeepSpeed's pipeline engine refuses ZeRO 2 and 3",
                (int)c->parallel_zero);
        return oc_hint(error, "parallel.zero=1, or parallel.pp=1");
    }
    if (c->parallel_vpp > 1) {
        oc_fail(error, OC_E_CONFLICT, "DeepSpeed's pipeline engine does not interleave");
        return oc_hint(error, "parallel.vpp=1");
    }
    return true;
}

/* States are made for flat partitions, not for tensors: Adafactor has nothing to factor there. Paged 8-bit states lie
 * in managed memory, which the allocator does not see. */
static void decide_moments(struct oc_plan *plan, enum oc_dtype state)
{
    const struct oc_config *c = &plan->c;
    switch (c->optimizer) {
    case OC_OPTIM_SGD:
        plan->dt.moment1 = c->optimizer_momentum > 0 ? state : OC_NONE;
        plan->dt.moment2 = OC_NONE;
        break;
    case OC_OPTIM_LION:
    case OC_OPTIM_MUON:
        plan->dt.moment1 = state;
        plan->dt.moment2 = OC_NONE;
        break;
    case OC_OPTIM_ADAFACTOR:
        plan->dt.moment1 = OC_NONE;
        plan->dt.moment2 = state;
        break;
    case OC_OPTIM_ADAM8BIT: plan->dt.moment1 = plan->dt.moment2 = OC_INT8; break;
    case OC_OPTIM_PAGED_ADAMW8BIT: plan->dt.moment1 = plan->dt.moment2 = OC_NONE; break;
    default: plan->dt.moment1 = plan->dt.moment2 = state; break;
    }
}

/* DeepSpeed's engine has no autocast of its own: 16-bit training is 16-bit weights under a master copy. */
static void decide_dtypes(struct oc_plan *plan, struct oc_warnings *warnings)
{
    struct oc_config *c = &plan->c;
    enum oc_dtype weights = oc_precision_weights(c->precision);
    if (oc_precision_autocast(c->precision) != OC_NONE) {
        weights = oc_precision_autocast(c->precision);
        oc_warn(warnings, "DeepSpeed trains 16-bit weights under an fp32 master copy, not autocast: read as %s",
                oc_dtype_name(weights));
        c->precision = weights == OC_FP16 ? OC_PREC_FP16 : OC_PREC_BF16;
    }
    const bool pure = c->precision == OC_PREC_PURE_FP16 || c->precision == OC_PREC_PURE_BF16;
    const bool zero = c->parallel_zero > 0;
    if (oc_given(c, OC_OPT_precision_weights)) weights = (enum oc_dtype)c->precision_weights;
    plan->dt.weights = plan->dt.compute = plan->dt.residual = weights;
    plan->dt.grads = oc_given(c, OC_OPT_precision_grads) ? (enum oc_dtype)c->precision_grads : weights;
    if (weights == OC_BF16 && c->parallel_pp > 1) plan->dt.grads = OC_FP32;
    /* ZeRO clones an fp32 partition even of fp32 weights. */
    plan->dt.master = pure ? weights : zero || weights != OC_FP32 ? OC_FP32 : OC_NONE;
    const enum oc_dtype state = pure ? weights : OC_FP32;
    decide_moments(plan, state);
    plan->dt.step_grads = plan->dt.grads != plan->dt.master ? plan->dt.master : OC_NONE;
}

static bool decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    if (!decide_sharding(plan, error)) return false;
    decide_dtypes(plan, warnings);
    return true;
}

static bool is_shared(const struct oc_plan *plan)
{
    return plan->c.parallel_zero >= 1;
}

static bool on_device(const struct oc_plan *plan)
{
    return plan->c.offload_optimizer == OC_OFFLOAD_NONE;
}

/* ZeRO moves the module's parameters to the host before it joins them; BF16_Optimizer flattens them where they are, and
 * the allocator keeps what they lay in. */
static bool unflattened(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = plan->dt.weights,
                               .birth = OC_AT(INIT),
                               .death = OC_AT_SUB(INIT, 1),
                               .why = "the module's own tensors, until they have been copied into the flat buffer"};
    return oc_deepspeed_engine(plan) == OC_ENGINE_BF16;
}

static bool weights(const struct oc_plan *plan, struct oc_state *state)
{
    const enum oc_engine engine = oc_deepspeed_engine(plan);
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = plan->dt.weights,
                               .sharded = engine == OC_ENGINE_ZERO3,
                               .pooled = engine != OC_ENGINE_PLAIN && engine != OC_ENGINE_ZERO3,
                               .birth = OC_AT(INIT),
                               .death = OC_AT(END),
                               .why = engine == OC_ENGINE_ZERO3 ? "each parameter is split over the ranks"
                                                                : "views of one flat buffer for each group"};
    return engine != OC_ENGINE_ZERO3 || plan->c.offload_params == OC_OFFLOAD_NONE;
}

static bool master(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_MASTER,
                               .dtype = plan->dt.master,
                               .sharded = is_shared(plan),
                               .birth = OC_AT_SUB(INIT, 2),
                               .death = OC_AT(END),
                               .why = "the fp32 weights that the optimizer updates"};
    return on_device(plan);
}

/* BF16_Optimizer sums in fp32, in a buffer that every rank holds whole. */
static bool summed(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = OC_FP32,
                               .pooled = true,
                               .birth = OC_AT_SUB(INIT, 1),
                               .death = OC_AT(END),
                               .why = "fp32_groups_gradients_flat: summed in fp32, not shared"};
    return oc_deepspeed_engine(plan) == OC_ENGINE_BF16;
}

/* param.grad. Without ZeRO the step frees it; stage 1 frees it when it has been reduced; BF16_Optimizer zeroes it. */
static bool gradients(const struct oc_plan *plan, struct oc_state *state)
{
    const enum oc_engine engine = oc_deepspeed_engine(plan);
    const bool stays = engine == OC_ENGINE_BF16;
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .timing = OC_AS_GRADIENT,
                               .death = stays                        ? OC_AT(END)
                                        : engine == OC_ENGINE_ZERO12 ? OC_AT_SUB(REDUCE, 3)
                                        : engine == OC_ENGINE_PLAIN  ? OC_AT(IDLE)
                                                                     : OC_AT_SUB(STEP, NARROW_FREED),
                               .why = stays ? "param.grad in bf16: zeroed and kept" : "param.grad, summed in place"};
    return !oc_deepspeed_reduces_in_backward(plan);
}

static bool fresh(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .timing = OC_WHILE_ACCUMULATED,
                               .why = "a fresh gradient, until it is copied into the bucket"};
    return oc_deepspeed_reduces_in_backward(plan);
}

/* This rank's part of the reduced gradients: from the first reduction to the step. */
static bool averaged(const struct oc_plan *plan, struct oc_state *state)
{
    const bool early = oc_deepspeed_reduces_in_backward(plan);
    *state =
        (struct oc_state){.class = OC_GRADIENTS,
                          .dtype = plan->dt.weights,
                          .sharded = true,
                          .birth = early ? (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, 0} : OC_AT_SUB(REDUCE, 2),
                          .death = OC_AT_SUB(STEP, NARROW_FREED),
                          .why = "averaged gradients of this rank's partition"};
    return oc_deepspeed_engine(plan) == OC_ENGINE_ZERO12;
}

static bool joined(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .sharded = true,
                               .birth = OC_AT_SUB(STEP, JOINED),
                               .death = OC_AT_SUB(STEP, NARROW_FREED),
                               .why = "the same flattened, before it is widened"};
    return oc_deepspeed_engine(plan) == OC_ENGINE_ZERO12;
}

/* Stage 3 keeps a flat buffer for this rank's gradients from the beginning. */
static bool partitioned(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.grads,
                               .sharded = true,
                               .birth = OC_AT_SUB(INIT, 1),
                               .death = OC_AT(END),
                               .why = "grad_partitions_flat_buffer, made at init and kept"};
    return oc_deepspeed_engine(plan) == OC_ENGINE_ZERO3 && on_device(plan);
}

/* Stage 3 widens a sub-group at a time: deepspeed_buffers.c. */
static bool widened(const struct oc_plan *plan, struct oc_state *state)
{
    const enum oc_engine engine = oc_deepspeed_engine(plan);
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.step_grads,
                               .sharded = is_shared(plan),
                               .pooled = !is_shared(plan),
                               .birth = OC_AT_SUB(STEP, WIDENED),
                               .death = OC_AT_SUB(STEP, STEPPED),
                               .why = "the gradients in fp32, for the step only"};
    return (engine == OC_ENGINE_ZERO12 || engine == OC_ENGINE_FP16) && on_device(plan);
}

static bool moment(const struct oc_plan *plan, struct oc_state *state, enum oc_dtype dtype)
{
    *state = (struct oc_state){.class = OC_OPTIMIZER,
                               .dtype = dtype,
                               .sharded = is_shared(plan),
                               .birth = oc_deepspeed_engine(plan) == OC_ENGINE_PLAIN ? oc_states_birth(plan)
                                                                                     : OC_AT_SUB(INIT, 3),
                               .death = OC_AT(END),
                               .why = "initialize_optimizer_states makes them before the first step"};
    return on_device(plan);
}

static bool moment1(const struct oc_plan *plan, struct oc_state *state)
{
    return moment(plan, state, plan->dt.moment1);
}

static bool moment2(const struct oc_plan *plan, struct oc_state *state)
{
    return moment(plan, state, plan->dt.moment2);
}

static const struct oc_state_rule states[] = {
    {"weights as made", BF16 " _flatten_dense_tensors_aligned", "", unflattened},
    {"weights", ZERO12, "", weights},
    {"master", ZERO12, "", master},
    {"fp32 gradient sums", BF16, "0.7", summed},
    {"partitioned gradients", ZERO3 ":722", "", partitioned},
    {"gradients", FP16, "", gradients},
    {"fresh gradients", ZERO12, "", fresh},
    {"averaged gradients", ZERO12 ":2326", "", averaged},
    {"flattened gradients", ZERO12 ":2326", "", joined},
    {"fp32 gradients for the step", ZERO12 ":2326; " FP16, "", widened},
    {"exp_avg", ZERO12 " initialize_optimizer_states", "", moment1},
    {"exp_avg_sq", ZERO12 " initialize_optimizer_states", "", moment2},
    {0}};

const struct oc_framework_rules oc_deepspeed_rules = {.name = "DeepSpeed",
                                                      .source = "deepspeedai/DeepSpeed @edaa7221",
                                                      .defaults = defaults,
                                                      .decide = decide,
                                                      .states = states,
                                                      .buffers = oc_deepspeed_buffers,
                                                      .padded = oc_deepspeed_padded,
                                                      .counts_activations = true};
