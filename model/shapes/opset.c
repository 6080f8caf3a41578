#include "model/shapes/opset.h"

const struct oc_opset_rules *oc_opset(enum oc_opset opset)
{
    switch (opset) {
    case OC_OPSET_TORCHTITAN: return &oc_torchtitan_rules;
    case OC_OPSET_TORCHTUNE: return &oc_torchtune_rules;
    case OC_OPSET_LITGPT: return &oc_litgpt_rules;
    case OC_OPSET_HF: return &oc_hf_rules;
    /* Megatron's local modules differ from TransformerEngine's in kernels and workspaces, not in what they keep. */
    default: return &oc_te_rules;
    }
}

/* TransformerEngine takes FlashAttention before Hopper and cuDNN's fused attention from there on. FlashAttention works
 * on [batch, seq, ..] and keeps its output so; the projection keeps a [seq, batch, ..] copy, which is the same tensor
 * only for one sample. Source: TE pytorch/attention/dot_product_attention/backends.py:942-955, 1361-1369. */
static bool flash_keeps_output_twice(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    return c->kernels_transformer == OC_OPSET_TE && c->kernels_attention == OC_ATTN_FLASH && plan->sm > 0 &&
           plan->sm < 90 && c->megatron_attention_backend != OC_BACKEND_FUSED && c->batch_micro > 1 &&
           c->parallel_cp == 1;
}

bool oc_fused_qkv(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (oc_opset((enum oc_opset)c->kernels_transformer)->fused_matrices) return true;
    if (c->lora_rank && (c->lora_targets & OC_LORA_QKV)) return true;
    if (c->kernels_transformer != OC_OPSET_HF) return false;
    /* Hugging Face's GPT-2 and GPTBigCode (learned positions) and BLOOM (alibi) have one matrix; BERT has three, and so
     * has OPT, whose activation is relu. */
    const bool gpt2 = c->model_positions == OC_POS_LEARNED && c->model_activation == OC_ACT_GELU;
    return c->model_kind == OC_KIND_DECODER && (gpt2 || c->model_positions == OC_POS_ALIBI);
}

/* torchtitan, torchtune and litgpt write grouped keys and values out before scaled_dot_product_attention. Source:
 * torchtitan models/llama/model.py repeat_kv; torchtune modules/attention.py; litgpt model.py CausalSelfAttention. */
static bool repeats_kv(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const bool kin = c->kernels_transformer >= OC_OPSET_TORCHTITAN && c->kernels_transformer <= OC_OPSET_LITGPT;
    return kin && c->model_kv_heads < c->model_heads && c->kernels_attention == OC_ATTN_FLASH;
}

bool oc_keeps_listed_ops(const struct oc_plan *plan)
{
    return plan->c.recompute == OC_RECOMPUTE_SELECTIVE && (plan->c.recompute_modules & OC_MODULE_TORCHTITAN_OP);
}

uint64_t oc_facts(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const bool half = plan->dt.compute != OC_FP32, amp = oc_casts_weights(plan);
    const struct {
        bool holds;
        uint64_t fact;
    } facts[] = {
        {amp, OC_F_AMP},
        {half, OC_F_HALF},
        {plan->dt.residual != OC_FP32, OC_F_STREAM16},
        {c->kernels_attention == OC_ATTN_EAGER, OC_F_EAGER},
        {c->kernels_attention == OC_ATTN_UNFUSED, OC_F_UNFUSED},
        {c->kernels_attention == OC_ATTN_FLASH, OC_F_FLASH},
        {half && !c->megatron_masked_softmax_fusion && c->megatron_softmax_in_fp32, OC_F_SOFTMAX32},
        {c->model_kv_heads < c->model_heads, OC_F_GQA},
        {c->batch_micro == 1, OC_F_BATCH1},
        {c->model_attention_dropout > 0, OC_F_ATTN_DROP},
        {c->model_dropout > 0, OC_F_DROPOUT},
        {plan->gated, OC_F_GATED},
        {c->model_norm == OC_NORM_LAYERNORM, OC_F_LAYERNORM},
        {c->model_norm == OC_NORM_RMSNORM && c->kernels_norm == OC_NORMK_EAGER, OC_F_EAGER_NORM},
        {half && (c->kernels_logits_fp32 || amp), OC_F_LOGITS32},
        {c->model_tied != 0, OC_F_TIED},
        {c->model_qk_norm != 0, OC_F_QK_NORM},
        {c->parallel_sp != 0, OC_F_SP},
        {c->model_positions == OC_POS_ROPE, OC_F_ROPE},
        {c->model_positions == OC_POS_LEARNED, OC_F_LEARNED},
        {c->kernels_loss == OC_LOSS_FUSED, OC_F_FUSED_LOSS},
        {c->kernels_loss == OC_LOSS_TE_FUSED, OC_F_TE_LOSS},
        {c->model_linear_bias != 0, OC_F_BIAS},
        {c->model_embedding_norm != 0, OC_F_EMBED_NORM},
        {c->parallel_tp > 1, OC_F_TP},
        {c->model_norms_per_layer >= 2, OC_F_TWO_NORMS},
        {c->parallel_pp > 1, OC_F_PP},
        {c->model_kv_lora_rank > 0, OC_F_MLA},
        {c->model_q_lora_rank > 0, OC_F_Q_LORA},
        {c->model_shared_expert_ffn > 0, OC_F_SHARED},
        {c->parallel_cp > 1 && c->parallel_cp_comm == OC_CP_A2A, OC_F_CP_A2A},
        {c->precision == OC_PREC_FP8, OC_F_FP8},
        {c->moe_dispatcher == OC_DISPATCH_ALLGATHER, OC_F_ALLGATHER},
        {c->lora_rank > 0, OC_F_LORA},
        {c->lora_rank > 0 && c->lora_dropout > 0, OC_F_LORA_DROP},
        {c->model_parallel_residual != 0, OC_F_PARALLEL},
        {c->kernels_loss == OC_LOSS_FUSED_LINEAR, OC_F_LINEAR_LOSS},
        {c->kernels_loss == OC_LOSS_CHUNKED, OC_F_CHUNKED_LOSS},
        {c->model_head == OC_HEAD_NONE, OC_F_NO_HEAD},
        {c->model_head == OC_HEAD_CLASSIFICATION, OC_F_CLASSIFY},
        {c->kernels_compile != 0, OC_F_COMPILED},
        {repeats_kv(plan), OC_F_REPEAT_KV},
        {oc_keeps_listed_ops(plan), OC_F_PER_OP},
        {flash_keeps_output_twice(plan), OC_F_FA_TWICE},
        {c->model_experts > 0 && !plan->gated, OC_F_PROBS_ACT},
    };
    uint64_t have = oc_hf_facts(plan);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].holds) have |= facts[i].fact;
    return have;
}
