/* Norms, forward and backward: RMSNorm as eager PyTorch writes it, and LayerNorm and RMSNorm as one kernel. */
#include "probes/train.h"

/* ---- RMSNorm, as eager PyTorch writes it: n = w (x / sqrt(mean(x^2) + epsilon)), the inner part in fp32 ---- */

static struct oc_tensor *eager_norm(struct oc_train *train, struct oc_param *param, struct oc_tensor *x,
                                    struct oc_norm_saved *saved)
{
    const char *block = param->block;
    const int64_t tokens = train->tokens, h = train->hidden;
    const bool half = train->r != OC_FP32;

    struct oc_tensor *x32 = half ? oc_cast(train, block, "x32", OC_FP32, x) : oc_tensor_hold(x);
    struct oc_tensor *square = oc_activation(train, block, "square", OC_FP32, tokens, h);
    oc_multiply(train, x32, x32, OC_EACH, h, square);
    struct oc_tensor *mean = oc_activation(train, block, "mean", OC_FP32, tokens, 1);
    oc_launch(train, OC_OP_row_mean,
              &(struct oc_op_reduce){.n = tokens, .x = square->array, .y = mean->array, .width = h});
    oc_let_go(train, &square);
    struct oc_tensor *rs = oc_activation(train, block, "rs", OC_FP32, tokens, 1);
    oc_launch(train, OC_OP_rsqrt,
              &(struct oc_op_root){.n = tokens, .x = mean->array, .y = rs->array, .epsilon = OC_NORM_EPSILON});
    struct oc_tensor *xn32 = oc_activation(train, block, half ? "xn32" : "xn", OC_FP32, tokens, h);
    oc_multiply(train, x32, rs, OC_PER_ROW, h, xn32);
    saved->x = oc_save(train, x32);
    saved->rs = oc_save(train, rs);
    oc_let_go(train, &x32);
    oc_let_go(train, &rs);
    struct oc_tensor *xn = half ? oc_cast(train, block, "xn", train->r, xn32) : oc_tensor_hold(xn32);
    struct oc_tensor *n = oc_activation(train, block, "out", train->r, tokens, h);
    oc_multiply(train, xn, param->weight, OC_PER_COLUMN, h, n);
    saved->xn = oc_save(train, xn);
    oc_let_go(train, &xn32);
    oc_let_go(train, &mean);
    oc_let_go(train, &xn);
    return n;
}

/* The gradient of the weight, and of the normalized input in fp32. */
static struct oc_tensor *norm_backward_weight(struct oc_train *train, struct oc_param *param,
                                              struct oc_norm_saved *saved, struct oc_tensor **grad_n)
{
    const char *block = param->block;
    const int64_t tokens = train->tokens, h = train->hidden;

    struct oc_tensor *t1 = oc_activation(train, block, "grad.t1", train->r, tokens, h);
    oc_multiply(train, *grad_n, saved->xn, OC_EACH, h, t1);
    struct oc_tensor *dxn = oc_activation(train, block, "grad.xn", train->r, tokens, h);
    oc_multiply(train, *grad_n, param->weight, OC_PER_COLUMN, h, dxn);
    struct oc_tensor *dw = oc_tensor_new(train->books, OC_GRADIENTS, block, "grad", train->w, (uint64_t)h);
    oc_launch(train, OC_OP_column_sum, &(struct oc_op_reduce){.n = h, .x = t1->array, .y = dw->array, .rows = tokens});
    oc_let_go(train, &t1);
    oc_let_go(train, &saved->xn);
    oc_let_go(train, grad_n);
    oc_accumulate(train, param, &dw);
    if (train->r == OC_FP32) return dxn;
    struct oc_tensor *dxn32 = oc_cast(train, block, "grad.xn32", OC_FP32, dxn);
    oc_let_go(train, &dxn);
    return dxn32;
}

static struct oc_tensor *eager_norm_backward(struct oc_train *train, struct oc_param *param,
                                             struct oc_norm_saved *saved, struct oc_tensor **grad_n)
{
    const char *block = param->block;
    const int64_t tokens = train->tokens, h = train->hidden;
    struct oc_tensor *dxn32 = norm_backward_weight(train, param, saved, grad_n);

    /* xn = x32 rs: one share of x32's gradient, and through rs = 1 / sqrt(mean(x32^2) + epsilon) the other. The
     * gradient of the mean, one number a row, takes the place of rs, which nobody reads any more: [T] is left out of
     * the books. */
    struct oc_tensor *dx32 = oc_activation(train, block, "grad.x32", OC_FP32, tokens, h);
    oc_multiply(train, dxn32, saved->rs, OC_PER_ROW, h, dx32);
    struct oc_tensor *t2 = oc_activation(train, block, "grad.t2", OC_FP32, tokens, h);
    oc_multiply(train, dxn32, saved->x, OC_EACH, h, t2);
    oc_launch(train, OC_OP_norm_rows,
              &(struct oc_op_norm_rows){.n = tokens, .t = t2->array, .rs = saved->rs->array, .width = h});
    oc_let_go(train, &t2);
    oc_let_go(train, &dxn32);
    struct oc_tensor *t3 = oc_activation(train, block, "grad.t3", OC_FP32, tokens, h);
    oc_launch(train, OC_OP_expand,
              &(struct oc_op_expand){.n = tokens, .x = saved->rs->array, .y = t3->array, .width = h});
    struct oc_tensor *t5 = oc_activation(train, block, "grad.t5", OC_FP32, tokens, h);
    oc_blend(train, saved->x, 2.0f, NULL, 0.0f, t5); /* the derivative of the square */
    struct oc_tensor *t6 = oc_activation(train, block, "grad.t6", OC_FP32, tokens, h);
    oc_multiply(train, t3, t5, OC_EACH, h, t6);
    oc_let_go(train, &t5);
    oc_let_go(train, &t3);
    oc_let_go(train, &saved->x);
    oc_let_go(train, &saved->rs);
    oc_blend(train, dx32, 1.0f, t6, 1.0f, dx32);
    oc_let_go(train, &t6);
    if (train->r == OC_FP32) return dx32;
    struct oc_tensor *dxr = oc_cast(train, block, "grad.x", train->r, dx32);
    oc_let_go(train, &dx32);
    return dxr;
}

/* ---- LayerNorm, and RMSNorm where it is one kernel: what they keep is their input and one or two numbers a row ----
 */

static struct oc_tensor *statistic(struct oc_train *train, const char *block, const char *name)
{
    return oc_activation(train, block, name, OC_FP32, train->tokens, 1);
}

static struct oc_op_norm norm_args(const struct oc_train *train, const struct oc_param *param)
{
    struct oc_op_norm args = {.n = train->tokens,
                              .w = param->weight->array,
                              .width = train->hidden,
                              .rows = train->tokens,
                              .epsilon = OC_NORM_EPSILON,
                              .center = train->layernorm};
    if (param->bias) args.b = param->bias->weight->array;
    return args;
}

/* Where nothing is kept the statistics go before the output is made, which has its own in registers. */
static struct oc_tensor *fused_norm(struct oc_train *train, struct oc_param *param, struct oc_tensor *x,
                                    struct oc_norm_saved *saved)
{
    struct oc_op_norm args = norm_args(train, param);
    struct oc_tensor *mean = train->layernorm ? statistic(train, param->block, "mean") : NULL;
    struct oc_tensor *rs = statistic(train, param->block, "rs");
    if (mean) saved->mean = oc_save(train, mean);
    saved->rs = oc_save(train, rs);
    if (mean && train->grad_mode) args.mean = mean->array;
    if (train->grad_mode) args.rs = rs->array;
    oc_let_go(train, &mean);
    oc_let_go(train, &rs);
    struct oc_tensor *n = oc_activation(train, param->block, "out", train->r, train->tokens, train->hidden);
    args.x = x->array, args.y = n->array;
    oc_launch(train, OC_OP_norm, &args);
    saved->x = oc_save(train, x);
    return n;
}

static struct oc_tensor *fused_norm_backward(struct oc_train *train, struct oc_param *param,
                                             struct oc_norm_saved *saved, struct oc_tensor **grad_n)
{
    struct oc_op_norm args = norm_args(train, param);
    struct oc_tensor *dx = oc_activation(train, param->block, "grad.x", train->r, train->tokens, train->hidden);
    struct oc_tensor *dw = oc_gradient(train, param), *db = param->bias ? oc_gradient(train, param->bias) : NULL;
    args.x = saved->x->array, args.rs = saved->rs->array, args.dy = (*grad_n)->array;
    args.dx = dx->array, args.dw = dw->array;
    if (saved->mean) args.mean = saved->mean->array;
    if (db) args.db = db->array;
    oc_launch(train, OC_OP_norm_backward, &args);
    args.n = train->hidden;
    oc_launch(train, OC_OP_norm_backward_weight, &args);
    oc_let_go(train, grad_n);
    oc_let_go(train, &saved->x);
    oc_let_go(train, &saved->mean);
    oc_let_go(train, &saved->rs);
    oc_accumulate(train, param, &dw);
    if (db) oc_accumulate(train, param->bias, &db);
    return dx;
}

struct oc_tensor *oc_norm(struct oc_train *train, struct oc_param *param, struct oc_tensor *x,
                          struct oc_norm_saved *saved)
{
    return (train->eager_norm ? eager_norm : fused_norm)(train, param, x, saved);
}

struct oc_tensor *oc_norm_backward(struct oc_train *train, struct oc_param *param, struct oc_norm_saved *saved,
                                   struct oc_tensor **grad_n)
{
    return (train->eager_norm ? eager_norm_backward : fused_norm_backward)(train, param, saved, grad_n);
}
