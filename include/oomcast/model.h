/* The analytical model: configuration in, plan; plan in, ledger; ledger in, answers. A pure core: no I/O, no globals,
 * no terminal, no CUDA, no hidden allocation (oc_reserve() uses an allocator object that its caller brings).
 *
 * Ownership: everything is filled into values that the caller owns. */
#ifndef OOMCAST_MODEL_H
#define OOMCAST_MODEL_H

#include "oomcast/alloc.h"
#include "oomcast/case.h"
#include "oomcast/ledger.h"
#include "oomcast/plan.h"

enum { OC_MAX_STAGES = 256, OC_MAX_WARNINGS = 16 };

/* Decides everything: fills what was not given from model.name, the framework and the other options, and checks that
 * the whole can run. Errors name the option and a value that would do. `warnings` (may be NULL) receives what the
 * framework would rewrite or ignore. */
struct oc_warnings {
    char text[OC_MAX_WARNINGS][224];
    int n;
};
bool oc_resolve(const struct oc_config *config, struct oc_plan *plan, struct oc_warnings *warnings,
                struct oc_error *error);

/* Every allocation of one rank of pipeline stage `stage`, from formulas. Errors: OC_E_LIMIT when a size passes 2^62
 * bytes. */
bool oc_estimate(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger, struct oc_error *error);

/* Parameters of the whole model, each counted once, the padding of the vocabulary included. */
uint64_t oc_model_params(const struct oc_plan *plan);

/* Those of them that one token meets: of routed experts only model.experts_per_token count. */
uint64_t oc_model_active_params(const struct oc_plan *plan);

/* Replays the ledger's allocations over three steps through the caching allocator and sets rank->reserved (simulated);
 * adds to the moments' allocated bytes (class B) what large blocks that are not split hold beyond their request. False
 * when the allocator runs out of host memory. */
bool oc_reserve(const struct oc_plan *plan, const struct oc_ledger *ledger, struct oc_alloc *alloc,
                struct oc_rank *rank);

/* Bytes on the device, what nvidia-smi shows: reserved (or allocated where it was not simulated) + context + NCCL. */
struct oc_range oc_device(const struct oc_plan *plan, const struct oc_rank *rank);

/* Does it fit, and by how much. */
struct oc_verdict {
    int64_t worst_stage; /* the stage whose device bytes are the largest */
    bool known;          /* false when no capacity is known: no GPU was named */
    bool fits;           /* upper end of device <= capacity */
    bool tight;          /* it fits, but by less than the model's own 90th-percentile error */
    int64_t headroom;    /* capacity - upper end of device, bytes; negative when it does not fit */
    struct oc_range device;
};
void oc_judge(const struct oc_plan *plan, const struct oc_rank *ranks, int n_ranks, struct oc_verdict *verdict);

/* Everything about a plan: all stages estimated, swept and reserved. The one call behind report, check and the screen.
 * `ledgers` may be NULL; otherwise it has room for pp of them. `alloc` may be NULL: reserved is then left at 0. */
struct oc_answer {
    struct oc_plan plan;
    struct oc_warnings warnings;
    struct oc_rank ranks[OC_MAX_STAGES];
    int n_ranks; /* pp */
    struct oc_verdict verdict;
    uint64_t params_total, params_active; /* of the whole model */
};
bool oc_answer(const struct oc_config *config, struct oc_answer *answer, struct oc_ledger *ledgers,
               struct oc_alloc *alloc, struct oc_error *error);

/* The reason in words: sentences for a reader who knows training but not this tool. Computed from ledgers of this plan
 * and of variants of it (the same run in fp32, other micro-batches), never typed in. */
enum { OC_MAX_SENTENCES = 8 };
struct oc_reason {
    char sentence[OC_MAX_SENTENCES][400];
    int n;
};
void oc_explain(const struct oc_answer *answer, struct oc_reason *reason);

/* Known models and GPUs: const tables made at build time from model/data/models.json and gpus.json. */
struct oc_model_row {
    const char *name;   /* "llama-3-8b" */
    uint64_t params;    /* as published; the model must reproduce it */
    const char *source; /* of that number */
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_positions;
    int64_t embedding_dim;                                                             /* 0: as hidden */
    int64_t experts, experts_per_token, expert_ffn, shared_expert_ffn, dense_layers;   /* 0: a dense model */
    int64_t q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim; /* 0: ordinary attention */
    uint8_t positions, norm, norms_per_layer, activation;                              /* enums of config.h */
    bool tied, linear_bias, qkv_bias, head_bias, qk_norm, parallel_residual, embedding_norm;
    bool mlp_bias, no_final_norm, attention_sinks, shared_expert_gate, router_bias;
};
struct oc_gpu_row {
    const char *name;  /* "h100-80g" */
    const char *title; /* "NVIDIA H100 80GB HBM3" */
    uint64_t total;    /* bytes that nvidia-smi shows as the total */
    uint64_t capacity; /* bytes that CUDA reports as the total: what PyTorch can have */
    int sm;            /* compute capability times 10; 0 = not CUDA */
    bool verified;     /* seen in a source, not taken from a data sheet */
    const char *source;
};
const struct oc_model_row *oc_models(int *count);
const struct oc_gpu_row *oc_gpus(int *count);
/* Case-insensitive, and dashes, dots and underscores count as equal; NULL when there is none. */
const struct oc_model_row *oc_model_find(const char *name);
const struct oc_gpu_row *oc_gpu_find(const char *name);

#endif
