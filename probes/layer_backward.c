/* One decoder layer, backward: from the gradient d of its output to that of its input. Each operation lets go of what
 * it saved once it has run. The number in brackets is the step of "layer backward" in docs/step-pytorch.md. */
#include "probes/train.h"

static const char *const ATTENTION = "layers.attention", *const MLP = "layers.mlp";

/* The gradient that a linear of type e reads: d itself, or its cast under autocast; behind dropout, d through the mask
 * first. */
static struct oc_tensor *as_operand(struct oc_train *train, const char *block, struct oc_tensor *d,
                                    struct oc_linear_saved *saved, struct oc_tensor **mask)
{
    if (*mask) {
        struct oc_tensor *passed = oc_activation(train, block, "grad.dropout", train->r, train->tokens, train->hidden);
        oc_dropout_backward(train, train->dropout, *mask, d, passed);
        if (!train->amp) return passed;
        saved->with_grad = d = passed;
    }
    return train->amp ? oc_cast(train, block, "grad.out_cast", train->e, d) : oc_tensor_hold(d);
}

/* Backward of the linear at the end of attention or MLP, from the gradient d of its output. */
static struct oc_tensor *branch_backward(struct oc_train *train, const char *block, struct oc_param *param,
                                         struct oc_linear_saved *saved, struct oc_tensor **mask, struct oc_tensor *d)
{
    struct oc_tensor *out = as_operand(train, block, d, saved, mask);
    oc_let_go(train, mask);
    return oc_linear_backward(train, param, saved, &out);
}

/* *sum += *part, and lets go of the part. */
static void add_into(struct oc_train *train, const struct oc_tensor *sum, struct oc_tensor **part)
{
    oc_blend(train, sum, 1.0f, *part, 1.0f, sum);
    oc_let_go(train, part);
}

static struct oc_tensor *activate_backward(struct oc_train *train, const struct oc_tensor *x, const char *name,
                                           const struct oc_tensor *dy)
{
    struct oc_tensor *dx = oc_activation(train, MLP, name, train->e, train->tokens, train->ffn);
    struct oc_op_activate args = {
        .n = (int64_t)dx->elements, .x = x->array, .dy = dy->array, .dx = dx->array, .function = (int)train->function};
    oc_launch(train, OC_OP_activate_backward, &args);
    return dx;
}

/* [2] [3]: from the gradient dp of f(g) x u to that of n2. */
static struct oc_tensor *gated_backward(struct oc_train *train, int layer, struct oc_tensor *dp)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    const int64_t tokens = train->tokens, f = train->ffn;
    struct oc_tensor *dsg = oc_activation(train, MLP, "grad.silu", train->e, tokens, f);
    oc_multiply(train, dp, saved->u, OC_EACH, f, dsg);
    struct oc_tensor *du = oc_activation(train, MLP, "grad.up", train->e, tokens, f);
    oc_multiply(train, dp, saved->sg, OC_EACH, f, du);
    oc_let_go(train, &saved->sg);
    oc_let_go(train, &saved->u);
    oc_let_go(train, &dp);

    struct oc_tensor *dn2 = oc_linear_backward(train, oc_train_param(train, layer, OC_P_UP), &saved->up, &du);
    struct oc_tensor *dg = activate_backward(train, saved->g, "grad.gate", dsg);
    oc_let_go(train, &saved->g);
    oc_let_go(train, &dsg);
    struct oc_tensor *part = oc_linear_backward(train, oc_train_param(train, layer, OC_P_GATE), &saved->gate, &dg);
    add_into(train, dn2, &part);
    return dn2;
}

/* ... of f(u) */
static struct oc_tensor *plain_backward(struct oc_train *train, int layer, struct oc_tensor *dp)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *du = activate_backward(train, saved->g, "grad.up", dp);
    oc_let_go(train, &saved->g);
    oc_let_go(train, &dp);
    return oc_linear_backward(train, oc_train_param(train, layer, OC_P_UP), &saved->up, &du);
}

/* [1] [2] [3]: the gradient of n2. */
static struct oc_tensor *mlp_backward(struct oc_train *train, int layer, struct oc_tensor *d)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *dp =
        branch_backward(train, MLP, oc_train_param(train, layer, OC_P_DOWN), &saved->down, &saved->mask2, d);
    return (train->gated ? gated_backward : plain_backward)(train, layer, dp);
}

/* ---- [6] Attention: gradients of q and k after rope, and of v ---- */

struct gradients {
    struct oc_tensor *q, *k, *v;
};

static struct gradients flash_backward(struct oc_train *train, struct oc_attention_saved *saved,
                                       struct oc_tensor **grad_o)
{
    const int64_t tokens = train->tokens;
    struct gradients grad;
    grad.q = oc_activation(train, ATTENTION, "grad.qe", train->e, tokens, train->q);
    grad.k = oc_activation(train, ATTENTION, "grad.ke", train->e, tokens, train->kv);
    grad.v = oc_activation(train, ATTENTION, "grad.v", train->e, tokens, train->kv);
    struct oc_tensor *delta = oc_activation(train, ATTENTION, "grad.delta", OC_FP32, tokens, train->heads);

    struct oc_op_flash args = oc_flash_args(train);
    args.q = saved->q->array, args.k = saved->k->array, args.v = saved->v->array;
    args.o = saved->o->array, args.lse = saved->lse->array, args.grad_o = (*grad_o)->array;
    args.delta = delta->array, args.dq = grad.q->array, args.dk = grad.k->array, args.dv = grad.v->array;
    args.n = train->samples * train->heads * train->seq;
    oc_launch(train, OC_OP_flash_dq, &args);
    args.n = train->samples * train->kv_heads * train->seq;
    oc_launch(train, OC_OP_flash_dkv, &args);
    oc_let_go(train, &delta);
    oc_let_go(train, &saved->q);
    oc_let_go(train, &saved->k);
    oc_let_go(train, &saved->v);
    oc_let_go(train, &saved->o);
    oc_let_go(train, &saved->lse);
    oc_let_go(train, grad_o);
    return grad;
}

static struct oc_tensor *scores(struct oc_train *train, const char *name, enum oc_dtype dtype)
{
    return oc_tensor_new(train->books, OC_ACTIVATIONS, ATTENTION, name, dtype, train->scores);
}

/* The gradient *dp, let go, in another type. */
static void recast(struct oc_train *train, const char *name, enum oc_dtype dtype, struct oc_tensor **dp)
{
    struct oc_tensor *before = *dp;
    *dp = oc_cast(train, ATTENTION, name, dtype, before);
    oc_let_go(train, &before);
}

/* Through the mask of dropout over the probabilities: a new tensor; NULL where there is none. */
static struct oc_tensor *undrop(struct oc_train *train, struct oc_attention_saved *saved, const struct oc_tensor *dp)
{
    if (!saved->mask) return NULL;
    struct oc_tensor *passed = scores(train, "grad.dropout", (enum oc_dtype)dp->array.dtype);
    oc_dropout_backward(train, train->attention_dropout, saved->mask, dp, passed);
    return passed;
}

/* From the gradient of the probabilities to that of the softmax's output: through dropout, and to fp32 where the
 * softmax ran in it, in the order in which forward went the other way. Both steps that lie between are the caller's to
 * let go of. */
static void to_softmax(struct oc_train *train, struct oc_attention_saved *saved, struct oc_tensor **dp,
                       struct oc_tensor **passed)
{
    const bool late = train->amp && !train->half_scores; /* dropout ran on fp32 probabilities */
    *passed = late ? NULL : undrop(train, saved, *dp);
    if (train->softmax != train->e) {
        struct oc_tensor *wide = oc_cast(train, ATTENTION, "grad.p32", OC_FP32, *passed ? *passed : *dp);
        oc_let_go(train, dp);
        *dp = wide;
        if (train->amp) oc_let_go(train, passed);
    }
    if (late) *passed = undrop(train, saved, *dp);
    oc_let_go(train, &saved->mask);
}

/* From the gradient of the probabilities *dp (let go) to that of the unscaled scores, of type e. */
static struct oc_tensor *softmax_backward(struct oc_train *train, struct oc_attention_saved *saved,
                                          struct oc_tensor **dp)
{
    struct oc_tensor *passed;
    to_softmax(train, saved, dp, &passed);
    const bool last = passed && passed->array.dtype == (int)train->softmax; /* of the two, the one nearer to softmax */
    struct oc_tensor *ds = scores(train, "grad.masked", train->r);
    struct oc_op_softmax args = {.n = (int64_t)ds->elements / train->seq,
                                 .y = saved->p32->array,
                                 .dy = last ? passed->array : (*dp)->array,
                                 .dx = ds->array,
                                 .width = train->seq};
    oc_launch(train, OC_OP_softmax_backward, &args);
    oc_let_go(train, &saved->p32);
    oc_let_go(train, &passed);
    oc_let_go(train, dp);
    if (train->amp) recast(train, "grad.masked_cast", train->e, &ds);
    struct oc_tensor *unscaled = scores(train, "grad.scores", train->e);
    oc_blend(train, ds, oc_flash_args(train).scale, NULL, 0.0f, unscaled);
    oc_let_go(train, &ds);
    return unscaled;
}

/* Sums the gradients of repeated heads: *wide [T,q] is let go, [T,k] returned. */
static struct oc_tensor *summed(struct oc_train *train, const char *name, struct oc_tensor **wide)
{
    struct oc_tensor *narrow = oc_activation(train, ATTENTION, name, train->e, train->tokens, train->kv);
    struct oc_op_repeat args = {.n = (int64_t)narrow->elements,
                                .narrow = narrow->array,
                                .wide = (*wide)->array,
                                .head_dim = train->head_dim,
                                .heads = train->heads,
                                .kv_heads = train->kv_heads};
    oc_launch(train, OC_OP_repeat_backward, &args);
    oc_let_go(train, wide);
    return narrow;
}

static struct gradients eager_backward(struct oc_train *train, struct oc_attention_saved *saved,
                                       struct oc_tensor **grad_o)
{
    const int64_t seq = train->seq, dim = train->head_dim;
    struct gradients grad;
    struct oc_matrix grad_out = oc_heads_matrix(train, *grad_o);
    struct oc_tensor *dp = scores(train, "grad.p", train->e);
    oc_attention_product(train, grad_out, oc_transposed(oc_heads_matrix(train, saved->v)), oc_scores_matrix(train, dp),
                         seq, dim);
    grad.v = oc_activation(train, ATTENTION, "grad.vr", train->e, train->tokens, train->q);
    oc_attention_product(train, oc_transposed(oc_scores_matrix(train, saved->p)), grad_out,
                         oc_heads_matrix(train, grad.v), dim, seq);
    oc_let_go(train, &saved->p);
    oc_let_go(train, &saved->v);
    oc_let_go(train, grad_o);

    struct oc_tensor *ds = softmax_backward(train, saved, &dp);
    grad.q = oc_activation(train, ATTENTION, "grad.qe", train->e, train->tokens, train->q);
    oc_attention_product(train, oc_scores_matrix(train, ds), oc_heads_matrix(train, saved->k),
                         oc_heads_matrix(train, grad.q), dim, seq);
    grad.k = oc_activation(train, ATTENTION, "grad.kr", train->e, train->tokens, train->q);
    oc_attention_product(train, oc_transposed(oc_scores_matrix(train, ds)), oc_heads_matrix(train, saved->q),
                         oc_heads_matrix(train, grad.k), dim, seq);
    oc_let_go(train, &saved->q);
    oc_let_go(train, &saved->k);
    oc_let_go(train, &ds);
    if (train->repeats) {
        grad.v = summed(train, "grad.v", &grad.v);
        grad.k = summed(train, "grad.ke", &grad.k);
    }
    return grad;
}

/* Autocast cast q and k from fp32: their gradients go back to it. */
static struct oc_tensor *cast_back(struct oc_train *train, const char *name, struct oc_tensor **grad)
{
    struct oc_tensor *wide = oc_cast(train, ATTENTION, name, OC_FP32, *grad);
    oc_let_go(train, grad);
    return wide;
}

static struct oc_tensor *unrope(struct oc_train *train, const char *name, struct oc_tensor **grad, int64_t heads)
{
    struct oc_tensor *turned = oc_rope(train, name, train->e, *grad, heads, true);
    oc_let_go(train, grad);
    return turned;
}

/* [7] One matrix for q, k and v: their gradients in one tensor, with which that of q goes. Takes the three over. */
static struct oc_tensor *fused_projection_backward(struct oc_train *train, int layer, struct gradients *grad)
{
    const int64_t width = train->q + 2 * train->kv;
    struct oc_tensor *dqkv = oc_activation(train, ATTENTION, "grad.qkv", train->e, train->tokens, width);
    struct oc_tensor *const parts[] = {grad->q, grad->k, grad->v};
    const int64_t widths[] = {train->q, train->kv, train->kv}, firsts[] = {0, train->q, train->q + train->kv};
    for (int i = 0; i < 3; i++) {
        struct oc_op_place args = {.n = (int64_t)parts[i]->elements,
                                   .x = parts[i]->array,
                                   .y = dqkv->array,
                                   .width = widths[i],
                                   .pitch = width,
                                   .first = firsts[i]};
        oc_launch(train, OC_OP_place, &args);
    }
    oc_let_go(train, &grad->v);
    oc_let_go(train, &grad->k);
    struct oc_linear_saved *saved = &train->saved[layer].q;
    saved->with_grad = grad->q;
    grad->q = NULL;
    return oc_linear_backward(train, oc_train_param(train, layer, OC_P_QKV), saved, &dqkv);
}

/* [7] */
static struct oc_tensor *projection_backward(struct oc_train *train, int layer, struct gradients *grad)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    if (train->fused_qkv) return fused_projection_backward(train, layer, grad);
    struct oc_tensor *dn = oc_linear_backward(train, oc_train_param(train, layer, OC_P_V), &saved->v, &grad->v);
    struct oc_tensor *part = oc_linear_backward(train, oc_train_param(train, layer, OC_P_K), &saved->k, &grad->k);
    add_into(train, dn, &part);
    part = oc_linear_backward(train, oc_train_param(train, layer, OC_P_Q), &saved->q, &grad->q);
    add_into(train, dn, &part);
    return dn;
}

/* [5] [6] [7]: the gradient of n. */
static struct oc_tensor *attention_backward(struct oc_train *train, int layer, struct oc_tensor *d)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *grad_o =
        branch_backward(train, ATTENTION, oc_train_param(train, layer, OC_P_O), &saved->o, &saved->mask1, d);
    struct gradients grad = (train->eager ? eager_backward : flash_backward)(train, &saved->attention, &grad_o);
    if (train->rope && train->amp) {
        grad.q = cast_back(train, "grad.qe32", &grad.q);
        grad.k = cast_back(train, "grad.ke32", &grad.k);
    }
    if (train->rope) {
        grad.k = unrope(train, "grad.k", &grad.k, train->kv_heads);
        grad.q = unrope(train, "grad.q", &grad.q, train->heads);
    }
    return projection_backward(train, layer, &grad);
}

/* ---- The layer ---- */

/* The forward again, in grad mode, autocast casting weights anew. Returns its output, which nobody reads. */
static struct oc_tensor *recompute(struct oc_train *train, int layer)
{
    oc_train_at(train, OC_PH_RECOMPUTE, OC_PART_LAYER, layer);
    train->grad_mode = true;
    struct oc_tensor *y = oc_layer_forward(train, layer, train->saved[layer].input);
    oc_end_autocast(train);
    if (train->options->drop) oc_books_drop(train->books, train->options->drop);
    return y;
}

struct oc_tensor *oc_layer_backward(struct oc_train *train, int layer, struct oc_tensor *d)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *y = train->recompute ? recompute(train, layer) : NULL;
    oc_train_at(train, OC_PH_BACKWARD, OC_PART_LAYER, layer);

    struct oc_tensor *dn2 = mlp_backward(train, layer, d);
    struct oc_tensor *part =
        oc_norm_backward(train, oc_train_param(train, layer, OC_P_NORM2), &saved->norm2, &dn2); /* [4] */
    struct oc_tensor *sum;
    if (train->recompute) { /* the checkpoint still holds d, so that the sum needs a tensor of its own */
        sum = oc_activation(train, "layers", "grad.x1", train->r, train->tokens, train->hidden);
        oc_blend(train, d, 1.0f, part, 1.0f, sum);
        oc_let_go(train, &part);
    } else {
        sum = oc_tensor_hold(d);
        add_into(train, sum, &part);
    }
    struct oc_tensor *dn = attention_backward(train, layer, sum);
    part = oc_norm_backward(train, oc_train_param(train, layer, OC_P_NORM1), &saved->norm1, &dn); /* [8] */
    add_into(train, sum, &part);
    oc_let_go(train, &y);
    oc_let_go(train, &d);
    oc_let_go(train, &saved->input);
    return sum;
}
