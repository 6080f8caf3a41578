/* RMSNorm, linear layers and gradients, forward and backward: "Building blocks" of docs/step-pytorch.md. */
#include "probes/train.h"

static const float NORM_EPSILON = 1e-5f;

/* ---- Small pieces ---- */

struct oc_tensor *oc_activation(struct oc_train *train, const char *block, const char *name, enum oc_dtype dtype,
                                int64_t rows, int64_t columns)
{
    return oc_tensor_new(train->books, OC_ACTIVATIONS, block, name, dtype, oc_mul((uint64_t)rows, (uint64_t)columns));
}

struct oc_tensor *oc_save(struct oc_train *train, struct oc_tensor *tensor)
{
    return train->grad_mode ? oc_tensor_save(train->books, tensor) : NULL;
}

void oc_let_go(struct oc_train *train, struct oc_tensor **tensor)
{
    oc_tensor_let_go(train->books, tensor);
}

void oc_blend(struct oc_train *train, const struct oc_tensor *a, float alpha, const struct oc_tensor *b, float beta,
              const struct oc_tensor *y)
{
    struct oc_op_blend args = {.n = (int64_t)y->elements, .a = a->array, .y = y->array, .alpha = alpha, .beta = beta};
    if (b) args.b = b->array;
    oc_launch(train, OC_OP_blend, &args);
}

void oc_multiply(struct oc_train *train, const struct oc_tensor *a, const struct oc_tensor *b,
                 enum oc_broadcast broadcast, int64_t width, const struct oc_tensor *y)
{
    struct oc_op_multiply args = {.n = (int64_t)y->elements,
                                  .a = a->array,
                                  .b = b->array,
                                  .y = y->array,
                                  .width = width,
                                  .broadcast = (int)broadcast};
    oc_launch(train, OC_OP_multiply, &args);
}

struct oc_tensor *oc_cast(struct oc_train *train, const char *block, const char *name, enum oc_dtype dtype,
                          const struct oc_tensor *from)
{
    struct oc_tensor *to = oc_tensor_new(train->books, OC_ACTIVATIONS, block, name, dtype, from->elements);
    oc_blend(train, from, 1.0f, NULL, 0.0f, to);
    return to;
}

void oc_accumulate(struct oc_train *train, struct oc_param *param, struct oc_tensor **grad)
{
    if (param->grad) {
        oc_blend(train, param->grad, 1.0f, *grad, 1.0f, param->grad);
        oc_let_go(train, grad);
    } else {
        param->grad = *grad;
        *grad = NULL;
    }
}

/* ---- RMSNorm, as eager PyTorch writes it: n = w (x / sqrt(mean(x^2) + epsilon)), the inner part in fp32 ---- */

struct oc_tensor *oc_norm(struct oc_train *train, struct oc_param *param, struct oc_tensor *x,
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
              &(struct oc_op_root){.n = tokens, .x = mean->array, .y = rs->array, .epsilon = NORM_EPSILON});
    struct oc_tensor *xn32 = oc_activation(train, block, half ? "xn32" : "xn", OC_FP32, tokens, h);
    oc_multiply(train, x32, rs, OC_PER_ROW, h, xn32);
    saved->x32 = oc_save(train, x32);
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

struct oc_tensor *oc_norm_backward(struct oc_train *train, struct oc_param *param, struct oc_norm_saved *saved,
                                   struct oc_tensor **grad_n)
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
    oc_multiply(train, dxn32, saved->x32, OC_EACH, h, t2);
    oc_launch(train, OC_OP_norm_rows,
              &(struct oc_op_norm_rows){.n = tokens, .t = t2->array, .rs = saved->rs->array, .width = h});
    oc_let_go(train, &t2);
    oc_let_go(train, &dxn32);
    struct oc_tensor *t3 = oc_activation(train, block, "grad.t3", OC_FP32, tokens, h);
    oc_launch(train, OC_OP_expand,
              &(struct oc_op_expand){.n = tokens, .x = saved->rs->array, .y = t3->array, .width = h});
    struct oc_tensor *t5 = oc_activation(train, block, "grad.t5", OC_FP32, tokens, h);
    oc_blend(train, saved->x32, 2.0f, NULL, 0.0f, t5); /* the derivative of the square */
    struct oc_tensor *t6 = oc_activation(train, block, "grad.t6", OC_FP32, tokens, h);
    oc_multiply(train, t3, t5, OC_EACH, h, t6);
    oc_let_go(train, &t5);
    oc_let_go(train, &t3);
    oc_let_go(train, &saved->x32);
    oc_let_go(train, &saved->rs);
    oc_blend(train, dx32, 1.0f, t6, 1.0f, dx32);
    oc_let_go(train, &t6);
    if (train->r == OC_FP32) return dx32;
    struct oc_tensor *dxr = oc_cast(train, block, "grad.x", train->r, dx32);
    oc_let_go(train, &dx32);
    return dxr;
}

/* ---- Linear layers: out [T, rows] = input [T, columns] x weight [rows, columns] transposed ---- */

static struct oc_matrix plain(const struct oc_tensor *tensor, int64_t columns)
{
    return (struct oc_matrix){.array = tensor->array, .row = columns, .column = 1};
}

static void product(struct oc_train *train, struct oc_matrix a, struct oc_matrix b, struct oc_matrix c, int64_t rows,
                    int64_t columns, int64_t inner)
{
    struct oc_op_matmul args = {
        .rows = rows, .columns = columns, .inner = inner, .heads = 1, .a = a, .b = b, .c = c, .n = 0};
    args.n = ((rows + 63) / 64) * ((columns + 63) / 64);
    oc_launch(train, OC_OP_matmul, &args);
}

/* The weight that products read: itself, or under autocast its cast, made once a context. */
static struct oc_tensor *operand(struct oc_train *train, struct oc_param *param)
{
    if (!train->amp) return param->weight;
    if (!param->cast) {
        param->cast =
            oc_tensor_new(train->books, OC_BUFFERS, param->block, "cast_weight", train->e, param->weight->elements);
        oc_blend(train, param->weight, 1.0f, NULL, 0.0f, param->cast);
    }
    return param->cast;
}

struct oc_tensor *oc_linear(struct oc_train *train, struct oc_param *param, struct oc_tensor *input,
                            struct oc_linear_saved *saved)
{
    saved->cast_input = train->amp && input->array.dtype != (int)train->e;
    struct oc_tensor *in =
        saved->cast_input ? oc_cast(train, param->block, "cast_input", train->e, input) : oc_tensor_hold(input);
    struct oc_tensor *weight = operand(train, param);
    struct oc_tensor *out = oc_activation(train, param->block, "out", train->e, train->tokens, param->rows);
    product(train, plain(in, param->columns), oc_transposed(plain(weight, param->columns)), plain(out, param->rows),
            train->tokens, param->rows, param->columns);
    saved->input = oc_save(train, in);
    saved->weight = train->amp ? oc_save(train, weight) : NULL;
    oc_let_go(train, &in);
    return out;
}

struct oc_tensor *oc_linear_backward(struct oc_train *train, struct oc_param *param, struct oc_linear_saved *saved,
                                     struct oc_tensor **grad_out)
{
    const int64_t rows = param->rows, columns = param->columns, tokens = train->tokens;
    const struct oc_tensor *weight = train->amp ? saved->weight : param->weight;
    struct oc_tensor *di = oc_activation(train, param->block, "grad.input", train->e, tokens, columns);
    product(train, plain(*grad_out, rows), plain(weight, columns), plain(di, columns), tokens, columns, rows);
    struct oc_tensor *dw = oc_tensor_new(train->books, OC_GRADIENTS, param->block, train->amp ? "grad.cast" : "grad",
                                         train->e, oc_mul((uint64_t)rows, (uint64_t)columns));
    product(train, oc_transposed(plain(*grad_out, rows)), plain(saved->input, columns), plain(dw, columns), rows,
            columns, tokens);
    oc_let_go(train, &saved->input);
    oc_let_go(train, &saved->weight);
    oc_let_go(train, grad_out);
    if (train->amp) {
        struct oc_tensor *dw32 = oc_tensor_new(train->books, OC_GRADIENTS, param->block, "grad", OC_FP32, dw->elements);
        oc_blend(train, dw, 1.0f, NULL, 0.0f, dw32);
        oc_let_go(train, &dw);
        dw = dw32;
    }
    oc_accumulate(train, param, &dw);
    if (!saved->cast_input) return di;
    struct oc_tensor *di32 = oc_cast(train, param->block, "grad.input32", train->r, di);
    oc_let_go(train, &di);
    return di32;
}

void oc_end_autocast(struct oc_train *train)
{
    for (int i = 0; i < train->n_params; i++) oc_let_go(train, &train->params[i].cast);
}
