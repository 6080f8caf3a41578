/* An op set: which tensors an implementation of the transformer makes, and how long each lives. Data, one row a tensor.
 *
 * Sub-steps number the ops of a part (layer, head, ...) in the order in which they run, in forward and in backward;
 * they are the op set's own and mean nothing outside its table. */
#ifndef OOMCAST_OPSET_H
#define OOMCAST_OPSET_H

#include "model/build.h"

/* What rows can depend on: one bit each, set from the plan. */
enum oc_fact {
    OC_F_AMP = 1 << 0,      /* matrix products are in another type than the weights (autocast) */
    OC_F_HALF = 1 << 1,     /* matrix products are in 16 bits */
    OC_F_STREAM16 = 1 << 2, /* the residual stream is in 16 bits */
    OC_F_FULL = 1 << 3,     /* full recompute (of this kind of layer) */
    OC_F_EAGER = 1 << 4,    /* attention: op by op */
    OC_F_UNFUSED = 1 << 5,  /* attention: scale-mask-softmax in one kernel */
    OC_F_FLASH = 1 << 6,
    OC_F_GQA = 1 << 7,       /* fewer key than query heads */
    OC_F_BATCH1 = 1 << 8,    /* one sample in a micro-batch */
    OC_F_ATTN_DROP = 1 << 9, /* attention dropout > 0 */
    OC_F_DROPOUT = 1 << 10,  /* hidden dropout > 0 */
    OC_F_GATED = 1 << 11,    /* swiglu, geglu */
    OC_F_LAYERNORM = 1 << 12,
    OC_F_EAGER_NORM = 1 << 13, /* RMSNorm written op by op */
    OC_F_LOGITS32 = 1 << 14,   /* the logits are copied to fp32 before the loss */
    OC_F_TIED = 1 << 15,
    OC_F_QK_NORM = 1 << 16,
    OC_F_SP = 1 << 17, /* sequence parallelism */
    OC_F_ROPE = 1 << 18,
    OC_F_LEARNED = 1 << 19, /* learned positions */
    OC_F_FUSED_LOSS = 1 << 20,
    OC_F_TE_LOSS = 1 << 21,
    OC_F_BIAS = 1 << 22, /* linear layers have biases */
    OC_F_EMBED_NORM = 1 << 23,
    OC_F_TP = 1 << 24,
    OC_F_TWO_NORMS = 1 << 25, /* a norm of its own before the MLP */
    OC_F_PP = 1 << 26,        /* more than one pipeline stage */
    OC_F_NEVER = 1 << 30
};

/* Number formats, as roles. */
enum oc_role {
    OC_R_COMPUTE, /* plan->dt.compute */
    OC_R_STREAM,  /* plan->dt.residual */
    OC_R_WEIGHTS, /* plan->dt.weights */
    OC_R_FP32,
    OC_R_BOOL,
    OC_R_INT64,
    OC_R_LOGPROB, /* fp32, or the compute type when the logits are not upcast */
    OC_R_SOFTMAX  /* what an unfused softmax keeps: the compute type, fp32 when it is not fused with the mask */
};

/* In which of a checkpointed layer's forwards a row exists. */
enum oc_mode { OC_BOTH, OC_ONLY_FORWARD, OC_ONLY_RECOMPUTE };

struct oc_tensor {
    const char *name;
    uint8_t dims[3];        /* enum oc_dim: elements are their product; OC_D_ONE where fewer are needed */
    uint8_t times;          /* multiplies the elements; 0 counts as 1 */
    uint8_t role;           /* enum oc_role */
    uint8_t end;            /* enum oc_end, parts EMBED and HEAD */
    uint8_t mode;           /* enum oc_mode */
    uint8_t module;         /* enum oc_recompute_module whose selective recompute drops it after forward; 0 = none */
    bool buffer;            /* class B instead of A */
    uint32_t need, without; /* facts that must all, and must none, hold for the row to exist */
    struct oc_tick birth;
    struct oc_tick death; /* when nothing keeps it for backward */
    uint8_t forgotten;    /* sub-step of its death in the forward of a checkpointed layer or module */
    uint32_t keep,
        drop; /* it is kept for backward when all facts of `keep` and none of `drop` hold (drop = NEVER: always) */
    struct oc_tick release; /* when it was kept */
    const char *why;
};

/* Rows of parameters refer to these; an op set says in which sub-steps it uses each. */
enum oc_use {
    OC_USE_EMBED,
    OC_USE_NORM1,
    OC_USE_Q,
    OC_USE_K,
    OC_USE_V,
    OC_USE_OUT,
    OC_USE_NORM2,
    OC_USE_GATE,
    OC_USE_UP,
    OC_USE_DOWN,
    OC_USE_FINAL_NORM,
    OC_USE_HEAD,
    OC_USES
};

struct oc_opset_rules {
    const char *name, *source;
    const struct oc_tensor *rows; /* ends with a NULL name */
    struct {
        uint8_t forward, backward;
    } use[OC_USES];
    uint8_t module_backward[8]; /* [enum oc_recompute_module]: backward sub-step at which it is computed again */
    bool fused_matrices;        /* q, k, v in one matrix, and gate, up in one */
};

extern const struct oc_opset_rules oc_hf_rules, oc_te_rules;

const struct oc_opset_rules *oc_opset(enum oc_opset opset);

/* The facts of a plan, except OC_F_FULL, which depends on the kind of layer. */
uint32_t oc_facts(const struct oc_plan *plan);

/* Kinds of layers: 0 is kept whole (or recomputed in part), 1 is checkpointed. */
enum { OC_KIND_KEPT, OC_KIND_CHECKPOINTED };

#define OC_FWD(part_, sub_)                                                                                            \
    {                                                                                                                  \
        OC_PH_FORWARD, OC_PART_##part_, (sub_)                                                                         \
    }
#define OC_BWD(part_, sub_)                                                                                            \
    {                                                                                                                  \
        OC_PH_BACKWARD, OC_PART_##part_, (sub_)                                                                        \
    }
#define OC_LOSS_AT(sub_)                                                                                               \
    {                                                                                                                  \
        OC_PH_LOSS, OC_PART_HEAD, (sub_)                                                                               \
    }

#endif
