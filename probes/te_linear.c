/* Products, norms and gathers of a tensor-parallel rank. Weight gradients are added into the main grads by the kernel
 * that makes them. */
#include "probes/te.h"

static struct oc_matrix plain(struct oc_array array, int64_t columns)
{
    return (struct oc_matrix){.array = array, .row = columns, .column = 1};
}

void oc_te_product(struct oc_train *train, const struct oc_tensor *x, const struct oc_param *param, int64_t first,
                   const struct oc_tensor *y, int64_t rows, bool bias)
{
    const struct oc_tensor weight =
        oc_tensor_view(param->weight, (uint64_t)(first * param->columns), (uint64_t)(rows * param->columns));
    oc_product(train, plain(x->array, param->columns), oc_transposed(plain(weight.array, param->columns)),
               plain(y->array, rows), train->tokens, rows, param->columns, false);
    if (!bias || !param->bias) return;
    struct oc_op_bias args = {.n = (int64_t)y->elements, .y = y->array, .width = rows};
    args.b = oc_tensor_view(param->bias->weight, (uint64_t)first, (uint64_t)rows).array;
    oc_launch(train, OC_OP_bias, &args);
}

void oc_te_input_gradient(struct oc_train *train, const struct oc_tensor *dy, const struct oc_param *param,
                          const struct oc_tensor *dx)
{
    oc_product(train, plain(dy->array, param->rows), plain(param->weight->array, param->columns),
               plain(dx->array, param->columns), train->tokens, param->columns, param->rows, false);
}

void oc_te_weight_gradient(struct oc_train *train, const struct oc_tensor *dy, const struct oc_tensor *x,
                           const struct oc_param *param)
{
    oc_product(train, oc_transposed(plain(dy->array, param->rows)), plain(x->array, param->columns),
               plain(param->grad->array, param->columns), param->rows, param->columns, train->tokens, true);
    if (!param->bias) return;
    struct oc_op_reduce args = {.n = param->bias->columns,
                                .x = dy->array,
                                .y = param->bias->grad->array,
                                .rows = train->tokens,
                                .accumulate = 1};
    oc_launch(train, OC_OP_column_sum, &args);
}

/* ---- Norms, over the tokens of the rank's shard ---- */

static struct oc_op_norm norm_args(const struct oc_train *train, const struct oc_param *param)
{
    struct oc_op_norm args = {.n = train->te->rows,
                              .w = param->weight->array,
                              .width = train->hidden,
                              .rows = train->te->rows,
                              .epsilon = OC_NORM_EPSILON,
                              .center = train->layernorm,
                              .accumulate = 1};
    if (param->bias) args.b = param->bias->weight->array;
    return args;
}

struct oc_tensor *oc_te_norm(struct oc_train *train, const struct oc_param *param, struct oc_tensor *x,
                             struct oc_te_norm_saved *saved)
{
    const int64_t rows = train->te->rows;
    struct oc_tensor *mean = train->layernorm ? oc_activation(train, param->block, "mean", OC_FP32, rows, 1) : NULL;
    struct oc_tensor *rs = oc_activation(train, param->block, "rs", OC_FP32, rows, 1);
    struct oc_tensor *n = oc_activation(train, param->block, "out", train->r, rows, train->hidden);
    struct oc_op_norm args = norm_args(train, param);
    args.x = x->array, args.y = n->array, args.rs = rs->array;
    if (mean) args.mean = mean->array;
    oc_launch(train, OC_OP_norm, &args);
    saved->x = oc_save(train, x);
    saved->rs = oc_save(train, rs);
    if (mean) saved->mean = oc_save(train, mean);
    saved->n = oc_save(train, n);
    oc_let_go(train, &mean);
    oc_let_go(train, &rs);
    return n;
}

struct oc_tensor *oc_te_norm_backward(struct oc_train *train, const struct oc_param *param,
                                      const struct oc_te_norm_saved *saved, const struct oc_tensor *dn)
{
    struct oc_tensor *dx = oc_activation(train, param->block, "grad.x", train->r, train->te->rows, train->hidden);
    struct oc_op_norm args = norm_args(train, param);
    args.x = saved->x->array, args.rs = saved->rs->array, args.dy = dn->array, args.dx = dx->array;
    args.dw = param->grad->array;
    if (saved->mean) args.mean = saved->mean->array;
    if (param->bias) args.db = param->bias->grad->array;
    oc_launch(train, OC_OP_norm_backward, &args);
    args.n = train->hidden;
    oc_launch(train, OC_OP_norm_backward_weight, &args);
    return dx;
}

void oc_te_norm_forget(struct oc_train *train, struct oc_te_norm_saved *saved)
{
    oc_let_go(train, &saved->n);
    oc_let_go(train, &saved->x);
    oc_let_go(train, &saved->rs);
    oc_let_go(train, &saved->mean);
}

/* ---- Sequence parallelism ---- */

struct oc_tensor *oc_te_gather(struct oc_train *train, const char *name, struct oc_tensor *shard)
{
    if (!train->te->sequence_parallel) return oc_tensor_hold(shard);
    struct oc_tensor *whole = oc_activation(train, "layers", name, train->r, train->tokens, train->hidden);
    struct oc_op_gather args = {
        .n = (int64_t)whole->elements, .x = shard->array, .y = whole->array, .count = (int64_t)shard->elements};
    oc_launch(train, OC_OP_gather, &args);
    return whole;
}
