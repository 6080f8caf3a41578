/* What a rank of Megatron holds beside activations: its parameters and main grads in buffers, its share of the states,
 * and what libraries and the pipeline keep. "At first" and "A step" of docs/step-megatron.md. */
#include <stdlib.h>

#include "probes/te.h"

/* ---- The rank, before it has parameters ---- */

static void describe_chunks(struct oc_te *te, const struct oc_plan *plan)
{
    int64_t before = 0;
    int own = 0;
    for (int chunk = 0; chunk < te->n_chunks; chunk++)
        for (int64_t stage = 0; stage < plan->c.parallel_pp; stage++) {
            const int64_t layers = oc_plan_layers(plan, stage, chunk);
            if (stage == te->stage) {
                te->chunks[chunk] = (struct oc_te_chunk){.first = own,
                                                         .layers = (int)layers,
                                                         .first_in_model = before,
                                                         .embedding = oc_plan_has_embedding(plan, stage, chunk),
                                                         .head = oc_plan_has_head(plan, stage, chunk)};
                own += (int)layers;
            }
            before += layers;
        }
}

/* FlashAttention, before Hopper, works on a copy by sample of what the projection keeps; an all-to-all of context
 * parallelism brings the output back to where its tokens are. */
static const char *second_output(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (c->kernels_attention != OC_ATTN_FLASH) return NULL;
    if (c->parallel_cp > 1) return c->parallel_cp_comm == OC_CP_A2A ? "context_before_exchange" : NULL;
    const bool by_sample =
        plan->sm > 0 && plan->sm < 90 && c->megatron_attention_backend != OC_BACKEND_FUSED && c->batch_micro > 1;
    return by_sample ? "context_by_sample" : NULL;
}

static void take_plan(struct oc_train *train, struct oc_te *te)
{
    const struct oc_plan *plan = train->plan;
    const struct oc_config *c = &plan->c;
    te->ranks = c->parallel_tp;
    te->rows = oc_plan_tokens_sp(plan);
    te->sequence_parallel = c->parallel_sp != 0;
    if (train->recompute) te->checkpointed = c->recompute_method == OC_METHOD_BLOCK ? c->recompute_layers : INT64_MAX;
    te->core_recompute = c->recompute == OC_RECOMPUTE_SELECTIVE;
    te->softmax_in_fp32 = train->e != OC_FP32 && !c->megatron_masked_softmax_fusion && c->megatron_softmax_in_fp32;
    te->second_output = second_output(plan);
    te->te_loss = c->kernels_loss == OC_LOSS_TE_FUSED;
    te->fc1 = train->gated ? 2 * train->ffn : train->ffn;
    te->joined = train->q + 2 * train->kv;
}

bool oc_te_open(struct oc_train *train)
{
    const struct oc_plan *plan = train->plan;
    struct oc_te *te = train->te = calloc(1, sizeof *te);
    if (!te) return false;
    te->stage = train->options->stage;
    te->n_chunks = (int)plan->c.parallel_vpp;
    te->chunks = calloc((size_t)te->n_chunks, sizeof *te->chunks);
    if (!te->chunks || !oc_te_schedule(te, plan)) return false;
    describe_chunks(te, plan);
    take_plan(train, te);
    train->layers = 0;
    train->has_embedding = train->has_head = false;
    for (int i = 0; i < te->n_chunks; i++) {
        train->layers += te->chunks[i].layers;
        train->has_embedding |= te->chunks[i].embedding;
        train->has_head |= te->chunks[i].head;
    }
    train->micro_batches = te->in_flight;
    te->n_outliving = plan->c.parallel_pp > 1 ? 2 * te->n_chunks : 0;
    te->kept = calloc((size_t)te->in_flight * (size_t)te->n_chunks, sizeof *te->kept);
    te->saved = calloc((size_t)te->in_flight * (size_t)train->layers + 1, sizeof *te->saved);
    te->outliving = calloc((size_t)te->n_outliving + 1, sizeof(struct oc_tensor *));
    if (!te->kept || !te->saved || !te->outliving) return false;
    for (int m = 0; m < te->in_flight; m++)
        for (int i = 0; i < te->n_chunks; i++)
            te->kept[m * te->n_chunks + i].layers = &te->saved[m * train->layers + te->chunks[i].first];
    return true;
}

void oc_te_close(struct oc_train *train)
{
    struct oc_te *te = train->te;
    train->te = NULL;
    if (!te) return;
    void *const all[] = {te->chunks, te->slots, te->kept, te->saved, te->views, te->outliving, te};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

/* ---- Where each parameter lies in the buffers: reverse order, aligned, in buckets that are padded ---- */

struct layout {
    struct oc_train *train;
    uint64_t *starts;           /* of each parameter */
    uint64_t at, bucket, total; /* elements */
    uint64_t bucket_size;       /* 0: one bucket */
    uint64_t multiple;          /* of a bucket's length; 1: nothing is aligned */
    bool open;                  /* the bucket holds something */
};

static uint64_t up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static void close_bucket(struct layout *layout)
{
    layout->at = layout->bucket = up(layout->at, layout->multiple);
    layout->open = false;
}

static void place(struct layout *layout, int index)
{
    const struct oc_train *train = layout->train;
    const struct oc_param *param = &train->params[index];
    /* The embedding and its copy on the last stage sum their gradients: in a bucket of their own. */
    const bool tied = train->plan->c.model_tied && train->plan->c.parallel_pp > 1;
    const bool alone = tied && (index == train->ends[OC_P_EMBEDDING] || index == train->ends[OC_P_HEAD]);
    if (layout->multiple > 1) layout->at = up(layout->at, 64);
    if (alone && layout->open) close_bucket(layout);
    layout->starts[index] = oc_add(layout->total, layout->at);
    layout->at = oc_add(layout->at, oc_mul((uint64_t)param->rows, (uint64_t)param->columns));
    layout->open = true;
    if (alone || (layout->bucket_size && layout->at - layout->bucket >= layout->bucket_size)) close_bucket(layout);
}

static void place_chunk(struct layout *layout, const struct oc_te_chunk *chunk)
{
    const struct oc_train *train = layout->train;
    const int first = train->layer_start + chunk->first * train->per_layer;
    const int layers_end = train->layer_start + train->layers * train->per_layer;
    layout->at = layout->bucket = 0;
    layout->open = false;
    if (chunk->head)
        for (int i = train->n_params - 1; i >= layers_end; i--) place(layout, i);
    for (int i = first + chunk->layers * train->per_layer - 1; i >= first; i--) place(layout, i);
    if (chunk->embedding)
        for (int i = train->layer_start - 1; i >= 0; i--) place(layout, i);
    if (layout->open && layout->multiple > 1) close_bucket(layout);
    layout->total = oc_add(layout->total, layout->at);
}

static uint64_t common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y) {
        const uint64_t rest = x % y;
        x = y, y = rest;
    }
    return a / x * b;
}

/* Fills the starts of all parameters; returns the elements of the whole buffer. */
static uint64_t lay_out(struct oc_train *train, uint64_t *starts)
{
    const struct oc_plan *plan = train->plan;
    struct layout layout = {.train = train, .starts = starts, .multiple = 1};
    const uint64_t ranks = (uint64_t)(plan->dp * plan->c.parallel_cp), least = ranks * 1000000;
    if (plan->c.parallel_zero)
        layout.multiple = common_multiple((uint64_t)plan->shard, plan->c.megatron_pad_buckets ? 65536 : 128);
    for (int i = 0; i < train->te->n_chunks; i++) {
        const bool buckets =
            plan->c.parallel_zero && plan->c.parallel_overlap_grad_reduce && train->te->stage == 0 && i == 0;
        layout.bucket_size = !buckets ? 0 : least > 40000000 ? least : 40000000;
        place_chunk(&layout, &train->te->chunks[i]);
    }
    return layout.total;
}

/* ---- Buffers ---- */

/* The parameters move into their buffer, one by one. */
static void move_weights(struct oc_train *train, const uint64_t *starts)
{
    struct oc_te *te = train->te;
    for (int i = 0; i < train->n_params && !oc_train_stopped(train); i++) {
        struct oc_param *param = &train->params[i];
        te->views[2 * i] = oc_tensor_view(te->params, starts[i], param->weight->elements);
        oc_blend(train, param->weight, 1.0f, NULL, 0.0f, &te->views[2 * i]);
    }
    for (int i = 0; i < train->n_params; i++) {
        oc_let_go(train, &train->params[i].weight);
        train->params[i].weight = &te->views[2 * i];
    }
}

static void make_share(struct oc_train *train, uint64_t total, uint64_t padded)
{
    struct oc_te *te = train->te;
    const uint64_t ranks = (uint64_t)train->plan->shard;
    te->shared = ranks > 1;
    if (!te->shared) return;
    te->share = total / ranks;
    te->share_padding = padded / ranks - total / ranks;
    struct oc_tensor *weight = &te->views[2 * train->n_params], *grad = weight + 1;
    *weight = oc_tensor_view(te->params, 0, te->share);
    *grad = oc_tensor_view(te->main_grads, 0, te->share);
    te->share_param = (struct oc_param){.block = "share", .weight = weight, .grad = grad};
    train->units = &te->share_param;
    train->n_units = 1;
}

void oc_te_make_buffers(struct oc_train *train)
{
    struct oc_te *te = train->te;
    uint64_t *starts = calloc((size_t)train->n_params, sizeof *starts), total = 0;
    te->views = calloc(2 * (size_t)train->n_params + 2, sizeof *te->views);
    if (!starts || !te->views) {
        train->books->out_of_memory = true;
        free(starts);
        return;
    }
    for (int i = 0; i < train->n_params; i++) total = oc_add(total, train->params[i].weight->elements);
    const uint64_t padded = lay_out(train, starts);
    const bool buffer = train->plan->c.parallel_zero > 0;
    if (buffer)
        te->params = oc_tensor_pool(train->books, OC_WEIGHTS, "buffer", "params", train->w, total, padded - total);
    te->main_grads = oc_tensor_pool(train->books, OC_GRADIENTS, "buffer", "main_grads", train->plan->dt.grads, total,
                                    padded - total);
    if (buffer) move_weights(train, starts);
    for (int i = 0; i < train->n_params; i++) {
        te->views[2 * i + 1] = oc_tensor_view(te->main_grads, starts[i], train->params[i].weight->elements);
        train->params[i].grad = &te->views[2 * i + 1];
    }
    if (buffer) make_share(train, total, padded);
    free(starts);
}

/* ---- What stays from its first use on ---- */

static void keep(struct oc_train *train, const char *name, enum oc_dtype dtype, uint64_t elements)
{
    if (elements > 0) oc_tensor_new(train->books, OC_BUFFERS, "persistent", name, dtype, elements);
}

/* One for each shape of a matrix on this rank. */
static void make_dummy_gradients(struct oc_train *train)
{
    static const enum oc_layer_param matrices[] = {OC_P_QKV, OC_P_O, OC_P_UP, OC_P_DOWN};
    const struct oc_param *all[5];
    int n = 0;
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0] && train->layers > 0; i++)
        all[n++] = oc_train_param(train, 0, matrices[i]);
    const struct oc_param *head = oc_train_end(train, OC_P_HEAD);
    if (head && head != oc_train_end(train, OC_P_EMBEDDING)) all[n++] = head;
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) seen |= all[i]->rows == all[j]->rows && all[i]->columns == all[j]->columns;
        if (!seen) keep(train, "dummy_gradient", train->w, all[i]->weight->elements);
    }
}

void oc_te_first_backward(struct oc_train *train)
{
    if (train->step > 0 || train->te->began_backward) return;
    train->te->began_backward = true;
    make_dummy_gradients(train);
    keep(train, "cublas_workspace.backward", OC_INT8, oc_cublas_bytes(train->plan));
}

static void begin(struct oc_train *train)
{
    struct oc_te *te = train->te;
    oc_train_at(train, OC_PH_START, OC_PART_NONE, -1);
    for (int i = 0; i < te->n_outliving; i++) oc_let_go(train, &te->outliving[i]);
    oc_zero(train, te->main_grads);
    if (train->step > 0) return;
    const int sm = train->plan->sm;
    keep(train, "te_workspace", OC_INT8, sm == 0 ? 0 : sm >= 90 ? (32u << 20) + 1024 : 4u << 20);
    if (te->sequence_parallel && train->has_head)
        te->global_buffer = oc_tensor_new(train->books, OC_BUFFERS, "persistent", "global_buffer", train->e,
                                          oc_mul((uint64_t)train->tokens, (uint64_t)train->hidden));
    keep(train, "cublas_workspace.forward", OC_INT8, oc_cublas_bytes(train->plan));
    if (te->n_chunks > 1) oc_te_first_backward(train);
}

/* The last tensors that went over the pipeline are referred to until the next iteration's first calls return. */
void oc_te_reduce(struct oc_train *train)
{
    struct oc_te *te = train->te;
    for (int i = 0; i < te->n_outliving; i++)
        te->outliving[i] = oc_tensor_new(train->books, OC_BUFFERS, "pipeline", "kept", train->r,
                                         oc_mul((uint64_t)te->rows, (uint64_t)train->hidden));
}

void oc_te_run_slots(struct oc_train *train)
{
    struct oc_te *te = train->te;
    begin(train);
    for (int i = 0; i < te->n_slots && !oc_train_stopped(train); i++)
        (te->slots[i].backward ? oc_te_backward_slot : oc_te_forward_slot)(train, &te->slots[i]);
}
