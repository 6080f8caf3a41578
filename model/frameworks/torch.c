#include "model/frameworks/torch.h"

#include "model/frameworks/framework.h"
#include "model/frameworks/optimizers.h"
#include "model/shapes/opset.h"

/* GPT-2, GPTBigCode and BERT (learned positions) and BLOOM (alibi) leave their logits in 16 bits; Llama, Mistral and
 * their kin cast them to fp32. Source: transformers modeling_*.py before loss_utils.py took the cast over for all. */
static bool casts_logits(const struct oc_config *c)
{
    return c->model_positions != OC_POS_LEARNED && c->model_positions != OC_POS_ALIBI;
}

void oc_torch_defaults(struct oc_config *c)
{
    oc_default(c, OC_OPT_kernels_transformer, OC_OPSET_HF);
    if (c->kernels_transformer == OC_OPSET_HF) oc_default(c, OC_OPT_kernels_logits_fp32, casts_logits(c));
    oc_default(c, OC_OPT_model_vocab_multiple, 1);
    /* zero_grad(set_to_none=False) was the default before PyTorch 2.0: gradients stay, as zeros. */
    const int release = oc_torch_release(c);
    if (release && release < 200) oc_default(c, OC_OPT_run_zero_grad_to_none, false);
    oc_kin_defaults(c);
}

/* Views are made of gradients that were summed apart from the buckets, unless zero_grad leaves views behind. */
bool oc_torch_waits(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const bool views =
        c->framework == OC_FW_PYTORCH && plan->dp > 1 && c->parallel_bucket_view && c->run_zero_grad_to_none;
    return (views || c->framework == OC_FW_FSDP2) && c->parallel_no_sync && plan->accum > 1;
}

static bool only_data_parallel(const struct oc_config *c, bool shards, struct oc_error *error)
{
    const struct {
        int64_t ranks;
        enum oc_option_id option;
    } splits[] = {{c->parallel_tp, OC_OPT_parallel_tp},
                  {c->parallel_pp, OC_OPT_parallel_pp},
                  {c->parallel_cp, OC_OPT_parallel_cp},
                  {shards ? 1 : c->parallel_zero + 1, OC_OPT_parallel_zero}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        if (splits[i].ranks <= 1) continue;
        if (shards) {
            oc_fail(error, OC_E_CONFLICT, "%s is not modelled under FSDP1, which shards over data-parallel ranks",
                    oc_option(splits[i].option)->key);
            return oc_hint(error, "framework=megatron splits the model");
        }
        oc_fail(error, OC_E_CONFLICT, "%s has no meaning in plain PyTorch, which only copies the model to every rank",
                oc_option(splits[i].option)->key);
        return oc_hint(error, "framework=megatron splits the model");
    }
    return true;
}

bool oc_torch_check(struct oc_plan *plan, bool shards, struct oc_error *error)
{
    struct oc_config *c = &plan->c;
    if (!only_data_parallel(c, shards, error)) return false;
    if (c->kernels_transformer == OC_OPSET_TE || c->kernels_transformer == OC_OPSET_LOCAL) {
        oc_fail(error, OC_E_CONFLICT, "kernels.transformer=te belongs to Megatron");
        return oc_hint(error, "kernels.transformer=hf, or framework=megatron");
    }
    if (c->recompute == OC_RECOMPUTE_SELECTIVE && c->kernels_transformer == OC_OPSET_HF &&
        c->recompute_modules != OC_MODULE_CORE_ATTN) {
        oc_fail(error, OC_E_CONFLICT, "of Hugging Face's layers only attention's core can be checkpointed by itself");
        return oc_hint(error, "recompute.modules=core_attn, recompute=full or none");
    }
    /* The scale-mask-softmax kernel is Megatron's; the loss in pieces is Liger's here. */
    if (c->kernels_attention == OC_ATTN_UNFUSED) c->kernels_attention = OC_ATTN_EAGER;
    if (c->kernels_transformer == OC_OPSET_HF && c->kernels_loss == OC_LOSS_CHUNKED)
        c->kernels_loss = OC_LOSS_FUSED_LINEAR;
    if (c->kernels_transformer == OC_OPSET_HF && c->kernels_loss == OC_LOSS_TE_FUSED) c->kernels_loss = OC_LOSS_FUSED;
    return true;
}

/* A base that was given decides for all weights that are not quantized. */
static enum oc_dtype weights_of(const struct oc_config *c)
{
    if (oc_given(c, OC_OPT_precision_weights)) return (enum oc_dtype)c->precision_weights;
    if (c->lora_rank && c->lora_base == OC_BASE_FP32) return OC_FP32;
    if (c->lora_rank && c->lora_base == OC_BASE_BF16) return OC_BF16;
    if (c->lora_rank && c->lora_base == OC_BASE_FP16) return OC_FP16;
    return oc_precision_weights(c->precision);
}

void oc_torch_dtypes(struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const enum oc_dtype weights = weights_of(c);
    const enum oc_dtype autocast = oc_given(c, OC_OPT_precision_autocast) ? (enum oc_dtype)c->precision_autocast
                                                                          : oc_precision_autocast(c->precision);
    plan->c.precision_autocast = autocast;
    /* Only PEFT keeps adapters in fp32 over 16-bit weights; elsewhere they have the type of the model. */
    if (!oc_given(c, OC_OPT_lora_dtype) && c->kernels_transformer != OC_OPSET_HF) plan->c.lora_dtype = weights;
    plan->dt.weights = plan->dt.residual = plan->dt.grads = weights;
    plan->dt.compute = autocast != OC_NONE ? autocast : weights;
    plan->dt.master = oc_given(c, OC_OPT_precision_master) ? (enum oc_dtype)c->precision_master : OC_NONE;
    plan->dt.step_grads = plan->dt.master != OC_NONE ? plan->dt.master : OC_NONE;
    const enum oc_dtype updated = plan->dt.master != OC_NONE ? plan->dt.master : weights;
    oc_optimizer_dtypes(c, updated, &plan->dt.moment1, &plan->dt.moment2);
}

void oc_torch_warn(const struct oc_plan *plan, struct oc_warnings *warnings)
{
    const struct oc_config *c = &plan->c;
    const bool sharded = c->framework != OC_FW_PYTORCH;
    const struct {
        bool asked;
        enum oc_option_id option;
    } unmodelled[] = {
        {c->offload_optimizer != OC_OFFLOAD_NONE, OC_OPT_offload_optimizer},
        {c->offload_params != OC_OFFLOAD_NONE && !sharded, OC_OPT_offload_params},
        {c->optimizer_in_backward && sharded, OC_OPT_optimizer_in_backward},
        {oc_given(c, OC_OPT_precision_master) && c->precision_master != OC_NONE && sharded, OC_OPT_precision_master}};
    for (size_t i = 0; i < sizeof unmodelled / sizeof *unmodelled; i++)
        if (unmodelled[i].asked)
            oc_warn(warnings, "%s is not modelled under %s: it is left out of the figures",
                    oc_option(unmodelled[i].option)->key, oc_framework((enum oc_framework)c->framework)->name);
}
