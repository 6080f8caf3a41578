/* A resolved configuration as Megatron-LM's flags. Rows of the options table that name a flag are written as they are;
 * what several flags say together, or a flag says the other way round, stands here.
 *
 * Source of flags and defaults: NVIDIA/Megatron-LM megatron/training/arguments.py @000c4ac2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomcast/export.h"

struct writer {
    FILE *out;
    const struct oc_case *given;
    const struct oc_plan *plan;
    bool said[OC_OPTIONS]; /* by a flag, or by the lack of one */
};

static void put(struct writer *w, const char *flag)
{
    fprintf(w->out, " \\\n    %s", flag);
}

static void put_number(struct writer *w, const char *flag, long long value)
{
    fprintf(w->out, " \\\n    %s %lld", flag, value);
}

/* ---- one value of one option is one switch ---- */

static const struct {
    enum oc_option_id option;
    int64_t value;
    const char *flag; /* "": this value is what Megatron does without a flag */
} switches[] = {
    {OC_OPT_precision, OC_PREC_FP32, ""},
    {OC_OPT_precision, OC_PREC_FP16, "--fp16"},
    {OC_OPT_precision, OC_PREC_BF16, "--bf16"},
    {OC_OPT_precision, OC_PREC_FP8, "--bf16 --fp8-format hybrid"},
    {OC_OPT_model_activation, OC_ACT_GELU, ""},
    {OC_OPT_model_activation, OC_ACT_SWIGLU, "--swiglu"},
    {OC_OPT_model_activation, OC_ACT_GEGLU, "--quick-geglu"},
    {OC_OPT_model_activation, OC_ACT_SQUARED_RELU, "--squared-relu"},
    {OC_OPT_model_norm, OC_NORM_LAYERNORM, "--normalization LayerNorm"},
    {OC_OPT_model_norm, OC_NORM_RMSNORM, "--normalization RMSNorm"},
    {OC_OPT_model_linear_bias, 0, "--disable-bias-linear"},
    {OC_OPT_model_linear_bias, 1, ""},
    {OC_OPT_model_tied, 0, "--untie-embeddings-and-output-weights"},
    {OC_OPT_model_tied, 1, ""},
    {OC_OPT_model_positions, OC_POS_LEARNED, "--position-embedding-type learned_absolute"},
    {OC_OPT_model_positions, OC_POS_ROPE, "--position-embedding-type rope"},
    {OC_OPT_model_positions, OC_POS_NONE, "--position-embedding-type none"},
    {OC_OPT_parallel_zero, 0, ""},
    {OC_OPT_parallel_zero, 1, "--use-distributed-optimizer"},
    {OC_OPT_parallel_zero, 2,
     "--use-megatron-fsdp --use-distributed-optimizer --data-parallel-sharding-strategy optim_grads"},
    {OC_OPT_parallel_zero, 3,
     "--use-megatron-fsdp --use-distributed-optimizer --data-parallel-sharding-strategy optim_grads_params"},
    {OC_OPT_kernels_loss, OC_LOSS_EAGER, ""},
    {OC_OPT_kernels_loss, OC_LOSS_FUSED, "--cross-entropy-loss-fusion"},
    {OC_OPT_kernels_loss, OC_LOSS_TE_FUSED, "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"},
    {OC_OPT_megatron_loss_fusion_impl, OC_FUSION_NATIVE, ""}, /* kernels.loss says it */
    {OC_OPT_megatron_loss_fusion_impl, OC_FUSION_TE, ""},
    {OC_OPT_megatron_gradient_accumulation_fusion, 0, "--no-gradient-accumulation-fusion"},
    {OC_OPT_megatron_gradient_accumulation_fusion, 1, ""},
    {OC_OPT_megatron_masked_softmax_fusion, 0, "--no-masked-softmax-fusion"},
    {OC_OPT_megatron_masked_softmax_fusion, 1, ""},
    {OC_OPT_megatron_dataloader_mask, 0, "--no-create-attention-mask-in-dataloader"},
    {OC_OPT_megatron_dataloader_mask, 1, ""},
    {OC_OPT_offload_optimizer, OC_OFFLOAD_NONE, ""},
    {OC_OPT_offload_optimizer, OC_OFFLOAD_CPU, "--optimizer-cpu-offload"},
    {OC_OPT_recompute, OC_RECOMPUTE_NONE, ""},
    {OC_OPT_recompute, OC_RECOMPUTE_SELECTIVE, "--recompute-granularity selective"},
    {OC_OPT_recompute, OC_RECOMPUTE_FULL, "--recompute-granularity full"},
    {OC_OPT_kernels_transformer, OC_OPSET_TE, "--transformer-impl transformer_engine"},
    {OC_OPT_kernels_transformer, OC_OPSET_LOCAL, "--transformer-impl local"},
    {OC_OPT_optimizer, OC_OPTIM_SGD, "--optimizer sgd"},
    {OC_OPT_optimizer, OC_OPTIM_ADAM, "--optimizer adam"},
    {OC_OPT_optimizer, OC_OPTIM_ADAMW, "--optimizer adam"}, /* Megatron's adam decays weights as AdamW does */
    {OC_OPT_optimizer, OC_OPTIM_MUON, "--optimizer muon"},
};

static void put_switch(struct writer *w, enum oc_option_id id)
{
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        if (switches[i].option != id || switches[i].value != oc_option_get(&w->plan->c, id)) continue;
        if (switches[i].flag[0]) put(w, switches[i].flag);
        w->said[id] = true;
    }
}

static bool has_switch(enum oc_option_id id)
{
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (switches[i].option == id) return true;
    return false;
}

/* ---- options that need a word of their own ---- */

static void put_kv_heads(struct writer *w)
{
    if (w->plan->c.model_kv_heads == w->plan->c.model_heads) return;
    put(w, "--group-query-attention");
    put_number(w, "--num-query-groups", (long long)w->plan->c.model_kv_heads);
}

static void put_head_dim(struct writer *w)
{
    const struct oc_config *c = &w->plan->c;
    if (c->model_heads > 0 && c->model_head_dim * c->model_heads != c->model_hidden)
        put_number(w, "--kv-channels", (long long)c->model_head_dim);
}

/* Megatron has no default for it, and learned positions are as many. */
static void put_max_positions(struct writer *w)
{
    const struct oc_config *c = &w->plan->c;
    put_number(w, "--max-position-embeddings",
               (long long)(c->model_max_positions ? c->model_max_positions : c->batch_seq));
}

static void put_world(struct writer *w)
{
    (void)w; /* the launcher says it, before the flags */
}

static void put_moe_every(struct writer *w)
{
    const struct oc_config *c = &w->plan->c;
    if (c->model_dense_layers > 0)
        fprintf(w->out, " \\\n    --moe-layer-freq '([0]*%lld+[1]*%lld)'", (long long)c->model_dense_layers,
                (long long)(c->model_layers - c->model_dense_layers));
    else if (c->model_moe_every > 1)
        put_number(w, "--moe-layer-freq", (long long)c->model_moe_every);
}

static void put_kv_lora_rank(struct writer *w)
{
    if (!w->plan->c.model_kv_lora_rank) return;
    put(w, "--multi-latent-attention");
    put_number(w, "--kv-lora-rank", (long long)w->plan->c.model_kv_lora_rank);
}

static void put_shard_group(struct writer *w)
{
    const struct oc_plan *plan = w->plan;
    if (plan->c.parallel_zero > 0 && plan->shard > 0 && plan->shard < plan->dp * plan->c.parallel_cp)
        put_number(w, "--num-distributed-optimizer-instances",
                   (long long)(plan->dp * plan->c.parallel_cp / plan->shard));
}

static void put_residual(struct writer *w)
{
    if (w->plan->dt.residual == OC_FP32 && w->plan->dt.weights != OC_FP32) put(w, "--fp32-residual-connection");
}

/* The types of a precision-aware optimizer's states: Megatron takes them with that flag only. */
static void put_state_types(struct writer *w)
{
    const struct oc_dtypes *dt = &w->plan->dt;
    const struct {
        enum oc_option_id option;
        const char *flag;
        enum oc_dtype dtype;
    } states[] = {{OC_OPT_precision_grads, "--main-grads-dtype", dt->grads},
                  {OC_OPT_precision_master, "--main-params-dtype", dt->master},
                  {OC_OPT_precision_moment1, "--exp-avg-dtype", dt->moment1},
                  {OC_OPT_precision_moment2, "--exp-avg-sq-dtype", dt->moment2}};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (!oc_given(&w->given->config, states[i].option) || states[i].dtype == OC_NONE) continue;
        if (!w->plan->c.optimizer_precision_aware) continue;
        fprintf(w->out, " \\\n    %s %s", states[i].flag, oc_dtype_name(states[i].dtype));
        w->said[states[i].option] = true;
    }
}

static const struct {
    enum oc_option_id option;
    void (*put)(struct writer *w);
} special[] = {
    {OC_OPT_model_kv_heads, put_kv_heads},
    {OC_OPT_model_head_dim, put_head_dim},
    {OC_OPT_model_max_positions, put_max_positions},
    {OC_OPT_parallel_world, put_world},
    {OC_OPT_model_moe_every, put_moe_every},
    {OC_OPT_model_kv_lora_rank, put_kv_lora_rank},
    {OC_OPT_parallel_shard_group, put_shard_group},
    {OC_OPT_precision_residual, put_residual},
    {OC_OPT_framework, put_world},
    {OC_OPT_model_name, put_world},
    {OC_OPT_model_dense_layers, put_world},
    {OC_OPT_batch_accum, put_world}, /* follows from the global batch */
};

static bool put_special(struct writer *w, enum oc_option_id id)
{
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        if (special[i].option != id) continue;
        special[i].put(w);
        return w->said[id] = true;
    }
    return false;
}

/* ---- rows of the options table that name a flag ---- */

/* Where Megatron's default is another than the table's. */
static const struct {
    enum oc_option_id option;
    double value;
} defaults[] = {{OC_OPT_model_dropout, 0.1},
                {OC_OPT_model_attention_dropout, 0.1},
                {OC_OPT_model_vocab_multiple, 128},
                {OC_OPT_optimizer_momentum, 0.9}};

static bool is_default(const struct oc_plan *plan, enum oc_option_id id)
{
    const struct oc_option *option = oc_option(id);
    double value = option->type == OC_T_FLOAT ? *(const double *)(const void *)((const char *)&plan->c + option->offset)
                                              : (double)oc_option_get(&plan->c, id);
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (defaults[i].option == id) return value > defaults[i].value - 1e-9 && value < defaults[i].value + 1e-9;
    return option->type == OC_T_FLOAT ? value > option->fdef - 1e-9 && value < option->fdef + 1e-9
                                      : value == (double)option->def; /* derived: 0, and then there is none */
}

/* Megatron refuses to run without them, the last two under full recompute. */
static bool is_required(enum oc_option_id id)
{
    return id == OC_OPT_batch_micro || id == OC_OPT_batch_seq || id == OC_OPT_recompute_method ||
           id == OC_OPT_recompute_layers;
}

static void put_row(struct writer *w, enum oc_option_id id)
{
    const struct oc_option *option = oc_option(id);
    const char *why = option->inapplicable ? option->inapplicable(&w->plan->c) : NULL;
    char flag[96], value[256];
    snprintf(flag, sizeof flag, "%.*s", (int)strcspn(option->flags, " "), option->flags);
    w->said[id] = true;
    if (why) return;
    if (option->type == OC_T_STRING && !*((const char *)&w->plan->c + option->offset)) return;
    if (option->type != OC_T_STRING && is_default(w->plan, id) && !is_required(id)) return;
    if (option->type == OC_T_BOOL) {
        if (oc_option_get(&w->plan->c, id)) put(w, flag);
        return;
    }
    oc_option_text(&w->plan->c, id, value, sizeof value);
    if (option->type == OC_T_SET) /* argparse takes a list */
        for (char *at = value; *at; at++)
            if (*at == ',') *at = ' ';
    fprintf(w->out, option->type == OC_T_STRING ? " \\\n    %s '%s'" : " \\\n    %s %s", flag, value);
}

/* ---- all of it ---- */

/* What is given and no flag has said. */
static void put_rest(struct writer *w)
{
    bool first = true;
    for (int i = 0; i < OC_OPTIONS; i++) {
        enum oc_option_id id = (enum oc_option_id)i;
        char value[256];
        if (!oc_given(&w->given->config, id) || w->said[i]) continue;
        if (first) fprintf(w->out, "\n# Megatron-LM has no flag for:\n");
        first = false;
        fprintf(w->out, "#   %s = %s\n", oc_option(id)->key,
                oc_option_text(&w->given->config, id, value, sizeof value));
    }
}

static void put_launcher(struct writer *w)
{
    long long world = w->plan->c.parallel_world, node = world < 8 || world % 8 ? world : 8;
    fprintf(w->out, "#!/bin/bash\n");
    if (w->plan->c.framework != OC_FW_MEGATRON)
        fprintf(w->out, "# The configuration is not of Megatron-LM: this is what its flags can say of it.\n");
    fprintf(w->out, "torchrun --nproc-per-node %lld --nnodes %lld pretrain_gpt.py", node, node ? world / node : 1);
}

char *oc_export_megatron(const struct oc_case *c, const struct oc_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    struct writer w = {.given = c, .plan = plan, .out = open_memstream(&text, &size)};
    if (!w.out) return NULL;
    put_launcher(&w);
    for (int i = 0; i < OC_OPTIONS; i++) {
        enum oc_option_id id = (enum oc_option_id)i;
        if (has_switch(id))
            put_switch(&w, id);
        else if (!put_special(&w, id) && oc_option(id)->flags)
            put_row(&w, id);
    }
    put_state_types(&w);
    fputc('\n', w.out);
    put_rest(&w);
    if (fclose(w.out) == 0) return text;
    free(text);
    return NULL;
}
