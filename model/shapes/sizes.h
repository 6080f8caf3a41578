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
    OC_D_Q,         /* query width / tp */
    OC_D_K,         /* key (or value) width / tp */
    OC_D_QKV,       /* q + 2 k */
    OC_D_HEAD,      /* head_dim */
    OC_D_FFN,       /* ffn / tp */
    OC_D_FC1,       /* what the first MLP product puts out: 2 ffn / tp when gated */
    OC_D_VOCAB,     /* padded vocabulary / tp */
    OC_D_POSITIONS, /* rows of a learned position embedding */
    OC_D_SCORES,    /* S: batch x heads / tp x (seq / cp) x seq */
    OC_D_ROWS,      /* A: batch x heads / tp x seq / cp: one number a row of scores */
    OC_D_KROWS,     /* the same over key heads: qk norm statistics */
    OC_D_MASK,      /* batch x seq x seq */
    OC_DIMS
};

struct oc_sizes {
    uint64_t dim[OC_DIMS];
};

/* Saturates instead of wrapping. */
void oc_sizes_fill(const struct oc_plan *plan, struct oc_sizes *sizes);

#endif
