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

/* The type of the weights that a rank keeps: plan->dt.weights, unless forward reads them gathered and cast (FSDP2). */
enum oc_dtype oc_stored_weights(const struct oc_plan *plan);

/* Parameters of the whole model, each counted once, the padding of the vocabulary included. `active` (may be NULL)
 * receives those of them that one token meets: of routed experts only model.experts_per_token count. */
uint64_t oc_model_params(const struct oc_plan *plan, uint64_t *active);

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

/* What one optimizer step costs besides memory: for comparing two configurations of a run, not for telling its speed.
 */
struct oc_cost {
    double operations;              /* floating-point operations of matrix products, all ranks together */
    double sent;                    /* bytes that one rank sends to others, mean over the pipeline's stages */
    double host;                    /* bytes between one GPU and its host */
    double idle;                    /* the pipeline's bubble, as a share of the time that the work takes */
    int64_t samples, tokens, ranks; /* of a step */
    int64_t grain;                  /* tokens of one micro-batch on one rank: how large its products are */
};
void oc_cost(const struct oc_plan *plan, struct oc_cost *cost);

/* What a change means for the training, from nothing to much. */
enum oc_effect {
    OC_EFFECT_NONE,     /* the same numbers */
    OC_EFFECT_ROUNDING, /* the same training in other roundings */
    OC_EFFECT_RANKS,    /* more GPUs */
    OC_EFFECT_TRAINING  /* another optimizer, batch or length: another training */
};

enum { OC_MAX_ADVICE = 12, OC_MAX_CHANGES = 16, OC_MAX_STEPS = 4 };

/* One option that differs from the configuration as it is: INT, BOOL, ENUM or SET. */
struct oc_change {
    enum oc_option_id option;
    int64_t from, to;
};

/* A configuration that fits, and what it takes to get there. Extra figures are against the configuration as it is. */
struct oc_advice {
    struct oc_config config; /* oc_resolve() takes it */
    struct oc_change changes[OC_MAX_CHANGES];
    int n_changes;
    const char *notes[OC_MAX_STEPS]; /* what each step means, in a few words */
    int n_steps; /* changes that are made for their own sake; what follows from them is not counted */
    enum oc_effect effect;
    struct oc_cost cost;
    double operations;         /* extra floating-point operations a token, as a share: 0.33 = a third more */
    double sent, host;         /* extra bytes of one rank in a step of as many tokens */
    double idle;               /* extra bubble */
    uint64_t allocated;        /* peak of the fullest stage, bytes */
    struct oc_verdict verdict; /* simulated reserved bytes included, where an allocator was brought */
};

struct oc_advices {
    struct oc_verdict now; /* of the configuration as it is */
    uint64_t allocated;
    struct oc_cost cost;
    bool back;                            /* it fits: the list says what could be taken back and still fit */
    struct oc_advice list[OC_MAX_ADVICE]; /* cheapest first; none costs more than another and saves less */
    int n;
    struct oc_advice nearest; /* where nothing fits: what comes nearest to it */
    bool has_nearest;
    int tried; /* configurations resolved */
};

/* The smallest changes that make a configuration fit, cheapest first: single ones; two, three or four together only
 * where fewer do not suffice. Of a configuration that fits, what could be taken back. Never one that oc_resolve()
 * refuses, rewrites or warns about. The whole space is compared by allocated bytes; `alloc` (may be NULL) then replays
 * the few that are left. False when the configuration itself has no answer or no GPU is named. */
bool oc_advise(const struct oc_config *config, struct oc_alloc *alloc, struct oc_advices *advices,
               struct oc_error *error);

/* "recompute none -> full, batch.micro 4 -> 2" into `text`; returns it. */
const char *oc_advice_text(const struct oc_advice *advice, char *text, size_t size);

/* One side of a comparison: a rank of one stage of a plan. */
struct oc_side {
    const struct oc_plan *plan;
    const struct oc_ledger *ledger;
    const struct oc_rank *rank;
};

/* An option whose resolved value differs. */
struct oc_option_difference {
    enum oc_option_id option;
    bool given;     /* on one of the sides; otherwise it follows from others */
    bool alone;     /* `change` is known: the first side resolves with this one option as on the second */
    int64_t change; /* bytes that this would change the first side's peak by */
};

/* What both sides hold of one thing: all entries of one class, name and copy. Where one side holds its share of a copy
 * of all parameters at once, the copy is the thing. */
struct oc_entry_difference {
    const char *name;                /* of the thing */
    const struct oc_entry *a, *b;    /* the largest such entry; NULL: the ledger has none */
    uint64_t bytes_a, bytes_b;       /* alive at the instants that are compared */
    uint64_t elements_a, elements_b; /* of all instances */
    uint64_t instances_a, instances_b;
};

enum { OC_AT_PEAK = -1, OC_MAX_DIFFERENCES = 2 * OC_MAX_ENTRIES + 4 };

struct oc_comparison {
    struct oc_side a, b;
    int moment;                   /* enum oc_moment of the steady iteration, or OC_AT_PEAK: each side's own peak */
    struct oc_instant at_a, at_b; /* the instants that are compared; bytes are 0 where a run has no such moment */
    struct oc_option_difference options[OC_OPTIONS]; /* given ones first, those that change most before others */
    int n_options;
    struct oc_entry_difference entries[OC_MAX_DIFFERENCES]; /* that differ, the largest difference first */
    int n_entries;
    int n_same;               /* things that take the same on both sides, and something */
    struct oc_entry added[4]; /* what the allocator adds on each side: rounding, rests that are not split off */
};

/* Joins two ledgers. The differences of all entries add up to the difference of the two instants' allocated bytes.
 * `comparison` keeps pointers to the sides. */
void oc_compare(const struct oc_side *a, const struct oc_side *b, int moment, struct oc_comparison *comparison);

/* Why they differ: "fp16 against fp32", "only in A: ...", "32 alive against 4", into `text`; returns it. */
const char *oc_difference_text(const struct oc_comparison *comparison, const struct oc_entry_difference *difference,
                               char *text, size_t size);

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
