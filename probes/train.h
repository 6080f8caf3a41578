/* The training step, allocation by allocation, as docs/step-pytorch.md has it. Internal: oomcast/probe.h is the way in.
 *
 * Each source file is a part of that page: params.c (parameters, init), blocks.c, norm.c, linear.c (what layers
 * are made of), layer_forward.c, layer_backward.c, micro_batch.c (embedding, head, loss, the loop over layers),
 * shards.c (FSDP2), ddp.c, optimizer.c (step and after).
 *
 * Ownership: oc_train_open() allocates, oc_train_close() releases. Tensors that functions take are the caller's, unless
 * they take a pointer to the caller's pointer: then they let go of it. Tensors that functions return belong to the
 * caller. */
#ifndef OC_PROBES_TRAIN_H
#define OC_PROBES_TRAIN_H

#include "probes/tensor.h"

struct oc_param {
    const char *block;     /* "layers.attention.q" */
    int64_t rows, columns; /* [out, in]; a norm or a bias: [1, width] */
    bool vector;           /* a norm or a bias */
    struct oc_param *bias; /* of the matrix or norm; NULL when it has none */
    struct oc_tensor *weight, *master;
    struct oc_tensor *grad, *step_grad; /* param.grad; its fp32 copy, made in the step for the master */
    struct oc_tensor *waiting;          /* of a tied embedding: the head's gradient, until the look-up's is there */
    struct oc_tensor *cast;             /* what the autocast cache holds: the weight in the type of products */
    struct oc_tensor *moment1, *moment2, *count;
    struct oc_tensor *scratch; /* of a foreach step */
};

/* The matrices and norms of a layer, in the order in which they are made; a bias follows its own. A plan has either QKV
 * or Q, K and V, and GATE only where the MLP is gated. */
enum oc_layer_param {
    OC_P_NORM1,
    OC_P_QKV,
    OC_P_Q,
    OC_P_K,
    OC_P_V,
    OC_P_O,
    OC_P_NORM2,
    OC_P_GATE,
    OC_P_UP,
    OC_P_DOWN,
    OC_P_PER_LAYER
};
/* ... and of the ends. The head is the embedding where they are tied. */
enum oc_end_param { OC_P_EMBEDDING, OC_P_POSITION, OC_P_FINAL_NORM, OC_P_HEAD, OC_P_ENDS };

/* What autograd keeps of each operation: an owner of each tensor until the operation has run backward. */
struct oc_norm_saved {
    struct oc_tensor *x, *rs; /* input [T,h] (eager: fp32), 1 / rms [T] fp32 */
    struct oc_tensor *xn;     /* eager: normalized input [T,h] */
    struct oc_tensor *mean;   /* LayerNorm: [T] fp32 */
};

struct oc_linear_saved {
    struct oc_tensor *input, *weight; /* [T,in], autocast's cast of the weight (NULL without autocast) */
    bool cast_input;                  /* autocast made the input's cast: its gradient is cast back */
    struct oc_tensor *with_grad;      /* goes with the gradient of the output, of which that is a cast */
};

struct oc_attention_saved {
    struct oc_tensor *q, *k, *v; /* operands of the products */
    struct oc_tensor *o, *lse;   /* flash: output [T,q], log-sum-exp [batch,heads,seq] fp32 */
    struct oc_tensor *p32, *p;   /* eager: softmax's output, and the operand made of it [batch,heads,seq,seq] */
    struct oc_tensor *mask;      /* eager: of dropout over it */
};

struct oc_layer_saved {
    struct oc_tensor *input; /* full recompute: the checkpoint's */
    struct oc_norm_saved norm1, norm2;
    struct oc_linear_saved q /* or qkv */, k, v, o, gate, up, down;
    struct oc_attention_saved attention;
    struct oc_tensor *g, *sg, *u;    /* gated: gate's output, activated, up's output [T,f]; else g is up's output */
    struct oc_tensor *mask1, *mask2; /* of dropout after attention and MLP [T,h] */
};

struct oc_te;     /* a rank of Megatron: te.h */
struct oc_shards; /* a rank of FSDP2: shards.h */
struct oc_ddp;    /* a rank of DDP: ddp.c */

struct oc_train {
    const struct oc_plan *plan;
    const struct oc_probe_options *options;
    struct oc_probe_backend *backend;
    struct oc_books *books;

    /* Shape: see docs/step-pytorch.md for the letters */
    int64_t samples, seq, tokens, hidden, heads, kv_heads, head_dim, q, kv, ffn, vocab;
    uint64_t scores; /* samples x heads x seq x seq */
    int layers, micro_batches;
    enum oc_dtype w, r, e; /* weights, residual stream, products */
    enum oc_dtype softmax; /* of the scores */
    bool amp, eager, flash, recompute, repeats /* kv_heads < heads */, loss_in_fp32, fused_loss;
    bool layernorm, eager_norm, rope, gated, fused_qkv;
    bool half_scores;                 /* the mask is added, and the probabilities dropped, in the type of the scores */
    float dropout, attention_dropout; /* rates */
    enum oc_function function;        /* of the MLP */

    struct oc_param *params;
    int n_params;
    int ends[OC_P_ENDS], layer_start, per_layer; /* indices into params; -1 = absent */
    int layer_slots[OC_P_PER_LAYER];             /* relative to the layer's first; -1 = absent */
    struct oc_param *units; /* what the optimizer updates: the parameters, or one share of all of them */
    int n_units;
    bool has_embedding, has_head; /* this pipeline stage has the end */
    struct oc_te *te;             /* NULL: PyTorch's step */
    struct oc_shards *shards;     /* NULL: this rank has all of every parameter */
    struct oc_ddp *ddp;           /* NULL: this rank is alone, or its framework is not plain PyTorch */
    struct oc_layer_saved *saved; /* one for each layer */
    bool grad_mode;               /* what autograd would keep is kept */

    /* Of the micro-batch */
    struct oc_tensor *ids, *labels, *positions, *cosine, *sine, *mask, *embedding_mask;
    struct oc_tensor *lp; /* log-softmax; fused loss: the gradient of the logits */
    struct oc_norm_saved final_norm;
    struct oc_linear_saved head;

    int step, micro_batch;
    double loss;                  /* mean over the tokens of the step's micro-batches so far */
    float loss_scale, next_scale; /* what the loss is multiplied by; halved after a step that overflowed */
    int updates;                  /* steps that were not skipped */
    float clip;                   /* what gradients are multiplied by beside, so that their norm is at most 1 */
    bool overflow;                /* this step's gradients are not all finite: it changes nothing */
    struct oc_probe_numerics numerics;
    bool cancelled;
    double next_progress; /* seconds on the monotonic clock */
};

/* ---- params.c ---- */

/* Makes parameters and master copies (moment init). False when out of host memory; out_of_memory and cancelled show in
 * `train`. `plan`, `options`, `backend` and `books` must outlive it. */
bool oc_train_open(struct oc_train *train, const struct oc_plan *plan, const struct oc_probe_options *options,
                   struct oc_probe_backend *backend, struct oc_books *books);
void oc_train_close(struct oc_train *train);

/* NULL where the plan has none. */
struct oc_param *oc_train_param(const struct oc_train *train, int layer, enum oc_layer_param param);
struct oc_param *oc_train_end(const struct oc_train *train, enum oc_end_param param);

/* Where the step has come to: books and progress. */
void oc_train_at(struct oc_train *train, enum oc_phase phase, enum oc_part part, int layer);

/* Cancelled, or out of memory: nothing more needs to be done. */
bool oc_train_stopped(const struct oc_train *train);

/* Runs a kernel unless the step has stopped; now and then calls progress. */
void oc_launch(struct oc_train *train, enum oc_op op, const void *args);

/* Fills a tensor with zeros, unless the step has stopped. */
void oc_zero(struct oc_train *train, const struct oc_tensor *tensor);

double oc_seconds(void); /* on the monotonic clock */

/* ---- blocks.c ---- */

/* A tensor of class A, G or B under a name. */
struct oc_tensor *oc_activation(struct oc_train *train, const char *block, const char *name, enum oc_dtype dtype,
                                int64_t rows, int64_t columns);

/* An owner for autograd in grad mode, else NULL. */
struct oc_tensor *oc_save(struct oc_train *train, struct oc_tensor *tensor);
void oc_let_go(struct oc_train *train, struct oc_tensor **tensor);

/* y = alpha a + beta b, in y's type; b may be NULL. */
void oc_blend(struct oc_train *train, const struct oc_tensor *a, float alpha, const struct oc_tensor *b, float beta,
              const struct oc_tensor *y);

/* y = a b elementwise; b may be one number per row or per column of `width`. */
void oc_multiply(struct oc_train *train, const struct oc_tensor *a, const struct oc_tensor *b,
                 enum oc_broadcast broadcast, int64_t width, const struct oc_tensor *y);

/* A new activation that holds `from` in another type, or a copy of it in its own. */
struct oc_tensor *oc_cast(struct oc_train *train, const char *block, const char *name, enum oc_dtype dtype,
                          const struct oc_tensor *from);

/* A fresh tensor for a gradient, in the type of the weights. */
struct oc_tensor *oc_gradient(struct oc_train *train, const struct oc_param *param);

/* Adds *grad to the parameter's gradient, or makes it the gradient when there is none. */
void oc_accumulate(struct oc_train *train, struct oc_param *param, struct oc_tensor **grad);

/* Where dropout draws, so that a recomputed layer draws the same again. */
enum oc_site { OC_SITE_EMBEDDING, OC_SITE_SCORES, OC_SITE_ATTENTION, OC_SITE_MLP };
uint32_t oc_seed(const struct oc_train *train, int layer, enum oc_site site);

/* A new mask for x, and what is left of x: a new tensor, with the dropped share zero and the rest made larger. */
struct oc_tensor *oc_dropout_mask(struct oc_train *train, const char *block, const struct oc_tensor *x);
struct oc_tensor *oc_dropout(struct oc_train *train, const char *block, float rate, uint32_t seed,
                             const struct oc_tensor *x, const struct oc_tensor *mask);
/* ... in place: x is what is left of it. */
void oc_drop_in_place(struct oc_train *train, float rate, uint32_t seed, const struct oc_tensor *x,
                      const struct oc_tensor *mask);
/* y = x through the mask; y may be x. */
void oc_dropout_backward(struct oc_train *train, float rate, const struct oc_tensor *mask, const struct oc_tensor *x,
                         const struct oc_tensor *y);

/* ---- norm.c, linear.c ---- */

/* c [rows, columns] = a [rows, inner] x b [inner, columns], or that added to c. */
void oc_product(struct oc_train *train, struct oc_matrix a, struct oc_matrix b, struct oc_matrix c, int64_t rows,
                int64_t columns, int64_t inner, bool accumulate);

struct oc_tensor *oc_norm(struct oc_train *train, struct oc_param *param, struct oc_tensor *x,
                          struct oc_norm_saved *saved);
struct oc_tensor *oc_norm_backward(struct oc_train *train, struct oc_param *param, struct oc_norm_saved *saved,
                                   struct oc_tensor **grad_n);
struct oc_tensor *oc_linear(struct oc_train *train, struct oc_param *param, struct oc_tensor *input,
                            struct oc_linear_saved *saved);
/* In pieces: casts and what backward needs; some rows of the output; the caller then lets go of the input. */
struct oc_tensor *oc_linear_begin(struct oc_train *train, struct oc_param *param, struct oc_tensor *input,
                                  struct oc_linear_saved *saved);
struct oc_tensor *oc_linear_rows(struct oc_train *train, struct oc_param *param, const struct oc_tensor *in,
                                 int64_t first, int64_t rows, const char *name);
struct oc_tensor *oc_linear_backward(struct oc_train *train, struct oc_param *param, struct oc_linear_saved *saved,
                                     struct oc_tensor **grad_out);

/* The autocast context ends: its cache lets go of the casts of weights. */
void oc_end_autocast(struct oc_train *train);

/* ---- layer_forward.c, layer_backward.c ---- */

struct oc_tensor *oc_layer_forward(struct oc_train *train, int layer, struct oc_tensor *x);

/* From the gradient of the layer's output, which it takes over, to that of its input. Under full recompute the forward
 * runs again first. */
struct oc_tensor *oc_layer_backward(struct oc_train *train, int layer, struct oc_tensor *d);

/* q, k or v as [sample, head, token, dim], and scores as [sample, head, query, key], for matrix products. */
struct oc_matrix oc_heads_matrix(const struct oc_train *train, const struct oc_tensor *tensor);
struct oc_matrix oc_scores_matrix(const struct oc_train *train, const struct oc_tensor *tensor);
struct oc_matrix oc_transposed(struct oc_matrix matrix);
void oc_attention_product(struct oc_train *train, struct oc_matrix a, struct oc_matrix b, struct oc_matrix c,
                          int64_t columns, int64_t inner);
struct oc_op_flash oc_flash_args(const struct oc_train *train);

/* Turns every head by its position, or back: a new tensor of type `dtype`. */
struct oc_tensor *oc_rope(struct oc_train *train, const char *name, enum oc_dtype dtype, const struct oc_tensor *x,
                          int64_t heads, bool backward);

/* ---- ddp.c: does nothing where train->ddp is NULL, but for oc_ddp_open() ---- */

bool oc_ddp_open(struct oc_train *train); /* false when out of host memory */
void oc_ddp_close(struct oc_train *train);
void oc_ddp_make_buckets(struct oc_train *train); /* once there are weights */
/* When the last micro-batch has run backward: gradients become their mean over all ranks. */
void oc_ddp_reduce(struct oc_train *train);
/* What takes a parameter's gradient in the last of several micro-batches, until which it was no view; else NULL. */
struct oc_tensor *oc_ddp_view(const struct oc_train *train, const struct oc_param *param);
/* Gradients are views, which nothing frees: whether they are there when the next iteration begins, or forgotten. */
bool oc_ddp_keeps_gradients(const struct oc_train *train);
bool oc_ddp_forgets_gradients(const struct oc_train *train);

/* ---- micro_batch.c, optimizer.c ---- */

/* Ids and labels of micro-batch train->micro_batch into train->ids and train->labels. */
void oc_write_data(struct oc_train *train);

/* Drops some of the embedding's output in place; returns the mask, which is saved. */
struct oc_tensor *oc_drop_embedding(struct oc_train *train, const struct oc_tensor *x);

/* The logits, in whatever type, become their own gradient; adds to the step's loss. */
void oc_fused_loss(struct oc_train *train, const struct oc_tensor *logits);

/* Of the workspace that cuBLAS takes for each thread that launches products. */
uint64_t oc_cublas_bytes(const struct oc_plan *plan);

/* Forward, loss and backward of micro-batch train->micro_batch. */
void oc_micro_batch(struct oc_train *train);

/* What lies behind a tensor of this rank's share of the states; NULL where nothing does. */
struct oc_tensor *oc_pad_share(struct oc_train *train, enum oc_dtype dtype);

/* The optimizer's persistent states; does nothing for those that exist. */
void oc_optimizer_states(struct oc_train *train);

/* clip_grad_norm_ and the check for overflow, optimizer.step(), the moment after it, and zero_grad. */
void oc_optimizer_step(struct oc_train *train);

/* One whole iteration: train->step counts from 0. */
void oc_train_step(struct oc_train *train);

#endif
