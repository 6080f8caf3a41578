/* The sizes that tensors are made of, computed once per stage: each row of an op set's table is a product of these. */
#ifndef OOMCAST_SIZES_H
#define OOMCAST_SIZES_H

#include "oomcast/plan.h"

/* Widths and counts that one rank sees, after tensor, sequence and context parallelism. */
enum oc_dim {
    OC_D_ONE,
    OC_D_TOKENS,    /* T: tokens of one micro-batch on this rank: batch x seq / cp */
    OC_D_TOKENS_SP, /* T': the same where sequence parallelism splits it over tp */
    OC_D_SEQ,       /* seq / cp */
    OC_D_HIDDEN,
    OC_D_Q,          /* query width / tp */
    OC_D_K,          /* key (or value) width / tp */
    OC_D_QKV,        /* q + 2 k */
    OC_D_HEAD,       /* head_dim */
    OC_D_FFN,        /* ffn / tp */
    OC_D_FC1,        /* what the first MLP product puts out: 2 ffn / tp when gated */
    OC_D_VOCAB,      /* padded vocabulary / tp */
    OC_D_POSITIONS,  /* rows of a learned position embedding */
    OC_D_SCORES,     /* S: batch x heads / tp x (seq / cp) x seq */
    OC_D_ROWS,       /* A: batch x heads / tp x seq / cp: one number a row of scores */
    OC_D_KROWS,      /* the same over key heads: qk norm statistics */
    OC_D_MASK,       /* batch x seq x seq */
    OC_D_VALUE,      /* width of the values / tp: as keys, or its own under latent attention */
    OC_D_ATTN,       /* width of attention's output / tp: as queries, or heads x v_head_dim */
    OC_D_Q_LATENT,   /* q_lora_rank */
    OC_D_KV_LATENT,  /* kv_lora_rank */
    OC_D_KV_DOWN,    /* kv_lora_rank + qk_rope_head_dim: what the latent projection puts out */
    OC_D_KV_UP,      /* heads / tp x (qk_nope_head_dim + v_head_dim) */
    OC_D_EXPERTS,    /* routed experts of a layer, all ranks */
    OC_D_XFFN,       /* experts on this rank x expert_ffn / etp */
    OC_D_XFC1,       /* the same for what their first product puts out */
    OC_D_XOUT,       /* experts on this rank x hidden: biases of their second product */
    OC_D_XONE,       /* expert_ffn / etp of one expert */
    OC_D_XONE_FC1,   /* ... and what its first product puts out */
    OC_D_SFFN,       /* shared experts' ffn / tp */
    OC_D_SFC1,       /* ... and what their first product puts out */
    OC_D_ROUTED,     /* R: copies of tokens that this rank's experts work on */
    OC_D_COPIES,     /* T' x experts_per_token: copies that this rank's own tokens become */
    OC_D_OUTPUTS,    /* predictions a token: 1, and one more for each layer of multi-token prediction */
    OC_D_MTP_WIDTH,  /* 2 h a layer of multi-token prediction */
    OC_D_MTP_NORMS,  /* 3 h: its norms */
    OC_D_MTP_MATRIX, /* 2 h x h / tp: its projection */
    OC_D_MTP_VOCAB,  /* rows of the embedding copy that it needs on a stage of its own / tp */
    OC_D_LORA,       /* rank of low-rank adapters */
    OC_D_EMBEDDING,  /* width of the embedding */
    OC_D_PROJECTION, /* the same where it is projected to another hidden size, else 0 */
    OC_D_HEADS,      /* heads / tp */
    OC_D_ROUTED_ONE, /* ... that one of them works on */
    OC_D_LOSS_ROWS,  /* tokens in one piece of a loss that runs in pieces */
    OC_D_KEPT_V,     /* width of what attention's values keep alive: K, or all of a fused qkv that they are a view of */
    OC_D_MERGED,     /* Q where attention's output is copied to merge its heads, else 0 */
    OC_DIMS
};

struct oc_sizes {
    uint64_t dim[OC_DIMS];
};

/* Saturates instead of wrapping. */
void oc_sizes_fill(const struct oc_plan *plan, struct oc_sizes *sizes);

#endif
