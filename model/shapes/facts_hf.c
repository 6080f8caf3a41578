/* Facts that the op sets of Hugging Face's kin add to those of every plan: what frozen weights let go of, and what
 * differs between families of models. */
#include <stdlib.h>
#include <string.h>

#include "model/shapes/opset.h"

int oc_torch_release(const struct oc_config *config)
{
    const char *torch = strstr(config->kernels_stack, "torch ");
    char *end;
    if (!torch) return 0;
    const long major = strtol(torch + strlen("torch "), &end, 10);
    const long minor = *end == '.' ? strtol(end + 1, NULL, 10) : -1;
    return major >= 0 && major < 100 && minor >= 0 && minor < 100 ? (int)(major * 100 + minor) : 0;
}

/* transformers copied the logits when it shifted them against the labels, until it began to pad the labels instead
 * (4.48, of the time of torch 2.6). Source: transformers loss/loss_utils.py ForCausalLMLoss. */
static bool shifts_logits(const struct oc_plan *plan)
{
    const int release = oc_torch_release(&plan->c);
    return plan->c.kernels_transformer == OC_OPSET_HF && release > 0 && release < 206;
}

uint64_t oc_hf_facts(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const bool amp = oc_casts_weights(plan), half = plan->dt.compute != OC_FP32;
    uint64_t facts = oc_lora_facts(plan);
    if (oc_fused_qkv(plan)) facts |= OC_F_FUSED_QKV;
    /* GPT-2 and BERT run an eager softmax in the type of the scores; Llama and its kin in fp32. */
    if (c->model_positions == OC_POS_LEARNED && c->model_norm == OC_NORM_LAYERNORM) facts |= OC_F_SOFTMAX_HALF;
    if (amp && c->model_positions == OC_POS_ROPE) facts |= OC_F_QK_CAST;
    if (c->model_kind == OC_KIND_ENCODER)
        facts |= OC_F_ENCODER | OC_F_EMBED_NORM;
    else if (c->model_final_norm)
        facts |= OC_F_FINAL_NORM;
    /* Under autocast the cross entropy runs in fp32 over 16-bit weights, too. */
    if (half && c->precision_autocast != OC_NONE) facts |= OC_F_LOGITS32;
    const bool core = c->recompute == OC_RECOMPUTE_SELECTIVE && (c->recompute_modules & OC_MODULE_CORE_ATTN);
    if (core && c->kernels_transformer == OC_OPSET_HF && c->kernels_attention == OC_ATTN_EAGER) facts |= OC_F_CORE;
    if (shifts_logits(plan)) facts |= OC_F_SHIFTED;
    if (c->framework == OC_FW_FSDP1 && c->lora_rank && c->kernels_transformer == OC_OPSET_HF) facts |= OC_F_HELD;
    return facts;
}
