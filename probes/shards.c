#include "probes/shards.h"

#include <stdlib.h>

/* ---- Shares ---- */

/* Whole rows of a matrix, numbers of a vector: as many on every rank. */
static uint64_t share_of(const struct oc_param *param, int64_t ranks)
{
    const int64_t rows = param->vector ? param->columns : param->rows, width = param->vector ? 1 : param->columns;
    return oc_mul((uint64_t)((rows + ranks - 1) / ranks), (uint64_t)width);
}

static int unit_of(const struct oc_train *train, int index)
{
    const int at = index - train->layer_start;
    const bool layer = at >= 0 && at < train->layers * train->per_layer;
    return layer ? at / train->per_layer : train->layers;
}

/* The first parameter of a unit, and the one after `index`; n_params when there is none. */
static int first_of(const struct oc_train *train, int unit)
{
    if (unit < train->layers) return train->layer_start + unit * train->per_layer;
    return train->layer_start > 0 ? 0 : train->layers * train->per_layer;
}

static int next_of(const struct oc_train *train, int unit, int index)
{
    const int layers_end = train->layer_start + train->layers * train->per_layer;
    if (unit < train->layers) return index + 1 < first_of(train, unit) + train->per_layer ? index + 1 : train->n_params;
    return index + 1 == train->layer_start ? layers_end : index + 1;
}

bool oc_shards_open(struct oc_train *train)
{
    const struct oc_plan *plan = train->plan;
    struct oc_shards *shards = train->shards = calloc(1, sizeof *shards);
    if (!shards) return false;
    const size_t n = (size_t)train->n_params, units = (size_t)train->layers + 1;
    shards->ranks = plan->shard;
    shards->storage = plan->dt.grads;
    shards->reduce = (enum oc_dtype)plan->c.precision_reduce;
    shards->reshard = plan->c.fsdp_reshard_after_forward;
    shards->ahead = plan->c.fsdp_forward_prefetch;
    shards->behind = plan->c.fsdp_backward_prefetch;
    shards->units = calloc(units, sizeof *shards->units);
    shards->shares = calloc(n, sizeof *shards->shares);
    shards->waits = plan->c.parallel_no_sync && plan->accum > 1;
    shards->views = calloc(2 * n, sizeof *shards->views);
    shards->sums = calloc(n, sizeof *shards->sums);
    shards->at = calloc(n, sizeof *shards->at);
    if (!shards->units || !shards->shares || !shards->views || !shards->sums || !shards->at) return false;
    for (size_t u = 0; u < units; u++) shards->units[u].block = u + 1 < units ? "layers" : "root";
    for (int i = 0; i < train->n_params; i++) {
        struct oc_param *param = &train->params[i];
        struct oc_unit *unit = &shards->units[unit_of(train, i)];
        shards->at[i] = unit->own;
        unit->own = oc_add(unit->own, share_of(param, shards->ranks));
        shards->views[2 * i].elements = oc_mul((uint64_t)param->rows, (uint64_t)param->columns);
        param->weight = &shards->views[2 * i];
        shards->shares[i] = (struct oc_param){.block = param->block, .grad = &shards->views[2 * i + 1]};
    }
    train->units = shards->shares;
    train->n_units = train->n_params;
    return true;
}

void oc_shards_close(struct oc_train *train)
{
    struct oc_shards *shards = train->shards;
    train->shards = NULL;
    if (!shards) return;
    void *const all[] = {shards->units, shards->shares, shards->views, shards->sums, shards->at, shards};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

struct oc_tensor *oc_shards_make(struct oc_train *train, int index)
{
    struct oc_shards *shards = train->shards;
    struct oc_param *share = &shards->shares[index];
    share->weight = oc_tensor_new(train->books, OC_WEIGHTS, share->block, "share", shards->storage,
                                  share_of(&train->params[index], shards->ranks));
    return share->weight;
}

/* ---- Units ---- */

/* Streams that allocate. */
enum { COMPUTES, GATHERS, REDUCES };

static struct oc_tensor *buffer(struct oc_train *train, int stream, const struct oc_unit *unit, const char *name,
                                enum oc_dtype dtype, int64_t parts)
{
    return oc_tensor_on(train->books, stream, OC_BUFFERS, unit->block, name, dtype, oc_mul(unit->own, (uint64_t)parts));
}

/* The region of a parameter in a tensor of [ranks, own] elements of its unit: all its parts, one behind the other. */
static struct oc_tensor parts_of(const struct oc_train *train, const struct oc_tensor *all, int index,
                                 uint64_t elements)
{
    const struct oc_shards *shards = train->shards;
    return oc_tensor_view(all, oc_mul(shards->at[index], (uint64_t)shards->ranks), elements);
}

static void all_gather(struct oc_train *train, int u, const struct oc_tensor *to)
{
    for (int i = first_of(train, u); i < train->n_params && !oc_train_stopped(train); i = next_of(train, u, i)) {
        const struct oc_tensor *share = train->shards->shares[i].weight;
        const uint64_t elements = oc_mul(share->elements, (uint64_t)train->shards->ranks);
        const struct oc_tensor parts = parts_of(train, to, i, elements);
        struct oc_op_gather args = {
            .n = (int64_t)elements, .x = share->array, .y = parts.array, .count = (int64_t)share->elements};
        oc_launch(train, OC_OP_gather, &args);
    }
}

/* Makes the unit's weights what its parameters are. */
static void use_whole(struct oc_train *train, int u)
{
    struct oc_unit *unit = &train->shards->units[u];
    for (int i = first_of(train, u); i < train->n_params; i = next_of(train, u, i)) {
        struct oc_tensor *weight = train->params[i].weight;
        *weight = parts_of(train, unit->whole, i, weight->elements);
    }
}

void oc_unit_gather(struct oc_train *train, int u)
{
    if (!train->shards) return;
    struct oc_unit *unit = &train->shards->units[u];
    const int64_t ranks = train->shards->ranks;
    unit->gathered = buffer(train, GATHERS, unit, "gathered", train->w, ranks);
    if (train->shards->ahead && u < train->layers) unit->ahead = buffer(train, GATHERS, unit, "ahead", train->w, ranks);
    unit->whole = buffer(train, COMPUTES, unit, "whole", train->w, ranks);
    all_gather(train, u, unit->gathered);
    oc_blend(train, unit->gathered, 1.0f, NULL, 0.0f, unit->whole);
    use_whole(train, u);
}

void oc_unit_gathered(struct oc_train *train, int u)
{
    if (!train->shards) return;
    oc_let_go(train, &train->shards->units[u].gathered);
    oc_let_go(train, &train->shards->units[u].ahead);
}

void oc_unit_reshard(struct oc_train *train, int u)
{
    if (train->shards && train->shards->reshard) oc_let_go(train, &train->shards->units[u].whole);
}

void oc_unit_gather_again(struct oc_train *train, int u)
{
    if (!train->shards) return;
    struct oc_shards *shards = train->shards;
    struct oc_unit *unit = &shards->units[u];
    const bool layer = u < train->layers;
    if (layer) oc_train_at(train, OC_PH_RECOMPUTE, OC_PART_LAYER, u);
    if (shards->reshard) {
        if (!layer) unit->gathered = buffer(train, GATHERS, unit, "gathered", train->w, shards->ranks);
        unit->whole = buffer(train, COMPUTES, unit, "whole", train->w, shards->ranks);
        if (layer && shards->behind) unit->ahead = buffer(train, GATHERS, unit, "ahead", train->w, shards->ranks);
        all_gather(train, u, unit->whole);
        use_whole(train, u);
    }
}

/* ---- Gradients ---- */

/* What earlier micro-batches left of the unit's gradients in the type of the reduction takes those of this one. */
static void add_to_sums(struct oc_train *train, int u)
{
    for (int i = first_of(train, u); i < train->n_params; i = next_of(train, u, i)) {
        struct oc_tensor *sum = train->shards->sums[i];
        if (!sum) continue;
        oc_blend(train, sum, 1.0f, train->params[i].grad, 1.0f, sum);
        oc_let_go(train, &train->params[i].grad);
    }
}

/* The first micro-batch's gradients, cast one after the other. */
static void make_sums(struct oc_train *train, int u)
{
    for (int i = first_of(train, u); i < train->n_params && !oc_train_stopped(train); i = next_of(train, u, i)) {
        struct oc_param *param = &train->params[i];
        struct oc_tensor **sum = &train->shards->sums[i];
        if (*sum) continue;
        *sum = oc_tensor_new(train->books, OC_GRADIENTS, param->block, "grad.sum", train->shards->reduce,
                             param->grad->elements);
        oc_blend(train, param->grad, 1.0f, NULL, 0.0f, *sum);
        oc_let_go(train, &param->grad);
    }
}

/* The unit's gradients, into the input of the reduce-scatter; they are freed. */
static void take_gradients(struct oc_train *train, int u, const struct oc_tensor *input)
{
    oc_zero(train, input); /* padding */
    for (int i = first_of(train, u); i < train->n_params; i = next_of(train, u, i)) {
        struct oc_param *param = &train->params[i];
        struct oc_tensor **grad = train->shards->sums[i] ? &train->shards->sums[i] : &param->grad;
        const struct oc_tensor parts = parts_of(train, input, i, param->weight->elements);
        oc_blend(train, *grad, 1.0f, NULL, 0.0f, &parts);
        oc_let_go(train, grad);
    }
}

/* The sums over all parts. */
static void reduce_scatter(struct oc_train *train, int u, const struct oc_tensor *input, const struct oc_tensor *output)
{
    for (int i = first_of(train, u); i < train->n_params && !oc_train_stopped(train); i = next_of(train, u, i)) {
        const uint64_t own = train->shards->shares[i].weight->elements;
        const struct oc_tensor parts = parts_of(train, input, i, own);
        const struct oc_tensor sum = oc_tensor_view(output, train->shards->at[i], own);
        struct oc_op_reduce args = {.n = (int64_t)own, .x = parts.array, .y = sum.array, .rows = train->shards->ranks};
        oc_launch(train, OC_OP_column_sum, &args);
    }
}

/* The first micro-batch's stay; a later one's are added. */
static void keep_gradients(struct oc_train *train, int u, struct oc_tensor *grads)
{
    struct oc_unit *unit = &train->shards->units[u];
    if (unit->grads) {
        oc_blend(train, unit->grads, 1.0f, grads, 1.0f, unit->grads);
        oc_let_go(train, &grads);
        return;
    }
    unit->grads = grads;
    for (int i = first_of(train, u); i < train->n_params; i = next_of(train, u, i))
        train->shards->views[2 * i + 1] =
            oc_tensor_view(grads, train->shards->at[i], train->shards->shares[i].weight->elements);
}

/* The unit's weights and what of its gradients no longer waits for another micro-batch are gone after it. */
static void reduce(struct oc_train *train, int u)
{
    struct oc_shards *shards = train->shards;
    struct oc_unit *unit = &shards->units[u];
    const bool recast = shards->reduce != shards->storage;
    oc_let_go(train, &shards->input);
    shards->input = buffer(train, COMPUTES, unit, "reduce_scatter.input", shards->reduce, shards->ranks);
    take_gradients(train, u, shards->input);
    struct oc_tensor *output = recast ? buffer(train, REDUCES, unit, "reduce_scatter.output", shards->reduce, 1) : NULL;
    struct oc_tensor *grads =
        oc_tensor_on(train->books, REDUCES, OC_GRADIENTS, unit->block, "grads", shards->storage, unit->own);
    reduce_scatter(train, u, shards->input, recast ? output : grads);
    if (recast) oc_blend(train, output, 1.0f, NULL, 0.0f, grads);
    keep_gradients(train, u, grads);
    oc_let_go(train, &output);
    if (u == train->layers) oc_let_go(train, &shards->input); /* nothing is reduced after the root */
}

void oc_unit_reduce(struct oc_train *train, int u)
{
    if (!train->shards || oc_train_stopped(train)) return;
    struct oc_shards *shards = train->shards;
    const bool casts = shards->waits && shards->reduce != train->w;
    if (casts) add_to_sums(train, u);
    oc_let_go(train, &shards->units[u].whole);
    if (!shards->waits || train->micro_batch == train->micro_batches - 1)
        reduce(train, u);
    else if (casts)
        make_sums(train, u);
    oc_let_go(train, &shards->units[u].ahead);
}

void oc_shards_zero_grad(struct oc_train *train)
{
    for (int u = 0; u <= train->layers; u++) oc_let_go(train, &train->shards->units[u].grads);
}
