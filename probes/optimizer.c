/* "Step and after" of docs/step-pytorch.md: fp32 gradients for the master copies, optimizer states, the update,
 * zero_grad. */
#include <math.h>

#include "probes/shards.h"
#include "probes/te.h"

/* What makes a small model learn in 20 steps; nothing about memory depends on them. */
static const float SGD_RATE = 0.5f, MOMENTUM_RATE = 0.1f, ADAM_RATE = 0.01f;
static const float BETA1 = 0.9f, BETA2 = 0.999f, DECAY = 0.01f;
static const float EPSILON = 1e-8f, FP16_EPSILON = 1e-4f; /* 1e-8 is zero in fp16 */
static const double CLIP = 1;                             /* the largest norm of the gradients */

/* What the optimizer updates: the master copies where there are some. */
static struct oc_tensor *updated(const struct oc_param *param)
{
    return param->master ? param->master : param->weight;
}
static struct oc_tensor *gradient(const struct oc_param *param)
{
    return param->step_grad ? param->step_grad : param->grad;
}

/* ---- States ---- */

struct oc_tensor *oc_pad_share(struct oc_train *train, enum oc_dtype dtype)
{
    if (!train->te || train->te->share_padding == 0) return NULL;
    return oc_tensor_new(train->books, OC_BUFFERS, "share", "padding", dtype, train->te->share_padding);
}

static struct oc_tensor *state(struct oc_train *train, const struct oc_param *param, const char *name,
                               enum oc_dtype dtype)
{
    struct oc_tensor *tensor =
        oc_tensor_new(train->books, OC_OPTIMIZER, param->block, name, dtype, param->weight->elements);
    oc_launch(train, OC_OP_init, &(struct oc_op_init){.n = (int64_t)tensor->elements, .x = tensor->array});
    oc_pad_share(train, dtype);
    return tensor;
}

void oc_optimizer_states(struct oc_train *train)
{
    const struct oc_plan *plan = train->plan;
    const bool adam = oc_plan_has_moment2(plan);
    for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++) {
        struct oc_param *param = &train->units[i];
        if (!oc_plan_has_moment1(plan) || param->moment1) continue;
        param->moment1 = state(train, param, adam ? "exp_avg" : "momentum", plan->dt.moment1);
        if (!adam) continue;
        param->moment2 = state(train, param, "exp_avg_sq", plan->dt.moment2);
        if (plan->c.optimizer_impl == OC_IMPL_FUSED && !train->te)
            param->count = oc_tensor_new(train->books, OC_OPTIMIZER, param->block, "step", OC_FP32, 1);
    }
}

static void make_step_grads(struct oc_train *train)
{
    for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++) {
        struct oc_param *param = &train->units[i];
        param->step_grad = oc_tensor_new(train->books, OC_GRADIENTS, param->block, "step_grad",
                                         train->plan->dt.step_grads, param->weight->elements);
        oc_blend(train, param->grad, 1.0f, NULL, 0.0f, param->step_grad);
    }
    if (train->te) train->te->step_padding = oc_pad_share(train, train->plan->dt.step_grads);
}

/* ---- Clipping and the loss scale. Their numbers are zero-dimensional tensors, which are left out of the books ---- */

static int64_t chunks(const struct oc_tensor *tensor)
{
    return ((int64_t)tensor->elements + OC_CHUNK - 1) / OC_CHUNK;
}

static void set_scalars(struct oc_train *train, const struct oc_scalars *scalars)
{
    if (!oc_train_stopped(train))
        train->backend->write(train->backend, train->backend->scalars, scalars, sizeof *scalars);
}

static struct oc_scalars get_scalars(struct oc_train *train)
{
    struct oc_scalars scalars = {0};
    if (!oc_train_stopped(train))
        train->backend->read(train->backend, &scalars, train->backend->scalars, sizeof scalars);
    return scalars;
}

/* Looks at all gradients: are they finite, how large, how many would fp16 lose. */
static void measure(struct oc_train *train)
{
    set_scalars(train, &(struct oc_scalars){0});
    const struct oc_param *params = train->shards ? train->units : train->params;
    for (int i = 0; i < train->n_params && !oc_train_stopped(train); i++) {
        const struct oc_tensor *grad = params[i].grad;
        struct oc_op_measure args = {.n = chunks(grad),
                                     .g = grad->array,
                                     .scalars = train->backend->scalars,
                                     .count = (int64_t)grad->elements,
                                     .scale = train->loss_scale};
        oc_launch(train, OC_OP_measure, &args);
    }
}

/* clip_grad_norm_(1), and GradScaler's choice: gradients that overflowed change nothing, and the next are scaled by
 * half. */
static void clip(struct oc_train *train)
{
    if (train->backend->device == OC_DEVICE_DRY) return;
    measure(train);
    const struct oc_scalars scalars = get_scalars(train);
    struct oc_probe_numerics *numerics = &train->numerics;
    train->overflow = scalars.infinite > 0;
    if (train->overflow) {
        numerics->skipped++;
        if (train->loss_scale > 1) train->next_scale = train->loss_scale / 2;
        return;
    }
    numerics->norm = sqrt(scalars.squares);
    numerics->gradients += scalars.gradients;
    numerics->flushed += scalars.flushed;
    numerics->flushed_scaled += scalars.flushed_scaled;
    train->clip = numerics->norm > CLIP ? (float)(CLIP / numerics->norm) : 1.0f;
}

static void take_updates(struct oc_train *train)
{
    if (train->backend->device == OC_DEVICE_DRY) return;
    const struct oc_scalars scalars = get_scalars(train);
    train->numerics.updates += scalars.updates;
    train->numerics.lost += scalars.lost;
    train->numerics.lost_bf16 += scalars.lost_bf16;
    train->numerics.lost_fp16 += scalars.lost_fp16;
}

/* An update kernel, unless this step is skipped. */
static void update(struct oc_train *train, enum oc_op op, const void *args)
{
    if (!train->overflow) oc_launch(train, op, args);
}

/* ---- SGD ---- */

static void sgd(struct oc_train *train)
{
    const float momentum = (float)train->plan->c.optimizer_momentum;
    for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++) {
        struct oc_param *param = &train->units[i];
        struct oc_op_sgd args = {.n = chunks(param->weight),
                                 .count = (int64_t)param->weight->elements,
                                 .scalars = train->backend->scalars,
                                 .w = updated(param)->array,
                                 .g = gradient(param)->array,
                                 .rate = param->moment1 ? MOMENTUM_RATE : SGD_RATE,
                                 .momentum = momentum,
                                 .unscale = train->clip / train->loss_scale,
                                 .first = train->updates == 0};
        if (param->moment1) args.state = param->moment1->array;
        update(train, OC_OP_sgd, &args);
    }
}

/* ---- Adam: m and v, then w -= rate m / (sqrt(v) + epsilon), each corrected for its start at zero ---- */

static struct oc_op_adam adam_args(const struct oc_train *train, const struct oc_param *param)
{
    const float steps = (float)(train->updates + 1);
    return (struct oc_op_adam){.n = chunks(param->weight),
                               .count = (int64_t)param->weight->elements,
                               .scalars = train->backend->scalars,
                               .w = updated(param)->array,
                               .g = gradient(param)->array,
                               .m = param->moment1->array,
                               .v = param->moment2->array,
                               .rate = ADAM_RATE,
                               .decay = train->plan->c.optimizer == OC_OPTIM_ADAMW ? DECAY : 0.0f,
                               .beta1 = BETA1,
                               .beta2 = BETA2,
                               .epsilon = train->plan->dt.moment2 == OC_FP16 ? FP16_EPSILON : EPSILON,
                               .unscale = train->clip / train->loss_scale,
                               .root = 1.0f / sqrtf(1.0f - powf(BETA2, steps)),
                               .correct = 1.0f / (1.0f - powf(BETA1, steps))};
}

static void adam_fused(struct oc_train *train, struct oc_param *param)
{
    struct oc_op_adam args = adam_args(train, param);
    update(train, OC_OP_adam_fused, &args);
    if (param->count)
        oc_launch(train, OC_OP_init,
                  &(struct oc_op_init){.n = 1, .x = param->count->array, .mean = (float)(train->updates + 1)});
}

static struct oc_tensor *scratch(struct oc_train *train, const struct oc_param *param, const char *name)
{
    return oc_tensor_new(train->books, OC_BUFFERS, param->block, name, train->plan->dt.moment2,
                         param->weight->elements);
}

/* y = sqrt(v), not yet corrected. */
static void square_root(struct oc_train *train, const struct oc_param *param, const struct oc_tensor *y)
{
    struct oc_op_root args = {.n = (int64_t)y->elements, .x = param->moment2->array, .y = y->array};
    oc_launch(train, OC_OP_root, &args);
}

/* y = sqrt(v) / sqrt(1 - beta2^step) + epsilon. */
static void denominator(struct oc_train *train, const struct oc_op_adam *adam, const struct oc_tensor *root,
                        const struct oc_tensor *y)
{
    struct oc_op_blend args = {
        .n = (int64_t)y->elements, .a = root->array, .y = y->array, .alpha = adam->root, .constant = adam->epsilon};
    oc_launch(train, OC_OP_blend, &args);
}

/* One tensor at a time, each with scratch of its own. */
static void adam_loop(struct oc_train *train, struct oc_param *param)
{
    struct oc_op_adam args = adam_args(train, param);
    update(train, OC_OP_adam_moments, &args);
    struct oc_tensor *root = scratch(train, param, "sqrt");
    square_root(train, param, root);
    struct oc_tensor *div = scratch(train, param, "div");
    denominator(train, &args, root, div);
    args.denominator = div->array;
    update(train, OC_OP_adam_update, &args);
    oc_let_go(train, &root);
    oc_let_go(train, &div);
}

/* Lists of tensors: the square roots of all of them exist at once. */
static void adam_foreach(struct oc_train *train)
{
    for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++) {
        struct oc_param *param = &train->units[i];
        struct oc_op_adam args = adam_args(train, param);
        update(train, OC_OP_adam_moments, &args);
        param->scratch = scratch(train, param, "sqrt");
        square_root(train, param, param->scratch);
    }
    for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++) {
        struct oc_param *param = &train->units[i];
        struct oc_op_adam args = adam_args(train, param);
        denominator(train, &args, param->scratch, param->scratch);
        args.denominator = param->scratch->array;
        update(train, OC_OP_adam_update, &args);
    }
    for (int i = 0; i < train->n_units; i++) oc_let_go(train, &train->units[i].scratch);
}

static void adam(struct oc_train *train)
{
    const int64_t impl = train->plan->c.optimizer_impl;
    if (impl == OC_IMPL_FOREACH && !train->te) { /* Megatron's is fused, whatever the option says */
        adam_foreach(train);
        return;
    }
    for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++)
        (impl == OC_IMPL_LOOP && !train->te ? adam_loop : adam_fused)(train, &train->units[i]);
}

/* ---- The step and what follows it ---- */

static void weights_from_masters(struct oc_train *train)
{
    for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++)
        oc_blend(train, train->units[i].master, 1.0f, NULL, 0.0f, train->units[i].weight);
}

static void zero_grad(struct oc_train *train)
{
    for (int i = 0; i < train->n_units; i++) oc_let_go(train, &train->units[i].step_grad);
    if (train->te) oc_let_go(train, &train->te->step_padding);
    if (train->te) return; /* the main grads are set to zero when the next iteration begins */
    if (train->shards) {
        oc_shards_zero_grad(train);
        return;
    }
    for (int i = 0; i < train->n_params; i++) {
        struct oc_param *param = &train->params[i];
        if (oc_ddp_forgets_gradients(train))
            param->grad = NULL;
        else if (train->plan->c.run_zero_grad_to_none && !oc_ddp_keeps_gradients(train))
            oc_let_go(train, &param->grad);
        else
            oc_zero(train, param->grad);
    }
}

void oc_optimizer_step(struct oc_train *train)
{
    const bool masters = train->plan->dt.master != OC_NONE;
    oc_train_at(train, OC_PH_REDUCE, OC_PART_NONE, -1); /* nothing is sent */
    if (train->te) oc_te_reduce(train);
    oc_train_at(train, OC_PH_CLIP, OC_PART_NONE, -1);
    train->overflow = false;
    train->next_scale = train->loss_scale;
    clip(train);
    oc_train_at(train, OC_PH_STEP, OC_PART_NONE, -1);
    if (train->plan->dt.step_grads != OC_NONE) make_step_grads(train);
    oc_optimizer_states(train);
    if (oc_train_stopped(train)) return;
    if (oc_plan_has_moment2(train->plan))
        adam(train);
    else
        sgd(train);
    take_updates(train);
    if (masters) weights_from_masters(train);
    if (!train->overflow) train->updates++;
    train->loss_scale = train->next_scale;

    oc_train_at(train, OC_PH_AFTER_STEP, OC_PART_NONE, -1);
    zero_grad(train);
    oc_train_at(train, OC_PH_IDLE, OC_PART_NONE, -1);
}

void oc_train_step(struct oc_train *train)
{
    train->loss = 0;
    train->books->recording = train->step < OC_ITERATIONS;
    if (train->te) oc_te_run_slots(train);
    for (int i = 0; !train->te && i < train->micro_batches && !oc_train_stopped(train); i++) {
        train->micro_batch = i;
        oc_micro_batch(train);
    }
    if (!oc_train_stopped(train)) oc_ddp_reduce(train);
    if (!oc_train_stopped(train)) oc_optimizer_step(train);
}
