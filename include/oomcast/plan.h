/* The plan: a configuration in which everything has been decided. Model and probe both start from it, and from nothing
 * else.
 *
 * Ownership: a plain value, copied by assignment. */
#ifndef OOMCAST_PLAN_H
#define OOMCAST_PLAN_H

#include "oomcast/config.h"
#include "oomcast/dtype.h"

/* A quantity that is not known to the byte: both ends are inclusive. */
struct oc_range {
    uint64_t low, high; /* bytes */
};

/* The number format of every kind of tensor; OC_NONE = there is none. */
struct oc_dtypes {
    enum oc_dtype weights;    /* parameters that forward reads */
    enum oc_dtype compute;    /* operands of matrix products: the autocast type, else as weights */
    enum oc_dtype residual;   /* residual stream, norm inputs, embeddings */
    enum oc_dtype grads;      /* gradients kept until the step: param.grad in PyTorch, main_grad in Megatron */
    enum oc_dtype step_grads; /* a second copy of the gradients, born in the step: Megatron's main_grad.float() */
    enum oc_dtype master;     /* copy of the weights that the optimizer updates */
    enum oc_dtype moment1;    /* SGD momentum, or Adam's first moment */
    enum oc_dtype moment2;    /* Adam's second moment */
};

struct oc_plan {
    struct oc_config c; /* every option resolved, so that it can be shown; `given` still says which were given */
    struct oc_dtypes dt;
    uint64_t hash; /* of everything above: results carry it, so that they are shown only for their plan */

    /* Shape, whole model */
    int64_t vocab;  /* padded vocabulary */
    int64_t q, kv;  /* heads x head_dim, kv_heads x head_dim: widths of the projections */
    bool gated;     /* the MLP has gate and up matrices */
    bool has_shape; /* false when only model.params is known: states are exact, activations are not modelled */

    /* Ranks */
    int64_t dp;           /* data-parallel ranks: world / (tp pp cp) */
    int64_t shard;        /* ranks that share states: 1 when zero = 0 */
    int64_t expert_shard; /* ranks that share the states of routed experts: world / (etp ep pp) of them hold the same */
    int64_t accum;        /* micro-batches per step and data-parallel rank */

    /* Device */
    uint64_t capacity;             /* bytes CUDA reports as the total; 0 = unknown */
    int sm;                        /* compute capability times 10, 90 for Hopper; 0 = unknown */
    struct oc_range context, nccl; /* bytes outside PyTorch's allocator */
};

/* Ranks that share the states of routed experts, or of everything else: 1 when zero = 0. */
uint64_t oc_plan_shard(const struct oc_plan *plan, bool expert);

/* Layers that model chunk `chunk` (0..vpp-1) of pipeline stage `stage` (0..pp-1) holds.
 * Source: Megatron-LM core/transformer/transformer_block.py get_num_layers_to_build. */
int64_t oc_plan_layers(const struct oc_plan *plan, int64_t stage, int64_t chunk);

/* Layers with experts among `layers` layers from `first` on. Source: megatron --moe-layer-freq, DeepSeek
 * first_k_dense_replace. */
int64_t oc_plan_expert_layers(const struct oc_plan *plan, int64_t first, int64_t layers);

/* Whether that chunk begins with the embedding, or ends with the output layer and the loss. */
bool oc_plan_has_embedding(const struct oc_plan *plan, int64_t stage, int64_t chunk);
bool oc_plan_has_head(const struct oc_plan *plan, int64_t stage, int64_t chunk);

/* Tokens of the longest micro-batch on this rank (sequence over cp), and the same where sequence parallelism splits it
 * over tp.
 */
int64_t oc_plan_tokens(const struct oc_plan *plan);
int64_t oc_plan_tokens_sp(const struct oc_plan *plan);

/* The framework as `framework` names it: Megatron with stage 2 or 3 is megatron-fsdp again. Static text. */
const char *oc_plan_framework(const struct oc_plan *plan);

/* Whether the optimizer keeps a first and a second state per parameter. */
bool oc_plan_has_moment1(const struct oc_plan *plan);
bool oc_plan_has_moment2(const struct oc_plan *plan);

/* What plan->hash is made of: every resolved value of plan->c, whoever gave it. Two runs are the same when it is. */
uint64_t oc_plan_hash(const struct oc_plan *plan);

/* NULL when the probe can run this plan, else the reason why not. Where it is NULL, model, dry, host and cuda agree to
 * the byte. */
const char *oc_probe_covers(const struct oc_plan *plan);

#endif
