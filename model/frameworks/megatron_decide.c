/* What Megatron makes of a configuration: its defaults, the types of all copies, and what it refuses.
 *
 * Source: NVIDIA/Megatron-LM @d98e8a64; shared/reference/memory-megatron.md sections 1 and 8. */
#include "model/frameworks/framework.h"
#include "model/frameworks/megatron_parts.h"

void oc_megatron_defaults(struct oc_config *c)
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

/* How --use-distributed-optimizer shares an optimizer's states: parameter by parameter is layer_wise_optimizer.py. */
enum sharing { NOT_SHARED, BY_ELEMENT, BY_PARAMETER };

/* What Megatron can step with. Source: core/optimizer/__init__.py, distrib_optimizer.py; arguments.py: muon with
 * --use-distributed-optimizer is layer-wise. */
static const struct step {
    int64_t optimizer;
    enum sharing sharing;
    bool fp16;        /* trains fp16 weights */
    bool two;         /* keeps a second moment of every parameter */
    const char *hint; /* where it is not shared */
} steps[] = {
    {OC_OPTIM_ADAM, BY_ELEMENT, true, true, NULL},
    {OC_OPTIM_ADAMW, BY_ELEMENT, true, true, NULL},
    {OC_OPTIM_SGD, NOT_SHARED, true, false, "optimizer=adam, or parallel.zero=0"},
    {OC_OPTIM_LION, BY_PARAMETER, false, false, NULL},
    {OC_OPTIM_MUON, BY_PARAMETER, false, false, NULL},
};

/* NULL: Megatron has no such optimizer. */
static const struct step *step_of(const struct oc_config *c)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].optimizer == c->optimizer) return &steps[i];
    return NULL;
}

bool oc_megatron_layer_wise(const struct oc_plan *plan)
{
    const struct step *step = step_of(&plan->c);
    return plan->c.parallel_zero && step && step->sharing == BY_PARAMETER;
}

static bool decide_optimizer(struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    const struct step *step = step_of(c);
    char name[OC_NAME_MAX];
    oc_option_text(c, OC_OPT_optimizer, name, sizeof name);
    if (!step) {
        oc_fail(error, OC_E_CONFLICT, "Megatron has no optimizer %s", name);
        return oc_hint(error, "optimizer=adam, sgd, lion or muon; framework=pytorch or deepspeed has it");
    }
    if (c->parallel_zero && step->sharing == NOT_SHARED) {
        oc_fail(error, OC_E_CONFLICT, "Megatron's distributed optimizer refuses %s (core/optimizer/__init__.py)", name);
        return oc_hint(error, "%s", step->hint);
    }
    if (c->parallel_zero > 1 && step->sharing == BY_PARAMETER) {
        oc_fail(error, OC_E_CONFLICT, "Megatron-FSDP cuts parameters into pieces, which %s cannot step", name);
        return oc_hint(error, "parallel.zero=1, or optimizer=adam");
    }
    if (plan->dt.weights == OC_FP16 && !step->fp16) {
        oc_fail(error, OC_E_CONFLICT, "Megatron's %s refuses fp16 (ValueError in core/optimizer/__init__.py)", name);
        return oc_hint(error, "precision=bf16");
    }
    /* TransformerEngine's and apex's FusedSGD allocate a momentum buffer whatever the momentum is (TE
     * fused_sgd.py:150-172). */
    const bool momentum =
        c->optimizer != OC_OPTIM_SGD || c->optimizer_momentum > 0 || c->kernels_transformer == OC_OPSET_TE;
    plan->dt.moment1 = momentum ? OC_FP32 : OC_NONE;
    plan->dt.moment2 = step->two ? OC_FP32 : OC_NONE;
    return true;
}

/* What Megatron raises a ValueError for. Source: core/transformer/transformer_config.py __post_init__,
 * core/transformer/moe/moe_layer.py forward. */
static bool check_layers(const struct oc_config *c, struct oc_error *error)
{
    if (c->recompute_partition_activations && c->recompute == OC_RECOMPUTE_FULL && c->parallel_sp) {
        oc_fail(error, OC_E_CONFLICT, "recompute.partition_activations: what is kept is split by parallel.sp already");
        return oc_hint(error, "recompute.partition_activations=false, or parallel.sp=false");
    }
    if (c->model_experts && c->parallel_tp > 1 && !c->parallel_sp) {
        oc_fail(error, OC_E_CONFLICT, "Megatron trains experts under tensor parallelism with parallel.sp only");
        return oc_hint(error, "parallel.sp=true, or parallel.tp=1");
    }
    return true;
}

/* Stages 2 and 3 are Megatron-FSDP, of Megatron core's modules. */
static bool decide_sharding(const struct oc_config *c, struct oc_error *error)
{
    if (c->parallel_zero <= 1 || c->model_hidden) return true;
    oc_fail(error, OC_E_CONFLICT, "parallel.zero=%d: Megatron-FSDP gathers layers, parameters alone are not enough",
            (int)c->parallel_zero);
    return oc_hint(error, "name a model with model.name, or parallel.zero=1");
}

/* The loss in one kernel is PyTorch's or TransformerEngine's; neither has a fixed order of summation. */
static bool decide_loss(struct oc_config *c, struct oc_error *error)
{
    if (c->kernels_loss == OC_LOSS_FUSED && c->megatron_loss_fusion_impl == OC_FUSION_TE)
        c->kernels_loss = OC_LOSS_TE_FUSED;
    if (!c->megatron_deterministic || c->kernels_loss == OC_LOSS_EAGER) return true;
    oc_fail(error, OC_E_CONFLICT,
            "megatron.deterministic: the fused cross entropy is not deterministic (AssertionError in arguments.py)");
    return oc_hint(error, "kernels.loss=eager");
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
    if (!c->parallel_zero || oc_megatron_layer_wise(plan)) {
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

bool oc_megatron_decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    struct oc_config *c = &plan->c;
    if (!decide_sharding(c, error) || !check_layers(c, error)) return false;
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
    if (!decide_optimizer(plan, error) || !decide_loss(c, error)) return false;
    decide_attention(plan, warnings);
    return decide_precision_aware(plan, error);
}
