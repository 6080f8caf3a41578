/* One decoder layer, forward: x -> y. In grad mode what backward needs is kept; otherwise (the forward of a
 * checkpointed layer) everything is freed as soon as its frame lets go. */
#include <math.h>

#include "probes/train.h"

static const char *const ATTENTION = "layers.attention", *const MLP = "layers.mlp";

/* ---- How q, k, v and scores lie in memory ---- */

struct oc_matrix oc_heads_matrix(const struct oc_train *train, const struct oc_tensor *tensor)
{
    return (struct oc_matrix){
        .array = tensor->array, .row = train->q, .column = 1, .sample = train->seq * train->q, .head = train->head_dim};
}

struct oc_matrix oc_scores_matrix(const struct oc_train *train, const struct oc_tensor *tensor)
{
    const int64_t square = train->seq * train->seq;
    return (struct oc_matrix){
        .array = tensor->array, .row = train->seq, .column = 1, .sample = train->heads * square, .head = square};
}

struct oc_matrix oc_transposed(struct oc_matrix matrix)
{
    const int64_t row = matrix.row;
    matrix.row = matrix.column;
    matrix.column = row;
    return matrix;
}

void oc_attention_product(struct oc_train *train, struct oc_matrix a, struct oc_matrix b, struct oc_matrix c,
                          int64_t columns, int64_t inner)
{
    struct oc_op_matmul args = {
        .rows = train->seq, .columns = columns, .inner = inner, .heads = train->heads, .a = a, .b = b, .c = c, .n = 0};
    args.n = train->samples * train->heads * ((train->seq + 63) / 64) * ((columns + 63) / 64);
    oc_launch(train, OC_OP_matmul, &args);
}

struct oc_op_flash oc_flash_args(const struct oc_train *train)
{
    return (struct oc_op_flash){.seq = train->seq,
                                .heads = train->heads,
                                .kv_heads = train->kv_heads,
                                .head_dim = train->head_dim,
                                .scale = 1.0f / sqrtf((float)train->head_dim)};
}

struct oc_tensor *oc_rope(struct oc_train *train, const char *name, enum oc_dtype dtype, const struct oc_tensor *x,
                          int64_t heads, bool backward)
{
    struct oc_tensor *y = oc_activation(train, ATTENTION, name, dtype, train->tokens, heads * train->head_dim);
    struct oc_op_rope args = {.n = (int64_t)y->elements,
                              .x = x->array,
                              .y = y->array,
                              .cosine = train->cosine->array,
                              .sine = train->sine->array,
                              .head_dim = train->head_dim,
                              .heads = heads,
                              .seq = train->seq,
                              .backward = backward};
    oc_launch(train, OC_OP_rope, &args);
    return y;
}

/* ---- Attention. Its frame holds q, k and v (after rope) and what it made until the output projection has run ---- */

struct frame {
    struct oc_tensor *q, *k, *v;
    struct oc_tensor *q_cast, *k_cast, *lse; /* flash */
    struct oc_tensor *out;                   /* [T,q] of type e, what the output projection reads */
    struct oc_tensor *p;                     /* eager: the probabilities, which the layer returns */
};

static void flash(struct oc_train *train, struct oc_attention_saved *saved, struct frame *frame)
{
    if (train->amp) {
        frame->q_cast = oc_cast(train, ATTENTION, "qc", train->e, frame->q);
        frame->k_cast = oc_cast(train, ATTENTION, "kc", train->e, frame->k);
    }
    struct oc_tensor *q = train->amp ? frame->q_cast : frame->q, *k = train->amp ? frame->k_cast : frame->k;
    frame->out = oc_activation(train, ATTENTION, "context", train->e, train->tokens, train->q);
    frame->lse = oc_activation(train, ATTENTION, "lse", OC_FP32, train->tokens, train->heads);
    struct oc_op_flash args = oc_flash_args(train);
    args.n = train->samples * train->heads * train->seq;
    args.q = q->array, args.k = k->array, args.v = frame->v->array;
    args.o = frame->out->array, args.lse = frame->lse->array;
    oc_launch(train, OC_OP_flash, &args);
    saved->q = oc_save(train, q);
    saved->k = oc_save(train, k);
    saved->v = oc_save(train, frame->v);
    saved->o = oc_save(train, frame->out);
    saved->lse = oc_save(train, frame->lse);
}

/* k or v with each head repeated for the query heads of its group. */
static struct oc_tensor *repeated(struct oc_train *train, const char *name, enum oc_dtype dtype,
                                  struct oc_tensor *narrow)
{
    if (!train->repeats) return oc_tensor_hold(narrow);
    struct oc_tensor *wide = oc_activation(train, ATTENTION, name, dtype, train->tokens, train->q);
    struct oc_op_repeat args = {.n = (int64_t)wide->elements,
                                .narrow = narrow->array,
                                .wide = wide->array,
                                .head_dim = train->head_dim,
                                .heads = train->heads,
                                .kv_heads = train->kv_heads};
    oc_launch(train, OC_OP_repeat, &args);
    return wide;
}

/* What a batched product reads: heads lie apart in memory, so with more than one sample it takes a copy; `whole` is
 * true of a tensor that was made contiguous already. Under autocast the cast is that copy. */
static struct oc_tensor *contiguous(struct oc_train *train, const char *name, struct oc_tensor *tensor, bool whole)
{
    if (tensor->array.dtype == (int)train->e && (whole || train->samples == 1)) return oc_tensor_hold(tensor);
    return oc_cast(train, ATTENTION, name, train->e, tensor);
}

/* q k^T, scaled and masked: [batch, heads, seq, seq] of type r. */
static struct oc_tensor *masked_scores(struct oc_train *train, const struct oc_tensor *q, const struct oc_tensor *k)
{
    struct oc_books *books = train->books;
    struct oc_tensor *s = oc_tensor_new(books, OC_ACTIVATIONS, ATTENTION, "scores", train->e, train->scores);
    oc_attention_product(train, oc_heads_matrix(train, q), oc_transposed(oc_heads_matrix(train, k)),
                         oc_scores_matrix(train, s), train->seq, train->head_dim);
    struct oc_tensor *scaled =
        oc_tensor_new(books, OC_ACTIVATIONS, ATTENTION, "scores.scaled", train->e, train->scores);
    oc_blend(train, s, 1.0f / sqrtf((float)train->head_dim), NULL, 0.0f, scaled);
    oc_let_go(train, &s);
    struct oc_tensor *masked =
        oc_tensor_new(books, OC_ACTIVATIONS, ATTENTION, "scores.masked", train->r, train->scores);
    struct oc_op_mask args = {.n = (int64_t)masked->elements,
                              .mask = train->mask->array,
                              .x = scaled->array,
                              .y = masked->array,
                              .seq = train->seq,
                              .heads = train->heads};
    oc_launch(train, OC_OP_mask_add, &args);
    oc_let_go(train, &scaled);
    return masked;
}

static struct oc_tensor *softmax(struct oc_train *train, const struct oc_tensor *scores)
{
    struct oc_tensor *p32 = oc_tensor_new(train->books, OC_ACTIVATIONS, ATTENTION, "p32", OC_FP32, train->scores);
    struct oc_op_softmax args = {
        .n = (int64_t)p32->elements / train->seq, .x = scores->array, .y = p32->array, .width = train->seq};
    oc_launch(train, OC_OP_softmax, &args);
    return p32;
}

static void eager(struct oc_train *train, struct oc_attention_saved *saved, struct frame *frame)
{
    const bool half = train->r != OC_FP32;
    struct oc_tensor *kr = repeated(train, "kr", train->r, frame->k), *vr = repeated(train, "vr", train->e, frame->v);
    struct oc_tensor *q = contiguous(train, "qc", frame->q, false), *k = contiguous(train, "kc", kr, train->repeats);
    saved->q = oc_save(train, q);
    saved->k = oc_save(train, k);
    struct oc_tensor *scores = masked_scores(train, q, k);
    struct oc_tensor *p32 = softmax(train, scores);
    frame->p = half ? oc_cast(train, ATTENTION, "p", train->r, p32) : oc_tensor_hold(p32);
    oc_let_go(train, &scores);
    struct oc_tensor *p = train->amp ? oc_cast(train, ATTENTION, "pc", train->e, p32) : oc_tensor_hold(frame->p);
    struct oc_tensor *v = contiguous(train, "vc", vr, train->repeats);
    saved->p32 = oc_save(train, p32);
    saved->p = oc_save(train, p);
    saved->v = oc_save(train, v);

    struct oc_tensor *o = oc_activation(train, ATTENTION, "heads", train->e, train->tokens, train->q);
    oc_attention_product(train, oc_scores_matrix(train, p), oc_heads_matrix(train, v), oc_heads_matrix(train, o),
                         train->head_dim, train->seq);
    struct oc_tensor **const done[] = {&kr, &vr, &q, &k, &v, &p, &p32};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) oc_let_go(train, done[i]);
    frame->out = oc_cast(train, ATTENTION, "context", train->e, o);
    oc_let_go(train, &o);
}

/* ---- The layer ---- */

/* x1 = x + attention(norm(x)). The probabilities of eager attention are left in *p, which the layer returns. */
static struct oc_tensor *attention_block(struct oc_train *train, int layer, struct oc_tensor *x, struct oc_tensor **p)
{
    struct oc_param *params = oc_train_layer(train, layer);
    struct oc_layer_saved *saved = &train->saved[layer];
    struct frame frame = {0};
    struct oc_tensor *n = oc_norm(train, &params[OC_P_NORM1], x, &saved->norm1);
    struct oc_tensor *q = oc_linear(train, &params[OC_P_Q], n, &saved->q);
    struct oc_tensor *k = oc_linear(train, &params[OC_P_K], n, &saved->k);
    frame.v = oc_linear(train, &params[OC_P_V], n, &saved->v);
    frame.q = oc_rope(train, "qe", train->r, q, train->heads, false);
    frame.k = oc_rope(train, "ke", train->r, k, train->kv_heads, false);
    oc_let_go(train, &q);
    oc_let_go(train, &k);

    (train->eager ? eager : flash)(train, &saved->attention, &frame);
    struct oc_tensor *a = oc_linear(train, &params[OC_P_O], frame.out, &saved->o);
    struct oc_tensor **const done[] = {&frame.q,      &frame.k,   &frame.v,   &frame.q_cast,
                                       &frame.k_cast, &frame.lse, &frame.out, &n};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) oc_let_go(train, done[i]);
    struct oc_tensor *x1 = oc_activation(train, "layers", "x1", train->r, train->tokens, train->hidden);
    oc_blend(train, x, 1.0f, a, 1.0f, x1);
    oc_let_go(train, &a);
    *p = frame.p;
    return x1;
}

/* m = down(silu(gate(n2)) x up(n2)) with n2 = norm(x1). */
static struct oc_tensor *mlp_block(struct oc_train *train, int layer, struct oc_tensor *x1)
{
    struct oc_param *params = oc_train_layer(train, layer);
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *n2 = oc_norm(train, &params[OC_P_NORM2], x1, &saved->norm2);
    struct oc_tensor *g = oc_linear(train, &params[OC_P_GATE], n2, &saved->gate);
    struct oc_tensor *sg = oc_activation(train, MLP, "silu", train->e, train->tokens, train->ffn);
    oc_launch(train, OC_OP_silu, &(struct oc_op_silu){.n = (int64_t)sg->elements, .x = g->array, .y = sg->array});
    saved->g = oc_save(train, g);
    oc_let_go(train, &g);
    struct oc_tensor *u = oc_linear(train, &params[OC_P_UP], n2, &saved->up);
    struct oc_tensor *p2 = oc_activation(train, MLP, "product", train->e, train->tokens, train->ffn);
    oc_multiply(train, sg, u, OC_EACH, train->ffn, p2);
    saved->sg = oc_save(train, sg);
    saved->u = oc_save(train, u);
    oc_let_go(train, &sg);
    oc_let_go(train, &u);
    struct oc_tensor *m = oc_linear(train, &params[OC_P_DOWN], p2, &saved->down);
    oc_let_go(train, &p2);
    oc_let_go(train, &n2);
    return m;
}

struct oc_tensor *oc_layer_forward(struct oc_train *train, int layer, struct oc_tensor *x)
{
    struct oc_tensor *p = NULL;
    struct oc_tensor *x1 = attention_block(train, layer, x, &p);
    struct oc_tensor *m = mlp_block(train, layer, x1);
    struct oc_tensor *y = oc_activation(train, "layers", "y", train->r, train->tokens, train->hidden);
    oc_blend(train, x1, 1.0f, m, 1.0f, y);
    oc_let_go(train, &m);
    oc_let_go(train, &x1);
    oc_let_go(train, &p);
    return y;
}
