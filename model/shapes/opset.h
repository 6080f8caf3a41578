/* An op set: which tensors an implementation of the transformer makes, and how long each lives. Data, one row a tensor.
 *
 * Sub-steps number the ops of a part (layer, head, ...) in the order in which they run, in forward and in backward;
 * they are the op set's own and mean nothing outside its table. */
#ifndef OOMCAST_OPSET_H
#define OOMCAST_OPSET_H

#include "model/build.h"

/* What rows can depend on: one bit each, set from the plan. */
#define OC_F_AMP          (UINT64_C(1) << 0) /* matrix products are in another type than the weights (autocast) */
#define OC_F_HALF         (UINT64_C(1) << 1) /* matrix products are in 16 bits */
#define OC_F_STREAM16     (UINT64_C(1) << 2) /* the residual stream is in 16 bits */
#define OC_F_FULL         (UINT64_C(1) << 3) /* full recompute (of this kind of layer) */
#define OC_F_EAGER        (UINT64_C(1) << 4) /* attention: op by op */
#define OC_F_UNFUSED      (UINT64_C(1) << 5) /* attention: scale-mask-softmax in one kernel */
#define OC_F_FLASH        (UINT64_C(1) << 6)
#define OC_F_GQA          (UINT64_C(1) << 7)  /* fewer key than query heads */
#define OC_F_BATCH1       (UINT64_C(1) << 8)  /* one sample in a micro-batch */
#define OC_F_ATTN_DROP    (UINT64_C(1) << 9)  /* attention dropout > 0 */
#define OC_F_DROPOUT      (UINT64_C(1) << 10) /* hidden dropout > 0 */
#define OC_F_GATED        (UINT64_C(1) << 11) /* swiglu, geglu */
#define OC_F_LAYERNORM    (UINT64_C(1) << 12)
#define OC_F_EAGER_NORM   (UINT64_C(1) << 13) /* RMSNorm written op by op */
#define OC_F_LOGITS32     (UINT64_C(1) << 14) /* the logits are copied to fp32 before the loss */
#define OC_F_TIED         (UINT64_C(1) << 15)
#define OC_F_QK_NORM      (UINT64_C(1) << 16)
#define OC_F_SP           (UINT64_C(1) << 17) /* sequence parallelism */
#define OC_F_ROPE         (UINT64_C(1) << 18)
#define OC_F_LEARNED      (UINT64_C(1) << 19) /* learned positions */
#define OC_F_FUSED_LOSS   (UINT64_C(1) << 20)
#define OC_F_TE_LOSS      (UINT64_C(1) << 21)
#define OC_F_BIAS         (UINT64_C(1) << 22) /* linear layers have biases */
#define OC_F_EMBED_NORM   (UINT64_C(1) << 23)
#define OC_F_TP           (UINT64_C(1) << 24)
#define OC_F_TWO_NORMS    (UINT64_C(1) << 25) /* a norm of its own before the MLP */
#define OC_F_PP           (UINT64_C(1) << 26) /* more than one pipeline stage */
#define OC_F_MOE          (UINT64_C(1) << 27) /* the layer has experts instead of one MLP */
#define OC_F_MLA          (UINT64_C(1) << 28) /* multi-head latent attention */
#define OC_F_Q_LORA       (UINT64_C(1) << 29) /* latent queries */
#define OC_F_SHARED       (UINT64_C(1) << 30) /* shared experts beside the routed ones */
#define OC_F_CP_A2A       (UINT64_C(1) << 32) /* ... which exchange heads for sequence */
#define OC_F_FP8          (UINT64_C(1) << 33) /* linear layers compute in fp8 */
#define OC_F_ALLGATHER    (UINT64_C(1) << 34) /* tokens reach experts by all-gather */
#define OC_F_LORA         (UINT64_C(1) << 36) /* low-rank adapters over frozen weights */
#define OC_F_LORA_DROP    (UINT64_C(1) << 37) /* ... with dropout on their input */
#define OC_F_SOFTMAX32    (UINT64_C(1) << 39) /* an unfused softmax in fp32 */
#define OC_F_SOFTMAX_HALF (UINT64_C(1) << 40) /* eager softmax runs in the compute type */
#define OC_F_FUSED_QKV    (UINT64_C(1) << 41) /* one matrix for q, k and v */
#define OC_F_PARALLEL     (UINT64_C(1) << 42) /* attention and MLP read the same norm */
#define OC_F_LINEAR_LOSS  (UINT64_C(1) << 43) /* the output layer and the loss are one kernel */
#define OC_F_CHUNKED_LOSS (UINT64_C(1) << 44) /* the output layer and the loss run in pieces */
#define OC_F_NO_HEAD      (UINT64_C(1) << 45) /* no output layer */
#define OC_F_CLASSIFY     (UINT64_C(1) << 46) /* a classification head */
#define OC_F_COMPILED     (UINT64_C(1) << 47) /* torch.compile */
#define OC_F_FA_TWICE     (UINT64_C(1) << 48) /* FlashAttention keeps its output beside a contiguous copy of it */
#define OC_F_PROBS_ACT                                                                                                 \
    (UINT64_C(1) << 49)                     /* experts scale their activations by the router's probabilities, unfused  \
                                             */
#define OC_F_REPEAT_KV  (UINT64_C(1) << 50) /* grouped keys and values are written out for flash attention */
#define OC_F_PER_OP     (UINT64_C(1) << 51) /* torchtitan's selective recompute: a list of ops whose results are kept */
#define OC_F_CORE       OC_F_CP_A2A /* hf, which has no context parallelism: a checkpoint around attention's core alone */
#define OC_F_FINAL_NORM (UINT64_C(1) << 52) /* a norm before the output layer */
#define OC_F_ENCODER    (UINT64_C(1) << 53) /* every token sees every other: no causal mask */
/* Frozen weights: what is kept only for the gradient of a weight is not kept. See model/shapes/lora.c. */
#define OC_F_FREE_QKV  (UINT64_C(1) << 54) /* nothing that trains reads the input of q, k and v as it is */
#define OC_F_FREE_OUT  (UINT64_C(1) << 55) /* ... of the output projection */
#define OC_F_FREE_UP   (UINT64_C(1) << 56) /* ... of gate and up */
#define OC_F_FREE_DOWN (UINT64_C(1) << 57) /* ... of the last linear of the MLP */
#define OC_F_FREE_HEAD (UINT64_C(1) << 58) /* ... of the output layer */
#define OC_F_FREE_NORM (UINT64_C(1) << 59) /* the weights of norms are frozen */
#define OC_F_QK_CAST   (UINT64_C(1) << 60) /* autocast: rope's tables leave q and k in fp32, attention casts them */
#define OC_F_SHIFTED   (UINT64_C(1) << 61) /* the logits are copied when they are shifted against the labels */
#define OC_F_HELD      (UINT64_C(1) << 62) /* FSDP1 over frozen weights: hooks hold inputs of layers and their gradients */
#define OC_F_NEVER     (UINT64_C(1) << 63) /* holds for no plan */

/* Number formats, as roles. */
enum oc_role {
    OC_R_COMPUTE, /* plan->dt.compute */
    OC_R_STREAM,  /* plan->dt.residual */
    OC_R_LINEAR,  /* input that a linear layer keeps for its weight gradient: fp8 under fp8, else the compute type */
    OC_R_WEIGHTS, /* plan->dt.weights */
    OC_R_FP32,
    OC_R_BOOL,
    OC_R_INT64,
    OC_R_NORMALIZED,      /* what an eager RMSNorm keeps to scale: the stream's type, fp32 in litgpt */
    OC_R_LOGPROB,         /* fp32, or the compute type when the logits are not upcast */
    OC_R_ADAPTER,         /* plan->c.lora_dtype */
    OC_R_ADAPTER_COMPUTE, /* what an adapter's products run in: the autocast type, else its own */
    OC_R_SOFTMAX,         /* what an unfused softmax keeps: the compute type, or fp32 */
    OC_R_ROUTER           /* the type of the router's logits */
};

/* In which of a checkpointed layer's forwards a row exists. */
enum oc_mode { OC_BOTH, OC_ONLY_FORWARD, OC_ONLY_RECOMPUTE };

struct oc_tensor {
    const char *name;
    const char *copy;       /* which tensor of several beside `name`; usually NULL */
    uint8_t dims[3];        /* enum oc_dim: elements are their product; OC_D_ONE where fewer are needed */
    uint8_t times;          /* multiplies the elements; 0 counts as 1 */
    uint8_t role;           /* enum oc_role */
    uint8_t end;            /* enum oc_end, parts EMBED and HEAD */
    uint8_t mode;           /* enum oc_mode */
    uint8_t module;         /* enum oc_recompute_module whose selective recompute drops it after forward; 0 = none */
    bool buffer;            /* class B instead of A */
    bool listed;            /* torchtitan's per-op list keeps it: the recomputation does not make it again */
    uint64_t need, without; /* facts that must all, and must none, hold for the row to exist */
    struct oc_tick birth;
    struct oc_tick death; /* when nothing keeps it for backward */
    uint8_t forgotten;    /* sub-step of its death in the forward of a checkpointed layer or module */
    uint64_t keep,
        drop; /* it is kept for backward when all facts of `keep` and none of `drop` hold (drop = NEVER: always) */
    struct oc_tick release; /* when it was kept */
    const char *why;
};

/* Rows of parameters refer to these; an op set says in which sub-steps it uses each. */
enum oc_use {
    OC_USE_EXPERT_UP,
    OC_USE_EXPERT_DOWN,
    OC_USE_ROUTER,
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
    const struct oc_tensor *rows;                     /* ends with a NULL name */
    const struct oc_tensor *layer_rows, *expert_rows; /* more of them, or NULL */
    struct {
        uint8_t forward, backward;
    } use[OC_USES];
    uint8_t module_backward[256]; /* [enum oc_recompute_module]: backward sub-step at which it is computed again */
    bool fused_matrices;          /* q, k, v in one matrix, and gate, up in one */
};

extern const struct oc_tensor oc_hf_layer[],
    oc_hf_experts[]; /* a layer of Hugging Face's models, for its kin to share */
extern const struct oc_opset_rules oc_hf_rules, oc_te_rules, oc_torchtitan_rules, oc_torchtune_rules, oc_litgpt_rules;

const struct oc_opset_rules *oc_opset(enum oc_opset opset);

/* The torch release that kernels.stack names ("torch 2.4.1" is 204), times 100; 0 when it names none. */
int oc_torch_release(const struct oc_config *config);

/* The facts of a plan, except OC_F_FULL, which depends on the kind of layer. */
uint64_t oc_facts(const struct oc_plan *plan);

/* Whether layers are recomputed except for the ops of torchtitan's list. */
bool oc_keeps_listed_ops(const struct oc_plan *plan);

/* Kernels of torchtitan, torchtune and litgpt that were not given (model/shapes/opset_kin.c). Nothing for other op
 * sets.
 */
void oc_kin_defaults(struct oc_config *config);

/* Adds a row to the ledger, where its facts hold: for `count` layers of a kind, or once. */
void oc_add_tensor(struct oc_build *build, const struct oc_tensor *row, uint64_t facts, int kind, uint32_t count,
                   const char *source);

/* ... of them, those of Hugging Face's models and of frozen weights (model/shapes/facts_hf.c). */
uint64_t oc_hf_facts(const struct oc_plan *plan);

/* Whether q, k and v come from one matrix in this plan's model. */
bool oc_fused_qkv(const struct oc_plan *plan);

/* What a quantized parameter is unpacked into while it is used. */
void oc_add_dequantized(struct oc_build *build, const struct oc_param *param);

/* Bytes of what is packed in a quantized parameter: the weights, and GPTQ's zero points. */
uint64_t oc_packed_bytes(const struct oc_plan *plan, const struct oc_param *param);

/* Low-rank adapters over frozen weights (model/shapes/lora.c). What nothing that trains keeps, as facts. */
uint64_t oc_lora_facts(const struct oc_plan *plan);

/* Marks the parameters that are frozen and quantized, and appends the adapters' own. */
void oc_build_adapters(struct oc_build *build);

/* What the adapters of one kind of layer keep and make; then those of the output layer, and dequantized weights. */
void oc_build_lora(struct oc_build *build, int kind, uint32_t layers);
void oc_build_lora_rest(struct oc_build *build);

/* The type of a parameter itself: an adapter's, a frozen base's or a trained weight's. */
enum oc_dtype oc_param_dtype(const struct oc_plan *plan, const struct oc_param *param);

/* Whether a frozen parameter beside a quantized base is kept in fp32. */
bool oc_stays_fp32(const struct oc_plan *plan, const struct oc_param *param);

/* The type in which forward meets an adapter: its own, or FSDP's type of gathered parameters. */
enum oc_dtype oc_adapter_dtype(const struct oc_plan *plan);

/* Whether autocast casts weights: under FSDP they are gathered in the type of the products already. */
bool oc_casts_weights(const struct oc_plan *plan);

/* The tensors of a quantized matrix instead of the one of `entry`: scales, and what is packed when `packed`. */
void oc_add_quantized(struct oc_build *build, const struct oc_param *param, const struct oc_entry *entry, bool packed);

/* Kinds of layers, as bits: recomputed as a whole, and with experts. */
enum { OC_KIND_KEPT = 0, OC_KIND_CHECKPOINTED = 1, OC_KIND_MOE = 2 };

#define OC_FWD(part_, sub_)                                                                                            \
    {                                                                                                                  \
        OC_PH_FORWARD, OC_PART_##part_, (sub_)                                                                         \
    }
#define OC_BWD(part_, sub_)                                                                                            \
    {                                                                                                                  \
        OC_PH_BACKWARD, OC_PART_##part_, (sub_)                                                                        \
    }
/* Where backward first needs a layer's weights. */
#define OC_AGAIN                                                                                                       \
    {                                                                                                                  \
        OC_PH_RECOMPUTE, OC_PART_LAYER, 0                                                                              \
    }
#define OC_LOSS_AT(sub_)                                                                                               \
    {                                                                                                                  \
        OC_PH_LOSS, OC_PART_HEAD, (sub_)                                                                               \
    }

#endif
