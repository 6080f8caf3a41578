/* Parameters and their master copies: the moment init. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/shards.h"
#include "probes/te.h"

static const double PROGRESS_SECONDS = 0.02;

double oc_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum oc_function function_of(enum oc_activation activation)
{
    switch (activation) {
    case OC_ACT_SWIGLU: return OC_SILU;
    case OC_ACT_RELU: return OC_RELU;
    case OC_ACT_SQUARED_RELU: return OC_SQUARED_RELU;
    default: return OC_GELU; /* and GeGLU */
    }
}

/* What differs between families of models. GPT-2 and its kin (learned positions, GELU) and BLOOM (alibi) have one
 * matrix for q, k and v; those with learned positions and LayerNorm run the softmax in the type of the scores, but
 * for autocast, which runs it in fp32. */
static void take_model(struct oc_train *train, const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const bool learned = c->model_positions == OC_POS_LEARNED;
    train->layernorm = c->model_norm == OC_NORM_LAYERNORM;
    train->eager_norm = !train->layernorm && c->kernels_norm == OC_NORMK_EAGER;
    train->rope = c->model_positions == OC_POS_ROPE;
    train->gated = plan->gated;
    const bool te = c->framework == OC_FW_MEGATRON;
    train->fused_qkv = te || (learned && c->model_activation == OC_ACT_GELU) || c->model_positions == OC_POS_ALIBI;
    train->half_scores = learned && train->layernorm;
    train->softmax = train->half_scores && !train->amp ? train->e : OC_FP32;
    train->dropout = (float)c->model_dropout;
    train->attention_dropout = (float)c->model_attention_dropout;
    train->function = function_of((enum oc_activation)c->model_activation);
}

static void take_plan(struct oc_train *train, const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    train->plan = plan;
    train->samples = c->batch_micro;
    train->seq = c->batch_seq / c->parallel_cp;
    train->tokens = oc_plan_tokens(plan);
    train->hidden = c->model_hidden;
    train->heads = c->model_heads / c->parallel_tp;
    train->kv_heads = c->model_kv_heads / c->parallel_tp;
    train->head_dim = c->model_head_dim;
    train->q = plan->q / c->parallel_tp;
    train->kv = plan->kv / c->parallel_tp;
    train->ffn = c->model_ffn / c->parallel_tp;
    train->vocab = plan->vocab / c->parallel_tp;
    train->has_embedding = train->has_head = true;
    train->scores = oc_mul(oc_mul((uint64_t)train->tokens, (uint64_t)train->heads), (uint64_t)train->seq);
    train->layers = (int)c->model_layers;
    train->micro_batches = (int)plan->accum;
    train->w = plan->dt.weights;
    train->r = plan->dt.residual;
    train->e = plan->dt.compute;
    train->amp = train->r == OC_FP32 && train->e != OC_FP32;
    train->eager = c->kernels_attention == OC_ATTN_EAGER;
    train->flash = c->kernels_attention == OC_ATTN_FLASH;
    train->recompute = c->recompute == OC_RECOMPUTE_FULL;
    train->repeats = train->kv_heads < train->heads;
    train->loss_in_fp32 = train->amp || (train->e != OC_FP32 && c->kernels_logits_fp32);
    train->fused_loss = c->kernels_loss == OC_LOSS_FUSED;
    train->loss_scale = train->e == OC_FP16 ? OC_USUAL_SCALE : 1.0f;
    train->clip = 1.0f;
    take_model(train, plan);
}

/* ---- The list of parameters ---- */

struct shape {
    const char *block, *bias; /* names; a bias only where there is one */
    int64_t rows, columns;    /* 0 rows: the plan has no such parameter */
    bool norm;                /* its bias is as wide as itself */
};

/* Appends a parameter and its bias; returns its index, -1 when there is none. */
static int list_param(struct oc_train *train, const struct shape *shape)
{
    if (shape->rows == 0) return -1;
    const int at = train->n_params++;
    train->params[at] =
        (struct oc_param){.block = shape->block, .rows = shape->rows, .columns = shape->columns, .vector = shape->norm};
    if (!shape->bias) return at;
    const int64_t width = shape->norm ? shape->columns : shape->rows;
    train->params[train->n_params] =
        (struct oc_param){.block = shape->bias, .rows = 1, .columns = width, .vector = true};
    train->params[at].bias = &train->params[train->n_params++];
    return at;
}

static void list_layer(struct oc_train *train, int layer)
{
    const struct oc_config *c = &train->plan->c;
    const int64_t h = train->hidden, f = train->ffn, q = train->q, kv = train->kv;
    const bool fused = train->fused_qkv, norm = train->layernorm;
    const bool gate = train->gated && !train->te, joined = train->gated && train->te; /* gate and up in one matrix */
    const bool linear = c->model_linear_bias, qkv = linear || c->model_qkv_bias, mlp = linear || c->model_mlp_bias;
    const struct shape shapes[OC_P_PER_LAYER] = {
        [OC_P_NORM1] = {"layers.norm1", norm ? "layers.norm1.bias" : NULL, 1, h, true},
        [OC_P_QKV] = {"layers.attention.qkv", qkv ? "layers.attention.qkv.bias" : NULL, fused ? q + 2 * kv : 0, h},
        [OC_P_Q] = {"layers.attention.q", qkv ? "layers.attention.q.bias" : NULL, fused ? 0 : q, h},
        [OC_P_K] = {"layers.attention.k", qkv ? "layers.attention.k.bias" : NULL, fused ? 0 : kv, h},
        [OC_P_V] = {"layers.attention.v", qkv ? "layers.attention.v.bias" : NULL, fused ? 0 : kv, h},
        [OC_P_O] = {"layers.attention.o", linear ? "layers.attention.o.bias" : NULL, h, q},
        [OC_P_NORM2] = {"layers.norm2", norm ? "layers.norm2.bias" : NULL, 1, h, true},
        [OC_P_GATE] = {"layers.mlp.gate", mlp ? "layers.mlp.gate.bias" : NULL, gate ? f : 0, h},
        [OC_P_UP] = {"layers.mlp.up", mlp ? "layers.mlp.up.bias" : NULL, joined ? 2 * f : f, h},
        [OC_P_DOWN] = {"layers.mlp.down", mlp ? "layers.mlp.down.bias" : NULL, h, f},
    };
    const int first = train->n_params;
    for (int i = 0; i < OC_P_PER_LAYER; i++) {
        const int at = list_param(train, &shapes[i]);
        train->layer_slots[i] = at < 0 ? -1 : at - first;
    }
    if (layer == 0) train->layer_start = first;
    train->per_layer = train->n_params - first;
}

static void list_params(struct oc_train *train)
{
    const struct oc_config *c = &train->plan->c;
    const int64_t h = train->hidden;
    const bool learned = c->model_positions == OC_POS_LEARNED, own_head = !c->model_tied || c->parallel_pp > 1;
    const char *head_bias = c->model_head_bias ? "head.bias" : NULL;
    const int64_t first = train->has_embedding, last = train->has_head;
    const struct shape ends[OC_P_ENDS] = {
        [OC_P_EMBEDDING] = {"embedding", NULL, first * train->vocab, h},
        [OC_P_POSITION] = {"embedding.position", NULL, learned ? first * c->model_max_positions : 0, h},
        [OC_P_FINAL_NORM] = {"final_norm", train->layernorm ? "final_norm.bias" : NULL, last, h, true},
        [OC_P_HEAD] = {"head", head_bias, own_head ? last * train->vocab : 0, h},
    };
    for (int i = 0; i <= OC_P_POSITION; i++) train->ends[i] = list_param(train, &ends[i]);
    for (int l = 0; l < train->layers; l++) list_layer(train, l);
    for (int i = OC_P_FINAL_NORM; i < OC_P_ENDS; i++) train->ends[i] = list_param(train, &ends[i]);
    if (own_head) return;
    train->ends[OC_P_HEAD] = train->ends[OC_P_EMBEDDING];
    if (!head_bias) return;
    train->params[train->n_params] =
        (struct oc_param){.block = head_bias, .rows = 1, .columns = train->vocab, .vector = true};
    train->params[train->ends[OC_P_HEAD]].bias = &train->params[train->n_params++];
}

struct oc_param *oc_train_param(const struct oc_train *train, int layer, enum oc_layer_param param)
{
    const int slot = train->layer_slots[param];
    return slot < 0 ? NULL : &train->params[train->layer_start + layer * train->per_layer + slot];
}

struct oc_param *oc_train_end(const struct oc_train *train, enum oc_end_param param)
{
    return train->ends[param] < 0 ? NULL : &train->params[train->ends[param]];
}

/* ---- Making them ---- */

static uint64_t elements(const struct oc_param *param)
{
    return oc_mul((uint64_t)param->rows, (uint64_t)param->columns);
}

/* Norms begin at 1, biases at 0. */
static bool is_norm(const struct oc_train *train, const struct oc_param *param)
{
    if (param == oc_train_end(train, OC_P_FINAL_NORM)) return true;
    const int at = (int)(param - train->params) - train->layer_start;
    if (at < 0 || at >= train->layers * train->per_layer) return false;
    const int slot = at % train->per_layer;
    return slot == train->layer_slots[OC_P_NORM1] || slot == train->layer_slots[OC_P_NORM2];
}

static void make_weight(struct oc_train *train, int index)
{
    struct oc_param *param = &train->params[index];
    struct oc_tensor *weight =
        train->shards ? oc_shards_make(train, index)
                      : oc_tensor_new(train->books, OC_WEIGHTS, param->block, "weight", train->w, elements(param));
    if (!train->shards) param->weight = weight;
    struct oc_op_init args = {.n = (int64_t)weight->elements,
                              .x = weight->array,
                              .mean = is_norm(train, param) ? 1.0f : 0.0f,
                              .deviation = param->rows > 1 ? 1.0f / sqrtf((float)param->columns) : 0.0f,
                              .seed = (uint32_t)index};
    oc_launch(train, OC_OP_init, &args);
    train->books->rank->params += elements(param);
}

static void make_master(struct oc_train *train, struct oc_param *unit)
{
    const enum oc_dtype dtype = train->plan->dt.master;
    unit->master = oc_tensor_new(train->books, OC_MASTER, unit->block, "master", dtype, unit->weight->elements);
    oc_blend(train, unit->weight, 1.0f, NULL, 0.0f, unit->master);
    oc_pad_share(train, dtype);
}

bool oc_train_open(struct oc_train *train, const struct oc_plan *plan, const struct oc_probe_options *options,
                   struct oc_probe_backend *backend, struct oc_books *books)
{
    memset(train, 0, sizeof *train);
    train->options = options;
    train->backend = backend;
    train->books = books;
    take_plan(train, plan);
    if (plan->c.framework == OC_FW_MEGATRON && !oc_te_open(train)) return false;
    train->params =
        calloc(((size_t)train->layers * OC_P_PER_LAYER + OC_P_ENDS) * 2 /* biases */, sizeof *train->params);
    train->saved = calloc((size_t)train->layers + 1, sizeof *train->saved);
    if (!train->params || !train->saved) return false;
    list_params(train);
    train->units = train->params;
    train->n_units = train->n_params;
    if (plan->c.framework == OC_FW_FSDP2 && !oc_shards_open(train)) return false;
    if (plan->c.framework == OC_FW_PYTORCH && plan->dp > 1 && !oc_ddp_open(train)) return false;

    books->recording = true;
    oc_train_at(train, OC_PH_INIT, OC_PART_NONE, -1);
    for (int i = 0; i < train->n_params && !oc_train_stopped(train); i++) make_weight(train, i);
    if (train->te && !oc_train_stopped(train)) oc_te_make_buffers(train);
    if (train->ddp && !oc_train_stopped(train)) oc_ddp_make_buckets(train);
    if (plan->dt.master != OC_NONE)
        for (int i = 0; i < train->n_units && !oc_train_stopped(train); i++) make_master(train, &train->units[i]);
    if (plan->c.run_resume) oc_optimizer_states(train);
    return true;
}

void oc_train_close(struct oc_train *train)
{
    oc_te_close(train);
    oc_shards_close(train);
    oc_ddp_close(train);
    free(train->params);
    free(train->saved);
    train->params = NULL;
    train->saved = NULL;
}

/* ---- Progress and stopping ---- */

static void ask(struct oc_train *train, const char *phase)
{
    const struct oc_probe_options *options = train->options;
    if (!options->progress || train->cancelled) return;
    train->backend->sync(train->backend); /* what is said to run does run */
    train->cancelled = !options->progress(options->user, phase, train->step, options->steps);
    train->next_progress = oc_seconds() + PROGRESS_SECONDS;
}

void oc_train_at(struct oc_train *train, enum oc_phase phase, enum oc_part part, int layer)
{
    enum oc_iteration iteration = train->step == 0 ? OC_FIRST : OC_STEADY;
    int micro_batch = part == OC_PART_NONE ? -1 : train->micro_batch;
    oc_books_at(train->books, iteration, phase, part, micro_batch, layer);
    if (train->options->progress) ask(train, oc_moment_name(oc_phase_moment(phase)));
}

bool oc_train_stopped(const struct oc_train *train)
{
    return train->cancelled || train->books->out_of_memory || train->backend->failed;
}

void oc_zero(struct oc_train *train, const struct oc_tensor *tensor)
{
    if (!oc_train_stopped(train)) train->backend->fill(train->backend, tensor->array.data, 0, (size_t)tensor->bytes);
}

void oc_launch(struct oc_train *train, enum oc_op op, const void *args)
{
    if (oc_train_stopped(train)) return;
    train->backend->launch(train->backend, op, args);
    if (train->options->progress && train->backend->device != OC_DEVICE_DRY && oc_seconds() >= train->next_progress)
        ask(train, oc_moment_name(train->books->place.moment));
}
