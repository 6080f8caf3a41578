/* What differs by framework: which copies of a parameter exist, in which type, shared over what, born and dying when.
 *
 * A framework is one const struct oc_framework_rules in one file of this folder, listed in frameworks.c. Adding one
 * touches nothing else but its name in the options table. */
#ifndef OOMCAST_FRAMEWORK_H
#define OOMCAST_FRAMEWORK_H

#include "oomcast/model.h"

/* When a copy of a parameter exists. */
enum oc_timing {
    OC_BY_TICKS,          /* from `birth` to `death`, all tensors at once */
    OC_AS_GRADIENT,       /* from where backward makes the parameter's gradient to `death` */
    OC_WHILE_ACCUMULATED, /* only while backward adds it to the gradient that is kept */
    OC_UNTIL_THE_LAST     /* from the first micro-batch's backward until it is added in the last of several */
};

/* One copy of every parameter. */
struct oc_state {
    enum oc_class class;
    enum oc_dtype dtype;
    bool sharded;   /* each rank holds 1 / plan->shard of it */
    bool renewed;   /* as in struct oc_entry */
    bool offloads;  /* offload.optimizer takes offload.fraction of it to the host */
    bool pooled;    /* views of one large buffer instead of a tensor each */
    uint8_t timing; /* enum oc_timing */
    struct oc_tick birth, death;
    const char *why;
};

/* One rule of a framework: a kind of copy, and whether this plan has it. */
struct oc_state_rule {
    const char *name;   /* "main grads": shown as "main grads of layers.mlp.fc1" */
    const char *source; /* where the rule comes from */
    const char *since;  /* version that introduced it, or "" */
    bool (*exists)(const struct oc_plan *plan, struct oc_state *state); /* fills `state`, or returns false */
};

struct oc_build; /* model/build.h: a ledger being filled */
struct oc_param;

/* Adds the gradient of one parameter, `entry` but for when it lives: with what autocast and a tied head add to it. */
void oc_add_gradient(struct oc_build *build, const struct oc_entry *entry, const struct oc_param *param,
                     enum oc_timing timing);

/* Whether autograd sums two gradients of one weight in a third tensor: those of linear layers are views, whose storage
 * it leaves alone; a cast made of one is not. Source: input_buffer.cpp accumulate(). */
bool oc_sums_apart(const struct oc_plan *plan);

/* Whether gradients wait, whole, for the last of several micro-batches: under FSDP2, and as views of DDP's buckets. */
bool oc_torch_waits(const struct oc_plan *plan);

struct oc_framework_rules {
    const char *name;   /* as shown */
    const char *source; /* repository and revision the rules were read in */
    /* Fills options that were not given with this framework's own defaults. */
    void (*defaults)(struct oc_config *config);
    /* Fills plan->dt, and rewrites or refuses what the framework would. */
    bool (*decide)(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error);
    const struct oc_state_rule *states; /* ends with a NULL name */
    /* Buffers, scratch, workspaces: entries that are no copy of a parameter. May be NULL. */
    void (*buffers)(struct oc_build *build);
    /* Elements of the buffers that hold this rank's parameters (of routed experts, or of everything else), padding
     * included. NULL: no padding. */
    uint64_t (*padded)(const struct oc_build *build, bool expert);
    /* Elements that this rank holds of one tensor of a parameter, in copies that are shared. NULL: parameters are
     * joined before they are shared. */
    uint64_t (*share)(const struct oc_build *build, const struct oc_param *param);
    /* precision.weights is the type of the shards; forward reads them gathered and cast. */
    bool casts_shards;
    bool counts_activations; /* false: an accounting that leaves them out */
};

extern const struct oc_framework_rules oc_article_rules, oc_zero_paper_rules, oc_pytorch_rules, oc_fsdp1_rules,
    oc_fsdp2_rules, oc_deepspeed_rules, oc_megatron_rules;

const struct oc_framework_rules *oc_framework(enum oc_framework framework);

/* For defaults(): sets an option unless it was given. */
void oc_default(struct oc_config *config, enum oc_option_id id, int64_t value);
void oc_default_float(struct oc_config *config, enum oc_option_id id, double value);

/* Appends a warning; drops it when there is no room or `warnings` is NULL. */
void oc_warn(struct oc_warnings *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The type of the weights, and of matrix products, that `precision` names. */
enum oc_dtype oc_precision_weights(int64_t precision);
enum oc_dtype oc_precision_autocast(int64_t precision);

/* Lets precision.weights, .grads, .master, .moment1, .moment2 and .residual override what decide() chose. */
void oc_override_dtypes(struct oc_plan *plan);

/* A buffer of one tensor that is no copy of a parameter, there from the start of the first iteration to the end; to be
 * changed where it lives otherwise, and added with oc_build_add(). */
struct oc_entry oc_buffer_entry(const char *name, const char *why, const char *source, uint64_t elements,
                                enum oc_dtype dtype);

/* Adds the workspaces that cuBLAS takes from PyTorch's allocator: one for each of the two threads that launch products.
 */
void oc_add_cublas(struct oc_build *build);

/* Whether the run is taken to have the software of 2021-22: Megatron-LM 2.x or Megatron-DeepSpeed, PyTorch before 1.12,
 * CUDA before 11.7. So where kernels.stack does not say otherwise and Megatron's own modules run under DeepSpeed, or on
 * a V100, for which neither TransformerEngine nor Megatron core exists. */
bool oc_is_2021(const struct oc_plan *plan);

/* Ticks that rules use. */
#define OC_AT(phase_)           ((struct oc_tick){OC_PH_##phase_, OC_PART_NONE, 0})
#define OC_AT_SUB(phase_, sub_) ((struct oc_tick){OC_PH_##phase_, OC_PART_NONE, (sub_)})

/* When optimizer states are born: in the first step, or at init when the run is resumed. */
struct oc_tick oc_states_birth(const struct oc_plan *plan);

#endif
