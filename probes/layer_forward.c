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
    struct oc_tensor *p, *dropped;           /* eager: the probabilities, which the layer returns */
};

static void flash(struct oc_train *train, int layer, struct oc_attention_saved *saved, struct frame *frame)
{
    (void)layer; /* a real kernel would drop inside and keep no mask; this one drops nothing */
    const bool cast = frame->q->array.dtype != (int)train->e; /* rope's tables left them in fp32 */
    if (cast) {
        frame->q_cast = oc_cast(train, ATTENTION, "qc", train->e, frame->q);
        frame->k_cast = oc_cast(train, ATTENTION, "kc", train->e, frame->k);
    }
    struct oc_tensor *q = cast ? frame->q_cast : frame->q, *k = cast ? frame->k_cast : frame->k;
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
static struct oc_tensor *repeated(struct oc_train *train, const char *name, struct oc_tensor *narrow)
{
    if (!train->repeats) return oc_tensor_hold(narrow);
    const enum oc_dtype dtype = (enum oc_dtype)narrow->array.dtype;
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

/* q k^T, scaled and masked: [batch, heads, seq, seq]. */
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
    struct oc_tensor *masked = oc_tensor_new(books, OC_ACTIVATIONS, ATTENTION, "scores.masked",
                                             train->half_scores ? train->e : train->r, train->scores);
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

static struct oc_tensor *softmax(struct oc_train *train, struct oc_tensor *scores)
{
    const bool widen = train->amp && train->half_scores; /* autocast's softmax reads fp32 */
    struct oc_tensor *in = widen ? oc_cast(train, ATTENTION, "scores.fp32", OC_FP32, scores) : oc_tensor_hold(scores);
    struct oc_tensor *p32 =
        oc_tensor_new(train->books, OC_ACTIVATIONS, ATTENTION, "p32", train->softmax, train->scores);
    struct oc_op_softmax args = {
        .n = (int64_t)p32->elements / train->seq, .x = in->array, .y = p32->array, .width = train->seq};
    oc_launch(train, OC_OP_softmax, &args);
    oc_let_go(train, &in);
    return p32;
}

/* From the softmax's output to the operand of the weighted sum, of type e; lets go of the scores on the way. What the
 * layer returns is left in frame->p and frame->dropped. */
static struct oc_tensor *probabilities(struct oc_train *train, int layer, struct oc_attention_saved *saved,
                                       struct oc_tensor *p32, struct oc_tensor **scores, struct frame *frame)
{
    const bool drops = train->attention_dropout > 0, early = drops && train->amp && train->half_scores;
    const bool narrow = train->softmax != train->r;
    const uint32_t seed = oc_seed(train, layer, OC_SITE_SCORES);
    frame->p = narrow ? oc_cast(train, ATTENTION, "p", train->r, p32) : oc_tensor_hold(p32);
    struct oc_tensor *p = early ? oc_cast(train, ATTENTION, "p", train->e, p32) : oc_tensor_hold(frame->p);
    struct oc_tensor *mask = drops ? oc_dropout_mask(train, ATTENTION, p) : NULL, *operand = NULL;
    if (drops && !early) frame->dropped = oc_dropout(train, ATTENTION, train->attention_dropout, seed, p, mask);
    oc_let_go(train, scores);
    if (early)
        operand = oc_dropout(train, ATTENTION, train->attention_dropout, seed, p, mask);
    else if (train->amp)
        operand = oc_cast(train, ATTENTION, "pc", train->e, drops ? frame->dropped : p);
    else
        operand = oc_tensor_hold(drops ? frame->dropped : p);
    if (mask) saved->mask = oc_save(train, mask);
    oc_let_go(train, &mask);
    oc_let_go(train, &p);
    if (drops && narrow) oc_let_go(train, &frame->p);
    return operand;
}

static void eager(struct oc_train *train, int layer, struct oc_attention_saved *saved, struct frame *frame)
{
    struct oc_tensor *kr = repeated(train, "kr", frame->k), *vr = repeated(train, "vr", frame->v);
    struct oc_tensor *q = contiguous(train, "qc", frame->q, false), *k = contiguous(train, "kc", kr, train->repeats);
    saved->q = oc_save(train, q);
    saved->k = oc_save(train, k);
    struct oc_tensor *scores = masked_scores(train, q, k);
    struct oc_tensor *p32 = softmax(train, scores);
    struct oc_tensor *p = probabilities(train, layer, saved, p32, &scores, frame);
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

/* q, k and v of the norm's output, turned by their positions where the model does that. */
static void project(struct oc_train *train, int layer, struct oc_tensor *n, struct frame *frame)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *q, *k;
    if (train->fused_qkv) { /* one matrix, three results */
        struct oc_param *qkv = oc_train_param(train, layer, OC_P_QKV);
        struct oc_tensor *in = oc_linear_begin(train, qkv, n, &saved->q);
        q = oc_linear_rows(train, qkv, in, 0, train->q, "q");
        k = oc_linear_rows(train, qkv, in, train->q, train->kv, "k");
        frame->v = oc_linear_rows(train, qkv, in, train->q + train->kv, train->kv, "v");
        oc_let_go(train, &in);
    } else {
        q = oc_linear(train, oc_train_param(train, layer, OC_P_Q), n, &saved->q);
        k = oc_linear(train, oc_train_param(train, layer, OC_P_K), n, &saved->k);
        frame->v = oc_linear(train, oc_train_param(train, layer, OC_P_V), n, &saved->v);
    }
    frame->q = train->rope ? oc_rope(train, "qe", train->r, q, train->heads, false) : oc_tensor_hold(q);
    frame->k = train->rope ? oc_rope(train, "ke", train->r, k, train->kv_heads, false) : oc_tensor_hold(k);
    oc_let_go(train, &q);
    oc_let_go(train, &k);
}

/* The output of attention or MLP after dropout; NULL where the model has none. */
static struct oc_tensor *drop(struct oc_train *train, const char *block, uint32_t seed, const struct oc_tensor *branch,
                              struct oc_tensor **saved_mask)
{
    if (train->dropout == 0) return NULL;
    struct oc_tensor *mask = oc_dropout_mask(train, block, branch);
    struct oc_tensor *dropped = oc_dropout(train, block, train->dropout, seed, branch, mask);
    *saved_mask = oc_save(train, mask);
    oc_let_go(train, &mask);
    return dropped;
}

/* x + dropped, or x + branch: a new tensor. Takes the branch over. */
static struct oc_tensor *add_branch(struct oc_train *train, const char *name, const struct oc_tensor *x,
                                    struct oc_tensor *branch, struct oc_tensor *dropped)
{
    struct oc_tensor *sum = oc_activation(train, "layers", name, train->r, train->tokens, train->hidden);
    oc_blend(train, x, 1.0f, dropped ? dropped : branch, 1.0f, sum);
    oc_let_go(train, &branch);
    oc_let_go(train, &dropped);
    return sum;
}

/* x1 = x + attention(norm(x)). The probabilities of eager attention are left in *frame: the layer returns them. */
static struct oc_tensor *attention_block(struct oc_train *train, int layer, struct oc_tensor *x, struct frame *frame)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *n = oc_norm(train, oc_train_param(train, layer, OC_P_NORM1), x, &saved->norm1);
    project(train, layer, n, frame);
    (train->eager ? eager : flash)(train, layer, &saved->attention, frame);
    struct oc_tensor *a = oc_linear(train, oc_train_param(train, layer, OC_P_O), frame->out, &saved->o);
    struct oc_tensor *dropped =
        drop(train, "layers.attention.projected", oc_seed(train, layer, OC_SITE_ATTENTION), a, &saved->mask1);
    struct oc_tensor **const done[] = {&frame->q,      &frame->k,   &frame->v,   &frame->q_cast,
                                       &frame->k_cast, &frame->lse, &frame->out, &n};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) oc_let_go(train, done[i]);
    return add_branch(train, "x1", x, a, dropped);
}

static struct oc_tensor *activated(struct oc_train *train, const struct oc_tensor *x, const char *name)
{
    struct oc_tensor *y = oc_activation(train, MLP, name, train->e, train->tokens, train->ffn);
    struct oc_op_activate args = {
        .n = (int64_t)y->elements, .x = x->array, .y = y->array, .function = (int)train->function};
    oc_launch(train, OC_OP_activate, &args);
    return y;
}

/* f(gate(n2)) x up(n2): what the last linear reads. */
static struct oc_tensor *gated(struct oc_train *train, int layer, struct oc_tensor *n2)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *g = oc_linear(train, oc_train_param(train, layer, OC_P_GATE), n2, &saved->gate);
    struct oc_tensor *sg = activated(train, g, "silu");
    saved->g = oc_save(train, g);
    oc_let_go(train, &g);
    struct oc_tensor *u = oc_linear(train, oc_train_param(train, layer, OC_P_UP), n2, &saved->up);
    struct oc_tensor *p2 = oc_activation(train, MLP, "product", train->e, train->tokens, train->ffn);
    oc_multiply(train, sg, u, OC_EACH, train->ffn, p2);
    saved->sg = oc_save(train, sg);
    saved->u = oc_save(train, u);
    oc_let_go(train, &sg);
    oc_let_go(train, &u);
    return p2;
}

/* f(up(n2)) */
static struct oc_tensor *plain(struct oc_train *train, int layer, struct oc_tensor *n2)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *u = oc_linear(train, oc_train_param(train, layer, OC_P_UP), n2, &saved->up);
    struct oc_tensor *p2 = activated(train, u, "activated");
    saved->g = oc_save(train, u);
    oc_let_go(train, &u);
    return p2;
}

/* y = x1 + mlp(norm(x1)) */
static struct oc_tensor *mlp_block(struct oc_train *train, int layer, struct oc_tensor *x1)
{
    struct oc_layer_saved *saved = &train->saved[layer];
    struct oc_tensor *n2 = oc_norm(train, oc_train_param(train, layer, OC_P_NORM2), x1, &saved->norm2);
    struct oc_tensor *p2 = (train->gated ? gated : plain)(train, layer, n2);
    struct oc_tensor *m = oc_linear(train, oc_train_param(train, layer, OC_P_DOWN), p2, &saved->down);
    struct oc_tensor *dropped =
        drop(train, "layers.mlp.projected", oc_seed(train, layer, OC_SITE_MLP), m, &saved->mask2);
    oc_let_go(train, &p2);
    oc_let_go(train, &n2);
    return add_branch(train, "y", x1, m, dropped);
}

struct oc_tensor *oc_layer_forward(struct oc_train *train, int layer, struct oc_tensor *x)
{
    struct frame frame = {0};
    struct oc_tensor *x1 = attention_block(train, layer, x, &frame);
    struct oc_tensor *y = mlp_block(train, layer, x1);
    oc_let_go(train, &x1);
    oc_let_go(train, &frame.p);
    oc_let_go(train, &frame.dropped);
    return y;
}
