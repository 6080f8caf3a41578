/* Cutting a plan to what the probe can run, in the order that keeps its predictions exact the longest: layers,
 * micro-batch, then vocabulary or sequence, then widths; what is left of the budget then goes to layers again. The
 * probe's own dry run is the judge of bytes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/base/covers.h"
#include "probes/train.h"

static const double RATE = 6e9; /* operations a second of the plain loops, on one core of a laptop */
static const double HALF = 0.6; /* of it where numbers are of 16 bits, which are converted one by one */
static const double STEPS = 4;  /* that a run has unless told otherwise */
enum { LEAST_LAYERS = 2, LEAST_MICRO = 1, MOST_ACCUM = 2 };

/* How far the shape is cut: first to a size that still looks like a model, then to one that runs anywhere. */
static const struct floors {
    int64_t seq, vocab, width;
} floors[] = {{128, 2048, 128}, {16, 256, 64}};

/* ---- What was cut, in words ---- */

struct words {
    char *text;
    int size, used;
};

static void say(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct words *words, const char *format, ...)
{
    if (!words->text || words->size <= 0) return;
    if (words->used > 0 && words->used < words->size)
        words->used += snprintf(words->text + words->used, (size_t)(words->size - words->used), ", ");
    if (words->used >= words->size) return;
    va_list args;
    va_start(args, format);
    words->used += vsnprintf(words->text + words->used, (size_t)(words->size - words->used), format, args);
    va_end(args);
}

static void say_cut(struct words *words, const char *what, int64_t from, int64_t to)
{
    if (from != to) say(words, "%s %lld to %lld", what, (long long)from, (long long)to);
}

/* ---- The nearest plan that oc_probe_covers() accepts ---- */

static bool is_half(enum oc_dtype dtype)
{
    return dtype == OC_FP16 || dtype == OC_BF16;
}

/* The type of a state that exists or not: what is no float becomes fp32. */
static enum oc_dtype state_type(enum oc_dtype dtype, bool exists)
{
    if (!exists) return OC_NONE;
    return is_half(dtype) ? dtype : OC_FP32;
}

/* 16-bit weights with or without a master copy, autocast over fp32 weights, or fp32. */
static void cover_types(struct oc_plan *plan)
{
    struct oc_dtypes *dt = &plan->dt;
    struct oc_config *c = &plan->c;
    const bool half = is_half(dt->weights) || (dt->weights != OC_FP32 && is_half(dt->compute));
    const bool amp = !half && is_half(dt->compute);
    const enum oc_dtype narrow = is_half(dt->weights) ? dt->weights : dt->compute;
    dt->weights = dt->residual = dt->grads = half ? narrow : OC_FP32;
    if (!amp) dt->compute = dt->weights;
    dt->master = half && dt->master != OC_NONE ? OC_FP32 : OC_NONE;
    dt->step_grads = dt->master;
    const bool adam = c->optimizer != OC_OPTIM_SGD;
    dt->moment1 = state_type(dt->moment1, adam || dt->moment1 != OC_NONE);
    dt->moment2 = state_type(dt->moment2, adam);

    const bool bf16 = dt->compute == OC_BF16;
    c->precision = amp                     ? (bf16 ? OC_PREC_AMP_BF16 : OC_PREC_AMP_FP16)
                   : !half                 ? OC_PREC_FP32
                   : dt->master != OC_NONE ? (bf16 ? OC_PREC_BF16 : OC_PREC_FP16)
                                           : (bf16 ? OC_PREC_PURE_BF16 : OC_PREC_PURE_FP16);
    c->precision_autocast = amp ? (int64_t)dt->compute : OC_NONE;
    c->precision_weights = c->precision_residual = c->precision_grads = dt->weights;
    c->precision_master = dt->master;
    c->precision_moment1 = dt->moment1;
    c->precision_moment2 = dt->moment2;
}

/* What the step has no part for, of the model and of its kernels. */
static void cover_shape(struct oc_config *c)
{
    c->model_kind = OC_KIND_DECODER;
    c->model_head = OC_HEAD_LM;
    c->model_embedding_dim = c->model_hidden;
    c->model_final_norm = 1;
    c->model_norms_per_layer = 2;
    if (c->model_positions == OC_POS_ALIBI) c->model_positions = OC_POS_ROPE;
    c->model_qk_norm = c->model_parallel_residual = c->model_embedding_norm = 0;
    if (c->model_positions == OC_POS_ROPE) c->model_head_dim += c->model_head_dim % 2;
}

/* Everything that differs from a Llama, for plans that are still not covered. */
static void cover_family(struct oc_plan *plan)
{
    struct oc_config *c = &plan->c;
    c->model_mlp_bias = c->model_linear_bias = c->model_qkv_bias = c->model_head_bias = 0;
    c->model_norm = OC_NORM_RMSNORM;
    c->model_activation = OC_ACT_SWIGLU;
    plan->gated = true;
    c->model_positions = OC_POS_ROPE;
    c->model_head_dim += c->model_head_dim % 2;
    c->model_dropout = c->model_attention_dropout = 0;
    c->kernels_loss = OC_LOSS_EAGER;
    c->kernels_norm = OC_NORMK_EAGER;
}

static void cover_kernels(struct oc_config *c)
{
    enum oc_option_id id;
    c->framework = OC_FW_PYTORCH;
    for (int from = 0; (id = oc_probe_unknown(c, from)) != OC_OPTIONS; from = (int)id + 1) oc_option_reset(c, id);
    if (c->optimizer > OC_OPTIM_ADAMW) c->optimizer = OC_OPTIM_ADAMW;
    c->kernels_transformer = OC_OPSET_HF;
    if (c->kernels_loss != OC_LOSS_FUSED) c->kernels_loss = OC_LOSS_EAGER;
    c->kernels_logits_fp32 = 1;
    if (c->kernels_attention == OC_ATTN_UNFUSED || c->model_head_dim > 256) c->kernels_attention = OC_ATTN_EAGER;
    if (c->recompute == OC_RECOMPUTE_SELECTIVE) c->recompute = OC_RECOMPUTE_NONE;
    c->recompute_method = OC_METHOD_UNIFORM;
    c->recompute_layers = 1;
}

/* One rank alone. */
static void cover_ranks(struct oc_plan *plan)
{
    struct oc_config *c = &plan->c;
    c->parallel_world = c->parallel_tp = c->parallel_pp = c->parallel_vpp = c->parallel_cp = c->parallel_etp = 1;
    c->parallel_sp = c->parallel_zero = c->parallel_shard_group = 0;
    c->parallel_first_stage_layers = c->parallel_last_stage_layers = 0;
    c->parallel_embedding_in_split = c->parallel_loss_in_split = 0;
    memset(c->megatron_pipeline_layout, 0, sizeof c->megatron_pipeline_layout);
    plan->dp = plan->shard = 1;
    c->model_vocab = plan->vocab; /* padded for the ranks that there were */
    c->model_vocab_multiple = 1;
}

/* Stages of unequal length cannot be cut in step. */
static bool has_equal_stages(const struct oc_config *c)
{
    return !c->parallel_first_stage_layers && !c->parallel_last_stage_layers && !c->parallel_embedding_in_split &&
           !c->parallel_loss_in_split && !c->megatron_pipeline_layout[0];
}

/* Returns whether the plan had to become another one. */
static bool cover(struct oc_plan *plan, struct words *words)
{
    const struct oc_config *c = &plan->c;
    const bool ranks = c->parallel_tp * c->parallel_pp * c->parallel_cp * plan->dp > 1;
    if (!oc_probe_covers(plan) && has_equal_stages(c)) return false; /* a rank's slice stays one */
    if (ranks) say(words, "one rank without parallelism");
    cover_ranks(plan);
    if (!oc_probe_covers(plan)) return ranks;
    cover_shape(&plan->c);
    cover_kernels(&plan->c);
    cover_types(plan);
    const bool llama = oc_probe_covers(plan) != NULL;
    if (llama) cover_family(plan);
    say(words, llama ? "at PyTorch's op set of a Llama" : "at PyTorch's op set");
    return true;
}

/* ---- What it costs ---- */

/* Everything that follows from the shape in plan->c. */
static void derive(struct oc_plan *plan)
{
    struct oc_config *c = &plan->c;
    c->model_embedding_dim = c->model_hidden;
    plan->q = c->model_heads * c->model_head_dim;
    plan->kv = c->model_kv_heads * c->model_head_dim;
    plan->accum = c->batch_accum;
    c->batch_global = c->batch_micro * c->batch_accum * plan->dp;
}

/* Seconds on one core, of the rank's slice. A product of [m,k] and [k,n] costs 2 m k n, once forward and twice
 * backward. */
static double seconds(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const double tp = (double)c->parallel_tp, pp = (double)c->parallel_pp, h = (double)c->model_hidden;
    const double q = (double)plan->q / tp, kv = (double)plan->kv / tp, f = (double)c->model_ffn / tp;
    const double vocab = (double)plan->vocab / tp, seq = (double)c->batch_seq / (double)c->parallel_cp;
    const double tokens = (double)c->batch_micro * seq;
    const double heads = (double)c->model_heads / tp, own = (double)c->model_layers / pp;
    const double layer = h * (2 * q + 2 * kv + 3 * f), scores = tokens * seq;
    const double passes = c->recompute == OC_RECOMPUTE_FULL ? 8 : 6;
    const double attention = scores * (10 * q + 100 * heads); /* and its exponentials */
    const double layers = own * (tokens * (passes * layer + 200 * h + 60 * f) + 2 * attention);
    const double head = tokens * vocab * (6 * h + 100);
    const double update = 100 * (own * layer + 2 * vocab * h);
    const double in_flight = pp + 1, micro_batches = (double)c->batch_accum;
    const double run = pp > 1 && in_flight < micro_batches ? in_flight : micro_batches; /* the rest repeats */
    const double rate = plan->dt.compute == OC_FP32 ? RATE : HALF * RATE;
    return (STEPS * ((layers + head) * run + update)) / rate;
}

struct budget {
    uint64_t bytes;
    double seconds;
};

/* On both ends of the pipeline: one has the most in flight, the other the logits. */
static bool fits(const struct oc_plan *plan, const struct budget *budget)
{
    if (seconds(plan) > budget->seconds) return false;
    static const int first_and_steady = 2;
    const int last = (int)plan->c.parallel_pp - 1;
    bool good = true;
    for (int stage = 0; good && stage <= last; stage += last > 0 ? last : 1) {
        struct oc_probe_options options = {
            .device = OC_DEVICE_DRY, .stage = stage, .steps = first_and_steady, .limit = budget->bytes};
        struct oc_probe_result result;
        good = oc_probe_run(plan, &options, &result);
    }
    return good;
}

/* ---- Cutting ---- */

/* The largest multiple of `step` from `least` up to below `end` that fits, in *field; false, and *field is `least`,
 * when none does. */
static bool largest(struct oc_plan *plan, int64_t *field, int64_t least, int64_t end, int64_t step,
                    const struct budget *budget)
{
    int64_t low = least / step, high = (end - 1) / step;
    if (end <= least) return false;
    *field = least;
    derive(plan);
    if (!fits(plan, budget)) return false;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        *field = middle * step;
        derive(plan);
        if (fits(plan, budget))
            low = middle;
        else
            high = middle - 1;
    }
    *field = low * step;
    derive(plan);
    return true;
}

/* Halves, to a multiple of the ranks that share it, until the floor is reached. */
static bool halve(struct oc_plan *plan, int64_t *field, int64_t floor)
{
    const int64_t ranks = plan->c.parallel_tp * plan->c.parallel_cp, least = (floor + ranks - 1) / ranks * ranks;
    if (*field <= least) return false;
    const int64_t half = *field / 2 / ranks * ranks;
    *field = half > least ? half : least;
    derive(plan);
    return true;
}

static void set_vocab(struct oc_plan *plan)
{
    plan->vocab = plan->c.model_vocab;
    plan->c.model_vocab_multiple = 1;
}

/* What the vocabulary costs (logits, embedding, head) against what a layer's tokens cost: the larger is cut. */
static bool vocab_dominates(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const double tokens = (double)c->batch_micro * (double)c->batch_seq, h = (double)c->model_hidden;
    const double head = (double)plan->vocab * (tokens + 2 * h);
    const double layer = tokens * (8 * h + 3 * (double)c->model_ffn + 2 * (double)plan->q) +
                         (c->kernels_attention == OC_ATTN_EAGER ? tokens * (double)(c->batch_seq * c->model_heads) : 0);
    return head > (double)c->model_layers * layer;
}

static bool halve_vocab_or_seq(struct oc_plan *plan, const struct floors *least)
{
    struct oc_config *c = &plan->c;
    const bool vocab_first = vocab_dominates(plan);
    if (!vocab_first && halve(plan, &c->batch_seq, least->seq)) return true;
    if (halve(plan, &c->model_vocab, least->vocab)) {
        set_vocab(plan);
        return true;
    }
    return vocab_first && halve(plan, &c->batch_seq, least->seq);
}

/* Half the query heads, and half the key heads where there are more than one for each tensor-parallel rank. */
static bool halve_heads(struct oc_plan *plan)
{
    struct oc_config *c = &plan->c;
    const int64_t ranks = c->parallel_tp, heads = c->model_heads / 2;
    const bool keys = c->model_kv_heads % (2 * ranks) == 0;
    const int64_t kv_heads = keys ? c->model_kv_heads / 2 : c->model_kv_heads;
    if (c->model_heads % 2 || heads % ranks || heads < kv_heads || heads % kv_heads) return false;
    c->model_heads = heads;
    c->model_kv_heads = kv_heads;
    derive(plan);
    return true;
}

static bool halve_width(struct oc_plan *plan, const struct floors *least)
{
    struct oc_config *c = &plan->c;
    if (plan->q > 2 * c->model_hidden && halve_heads(plan)) return true;
    if (c->model_ffn > 2 * c->model_hidden) return halve(plan, &c->model_ffn, least->width);
    return halve(plan, &c->model_hidden, least->width) || halve(plan, &c->model_ffn, least->width);
}

static bool cut_shape(struct oc_plan *plan, const struct budget *budget)
{
    for (size_t i = 0; i < sizeof floors / sizeof floors[0]; i++)
        while (halve_vocab_or_seq(plan, &floors[i]) || halve_width(plan, &floors[i]))
            if (fits(plan, budget)) return true;
    return false;
}

static void cut_to(struct oc_plan *plan, const struct budget *budget)
{
    struct oc_config *c = &plan->c;
    const int64_t stages = c->parallel_pp * c->parallel_vpp, whole = c->model_layers;
    const int64_t least = stages > LEAST_LAYERS ? stages : LEAST_LAYERS / stages * stages;
    if (c->parallel_pp == 1 && c->batch_accum > MOST_ACCUM) c->batch_accum = MOST_ACCUM;
    derive(plan);
    if (fits(plan, budget)) return;
    if (largest(plan, &c->model_layers, least, whole, stages, budget)) return;
    if (!largest(plan, &c->batch_micro, LEAST_MICRO, c->batch_micro, 1, budget) && !cut_shape(plan, budget)) return;
    largest(plan, &c->model_layers, c->model_layers, whole + 1, stages, budget);
}

/* The probe runs no cuBLAS and fills no GPU: a workspace of 64 MiB beside a small shape would say nothing. */
static void without_gpu(struct oc_plan *plan)
{
    memset(plan->c.gpu, 0, sizeof plan->c.gpu);
    memcpy(plan->c.gpu, "none", sizeof "none");
    plan->c.gpu_capacity = plan->c.gpu_context = plan->c.gpu_nccl = 0;
    plan->capacity = 0;
    plan->sm = 0;
    plan->context = plan->nccl = (struct oc_range){0, 0};
}

/* Gives every option that is not what it was, every number that follows from others (of a narrower model another
 * head_dim would), and under another framework all that might follow it: so that plan->c, resolved again, is this very
 * plan. What follows the GPU goes on following it. */
static void give(struct oc_config *c, const struct oc_config *before, bool other)
{
    for (int i = 0; i < OC_OPTIONS; i++) {
        const enum oc_option_id id = (enum oc_option_id)i;
        char is[OC_NAME_MAX], was[OC_NAME_MAX];
        oc_option_text(c, id, is, sizeof is);
        oc_option_text(before, id, was, sizeof was);
        const struct oc_option *option = oc_option(id);
        const bool device = !strcmp(option->group, "Device"), follows = option->type == OC_T_INT && !option->def;
        if (strcmp(is, was) != 0 || (!device && (other || (follows && oc_option_get(c, id)))))
            oc_set_given(c, id, true);
    }
}

void oc_probe_fit(struct oc_plan *plan, uint64_t bytes, double time, char *what, int size)
{
    struct words words = {.text = what, .size = size};
    const struct budget budget = {.bytes = bytes, .seconds = time};
    if (what && size > 0) what[0] = '\0';
    if (!plan->has_shape) return; /* nothing to cut: oc_probe_run() says why it cannot run */
    struct oc_plan whole = *plan;
    struct oc_config *c = &plan->c;
    struct words covered = {0};
    const bool other = cover(plan, &covered);
    without_gpu(plan);
    cut_to(plan, &budget);
    if (c->model_max_positions == whole.c.batch_seq) c->model_max_positions = c->batch_seq;
    if (c->model_expert_ffn == whole.c.model_ffn) c->model_expert_ffn = c->model_ffn;
    give(c, &whole.c, other);

    say_cut(&words, "layers", whole.c.model_layers, c->model_layers);
    say_cut(&words, "micro-batch", whole.c.batch_micro, c->batch_micro);
    say_cut(&words, "vocabulary", whole.vocab, plan->vocab);
    say_cut(&words, "sequence", whole.c.batch_seq, c->batch_seq);
    say_cut(&words, "hidden", whole.c.model_hidden, c->model_hidden);
    say_cut(&words, "heads", whole.c.model_heads, c->model_heads);
    say_cut(&words, "ffn", whole.c.model_ffn, c->model_ffn);
    say_cut(&words, "accumulation", whole.accum, plan->accum);
    cover(&whole, &words);
    plan->hash = oc_plan_hash(plan);
}

bool oc_probe_cut_layers_alone(const struct oc_plan *whole, const struct oc_plan *cut)
{
    const struct oc_config *a = &whole->c, *b = &cut->c;
    return a->framework == b->framework && a->batch_micro == b->batch_micro && a->batch_seq == b->batch_seq &&
           a->model_hidden == b->model_hidden && a->model_heads == b->model_heads && a->model_ffn == b->model_ffn &&
           whole->vocab == cut->vocab && a->parallel_tp == b->parallel_tp && a->parallel_pp == b->parallel_pp &&
           whole->shard == cut->shard && a->kernels_transformer == b->kernels_transformer &&
           a->kernels_attention == b->kernels_attention && a->model_activation == b->model_activation &&
           a->model_norm == b->model_norm && a->precision == b->precision;
}
