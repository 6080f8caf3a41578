/* Attention of one tensor-parallel rank: flash, or scale, mask and softmax in one kernel that keeps the probabilities.
 * What core_attn recompute frees in forward is made again at the beginning of backward. */
#include <math.h>

#include "probes/te.h"

static const char *const ATTENTION = "layers.attention";

static struct oc_tensor *scores(struct oc_train *train, const char *name, enum oc_dtype dtype)
{
    return oc_tensor_new(train->books, OC_ACTIVATIONS, ATTENTION, name, dtype, train->scores);
}

/* An owner for backward of what recompute makes again: none in forward where it does. */
static struct oc_tensor *save_core(struct oc_train *train, struct oc_tensor *tensor)
{
    return train->te->core_recompute ? NULL : oc_save(train, tensor);
}

/* Kernel arguments in which the heads of one key head's group are the heads, and samples are the rest. */
struct group {
    struct oc_train *train;
    int64_t kv_head, first; /* the key head, and the first of its query heads */
    int64_t heads;          /* in the group */
};

static struct group group_of(struct oc_train *train, int64_t kv_head)
{
    const int64_t heads = train->heads / train->kv_heads;
    return (struct group){train, kv_head, kv_head * heads, heads};
}

/* q, o and their gradients: [T, heads x D] from column `first` head on; k and v: [T, kv_heads x D], the same for all.
 */
static struct oc_matrix query(const struct group *group, struct oc_array array)
{
    const struct oc_tensor whole = {.array = array},
                           own = oc_tensor_view(&whole, (uint64_t)(group->first * group->train->head_dim), 0);
    return oc_heads_matrix(group->train, &own);
}

static struct oc_matrix key(const struct group *group, struct oc_array array)
{
    const struct oc_train *train = group->train;
    struct oc_tensor whole = {.array = array};
    array = oc_tensor_view(&whole, (uint64_t)(group->kv_head * train->head_dim), 0).array;
    return (struct oc_matrix){.array = array, .row = train->kv, .column = 1, .sample = train->seq * train->kv};
}

static struct oc_matrix square(const struct group *group, struct oc_array array)
{
    const int64_t size = group->train->seq * group->train->seq;
    const struct oc_tensor whole = {.array = array}, own = oc_tensor_view(&whole, (uint64_t)(group->first * size), 0);
    return oc_scores_matrix(group->train, &own);
}

static void multiply(const struct group *group, struct oc_matrix a, struct oc_matrix b, struct oc_matrix c,
                     int64_t columns, int64_t inner, int64_t heads, bool accumulate)
{
    struct oc_train *train = group->train;
    struct oc_op_matmul args = {.rows = train->seq,
                                .columns = columns,
                                .inner = inner,
                                .heads = heads,
                                .a = a,
                                .b = b,
                                .c = c,
                                .accumulate = accumulate};
    args.n = train->samples * heads * ((train->seq + 63) / 64) * ((columns + 63) / 64);
    oc_launch(train, OC_OP_matmul, &args);
}

/* The sum over the query heads of a group of a product whose result belongs to the key head. */
static void multiply_into_key(const struct group *group, struct oc_matrix a, struct oc_matrix b, struct oc_matrix c)
{
    for (int64_t i = 0; i < group->heads; i++) {
        const struct group one = {group->train, group->kv_head, group->first + i, 1};
        struct oc_tensor from_a = {.array = a.array}, from_b = {.array = b.array};
        struct oc_matrix a_one = a, b_one = b;
        a_one.array = oc_tensor_view(&from_a, (uint64_t)(i * a.head), 0).array;
        b_one.array = oc_tensor_view(&from_b, (uint64_t)(i * b.head), 0).array;
        multiply(&one, a_one, b_one, c, group->train->head_dim, group->train->seq, 1, i > 0);
    }
}

/* q k^T of every head, into a tensor of [batch, heads, seq, seq]. */
static void make_scores(struct oc_train *train, const struct oc_tensor *q, const struct oc_tensor *k,
                        const struct oc_tensor *s)
{
    for (int64_t kv_head = 0; kv_head < train->kv_heads; kv_head++) {
        const struct group group = group_of(train, kv_head);
        multiply(&group, query(&group, q->array), oc_transposed(key(&group, k->array)), square(&group, s->array),
                 train->seq, train->head_dim, group.heads, false);
    }
}

static void softmax(struct oc_train *train, const struct oc_tensor *s, const struct oc_tensor *p)
{
    struct oc_op_causal args = {.n = (int64_t)p->elements / train->seq,
                                .x = s->array,
                                .y = p->array,
                                .seq = train->seq,
                                .scale = 1.0f / sqrtf((float)train->head_dim)};
    oc_launch(train, OC_OP_causal_softmax, &args);
}

/* What the weighted sum reads, beyond the softmax's output. */
static void make_operands(struct oc_train *train, const struct oc_tensor *p, uint32_t seed, struct oc_te_saved *made)
{
    if (train->attention_dropout > 0) {
        made->mask = oc_tensor_new(train->books, OC_ACTIVATIONS, ATTENTION, "dropout_mask", OC_BOOL, p->elements);
        made->dropped = scores(train, "dropped", train->e);
        struct oc_op_dropout args = {.n = (int64_t)p->elements,
                                     .x = p->array,
                                     .y = made->dropped->array,
                                     .mask = made->mask->array,
                                     .rate = train->attention_dropout,
                                     .seed = seed};
        oc_launch(train, OC_OP_dropout, &args);
    } else if (train->te->softmax_in_fp32) {
        made->p_half = oc_cast(train, ATTENTION, "p_half", train->e, p);
    }
}

static const struct oc_tensor *operand(const struct oc_te_saved *made)
{
    return made->dropped ? made->dropped : made->p_half ? made->p_half : made->p;
}

static enum oc_dtype softmax_type(const struct oc_train *train)
{
    return train->te->softmax_in_fp32 ? OC_FP32 : train->e;
}

static struct oc_tensor *unfused(struct oc_train *train, struct oc_te_saved *saved, const struct oc_tensor *q,
                                 const struct oc_tensor *k, const struct oc_tensor *v, uint32_t seed)
{
    struct oc_te_saved made = {0};
    struct oc_tensor *s = scores(train, "scores", train->e);
    make_scores(train, q, k, s);
    made.p = scores(train, "p", softmax_type(train));
    softmax(train, s, made.p);
    make_operands(train, made.p, seed, &made);
    struct oc_tensor *o = oc_activation(train, ATTENTION, "context", train->e, train->tokens, train->q);
    for (int64_t kv_head = 0; kv_head < train->kv_heads; kv_head++) {
        const struct group group = group_of(train, kv_head);
        multiply(&group, square(&group, operand(&made)->array), key(&group, v->array), query(&group, o->array),
                 train->head_dim, train->seq, group.heads, false);
    }
    saved->p = save_core(train, made.p);
    if (made.p_half) saved->p_half = save_core(train, made.p_half);
    if (made.mask) saved->mask = save_core(train, made.mask);
    if (made.dropped) saved->dropped = save_core(train, made.dropped);
    struct oc_tensor **const done[] = {&s, &made.p, &made.p_half, &made.mask, &made.dropped};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) oc_let_go(train, done[i]);
    return o;
}

static void run_flash(struct oc_train *train, const struct oc_tensor *q, const struct oc_tensor *k,
                      const struct oc_tensor *v, const struct oc_tensor *o, const struct oc_tensor *lse)
{
    struct oc_op_flash args = oc_flash_args(train);
    args.n = train->samples * train->heads * train->seq;
    args.q = q->array, args.k = k->array, args.v = v->array, args.o = o->array, args.lse = lse->array;
    oc_launch(train, OC_OP_flash, &args);
}

static struct oc_tensor *flash(struct oc_train *train, struct oc_te_saved *saved, const struct oc_tensor *q,
                               const struct oc_tensor *k, const struct oc_tensor *v)
{
    struct oc_tensor *lse = oc_activation(train, ATTENTION, "lse", OC_FP32, train->tokens, train->heads);
    struct oc_tensor *o = oc_activation(train, ATTENTION, "context", train->e, train->tokens, train->q);
    run_flash(train, q, k, v, o, lse);
    if (train->te->second_output) {
        struct oc_tensor *twice = oc_cast(train, ATTENTION, train->te->second_output, train->e, o);
        saved->o_again = oc_save(train, twice);
        oc_let_go(train, &twice);
    }
    saved->lse = save_core(train, lse);
    oc_let_go(train, &lse);
    return o;
}

struct oc_tensor *oc_te_attention(struct oc_train *train, struct oc_te_saved *saved, struct oc_tensor *q,
                                  struct oc_tensor *k, struct oc_tensor *v, uint32_t seed)
{
    struct oc_tensor *o = train->flash ? flash(train, saved, q, k, v) : unfused(train, saved, q, k, v, seed);
    saved->q = oc_save(train, q);
    saved->k = oc_save(train, k);
    saved->v = oc_save(train, v);
    saved->o = oc_save(train, o);
    return o;
}

/* ---- Backward ---- */

/* What core_attn recompute freed. The scores are computed into the probabilities' place. */
static void make_again(struct oc_train *train, struct oc_te_saved *saved, uint32_t seed)
{
    if (train->flash) {
        saved->lse = oc_activation(train, ATTENTION, "lse", OC_FP32, train->tokens, train->heads);
        run_flash(train, saved->q, saved->k, saved->v, saved->o, saved->lse);
        return;
    }
    saved->p = scores(train, "p", softmax_type(train));
    make_scores(train, saved->q, saved->k, saved->p);
    softmax(train, saved->p, saved->p);
    make_operands(train, saved->p, seed, saved);
}

/* The three parts of a tensor that has the gradients of q, k and v one behind the other. */
struct parts {
    struct oc_tensor q, k, v;
};

static struct parts parts_of(const struct oc_train *train, const struct oc_tensor *all)
{
    const uint64_t q = oc_mul((uint64_t)train->tokens, (uint64_t)train->q);
    const uint64_t k = oc_mul((uint64_t)train->tokens, (uint64_t)train->kv);
    return (struct parts){oc_tensor_view(all, 0, q), oc_tensor_view(all, q, k), oc_tensor_view(all, oc_add(q, k), k)};
}

static void flash_backward(struct oc_train *train, const struct oc_te_saved *saved, const struct oc_tensor *grad_o,
                           const struct parts *grad)
{
    struct oc_op_flash args = oc_flash_args(train);
    args.q = saved->q->array, args.k = saved->k->array, args.v = saved->v->array;
    args.o = saved->o->array, args.lse = saved->lse->array, args.grad_o = grad_o->array;
    args.dq = grad->q.array, args.dk = grad->k.array, args.dv = grad->v.array;
    args.n = train->samples * train->heads * train->seq;
    oc_launch(train, OC_OP_flash_dq, &args);
    args.n = train->samples * train->kv_heads * train->seq;
    oc_launch(train, OC_OP_flash_dkv, &args);
}

static void unfused_backward(struct oc_train *train, const struct oc_te_saved *saved, const struct oc_tensor *grad_o,
                             const struct oc_tensor *dp, const struct oc_tensor *ds, const struct parts *grad)
{
    const int64_t seq = train->seq, dim = train->head_dim;
    for (int64_t kv_head = 0; kv_head < train->kv_heads; kv_head++) {
        const struct group group = group_of(train, kv_head);
        multiply(&group, query(&group, grad_o->array), oc_transposed(key(&group, saved->v->array)),
                 square(&group, dp->array), seq, dim, group.heads, false);
        multiply_into_key(&group, oc_transposed(square(&group, operand(saved)->array)), query(&group, grad_o->array),
                          key(&group, grad->v.array));
    }
    if (saved->mask) oc_dropout_backward(train, train->attention_dropout, saved->mask, dp, dp);
    struct oc_op_causal args = {.n = (int64_t)ds->elements / seq,
                                .y = saved->p->array,
                                .dy = dp->array,
                                .dx = ds->array,
                                .seq = seq,
                                .scale = 1.0f / sqrtf((float)dim)};
    oc_launch(train, OC_OP_causal_softmax_backward, &args);
    for (int64_t kv_head = 0; kv_head < train->kv_heads; kv_head++) {
        const struct group group = group_of(train, kv_head);
        multiply(&group, square(&group, ds->array), key(&group, saved->k->array), query(&group, grad->q.array), dim,
                 seq, group.heads, false);
        multiply_into_key(&group, oc_transposed(square(&group, ds->array)), query(&group, saved->q->array),
                          key(&group, grad->k.array));
    }
}

struct oc_tensor *oc_te_attention_backward(struct oc_train *train, struct oc_te_saved *saved, uint32_t seed,
                                           struct oc_tensor **grad_o)
{
    if (train->te->core_recompute) make_again(train, saved, seed);
    struct oc_tensor *dp = train->flash ? NULL : scores(train, "grad.p", train->e);
    struct oc_tensor *ds = train->flash ? NULL : scores(train, "grad.scores", train->e);
    struct oc_tensor *all = oc_activation(train, ATTENTION, "grad.qkv", train->e, train->tokens, train->te->joined);
    const struct parts grad = parts_of(train, all);
    if (train->flash)
        flash_backward(train, saved, *grad_o, &grad);
    else
        unfused_backward(train, saved, *grad_o, dp, ds, &grad);
    struct oc_tensor **const done[] = {&saved->q,   &saved->k, &saved->v,      &saved->o,    &saved->o_again,
                                       &saved->lse, &saved->p, &saved->p_half, &saved->mask, &saved->dropped,
                                       &dp,         &ds,       grad_o};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) oc_let_go(train, done[i]);
    return all;
}
