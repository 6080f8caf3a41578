/* The step of Megatron-LM over TransformerEngine, allocation by allocation, as docs/step-megatron.md has it: te_state.c
 * (buffers, shares, what comes before and after the slots), te_slot.c (embedding, head, loss), te_layer.c,
 * te_backward.c, te_attention.c, te_linear.c (products, norms, gathers), schedule.c (the order of slots).
 *
 * Ownership: as in train.h, whose struct oc_train all of it hangs on. */
#ifndef OC_PROBES_TE_H
#define OC_PROBES_TE_H

#include "probes/train.h"

struct oc_te_norm_saved {
    struct oc_tensor *x, *rs, *mean, *n; /* input [U,h], one or two numbers a row, output */
};

struct oc_te_saved {
    struct oc_te_norm_saved norm1, norm2;
    struct oc_tensor *q, *k, *v, *o, *o_again;     /* [T,q], [T,k], [T,k], [T,q] */
    struct oc_tensor *lse;                         /* flash: [batch, heads, seq] fp32 */
    struct oc_tensor *p, *p_half, *mask, *dropped; /* unfused: [batch, heads, seq, seq] */
    struct oc_tensor *fc1, *activated;             /* [T,F], [T,f] */
    struct oc_tensor *mask1, *mask2;               /* of dropout after attention and MLP: [U,h] */
    struct oc_tensor *checkpoint;                  /* full recompute: the layer's input */
};

/* One micro-batch on one model chunk, from its forward slot to its backward slot. */
struct oc_te_slot {
    struct oc_tensor *ids, *labels, *loss_mask, *positions, *attention_mask;
    struct oc_tensor *mask;     /* of dropout over the embedding */
    struct oc_te_saved *layers; /* of the chunk */
    struct oc_te_norm_saved final_norm;
    struct oc_tensor *logits; /* or what the loss has made of them: their gradient */
};

struct oc_te_chunk {
    int first, layers; /* among the rank's layers */
    int64_t first_in_model;
    bool embedding, head;
};

struct oc_te {
    int stage, n_chunks, n_slots, in_flight; /* in_flight: micro-batches of the cut schedule */
    int64_t checkpointed;                    /* layers of each chunk, its first, that full recompute runs again */
    struct oc_te_chunk *chunks;
    struct oc_slot *slots;
    struct oc_te_slot *kept;   /* [in_flight x chunks] */
    struct oc_te_saved *saved; /* of all of their layers */
    int64_t ranks, rows;       /* tensor-parallel ranks; tokens of a shard: U */
    bool sequence_parallel, core_recompute, softmax_in_fp32, te_loss;
    const char *second_output; /* of flash attention: the name of a copy that it keeps; NULL = none */
    int64_t fc1, joined;       /* F and c of the page */

    struct oc_tensor *params, *main_grads; /* the buffers; params: distributed optimizer only */
    struct oc_tensor *views;               /* two a parameter: weight and gradient; then two of the share */
    bool shared;                           /* this rank has a share of the states */
    uint64_t share, share_padding;         /* elements */
    struct oc_param share_param;           /* what the optimizer updates where it has a share */
    struct oc_tensor *step_padding;        /* of the share's fp32 gradients */
    struct oc_tensor *global_buffer;       /* [T,h]: the head's input, gathered */
    bool began_backward;                   /* what the first backward makes is there */
    struct oc_tensor **outliving;          /* pipeline tensors kept to the next iteration */
    int n_outliving;
};

/* The slots of a stage, cut to their fill and two more micro-batches: fills te->slots and te->in_flight. False when out
 * of host memory. */
bool oc_te_schedule(struct oc_te *te, const struct oc_plan *plan);

/* Describes the rank before parameters are listed; makes the buffers once they are. */
bool oc_te_open(struct oc_train *train);
void oc_te_make_buffers(struct oc_train *train);
void oc_te_close(struct oc_train *train);

/* What the first product of the first backward brings with it; does nothing later. */
void oc_te_first_backward(struct oc_train *train);

/* The moment reduce. */
void oc_te_reduce(struct oc_train *train);

/* The beginning of an iteration and all of its slots: gradients are in the main grads after it. */
void oc_te_run_slots(struct oc_train *train);

/* ---- te_slot.c ---- */

void oc_te_forward_slot(struct oc_train *train, const struct oc_slot *slot);
void oc_te_backward_slot(struct oc_train *train, const struct oc_slot *slot);
struct oc_te_slot *oc_te_kept(struct oc_train *train, const struct oc_slot *slot);

/* ---- te_layer.c, te_backward.c: `layer` counts the rank's layers ---- */

struct oc_tensor *oc_te_layer_forward(struct oc_train *train, int layer, struct oc_te_saved *saved,
                                      struct oc_tensor *x);
/* Takes d over; `in_model` is the layer's number in the whole model. */
struct oc_tensor *oc_te_layer_backward(struct oc_train *train, int layer, int64_t in_model, struct oc_te_saved *saved,
                                       struct oc_tensor *d);

/* ---- te_attention.c ---- */

/* The merged heads [T,q]; what backward needs is saved, but not what it makes again. */
struct oc_tensor *oc_te_attention(struct oc_train *train, struct oc_te_saved *saved, struct oc_tensor *q,
                                  struct oc_tensor *k, struct oc_tensor *v, uint32_t seed);
/* The gradients of q, k and v one behind the other in one tensor of c columns' size; lets go of *grad_o. */
struct oc_tensor *oc_te_attention_backward(struct oc_train *train, struct oc_te_saved *saved, uint32_t seed,
                                           struct oc_tensor **grad_o);

/* ---- te_linear.c ---- */

/* y[T, rows] of rows `first`.. of a matrix, with its bias when asked for. */
void oc_te_product(struct oc_train *train, const struct oc_tensor *x, const struct oc_param *param, int64_t first,
                   const struct oc_tensor *y, int64_t rows, bool bias);
/* dx[T, columns] = dy[T, rows] times the matrix. */
void oc_te_input_gradient(struct oc_train *train, const struct oc_tensor *dy, const struct oc_param *param,
                          const struct oc_tensor *dx);
/* The gradients of the matrix and its bias, added into the main grads. */
void oc_te_weight_gradient(struct oc_train *train, const struct oc_tensor *dy, const struct oc_tensor *x,
                           const struct oc_param *param);

/* The norm's output, a new tensor; statistics and input are saved. */
struct oc_tensor *oc_te_norm(struct oc_train *train, const struct oc_param *param, struct oc_tensor *x,
                             struct oc_te_norm_saved *saved);
/* The gradient of its input, a new tensor [U,h], from that of its output (this rank's rows of it come first). */
struct oc_tensor *oc_te_norm_backward(struct oc_train *train, const struct oc_param *param,
                                      const struct oc_te_norm_saved *saved, const struct oc_tensor *dn);
void oc_te_norm_forget(struct oc_train *train, struct oc_te_norm_saved *saved);

/* Sequence parallelism: the shards of all ranks, a new tensor [T,h]; without it the tensor itself, once more owned. */
struct oc_tensor *oc_te_gather(struct oc_train *train, const char *name, struct oc_tensor *shard);

#endif
