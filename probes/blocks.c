/* What the layers are made of: tensors, casts, sums, products elementwise, dropout, gradients. */
#include "probes/train.h"

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

struct oc_tensor *oc_gradient(struct oc_train *train, const struct oc_param *param)
{
    return oc_tensor_new(train->books, OC_GRADIENTS, param->block, "grad", train->w, param->weight->elements);
}

void oc_accumulate(struct oc_train *train, struct oc_param *param, struct oc_tensor **grad)
{
    if (param->grad) {
        struct oc_tensor *view = oc_ddp_view(train, param);
        oc_blend(train, param->grad, 1.0f, *grad, 1.0f, view ? view : param->grad);
        oc_let_go(train, grad);
        if (!view) return;
        oc_let_go(train, &param->grad);
        param->grad = view;
    } else {
        param->grad = *grad;
        *grad = NULL;
    }
}

uint32_t oc_seed(const struct oc_train *train, int layer, enum oc_site site)
{
    const uint32_t step = (uint32_t)train->step, micro_batch = (uint32_t)train->micro_batch;
    return ((step * 4099u + micro_batch) * 8209u + (uint32_t)(layer + 1)) * 8u + (uint32_t)site;
}

struct oc_tensor *oc_dropout_mask(struct oc_train *train, const char *block, const struct oc_tensor *x)
{
    return oc_tensor_new(train->books, OC_ACTIVATIONS, block, "dropout_mask", OC_BOOL, x->elements);
}

static void drop(struct oc_train *train, float rate, uint32_t seed, const struct oc_tensor *x,
                 const struct oc_tensor *mask, const struct oc_tensor *y)
{
    struct oc_op_dropout args = {
        .n = (int64_t)x->elements, .x = x->array, .y = y->array, .mask = mask->array, .rate = rate, .seed = seed};
    oc_launch(train, OC_OP_dropout, &args);
}

struct oc_tensor *oc_dropout(struct oc_train *train, const char *block, float rate, uint32_t seed,
                             const struct oc_tensor *x, const struct oc_tensor *mask)
{
    struct oc_tensor *y =
        oc_tensor_new(train->books, OC_ACTIVATIONS, block, "dropped", (enum oc_dtype)x->array.dtype, x->elements);
    drop(train, rate, seed, x, mask, y);
    return y;
}

void oc_drop_in_place(struct oc_train *train, float rate, uint32_t seed, const struct oc_tensor *x,
                      const struct oc_tensor *mask)
{
    drop(train, rate, seed, x, mask, x);
}

void oc_dropout_backward(struct oc_train *train, float rate, const struct oc_tensor *mask, const struct oc_tensor *x,
                         const struct oc_tensor *y)
{
    struct oc_op_dropout args = {
        .n = (int64_t)x->elements, .x = x->array, .y = y->array, .mask = mask->array, .rate = rate, .backward = 1};
    oc_launch(train, OC_OP_dropout, &args);
}
