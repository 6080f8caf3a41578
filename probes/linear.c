/* Linear layers, forward and backward, with autocast's casts and with biases. */
#include "probes/train.h"

/* ---- Linear layers: out [T, rows] = input [T, columns] x weight [rows, columns] transposed ---- */

static struct oc_matrix plain(const struct oc_tensor *tensor, int64_t columns)
{
    return (struct oc_matrix){.array = tensor->array, .row = columns, .column = 1};
}

void oc_product(struct oc_train *train, struct oc_matrix a, struct oc_matrix b, struct oc_matrix c, int64_t rows,
                int64_t columns, int64_t inner, bool accumulate)
{
    struct oc_op_matmul args = {.n = ((rows + 63) / 64) * ((columns + 63) / 64),
                                .rows = rows,
                                .columns = columns,
                                .inner = inner,
                                .heads = 1,
                                .a = a,
                                .b = b,
                                .c = c,
                                .accumulate = accumulate};
    oc_launch(train, OC_OP_matmul, &args);
}

/* The weight (or bias) that products read: itself, or under autocast its cast, made once a context. */
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

struct oc_tensor *oc_linear_begin(struct oc_train *train, struct oc_param *param, struct oc_tensor *input,
                                  struct oc_linear_saved *saved)
{
    saved->cast_input = train->amp && input->array.dtype != (int)train->e;
    struct oc_tensor *in =
        saved->cast_input ? oc_cast(train, param->block, "cast_input", train->e, input) : oc_tensor_hold(input);
    struct oc_tensor *weight = operand(train, param);
    if (param->bias) operand(train, param->bias);
    saved->input = oc_save(train, in);
    saved->weight = train->amp ? oc_save(train, weight) : NULL;
    return in;
}

struct oc_tensor *oc_linear_rows(struct oc_train *train, struct oc_param *param, const struct oc_tensor *in,
                                 int64_t first, int64_t rows, const char *name)
{
    struct oc_tensor *out = oc_activation(train, param->block, name, train->e, train->tokens, rows);
    const struct oc_tensor weight =
        oc_tensor_view(operand(train, param), (uint64_t)(first * param->columns), (uint64_t)(rows * param->columns));
    oc_product(train, plain(in, param->columns), oc_transposed(plain(&weight, param->columns)), plain(out, rows),
               train->tokens, rows, param->columns, false);
    if (!param->bias) return out;
    struct oc_op_bias args = {.n = (int64_t)out->elements, .y = out->array, .width = rows};
    args.b = oc_tensor_view(operand(train, param->bias), (uint64_t)first, (uint64_t)rows).array;
    oc_launch(train, OC_OP_bias, &args);
    return out;
}

struct oc_tensor *oc_linear(struct oc_train *train, struct oc_param *param, struct oc_tensor *input,
                            struct oc_linear_saved *saved)
{
    struct oc_tensor *in = oc_linear_begin(train, param, input, saved);
    struct oc_tensor *out = oc_linear_rows(train, param, in, 0, param->rows, "out");
    oc_let_go(train, &in);
    return out;
}

/* Of [T, rows]: each column's sum, in the type of the weights. */
static struct oc_tensor *bias_gradient(struct oc_train *train, struct oc_param *bias, const struct oc_tensor *grad_out)
{
    struct oc_tensor *db = oc_gradient(train, bias);
    struct oc_op_reduce args = {
        .n = (int64_t)db->elements, .x = grad_out->array, .y = db->array, .rows = train->tokens};
    oc_launch(train, OC_OP_column_sum, &args);
    return db;
}

struct oc_tensor *oc_linear_backward(struct oc_train *train, struct oc_param *param, struct oc_linear_saved *saved,
                                     struct oc_tensor **grad_out)
{
    const int64_t rows = param->rows, columns = param->columns, tokens = train->tokens;
    const struct oc_tensor *weight = train->amp ? saved->weight : param->weight;
    struct oc_tensor *di = oc_activation(train, param->block, "grad.input", train->e, tokens, columns);
    oc_product(train, plain(*grad_out, rows), plain(weight, columns), plain(di, columns), tokens, columns, rows, false);
    struct oc_tensor *dw = oc_tensor_new(train->books, OC_GRADIENTS, param->block, train->amp ? "grad.cast" : "grad",
                                         train->e, param->weight->elements);
    oc_product(train, oc_transposed(plain(*grad_out, rows)), plain(saved->input, columns), plain(dw, columns), rows,
               columns, tokens, false);
    struct oc_tensor *db = param->bias ? bias_gradient(train, param->bias, *grad_out) : NULL;
    oc_let_go(train, &saved->input);
    oc_let_go(train, &saved->weight);
    oc_let_go(train, grad_out);
    oc_let_go(train, &saved->with_grad);
    if (db) oc_accumulate(train, param->bias, &db);
    if (train->amp) {
        struct oc_tensor *dw32 = oc_gradient(train, param);
        oc_blend(train, dw, 1.0f, NULL, 0.0f, dw32);
        oc_let_go(train, &dw);
        dw = dw32;
    }
    if (param == oc_train_end(train, OC_P_EMBEDDING))
        param->waiting = dw; /* a tied head */
    else
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
