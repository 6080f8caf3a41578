/* Parameters and their master copies: the moment init. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/train.h"

static const float FP16_LOSS_SCALE = 1024.0f; /* fixed; a real GradScaler starts at 65536 and finds its own */
static const double PROGRESS_SECONDS = 0.02;

double oc_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void take_plan(struct oc_train *train, const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    train->plan = plan;
    train->samples = c->batch_micro;
    train->seq = c->batch_seq;
    train->tokens = oc_plan_tokens(plan);
    train->hidden = c->model_hidden;
    train->heads = c->model_heads;
    train->kv_heads = c->model_kv_heads;
    train->head_dim = c->model_head_dim;
    train->q = plan->q;
    train->kv = plan->kv;
    train->ffn = c->model_ffn;
    train->vocab = plan->vocab;
    train->scores = oc_mul(oc_mul((uint64_t)train->tokens, (uint64_t)train->heads), (uint64_t)train->seq);
    train->layers = (int)c->model_layers;
    train->micro_batches = (int)plan->accum;
    train->w = plan->dt.weights;
    train->r = plan->dt.residual;
    train->e = plan->dt.compute;
    train->amp = train->r == OC_FP32 && train->e != OC_FP32;
    train->eager = c->kernels_attention == OC_ATTN_EAGER;
    train->recompute = c->recompute == OC_RECOMPUTE_FULL;
    train->repeats = train->kv_heads < train->heads;
    train->loss_in_fp32 = train->amp || (train->e != OC_FP32 && c->kernels_logits_fp32);
    train->loss_scale = train->e == OC_FP16 ? FP16_LOSS_SCALE : 1.0f;
}

/* ---- The list of parameters ---- */

struct shape {
    const char *block;
    int64_t rows, columns;
};

static void list_params(struct oc_train *train)
{
    const struct oc_config *c = &train->plan->c;
    const int64_t h = train->hidden, f = train->ffn;
    const struct shape layer[OC_P_PER_LAYER] = {
        [OC_P_NORM1] = {"layers.norm1", 1, h},           [OC_P_Q] = {"layers.attention.q", train->q, h},
        [OC_P_K] = {"layers.attention.k", train->kv, h}, [OC_P_V] = {"layers.attention.v", train->kv, h},
        [OC_P_O] = {"layers.attention.o", h, train->q},  [OC_P_NORM2] = {"layers.norm2", 1, h},
        [OC_P_GATE] = {"layers.mlp.gate", f, h},         [OC_P_UP] = {"layers.mlp.up", f, h},
        [OC_P_DOWN] = {"layers.mlp.down", h, f},
    };
    struct oc_param *param = train->params;
    *param++ = (struct oc_param){.block = "embedding", .rows = train->vocab, .columns = h};
    for (int l = 0; l < train->layers; l++)
        for (int i = 0; i < OC_P_PER_LAYER; i++)
            *param++ = (struct oc_param){.block = layer[i].block, .rows = layer[i].rows, .columns = layer[i].columns};
    *param++ = (struct oc_param){.block = "final_norm", .rows = 1, .columns = h};
    if (!c->model_tied) *param++ = (struct oc_param){.block = "head", .rows = train->vocab, .columns = h};
    train->n_params = (int)(param - train->params);
}

struct oc_param *oc_train_embedding(const struct oc_train *train)
{
    return &train->params[0];
}

struct oc_param *oc_train_layer(const struct oc_train *train, int layer)
{
    return &train->params[1 + layer * OC_P_PER_LAYER];
}

struct oc_param *oc_train_final_norm(const struct oc_train *train)
{
    return oc_train_layer(train, train->layers);
}

struct oc_param *oc_train_head(const struct oc_train *train)
{
    return train->plan->c.model_tied ? oc_train_embedding(train) : oc_train_final_norm(train) + 1;
}

/* ---- Making them ---- */

static uint64_t elements(const struct oc_param *param)
{
    return oc_mul((uint64_t)param->rows, (uint64_t)param->columns);
}

static void make_weight(struct oc_train *train, int index)
{
    struct oc_param *param = &train->params[index];
    bool norm = param->rows == 1;
    param->weight = oc_tensor_new(train->books, OC_WEIGHTS, param->block, "weight", train->w, elements(param));
    struct oc_op_init args = {.n = (int64_t)param->weight->elements,
                              .x = param->weight->array,
                              .mean = norm ? 1.0f : 0.0f,
                              .deviation = norm ? 0.0f : 1.0f / sqrtf((float)param->columns),
                              .seed = (uint32_t)index};
    oc_launch(train, OC_OP_init, &args);
    train->books->rank->params += elements(param);
}

static void make_master(struct oc_train *train, struct oc_param *param)
{
    param->master =
        oc_tensor_new(train->books, OC_MASTER, param->block, "master", train->plan->dt.master, elements(param));
    oc_blend(train, param->weight, 1.0f, NULL, 0.0f, param->master);
}

bool oc_train_open(struct oc_train *train, const struct oc_plan *plan, const struct oc_probe_options *options,
                   struct oc_probe_backend *backend, struct oc_books *books)
{
    memset(train, 0, sizeof *train);
    train->options = options;
    train->backend = backend;
    train->books = books;
    take_plan(train, plan);
    train->params = calloc((size_t)train->layers * OC_P_PER_LAYER + 3, sizeof *train->params);
    train->saved = calloc((size_t)train->layers, sizeof *train->saved);
    if (!train->params || !train->saved) return false;
    list_params(train);

    books->recording = true;
    oc_train_at(train, OC_PH_INIT, OC_PART_NONE, -1);
    for (int i = 0; i < train->n_params && !oc_train_stopped(train); i++) make_weight(train, i);
    if (plan->dt.master != OC_NONE)
        for (int i = 0; i < train->n_params && !oc_train_stopped(train); i++) make_master(train, &train->params[i]);
    if (plan->c.run_resume) oc_optimizer_states(train);
    return true;
}

void oc_train_close(struct oc_train *train)
{
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

void oc_launch(struct oc_train *train, enum oc_op op, const void *args)
{
    if (oc_train_stopped(train)) return;
    train->backend->launch(train->backend, op, args);
    if (train->options->progress && train->backend->device != OC_DEVICE_DRY && oc_seconds() >= train->next_progress)
        ask(train, oc_moment_name(train->books->place.moment));
}
