/* A configuration as DeepSpeed's JSON. Source: deepspeedai/DeepSpeed docs/_pages/config-json.md (names and defaults).
 */
#include <stdio.h>
#include <stdlib.h>

#include "oomcast/export.h"

struct writer {
    FILE *out;
    bool first; /* in the object that is open */
    int depth;
};

static void key(struct writer *w, const char *name)
{
    fprintf(w->out, "%s\n%*s\"%s\": ", w->first ? "" : ",", 2 * w->depth, "", name);
    w->first = false;
}

static void open_object(struct writer *w, const char *name)
{
    key(w, name);
    fputc('{', w->out);
    w->depth++;
    w->first = true;
}

static void close_object(struct writer *w)
{
    w->depth--;
    fprintf(w->out, "\n%*s}", 2 * w->depth, "");
    w->first = false;
}

static void number(struct writer *w, const char *name, int64_t value)
{
    key(w, name);
    fprintf(w->out, "%lld", (long long)value);
}

static void boolean(struct writer *w, const char *name, bool value)
{
    key(w, name);
    fputs(value ? "true" : "false", w->out);
}

static void string(struct writer *w, const char *name, const char *value)
{
    key(w, name);
    fprintf(w->out, "\"%s\"", value); /* names of ours: nothing to escape */
}

static void put_batch(struct writer *w, const struct oc_plan *plan)
{
    number(w, "train_batch_size", plan->c.batch_micro * plan->accum * plan->dp);
    number(w, "train_micro_batch_size_per_gpu", plan->c.batch_micro);
    number(w, "gradient_accumulation_steps", plan->accum);
}

static void put_precision(struct writer *w, const struct oc_plan *plan)
{
    int64_t precision = plan->c.precision;
    bool fp16 = precision == OC_PREC_FP16 || precision == OC_PREC_AMP_FP16 || precision == OC_PREC_PURE_FP16;
    bool bf16 = precision == OC_PREC_BF16 || precision == OC_PREC_AMP_BF16 || precision == OC_PREC_PURE_BF16 ||
                precision == OC_PREC_FP8;
    open_object(w, "fp16");
    boolean(w, "enabled", fp16);
    close_object(w);
    open_object(w, "bf16");
    boolean(w, "enabled", bf16);
    close_object(w);
}

static void put_offload(struct writer *w, const char *name)
{
    open_object(w, name);
    string(w, "device", "cpu");
    boolean(w, "pin_memory", true);
    close_object(w);
}

static void put_zero(struct writer *w, const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    open_object(w, "zero_optimization");
    number(w, "stage", c->parallel_zero);
    if (c->parallel_zero > 0) {
        number(w, "reduce_bucket_size", c->zero_reduce_bucket);
        number(w, "allgather_bucket_size", c->zero_allgather_bucket);
        boolean(w, "overlap_comm", c->zero_overlap_comm);
        boolean(w, "contiguous_gradients", c->zero_contiguous_gradients);
    }
    if (c->parallel_zero == 3) {
        number(w, "stage3_prefetch_bucket_size", c->zero_prefetch_bucket);
        number(w, "stage3_max_live_parameters", c->zero_live_params);
        number(w, "stage3_param_persistence_threshold", c->zero_persistence);
    }
    if (c->offload_optimizer) put_offload(w, "offload_optimizer");
    if (c->offload_params && c->parallel_zero == 3) put_offload(w, "offload_param");
    close_object(w);
}

/* DeepSpeed's names of optimizers; another one is made by the training script. */
static const char *optimizer_name(int64_t optimizer)
{
    switch (optimizer) {
    case OC_OPTIM_SGD: return "SGD";
    case OC_OPTIM_ADAM: return "Adam";
    case OC_OPTIM_ADAMW: return "AdamW";
    case OC_OPTIM_LION: return "Lion";
    case OC_OPTIM_MUON: return "Muon";
    default: return NULL;
    }
}

static void put_optimizer(struct writer *w, const struct oc_plan *plan)
{
    const char *name = optimizer_name(plan->c.optimizer);
    if (!name) return;
    open_object(w, "optimizer");
    string(w, "type", name);
    open_object(w, "params");
    if (plan->c.optimizer == OC_OPTIM_SGD && plan->c.optimizer_momentum > 0) {
        key(w, "momentum");
        fprintf(w->out, "%g", plan->c.optimizer_momentum);
    }
    close_object(w);
    close_object(w);
}

static void put_checkpointing(struct writer *w, const struct oc_plan *plan)
{
    if (plan->c.recompute == OC_RECOMPUTE_NONE) return;
    open_object(w, "activation_checkpointing");
    boolean(w, "partition_activations", plan->c.recompute_partition_activations);
    boolean(w, "cpu_checkpointing", plan->c.offload_activations == OC_OFFLOAD_CPU);
    close_object(w);
}

char *oc_export_deepspeed(const struct oc_case *c, const struct oc_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    struct writer w = {.out = open_memstream(&text, &size), .first = true, .depth = 1};
    (void)c;
    if (!w.out) return NULL;
    fputc('{', w.out);
    put_batch(&w, plan);
    put_precision(&w, plan);
    put_zero(&w, plan);
    put_optimizer(&w, plan);
    put_checkpointing(&w, plan);
    fputs("\n}\n", w.out);
    if (fclose(w.out) == 0) return text;
    free(text);
    return NULL;
}
