/* Cutting a plan to what the probe can run, in the order that keeps its predictions exact the longest: layers,
 * micro-batch, then vocabulary or sequence, then widths. The probe's own dry run is the judge of bytes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/base/covers.h"
#include "probes/train.h"

static const double RATE = 6e9; /* operations a second of the plain loops, on one core of a laptop */
static const double STEPS = 3;  /* that a run has: the first, a steady one and another */
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

/* One rank alone: a slice of a larger job is not what the probe measures. */
static void cover_ranks(struct oc_plan *plan)
{
    struct oc_config *c = &plan->c;
    c->parallel_world = c->parallel_tp = c->parallel_pp = c->parallel_vpp = c->parallel_cp = c->parallel_etp = 1;
    c->parallel_sp = c->parallel_zero = c->parallel_shard_group = 0;
    c->parallel_first_stage_layers = c->parallel_last_stage_layers = 0;
    c->parallel_embedding_in_split = c->parallel_loss_in_split = 0;
    plan->dp = plan->shard = 1;
}

/* Returns whether the plan had to become another one. */
static bool cover(struct oc_plan *plan, struct words *words)
{
    const struct oc_config *c = &plan->c;
    if (c->parallel_tp * c->parallel_pp * c->parallel_cp * plan->dp > 1) say(words, "one rank without parallelism");
    cover_ranks(plan);
    if (!oc_probe_covers(plan)) return false;
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
    plan->q = c->model_heads * c->model_head_dim;
    plan->kv = c->model_kv_heads * c->model_head_dim;
    plan->accum = c->batch_accum;
    c->batch_global = c->batch_micro * c->batch_accum;
}

/* Seconds on one core. A product of [m,k] and [k,n] costs 2 m k n, once forward and twice backward. */
static double seconds(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const double h = (double)c->model_hidden, q = (double)plan->q, kv = (double)plan->kv, f = (double)c->model_ffn;
    const double vocab = (double)plan->vocab, tokens = (double)c->batch_micro * (double)c->batch_seq;
    const double layer = h * (2 * q + 2 * kv + 3 * f), scores = tokens * (double)c->batch_seq;
    const double passes = c->recompute == OC_RECOMPUTE_FULL ? 8 : 6;
    const double attention = scores * (10 * q + 100 * (double)c->model_heads); /* and its exponentials */
    const double layers = (double)c->model_layers * (tokens * (passes * layer + 200 * h + 60 * f) + 2 * attention);
    const double head = tokens * vocab * (6 * h + 100);
    const double update = 100 * ((double)c->model_layers * layer + 2 * vocab * h);
    return (STEPS * ((layers + head) * (double)c->batch_accum + update)) / RATE;
}

struct budget {
    uint64_t bytes;
    double seconds;
};

static bool fits(const struct oc_plan *plan, const struct budget *budget)
{
    if (seconds(plan) > budget->seconds) return false;
    static const int first_and_steady = 2;
    struct oc_probe_options options = {.device = OC_DEVICE_DRY, .steps = first_and_steady, .limit = budget->bytes};
    struct oc_probe_result result;
    return oc_probe_run(plan, &options, &result);
}

/* ---- Cutting ---- */

/* The largest value from `least` up to what *field holds that fits; `least` when none does. */
static bool cut(struct oc_plan *plan, int64_t *field, int64_t least, const struct budget *budget)
{
    int64_t low = least, high = *field - 1;
    if (*field <= least) return false;
    *field = least;
    derive(plan);
    if (!fits(plan, budget)) return false;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        *field = middle;
        derive(plan);
        if (fits(plan, budget))
            low = middle;
        else
            high = middle - 1;
    }
    *field = low;
    derive(plan);
    return true;
}

/* Halves until it fits or the floor is reached. */
static bool halve(struct oc_plan *plan, int64_t *field, int64_t least)
{
    if (*field <= least) return false;
    *field = *field / 2 > least ? *field / 2 : least;
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

static bool halve_width(struct oc_plan *plan, const struct floors *least)
{
    struct oc_config *c = &plan->c;
    if (c->model_ffn > 2 * c->model_hidden) return halve(plan, &c->model_ffn, least->width);
    return halve(plan, &c->model_hidden, least->width) || halve(plan, &c->model_ffn, least->width);
}

static void cut_to(struct oc_plan *plan, const struct budget *budget)
{
    struct oc_config *c = &plan->c;
    if (c->batch_accum > MOST_ACCUM) c->batch_accum = MOST_ACCUM;
    derive(plan);
    if (fits(plan, budget)) return;
    if (cut(plan, &c->model_layers, LEAST_LAYERS, budget)) return;
    if (cut(plan, &c->batch_micro, LEAST_MICRO, budget)) return;
    for (size_t i = 0; i < sizeof floors / sizeof floors[0]; i++)
        while (halve_vocab_or_seq(plan, &floors[i]) || halve_width(plan, &floors[i]))
            if (fits(plan, budget)) return;
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

/* Gives every option that is not what it was, and under another framework all that might follow it: so that plan->c,
 * resolved again, is this very plan. What follows the GPU goes on following it. */
static void give(struct oc_config *c, const struct oc_config *before, bool other)
{
    for (int i = 0; i < OC_OPTIONS; i++) {
        const enum oc_option_id id = (enum oc_option_id)i;
        char is[OC_NAME_MAX], was[OC_NAME_MAX];
        oc_option_text(c, id, is, sizeof is);
        oc_option_text(before, id, was, sizeof was);
        if (strcmp(is, was) != 0 || (other && strcmp(oc_option(id)->group, "Device") != 0)) oc_set_given(c, id, true);
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
    if (c->model_embedding_dim == whole.c.model_hidden) c->model_embedding_dim = c->model_hidden;
    give(c, &whole.c, other);

    say_cut(&words, "layers", whole.c.model_layers, c->model_layers);
    say_cut(&words, "micro-batch", whole.c.batch_micro, c->batch_micro);
    say_cut(&words, "vocabulary", whole.vocab, plan->vocab);
    say_cut(&words, "sequence", whole.c.batch_seq, c->batch_seq);
    say_cut(&words, "hidden", whole.c.model_hidden, c->model_hidden);
    say_cut(&words, "ffn", whole.c.model_ffn, c->model_ffn);
    say_cut(&words, "accumulation", whole.accum, plan->accum);
    cover(&whole, &words);
    plan->hash = oc_plan_hash(plan);
}
