/* What the probe's training step is: a Hugging Face Llama decoder in eager PyTorch on one rank (docs/step-pytorch.md).
 */
#include "oomcast/plan.h"

static bool is_half(enum oc_dtype dtype)
{
    return dtype == OC_FP16 || dtype == OC_BF16;
}

static bool is_float(enum oc_dtype dtype)
{
    return dtype == OC_FP32 || is_half(dtype);
}

static const char *uncovered_shape(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (!plan->has_shape) return "the model has no shape: only its number of parameters is known";
    if (c->model_kind != OC_KIND_DECODER) return "the probe runs decoders only";
    if (c->model_norm != OC_NORM_RMSNORM) return "the probe has RMSNorm only";
    if (c->model_norms_per_layer != 2) return "the probe's layer has two norms";
    if (c->model_activation != OC_ACT_SWIGLU) return "the probe's MLP is SwiGLU";
    if (c->model_positions != OC_POS_ROPE) return "the probe's positions are rope";
    if (c->model_linear_bias || c->model_qkv_bias || c->model_head_bias)
        return "the probe's linear layers have no biases";
    if (c->model_qk_norm) return "the probe has no norm over queries and keys";
    if (c->model_parallel_residual) return "the probe's attention and MLP follow one another";
    if (c->model_embedding_norm) return "the probe has no norm after the embedding";
    if (c->model_dropout != 0 || c->model_attention_dropout != 0) return "the probe has no dropout";
    if (c->model_head_dim % 2) return "rope turns pairs: head_dim must be even";
    if (c->model_kv_heads < 1 || c->model_heads % c->model_kv_heads) return "heads must be a multiple of kv_heads";
    return NULL;
}

static const char *uncovered_kernels(const struct oc_config *c)
{
    if (c->kernels_transformer != OC_OPSET_HF) return "the probe runs the op set hf only";
    if (c->kernels_attention == OC_ATTN_UNFUSED) return "the probe's attention is eager or flash";
    if (c->kernels_attention == OC_ATTN_FLASH && c->model_head_dim > 256)
        return "the probe's flash attention takes a head_dim of up to 256";
    if (c->kernels_loss != OC_LOSS_EAGER) return "the probe's loss is eager";
    if (c->kernels_norm != OC_NORMK_EAGER) return "the probe's norm is eager";
    if (c->recompute == OC_RECOMPUTE_SELECTIVE) return "the probe recomputes nothing or whole layers";
    if (c->recompute == OC_RECOMPUTE_FULL && (c->recompute_method != OC_METHOD_UNIFORM || c->recompute_layers != 1))
        return "the probe recomputes every layer by itself";
    return NULL;
}

static const char *uncovered_types(const struct oc_plan *plan)
{
    const struct oc_dtypes *dt = &plan->dt;
    const bool pure = dt->compute == dt->weights && dt->residual == dt->weights && is_float(dt->weights) &&
                      plan->c.precision_autocast == OC_NONE;
    const bool amp = dt->weights == OC_FP32 && dt->residual == OC_FP32 && is_half(dt->compute);
    if (!pure && !amp) return "the probe computes in the type of the weights, or under autocast over fp32 weights";
    if (dt->grads != dt->weights) return "the probe's gradients have the type of the weights";
    if (dt->master != OC_NONE && (dt->master != OC_FP32 || !is_half(dt->weights)))
        return "the probe's master copies are fp32 beside 16-bit weights";
    if ((dt->moment1 != OC_NONE && !is_float(dt->moment1)) || (dt->moment2 != OC_NONE && !is_float(dt->moment2)))
        return "the probe's optimizer states are fp32, fp16 or bf16";
    return NULL;
}

static const char *uncovered_ranks(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (c->parallel_tp != 1 || c->parallel_pp != 1 || c->parallel_cp != 1 || c->parallel_vpp != 1 || plan->dp != 1)
        return "the probe runs one rank alone";
    if (c->parallel_zero != 0) return "the probe shards nothing";
    return NULL;
}

const char *oc_probe_covers(const struct oc_plan *plan)
{
    const char *reason = plan->c.framework != OC_FW_PYTORCH ? "the probe runs PyTorch's rules only" : NULL;
    if (!reason) reason = uncovered_shape(plan);
    if (!reason) reason = uncovered_ranks(plan);
    if (!reason) reason = uncovered_kernels(&plan->c);
    if (!reason) reason = uncovered_types(plan);
    return reason;
}
