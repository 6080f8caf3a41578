/* One layer of one tensor-parallel rank, backward: "Layer, backward" of docs/step-megatron.md, whose steps are in
 * brackets. */
#include "probes/te.h"

static const char *const ATTENTION = "layers.attention", *const MLP = "layers.mlp";

/* dF of dy, from what the activation read. */
static struct oc_tensor *activation_backward(struct oc_train *train, const struct oc_tensor *fc1,
                                             const struct oc_tensor *dy)
{
    struct oc_tensor *dx = oc_activation(train, MLP, "grad.fc1", train->e, train->tokens, train->te->fc1);
    if (train->gated) {
        struct oc_op_glu args = {.n = (int64_t)dy->elements,
                                 .x = fc1->array,
                                 .dy = dy->array,
                                 .dx = dx->array,
                                 .width = train->ffn,
                                 .function = (int)train->function};
        oc_launch(train, OC_OP_glu_backward, &args);
    } else {
        struct oc_op_activate args = {.n = (int64_t)dy->elements,
                                      .x = fc1->array,
                                      .dy = dy->array,
                                      .dx = dx->array,
                                      .function = (int)train->function};
        oc_launch(train, OC_OP_activate_backward, &args);
    }
    return dx;
}

/* A product's input gradient and weight gradient, and then its norm's input gradient: *dout is let go of, and what the
 * product read. Returns dx [U,h]. */
static struct oc_tensor *product_and_norm_backward(struct oc_train *train, const char *block,
                                                   const struct oc_param *param, const struct oc_param *norm,
                                                   struct oc_te_norm_saved *saved, struct oc_tensor *dout)
{
    struct oc_tensor *in = oc_te_gather(train, "gathered", saved->n);
    struct oc_tensor *dn = oc_activation(train, block, "grad.input", train->r, train->tokens, train->hidden);
    oc_te_input_gradient(train, dout, param, dn);
    oc_te_weight_gradient(train, dout, in, param);
    struct oc_tensor *dx = oc_te_norm_backward(train, norm, saved, dn);
    oc_let_go(train, &dout);
    oc_let_go(train, &in);
    oc_let_go(train, &dn);
    oc_let_go(train, &saved->n);
    return dx;
}

/* The gradient of what dropout took, a new tensor, and the mask is let go of; without dropout d itself, once more
 * owned.
 */
static struct oc_tensor *branch_gradient(struct oc_train *train, const char *block, struct oc_tensor **mask,
                                         struct oc_tensor *d)
{
    if (!*mask) return oc_tensor_hold(d);
    struct oc_tensor *dx = oc_activation(train, block, "grad.projected", train->r, train->te->rows, train->hidden);
    oc_dropout_backward(train, train->dropout, *mask, d, dx);
    oc_let_go(train, mask);
    return dx;
}

/* [1] [2]: dx of the MLP's norm */
static struct oc_tensor *mlp_backward(struct oc_train *train, int layer, struct oc_te_saved *saved, struct oc_tensor *d)
{
    const struct oc_param *down = oc_train_param(train, layer, OC_P_DOWN), *up = oc_train_param(train, layer, OC_P_UP);
    struct oc_tensor *dm = branch_gradient(train, MLP, &saved->mask2, d), *g = oc_te_gather(train, "grad.gathered", dm);
    struct oc_tensor *dy = oc_activation(train, MLP, "grad.activated", train->e, train->tokens, train->ffn);
    oc_te_input_gradient(train, g, down, dy);
    oc_te_weight_gradient(train, g, saved->activated, down);
    oc_let_go(train, &saved->activated);
    oc_let_go(train, &g);
    oc_let_go(train, &dm);
    struct oc_tensor *du = activation_backward(train, saved->fc1, dy);
    oc_let_go(train, &dy);
    oc_let_go(train, &saved->fc1);
    return product_and_norm_backward(train, MLP, up, oc_train_param(train, layer, OC_P_NORM2), &saved->norm2, du);
}

/* The gradients of q, k and v, one behind the other in *apart, side by side in each row of a new tensor. */
static struct oc_tensor *join(struct oc_train *train, struct oc_tensor *apart)
{
    const int64_t widths[] = {train->q, train->kv, train->kv};
    struct oc_tensor *joined =
        oc_activation(train, ATTENTION, "grad.joined", train->e, train->tokens, train->te->joined);
    int64_t column = 0;
    for (int i = 0; i < 3; i++) {
        const uint64_t tokens = (uint64_t)train->tokens;
        const struct oc_tensor part =
            oc_tensor_view(apart, oc_mul(tokens, (uint64_t)column), oc_mul(tokens, (uint64_t)widths[i]));
        struct oc_op_turn args = {.n = (int64_t)part.elements,
                                  .x = part.array,
                                  .y = joined->array,
                                  .width = widths[i],
                                  .x_pitch = widths[i],
                                  .y_pitch = train->te->joined,
                                  .y_first = column,
                                  .head_dim = train->head_dim,
                                  .seq = train->seq,
                                  .base = OC_ROPE_BASE,
                                  .turn = train->rope && i < 2 ? -1 : 0};
        oc_launch(train, OC_OP_turn, &args);
        column += widths[i];
    }
    oc_let_go(train, &apart);
    return joined;
}

/* [3] [4]: dx of attention's norm */
static struct oc_tensor *attention_backward(struct oc_train *train, int layer, struct oc_te_saved *saved,
                                            struct oc_tensor *d)
{
    const struct oc_param *out = oc_train_param(train, layer, OC_P_O);
    struct oc_tensor *da = branch_gradient(train, ATTENTION, &saved->mask1, d);
    struct oc_tensor *g = oc_te_gather(train, "grad.gathered", da);
    struct oc_tensor *grad_o = oc_activation(train, ATTENTION, "grad.context", train->e, train->tokens, train->q);
    oc_te_input_gradient(train, g, out, grad_o);
    oc_te_weight_gradient(train, g, saved->o, out);
    oc_let_go(train, &g);
    oc_let_go(train, &da);
    const uint32_t seed = oc_seed(train, layer, OC_SITE_SCORES);
    struct oc_tensor *joined = join(train, oc_te_attention_backward(train, saved, seed, &grad_o));
    return product_and_norm_backward(train, ATTENTION, oc_train_param(train, layer, OC_P_QKV),
                                     oc_train_param(train, layer, OC_P_NORM1), &saved->norm1, joined);
}

/* [5] The forward again, in grad mode. Returns its output, which nobody reads. */
static struct oc_tensor *recompute(struct oc_train *train, int layer, int64_t in_model, struct oc_te_saved *saved)
{
    oc_train_at(train, OC_PH_RECOMPUTE, OC_PART_LAYER, (int)in_model);
    train->grad_mode = true;
    struct oc_tensor *y = oc_te_layer_forward(train, layer, saved, saved->checkpoint);
    if (train->options->drop) oc_books_drop(train->books, train->options->drop);
    return y;
}

struct oc_tensor *oc_te_layer_backward(struct oc_train *train, int layer, int64_t in_model, struct oc_te_saved *saved,
                                       struct oc_tensor *d)
{
    const bool again = saved->checkpoint != NULL;
    struct oc_tensor *y = again ? recompute(train, layer, in_model, saved) : NULL;
    oc_train_at(train, OC_PH_BACKWARD, OC_PART_LAYER, (int)in_model);
    struct oc_tensor *dx = mlp_backward(train, layer, saved, d), *sum = d;
    if (again) sum = oc_activation(train, "layers", "grad.x1", train->r, train->te->rows, train->hidden);
    oc_blend(train, d, 1.0f, dx, 1.0f, sum);
    oc_let_go(train, &dx);
    oc_te_norm_forget(train, &saved->norm2);
    dx = attention_backward(train, layer, saved, sum);
    oc_blend(train, sum, 1.0f, dx, 1.0f, sum);
    oc_let_go(train, &dx);
    oc_te_norm_forget(train, &saved->norm1);
    oc_let_go(train, &y);
    oc_let_go(train, &saved->checkpoint);
    if (sum != d) oc_let_go(train, &d);
    return sum;
}
