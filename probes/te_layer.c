/* One layer of one tensor-parallel rank, forward: "Layer, forward" of docs/step-megatron.md, whose steps are in
 * brackets. */
#include "probes/te.h"

static const char *const ATTENTION = "layers.attention", *const MLP = "layers.mlp";

/* Columns of *qkv as a tensor of their own, turned by their positions or as they are. */
static struct oc_tensor *take_columns(struct oc_train *train, const char *name, const struct oc_tensor *qkv,
                                      int64_t first, int64_t width, bool turn)
{
    struct oc_tensor *y = oc_activation(train, ATTENTION, name, train->e, train->tokens, width);
    struct oc_op_turn args = {.n = (int64_t)y->elements,
                              .x = qkv->array,
                              .y = y->array,
                              .width = width,
                              .x_pitch = train->te->joined,
                              .x_first = first,
                              .y_pitch = width,
                              .head_dim = train->head_dim,
                              .seq = train->seq,
                              .base = OC_ROPE_BASE,
                              .turn = turn};
    oc_launch(train, OC_OP_turn, &args);
    return y;
}

struct projected {
    struct oc_tensor *q, *k, *v;
};

/* [2] Lets go of the norm's output. */
static struct projected project(struct oc_train *train, int layer, struct oc_tensor *n)
{
    const struct oc_param *param = oc_train_param(train, layer, OC_P_QKV);
    const int64_t q = train->q, kv = train->kv;
    struct projected out;
    struct oc_tensor *in = oc_te_gather(train, "gathered", n);
    if (train->rope) {
        struct oc_tensor *qkv = oc_activation(train, ATTENTION, "qkv", train->e, train->tokens, train->te->joined);
        oc_te_product(train, in, param, 0, qkv, train->te->joined, true);
        oc_let_go(train, &in);
        oc_let_go(train, &n);
        out.q = take_columns(train, "q", qkv, 0, q, true);
        out.k = take_columns(train, "k", qkv, q, kv, true);
        out.v = take_columns(train, "v", qkv, q + kv, kv, false);
        oc_let_go(train, &qkv);
        return out;
    }
    out.q = oc_activation(train, ATTENTION, "q", train->e, train->tokens, q);
    out.k = oc_activation(train, ATTENTION, "k", train->e, train->tokens, kv);
    out.v = oc_activation(train, ATTENTION, "v", train->e, train->tokens, kv);
    oc_te_product(train, in, param, 0, out.q, q, true);
    oc_te_product(train, in, param, q, out.k, kv, true);
    oc_te_product(train, in, param, q + kv, out.v, kv, true);
    oc_let_go(train, &in);
    oc_let_go(train, &n);
    return out;
}

/* [4] [6] The product that ends attention or MLP: over more ranks a partial sum of all tokens, of which each keeps its
 * shard. */
static struct oc_tensor *end_product(struct oc_train *train, const char *block, const struct oc_param *param,
                                     const struct oc_tensor *x)
{
    const int64_t rows = train->te->rows, h = train->hidden;
    if (train->te->ranks == 1) {
        struct oc_tensor *y = oc_activation(train, block, "projected", train->r, rows, h);
        oc_te_product(train, x, param, 0, y, h, true);
        return y;
    }
    struct oc_tensor *whole = oc_activation(train, block, "projected_whole", train->r, train->tokens, h);
    oc_te_product(train, x, param, 0, whole, h, true);
    struct oc_tensor *y = oc_activation(train, block, "projected", train->r, rows, h);
    oc_blend(train, whole, 1.0f, NULL, 0.0f, y);
    oc_let_go(train, &whole);
    return y;
}

/* x + what dropout leaves of *branch, in one kernel: a new tensor; lets go of the branch. The mask is kept. */
static struct oc_tensor *add(struct oc_train *train, const char *block, const char *name, const struct oc_tensor *x,
                             struct oc_tensor *branch, uint32_t seed, struct oc_tensor **kept)
{
    struct oc_tensor *mask = train->dropout > 0 ? oc_dropout_mask(train, block, branch) : NULL;
    struct oc_tensor *sum = oc_activation(train, "layers", name, train->r, train->te->rows, train->hidden);
    if (mask) {
        oc_drop_in_place(train, train->dropout, seed, branch, mask);
        *kept = oc_save(train, mask);
    }
    oc_blend(train, x, 1.0f, branch, 1.0f, sum);
    oc_let_go(train, &branch);
    oc_let_go(train, &mask);
    return sum;
}

/* [1] to [4]: x1 */
static struct oc_tensor *attention_block(struct oc_train *train, int layer, struct oc_te_saved *saved,
                                         struct oc_tensor *x)
{
    struct oc_tensor *n = oc_te_norm(train, oc_train_param(train, layer, OC_P_NORM1), x, &saved->norm1);
    struct projected in = project(train, layer, n);
    const uint32_t seed = oc_seed(train, layer, OC_SITE_SCORES);
    struct oc_tensor *o = oc_te_attention(train, saved, in.q, in.k, in.v, seed);
    oc_let_go(train, &in.q);
    oc_let_go(train, &in.k);
    oc_let_go(train, &in.v);
    struct oc_tensor *a = end_product(train, ATTENTION, oc_train_param(train, layer, OC_P_O), o);
    oc_let_go(train, &o);
    return add(train, ATTENTION, "x1", x, a, oc_seed(train, layer, OC_SITE_ATTENTION), &saved->mask1);
}

static struct oc_tensor *activate(struct oc_train *train, const struct oc_tensor *fc1)
{
    struct oc_tensor *y = oc_activation(train, MLP, "activated", train->e, train->tokens, train->ffn);
    if (train->gated) {
        struct oc_op_glu args = {.n = (int64_t)y->elements,
                                 .x = fc1->array,
                                 .y = y->array,
                                 .width = train->ffn,
                                 .function = (int)train->function};
        oc_launch(train, OC_OP_glu, &args);
    } else {
        struct oc_op_activate args = {
            .n = (int64_t)y->elements, .x = fc1->array, .y = y->array, .function = (int)train->function};
        oc_launch(train, OC_OP_activate, &args);
    }
    return y;
}

/* [5] [6]: y; lets go of x1. */
static struct oc_tensor *mlp_block(struct oc_train *train, int layer, struct oc_te_saved *saved, struct oc_tensor *x1)
{
    struct oc_tensor *n = oc_te_norm(train, oc_train_param(train, layer, OC_P_NORM2), x1, &saved->norm2);
    struct oc_tensor *in = oc_te_gather(train, "gathered", n);
    struct oc_tensor *fc1 = oc_activation(train, MLP, "fc1", train->e, train->tokens, train->te->fc1);
    oc_te_product(train, in, oc_train_param(train, layer, OC_P_UP), 0, fc1, train->te->fc1, true);
    oc_let_go(train, &in);
    oc_let_go(train, &n);
    struct oc_tensor *activated = activate(train, fc1);
    saved->fc1 = oc_save(train, fc1);
    saved->activated = oc_save(train, activated);
    oc_let_go(train, &fc1);
    struct oc_tensor *m = end_product(train, MLP, oc_train_param(train, layer, OC_P_DOWN), activated);
    oc_let_go(train, &activated);
    struct oc_tensor *y = add(train, MLP, "y", x1, m, oc_seed(train, layer, OC_SITE_MLP), &saved->mask2);
    oc_let_go(train, &x1);
    return y;
}

struct oc_tensor *oc_te_layer_forward(struct oc_train *train, int layer, struct oc_te_saved *saved, struct oc_tensor *x)
{
    return mlp_block(train, layer, saved, attention_block(train, layer, saved, x));
}
