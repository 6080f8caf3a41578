/* The parameters of a stage: one row a tensor, and the conditions under which it exists.
 *
 * Source: shared/reference/memory-megatron.md section 5 (checked against measured allocations) and memory-pytorch.md
 * section 7 (67 of 68 published counts to the last digit). */
#include <string.h>

#include "model/shapes/opset.h"

/* What rows of parameters can depend on. */
enum {
    FUSED = 1 << 0,     /* q, k, v in one matrix */
    SPLIT = 1 << 1,     /* in matrices of their own */
    FUSED_MLP = 1 << 2, /* gate and up in one matrix */
    SPLIT_MLP = 1 << 3,
    GATED = 1 << 4,
    PLAIN = 1 << 5,    /* not gated */
    BIAS = 1 << 6,     /* every linear has a bias */
    QKV_BIAS = 1 << 7, /* q, k and v have one */
    MLP_BIAS = 1 << 8, /* the MLP has biases */
    LAYERNORM = 1 << 9,
    QK_NORM = 1 << 10,
    NORM2 = 1 << 11, /* at least two norms a layer */
    NORM4 = 1 << 12, /* four */
    LEARNED = 1 << 13,
    EMBED_NORM = 1 << 14,
    FINAL_NORM = 1 << 15,
    DENSE = 1 << 16,    /* kind of layer: one MLP */
    MOE = 1 << 17,      /* kind of layer: experts */
    MHA = 1 << 18,      /* ordinary attention */
    MLA = 1 << 19,      /* latent attention */
    Q_LORA = 1 << 20,   /* latent queries */
    Q_DIRECT = 1 << 21, /* latent attention whose queries are projected directly */
    SINKS = 1 << 22,    /* one number a head in the softmax */
    SHARED = 1 << 23,   /* shared experts */
    SHARED_GATE = 1 << 24,
    ROUTER_BIAS = 1 << 25,
    OUTPUT = 1 << 26, /* an output matrix of its own: untied, or tied over more than one stage */
    HEAD_BIAS = 1 << 27,
    POOLER = 1 << 28, /* BERT's, under a classification head */
};

struct row {
    const char *name;
    uint8_t part, rows, columns; /* enum oc_part, two enum oc_dim */
    uint32_t need;
    uint8_t use;  /* enum oc_use */
    uint8_t cast; /* enum oc_cast */
};

#define H OC_D_HIDDEN

static const struct row table[] = {
    {"embedding.word", OC_PART_EMBED, OC_D_VOCAB, OC_D_EMBEDDING, 0, OC_USE_EMBED, OC_CAST_NONE},
    {"embedding.projection", OC_PART_EMBED, H, OC_D_PROJECTION, 0, OC_USE_EMBED, OC_CAST_KEPT},
    {"embedding.position", OC_PART_EMBED, OC_D_POSITIONS, H, LEARNED, OC_USE_EMBED, OC_CAST_NONE},
    {"embedding.norm.weight", OC_PART_EMBED, H, OC_D_ONE, EMBED_NORM, OC_USE_EMBED, OC_CAST_NONE},
    {"embedding.norm.bias", OC_PART_EMBED, H, OC_D_ONE, EMBED_NORM | LAYERNORM, OC_USE_EMBED, OC_CAST_NONE},
    {"layers.norm1.weight", OC_PART_LAYER, H, OC_D_ONE, 0, OC_USE_NORM1, OC_CAST_NONE},
    {"layers.norm1.bias", OC_PART_LAYER, H, OC_D_ONE, LAYERNORM, OC_USE_NORM1, OC_CAST_NONE},
    {"layers.attention.qkv", OC_PART_LAYER, OC_D_QKV, H, FUSED | MHA, OC_USE_Q, OC_CAST_KEPT},
    {"layers.attention.qkv.bias", OC_PART_LAYER, OC_D_QKV, OC_D_ONE, FUSED | QKV_BIAS | MHA, OC_USE_Q,
     OC_CAST_UNTIL_EXIT},
    {"layers.attention.q", OC_PART_LAYER, OC_D_Q, H, SPLIT | MHA, OC_USE_Q, OC_CAST_KEPT},
    {"layers.attention.k", OC_PART_LAYER, OC_D_K, H, SPLIT | MHA, OC_USE_K, OC_CAST_KEPT},
    {"layers.attention.v", OC_PART_LAYER, OC_D_K, H, SPLIT | MHA, OC_USE_V, OC_CAST_KEPT},
    {"layers.attention.q.bias", OC_PART_LAYER, OC_D_Q, OC_D_ONE, SPLIT | QKV_BIAS, OC_USE_Q, OC_CAST_UNTIL_EXIT},
    {"layers.attention.k.bias", OC_PART_LAYER, OC_D_K, OC_D_ONE, SPLIT | QKV_BIAS, OC_USE_K, OC_CAST_UNTIL_EXIT},
    {"layers.attention.v.bias", OC_PART_LAYER, OC_D_K, OC_D_ONE, SPLIT | QKV_BIAS, OC_USE_V, OC_CAST_UNTIL_EXIT},
    {"layers.attention.q_norm.weight", OC_PART_LAYER, OC_D_HEAD, OC_D_ONE, MHA | QK_NORM, OC_USE_Q, OC_CAST_NONE},
    {"layers.attention.q_norm.bias", OC_PART_LAYER, OC_D_HEAD, OC_D_ONE, MHA | QK_NORM | LAYERNORM, OC_USE_Q,
     OC_CAST_NONE},
    {"layers.attention.k_norm.weight", OC_PART_LAYER, OC_D_HEAD, OC_D_ONE, MHA | QK_NORM, OC_USE_K, OC_CAST_NONE},
    {"layers.attention.k_norm.bias", OC_PART_LAYER, OC_D_HEAD, OC_D_ONE, MHA | QK_NORM | LAYERNORM, OC_USE_K,
     OC_CAST_NONE},
    {"layers.attention.q", OC_PART_LAYER, OC_D_Q, H, MLA | Q_DIRECT, OC_USE_Q, OC_CAST_KEPT},
    {"layers.attention.q_down", OC_PART_LAYER, OC_D_Q_LATENT, H, MLA | Q_LORA, OC_USE_Q, OC_CAST_KEPT},
    {"layers.attention.q_latent_norm", OC_PART_LAYER, OC_D_Q_LATENT, OC_D_ONE, MLA | Q_LORA, OC_USE_Q, OC_CAST_NONE},
    {"layers.attention.q_up", OC_PART_LAYER, OC_D_Q, OC_D_Q_LATENT, MLA | Q_LORA, OC_USE_Q, OC_CAST_KEPT},
    {"layers.attention.kv_down", OC_PART_LAYER, OC_D_KV_DOWN, H, MLA, OC_USE_K, OC_CAST_KEPT},
    {"layers.attention.kv_latent_norm", OC_PART_LAYER, OC_D_KV_LATENT, OC_D_ONE, MLA, OC_USE_K, OC_CAST_NONE},
    {"layers.attention.kv_up", OC_PART_LAYER, OC_D_KV_UP, OC_D_KV_LATENT, MLA, OC_USE_V, OC_CAST_KEPT},
    {"layers.attention.sinks", OC_PART_LAYER, OC_D_HEADS, OC_D_ONE, SINKS, OC_USE_K, OC_CAST_NONE},
    {"layers.attention.out", OC_PART_LAYER, H, OC_D_ATTN, 0, OC_USE_OUT, OC_CAST_KEPT},
    {"layers.attention.out.bias", OC_PART_LAYER, H, OC_D_ONE, BIAS, OC_USE_OUT, OC_CAST_UNTIL_EXIT},
    {"layers.norm2.weight", OC_PART_LAYER, H, OC_D_ONE, NORM2, OC_USE_NORM2, OC_CAST_NONE},
    {"layers.norm2.bias", OC_PART_LAYER, H, OC_D_ONE, NORM2 | LAYERNORM, OC_USE_NORM2, OC_CAST_NONE},
    {"layers.norm3.weight", OC_PART_LAYER, H, OC_D_ONE, NORM4, OC_USE_OUT, OC_CAST_NONE},
    {"layers.norm4.weight", OC_PART_LAYER, H, OC_D_ONE, NORM4, OC_USE_DOWN, OC_CAST_NONE},
    {"layers.mlp.fc1", OC_PART_LAYER, OC_D_FC1, H, FUSED_MLP | DENSE, OC_USE_GATE, OC_CAST_KEPT},
    {"layers.mlp.fc1", OC_PART_LAYER, OC_D_FFN, H, SPLIT_MLP | PLAIN | DENSE, OC_USE_GATE, OC_CAST_KEPT},
    {"layers.mlp.fc1.bias", OC_PART_LAYER, OC_D_FC1, OC_D_ONE, FUSED_MLP | MLP_BIAS | DENSE, OC_USE_GATE,
     OC_CAST_UNTIL_EXIT},
    {"layers.mlp.fc1.bias", OC_PART_LAYER, OC_D_FFN, OC_D_ONE, SPLIT_MLP | PLAIN | MLP_BIAS | DENSE, OC_USE_GATE,
     OC_CAST_UNTIL_EXIT},
    {"layers.mlp.gate", OC_PART_LAYER, OC_D_FFN, H, SPLIT_MLP | GATED | DENSE, OC_USE_GATE, OC_CAST_KEPT},
    {"layers.mlp.gate.bias", OC_PART_LAYER, OC_D_FFN, OC_D_ONE, SPLIT_MLP | GATED | MLP_BIAS | DENSE, OC_USE_GATE,
     OC_CAST_UNTIL_EXIT},
    {"layers.mlp.up", OC_PART_LAYER, OC_D_FFN, H, SPLIT_MLP | GATED | DENSE, OC_USE_UP, OC_CAST_KEPT},
    {"layers.mlp.up.bias", OC_PART_LAYER, OC_D_FFN, OC_D_ONE, SPLIT_MLP | GATED | MLP_BIAS | DENSE, OC_USE_UP,
     OC_CAST_UNTIL_EXIT},
    {"layers.mlp.fc2", OC_PART_LAYER, H, OC_D_FFN, DENSE, OC_USE_DOWN, OC_CAST_KEPT},
    {"layers.mlp.fc2.bias", OC_PART_LAYER, H, OC_D_ONE, MLP_BIAS | DENSE, OC_USE_DOWN, OC_CAST_UNTIL_EXIT},
    {"layers.router", OC_PART_LAYER, OC_D_EXPERTS, H, MOE, OC_USE_ROUTER, OC_CAST_KEPT},
    {"layers.experts.fc1", OC_PART_LAYER, OC_D_XFC1, H, MOE, OC_USE_EXPERT_UP, OC_CAST_KEPT},
    {"layers.experts.fc1.bias", OC_PART_LAYER, OC_D_XFC1, OC_D_ONE, MOE | BIAS, OC_USE_EXPERT_UP, OC_CAST_UNTIL_EXIT},
    {"layers.router.bias", OC_PART_LAYER, OC_D_EXPERTS, OC_D_ONE, MOE | ROUTER_BIAS, OC_USE_ROUTER, OC_CAST_NONE},
    {"layers.experts.fc2.bias", OC_PART_LAYER, OC_D_XOUT, OC_D_ONE, MOE | BIAS, OC_USE_EXPERT_DOWN, OC_CAST_UNTIL_EXIT},
    {"layers.experts.fc2", OC_PART_LAYER, H, OC_D_XFFN, MOE, OC_USE_EXPERT_DOWN, OC_CAST_KEPT},
    {"layers.shared_experts.fc1", OC_PART_LAYER, OC_D_SFC1, H, MOE | SHARED, OC_USE_GATE, OC_CAST_KEPT},
    {"layers.shared_experts.gate", OC_PART_LAYER, H, OC_D_ONE, MOE | SHARED | SHARED_GATE, OC_USE_GATE, OC_CAST_KEPT},
    {"layers.shared_experts.fc2", OC_PART_LAYER, H, OC_D_SFFN, MOE | SHARED, OC_USE_DOWN, OC_CAST_KEPT},
    {"mtp.norms", OC_PART_HEAD, OC_D_MTP_NORMS, OC_D_ONE, 0, OC_USE_FINAL_NORM, OC_CAST_NONE},
    {"mtp.projection", OC_PART_HEAD, OC_D_MTP_MATRIX, OC_D_ONE, 0, OC_USE_HEAD, OC_CAST_KEPT},
    {"mtp.embedding", OC_PART_HEAD, OC_D_MTP_VOCAB, H, 0, OC_USE_HEAD, OC_CAST_NONE},
    {"head.norm.weight", OC_PART_HEAD, H, OC_D_ONE, FINAL_NORM, OC_USE_FINAL_NORM, OC_CAST_NONE},
    {"head.norm.bias", OC_PART_HEAD, H, OC_D_ONE, FINAL_NORM | LAYERNORM, OC_USE_FINAL_NORM, OC_CAST_NONE},
    {"head.projection", OC_PART_HEAD, OC_D_PROJECTION, H, 0, OC_USE_HEAD, OC_CAST_KEPT},
    {"head.pooler", OC_PART_HEAD, H, H, POOLER, OC_USE_HEAD, OC_CAST_KEPT},
    {"head.pooler.bias", OC_PART_HEAD, H, OC_D_ONE, POOLER, OC_USE_HEAD, OC_CAST_UNTIL_EXIT},
    {"head.output", OC_PART_HEAD, OC_D_VOCAB, OC_D_EMBEDDING, OUTPUT, OC_USE_HEAD, OC_CAST_KEPT},
    {"head.output.bias", OC_PART_HEAD, OC_D_VOCAB, OC_D_ONE, HEAD_BIAS, OC_USE_HEAD, OC_CAST_UNTIL_EXIT},
};

static unsigned conditions(const struct oc_plan *plan, bool fused_mlp)
{
    const struct oc_config *c = &plan->c;
    unsigned have = oc_fused_qkv(plan) ? FUSED : SPLIT;
    have |= fused_mlp ? FUSED_MLP : SPLIT_MLP;
    have |= plan->gated ? GATED : PLAIN;
    if (c->model_linear_bias) have |= BIAS | QKV_BIAS;
    if (c->model_qkv_bias) have |= QKV_BIAS;
    if (c->model_norm == OC_NORM_LAYERNORM) have |= LAYERNORM;
    if (c->model_qk_norm) have |= QK_NORM;
    if (c->model_norms_per_layer >= 2) have |= NORM2;
    if (c->model_norms_per_layer == 4) have |= NORM4;
    if (c->model_positions == OC_POS_LEARNED) have |= LEARNED;
    if (c->model_embedding_norm || c->model_kind == OC_KIND_ENCODER) have |= EMBED_NORM;
    if ((!c->model_tied || c->parallel_pp > 1) && c->model_head == OC_HEAD_LM) have |= OUTPUT;
    if (c->model_head_bias && c->model_head == OC_HEAD_LM) have |= HEAD_BIAS;
    if (c->model_kind == OC_KIND_ENCODER && c->model_head == OC_HEAD_CLASSIFICATION) have |= POOLER;
    if (c->model_linear_bias || c->model_mlp_bias) have |= MLP_BIAS;
    if (c->model_final_norm && c->model_kind != OC_KIND_ENCODER) have |= FINAL_NORM;
    if (c->model_attention_sinks) have |= SINKS;
    if (c->model_router_bias) have |= ROUTER_BIAS;
    if (c->model_shared_expert_gate) have |= SHARED_GATE;
    have |= c->model_kv_lora_rank ? MLA : MHA;
    have |= c->model_q_lora_rank ? Q_LORA : Q_DIRECT;
    if (c->model_shared_expert_ffn) have |= SHARED;
    return have;
}

/* How many tensors of a row this stage has in one kind of layer, or on its end chunks. */
static uint32_t count_on_stage(const struct oc_build *build, uint8_t part, int kind)
{
    if (part == OC_PART_LAYER) return build->layers[kind];
    uint32_t count = 0;
    for (int i = 0; i < build->ledger->n_chunks; i++)
        count += part == OC_PART_EMBED ? build->ledger->chunks[i].embedding : build->ledger->chunks[i].head;
    return count;
}

/* Experts are matrices of their own, and so are gate and up unless the op set fuses them. */
static uint32_t matrices_of(const struct oc_plan *plan, const struct row *row, const struct oc_opset_rules *ops)
{
    const bool up = row->use == OC_USE_EXPERT_UP, expert = up || row->use == OC_USE_EXPERT_DOWN;
    const int64_t experts = expert ? plan->c.model_experts / plan->c.parallel_ep : 1;
    return (uint32_t)(up && plan->gated && !ops->fused_matrices ? 2 * experts : experts);
}

static void add_param(struct oc_build *build, const struct row *row, const struct oc_opset_rules *ops, int kind)
{
    const uint32_t count = count_on_stage(build, row->part, kind);
    const uint64_t *dim = build->sizes.dim;
    const uint64_t elements = oc_mul(dim[row->rows], dim[row->columns]);
    if (!count || !elements) return;
    if (build->n_params == OC_MAX_PARAMS) {
        build->overflow = true;
        return;
    }
    build->params[build->n_params++] =
        (struct oc_param){.name = row->name,
                          .elements = elements,
                          .rows = dim[row->rows],
                          .count = count,
                          .part = row->part,
                          .kind = row->part == OC_PART_LAYER ? (uint8_t)kind : OC_END_HERE,
                          .forward = ops->use[row->use].forward,
                          .backward = ops->use[row->use].backward,
                          .expert = row->use == OC_USE_EXPERT_UP || row->use == OC_USE_EXPERT_DOWN,
                          .cast = row->cast,
                          .columns = row->use == OC_USE_EXPERT_DOWN ? dim[OC_D_XONE] : dim[row->columns],
                          .matrices = matrices_of(build->plan, row, ops),
                          .tied_gradient = row->use == OC_USE_EMBED && build->plan->c.model_tied &&
                                           build->plan->c.model_head == OC_HEAD_LM && row->rows == OC_D_VOCAB &&
                                           build->plan->c.parallel_pp == 1};
}

void oc_build_params(struct oc_build *build)
{
    if (!build->plan->has_shape) {
        build->params[build->n_params++] = (struct oc_param){.name = "all parameters",
                                                             .elements = (uint64_t)build->plan->c.model_params,
                                                             .count = 1,
                                                             .part = OC_PART_HEAD,
                                                             .kind = OC_END_HERE,
                                                             .forward = 0,
                                                             .backward = 1,
                                                             .cast = OC_CAST_KEPT};
        return;
    }
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)build->plan->c.kernels_transformer);
    const unsigned have = conditions(build->plan, ops->fused_matrices);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const int kinds = table[i].part == OC_PART_LAYER ? OC_MAX_KINDS : 1;
        for (int kind = 0; kind < kinds; kind++) {
            const unsigned here = have | (kind & OC_KIND_MOE ? MOE : DENSE);
            if ((table[i].need & here) == table[i].need) add_param(build, &table[i], ops, kind);
        }
    }
    if (build->plan->c.lora_rank) oc_build_adapters(build);
}

uint64_t oc_build_total(const struct oc_build *build)
{
    return oc_add(oc_build_part(build, false), oc_build_part(build, true));
}

uint64_t oc_build_part(const struct oc_build *build, bool expert)
{
    uint64_t total = 0;
    for (int i = 0; i < build->n_params; i++)
        if (build->params[i].expert == expert)
            total = oc_add(total, oc_mul(build->params[i].elements, build->params[i].count));
    return total;
}

uint64_t oc_build_unit(const struct oc_build *build, int kind)
{
    uint64_t sum = 0;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        const bool layer = param->part == OC_PART_LAYER;
        if (layer != (kind < OC_MAX_KINDS) || (layer && param->kind != kind)) continue;
        sum = oc_add(sum, oc_mul(param->elements, layer ? 1 : param->count));
    }
    return sum;
}

uint64_t oc_build_largest(const struct oc_build *build)
{
    uint64_t largest = 0;
    for (int i = 0; i < build->n_params; i++)
        if (build->params[i].elements > largest) largest = build->params[i].elements;
    return largest;
}

uint64_t oc_build_tensors(const struct oc_build *build)
{
    uint64_t tensors = 0;
    for (int i = 0; i < build->n_params; i++) tensors += build->params[i].count;
    return tensors;
}
