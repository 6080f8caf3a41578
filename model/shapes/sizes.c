#include "model/shapes/sizes.h"

void oc_sizes_fill(const struct oc_plan *plan, struct oc_sizes *sizes)
{
    const struct oc_config *c = &plan->c;
    const uint64_t tp = (uint64_t)c->parallel_tp, seq = (uint64_t)c->batch_seq, local = seq / (uint64_t)c->parallel_cp;
    const uint64_t batch = (uint64_t)c->batch_micro, heads = (uint64_t)c->model_heads / tp;
    uint64_t *d = sizes->dim;
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
    d[OC_D_ROWS] = oc_mul(oc_mul(batch, heads), local);
    d[OC_D_KROWS] = oc_mul(oc_mul(batch, (uint64_t)c->model_kv_heads / tp), local);
    d[OC_D_SCORES] = oc_mul(d[OC_D_ROWS], seq);
    d[OC_D_MASK] = oc_mul(oc_mul(batch, seq), seq);
}
