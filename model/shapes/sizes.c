#include "model/shapes/sizes.h"

/* Mixture of experts. Copies are counted as they arrive on average, times the imbalance of the heaviest rank; a
 * capacity factor bounds them, and padding fills them up to it. */
static void fill_experts(const struct oc_plan *plan, uint64_t *d)
{
    const struct oc_config *c = &plan->c;
    const uint64_t etp = (uint64_t)c->parallel_etp, gate = plan->gated ? 2 : 1;
    d[OC_D_EXPERTS] = (uint64_t)c->model_experts;
    d[OC_D_XONE] = (uint64_t)c->model_expert_ffn / etp;
    d[OC_D_XONE_FC1] = d[OC_D_XONE] * gate;
    d[OC_D_XFFN] = oc_mul(d[OC_D_XONE], (uint64_t)(c->model_experts / c->parallel_ep));
    d[OC_D_XFC1] = oc_mul(d[OC_D_XFFN], gate);
    d[OC_D_XOUT] = oc_mul(d[OC_D_HIDDEN], (uint64_t)(c->model_experts / c->parallel_ep));
    d[OC_D_SFFN] = (uint64_t)(c->model_shared_expert_ffn / c->parallel_tp);
    d[OC_D_SFC1] = d[OC_D_SFFN] * gate;
    d[OC_D_COPIES] = oc_mul(d[OC_D_TOKENS_SP], (uint64_t)c->model_experts_per_token);
    const bool capped = c->model_capacity_factor > 0,
               full = capped && (c->megatron_capacity_padding || c->model_imbalance > c->model_capacity_factor);
    const double factor = full ? c->model_capacity_factor : c->model_imbalance;
    const double routed = (double)d[OC_D_COPIES] * (double)etp * factor;
    d[OC_D_ROUTED] = routed < 1e18 ? (uint64_t)routed : UINT64_MAX;
    d[OC_D_ROUTED_ONE] = d[OC_D_ROUTED] / (uint64_t)(c->model_experts / c->parallel_ep);
}

/* Multi-head latent attention. Source: DeepSeek-V2, arXiv:2405.04434, section 2.1; Megatron
 * core/transformer/multi_latent_attention.py. */
static void fill_latent(const struct oc_plan *plan, uint64_t *d)
{
    const struct oc_config *c = &plan->c;
    const uint64_t heads = (uint64_t)(c->model_heads / c->parallel_tp);
    d[OC_D_VALUE] = d[OC_D_K];
    d[OC_D_ATTN] = d[OC_D_Q];
    if (!c->model_kv_lora_rank) return;
    d[OC_D_Q] = d[OC_D_K] = heads * (uint64_t)(c->model_qk_nope_head_dim + c->model_qk_rope_head_dim);
    d[OC_D_VALUE] = d[OC_D_ATTN] = heads * (uint64_t)c->model_v_head_dim;
    d[OC_D_QKV] = d[OC_D_Q] + d[OC_D_K] + d[OC_D_VALUE];
    d[OC_D_Q_LATENT] = (uint64_t)c->model_q_lora_rank;
    d[OC_D_KV_LATENT] = (uint64_t)c->model_kv_lora_rank;
    d[OC_D_KV_DOWN] = (uint64_t)(c->model_kv_lora_rank + c->model_qk_rope_head_dim);
    d[OC_D_KV_UP] = heads * (uint64_t)(c->model_qk_nope_head_dim + c->model_v_head_dim);
}

/* Liger's fused linear cross entropy takes next_power_of_2(T / ceil(V / h)) tokens at a time. Source: Liger-Kernel
 * ops/fused_linear_cross_entropy.py. */
static uint64_t loss_rows(const struct oc_plan *plan, const uint64_t *d)
{
    /* torchtune cuts the sequence in 8 (set_num_output_chunks), litgpt in pieces of 128 tokens. */
    if (plan->c.kernels_transformer == OC_OPSET_TORCHTUNE) return (d[OC_D_TOKENS] + 7) / 8;
    if (plan->c.kernels_transformer == OC_OPSET_LITGPT) return d[OC_D_TOKENS] < 128 ? d[OC_D_TOKENS] : 128;
    const uint64_t hidden = d[OC_D_HIDDEN] ? d[OC_D_HIDDEN] : 1, parts = (d[OC_D_VOCAB] + hidden - 1) / hidden;
    const uint64_t least = parts ? (d[OC_D_TOKENS] + parts - 1) / parts : d[OC_D_TOKENS];
    uint64_t rows = 1;
    while (rows < least) rows *= 2;
    return rows < d[OC_D_TOKENS] ? rows : d[OC_D_TOKENS];
}

void oc_sizes_fill(const struct oc_plan *plan, struct oc_sizes *sizes)
{
    const struct oc_config *c = &plan->c;
    const uint64_t tp = (uint64_t)c->parallel_tp, seq = (uint64_t)c->batch_seq, local = seq / (uint64_t)c->parallel_cp;
    const uint64_t batch = (uint64_t)c->batch_micro, heads = (uint64_t)c->model_heads / tp;
    uint64_t *d = sizes->dim;
    for (int i = 0; i < OC_DIMS; i++) d[i] = 0;
    d[OC_D_ONE] = 1;
    d[OC_D_TOKENS] = (uint64_t)oc_plan_tokens(plan);
    d[OC_D_TOKENS_SP] = (uint64_t)oc_plan_tokens_sp(plan);
    d[OC_D_SEQ] = local;
    d[OC_D_HIDDEN] = (uint64_t)c->model_hidden;
    d[OC_D_Q] = (uint64_t)plan->q / tp;
    d[OC_D_K] = (uint64_t)plan->kv / tp;
    d[OC_D_QKV] = d[OC_D_Q] + 2 * d[OC_D_K];
    d[OC_D_HEAD] = (uint64_t)c->model_head_dim;
    d[OC_D_FFN] = (uint64_t)c->model_ffn / tp;
    d[OC_D_FC1] = d[OC_D_FFN] * (plan->gated ? 2 : 1);
    d[OC_D_VOCAB] = (uint64_t)plan->vocab / tp;
    d[OC_D_POSITIONS] = (uint64_t)c->model_max_positions;
    d[OC_D_ROWS] = oc_mul(d[OC_D_TOKENS], heads);
    d[OC_D_KROWS] = oc_mul(d[OC_D_TOKENS], (uint64_t)c->model_kv_heads / tp);
    d[OC_D_SCORES] = oc_mul(d[OC_D_ROWS], seq);
    d[OC_D_MASK] = c->megatron_dataloader_mask ? oc_mul(oc_mul(batch, seq), seq) : 0;
    const uint64_t mtp = (uint64_t)c->model_mtp_layers, h = d[OC_D_HIDDEN];
    d[OC_D_OUTPUTS] = 1 + mtp;
    d[OC_D_MTP_WIDTH] = 2 * h * mtp;
    d[OC_D_MTP_NORMS] = 3 * h * mtp;
    d[OC_D_MTP_MATRIX] = oc_mul(2 * h / tp, oc_mul(h, mtp));
    d[OC_D_MTP_VOCAB] = mtp && c->parallel_pp > 1 ? d[OC_D_VOCAB] : 0;
    d[OC_D_LOSS_ROWS] = loss_rows(plan, d);
    d[OC_D_LORA] = (uint64_t)c->lora_rank;
    d[OC_D_EMBEDDING] = (uint64_t)c->model_embedding_dim;
    d[OC_D_PROJECTION] = c->model_embedding_dim == c->model_hidden ? 0 : d[OC_D_EMBEDDING];
    d[OC_D_HEADS] = heads;
    /* litgpt's values are a view of what the fused projection puts out, unless they are repeated. Source: litgpt
     * model.py CausalSelfAttention.forward. */
    const bool view = c->kernels_transformer == OC_OPSET_LITGPT && c->model_kv_heads == c->model_heads;
    /* Its queries leave rope's cat() as [batch, heads, seq, ..]: flash attention's output has that layout, too (ATen
     * empty_like), so merging the heads copies it. */
    d[OC_D_MERGED] = c->kernels_transformer == OC_OPSET_LITGPT ? d[OC_D_Q] : 0;
    d[OC_D_KEPT_V] = view ? d[OC_D_QKV] : d[OC_D_K];
    fill_latent(plan, d);
    if (c->model_experts) fill_experts(plan, d);
}
