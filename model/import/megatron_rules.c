/* What Megatron's command line means where it says nothing, and what one flag means beside another.
 * A script of Megatron's means its defaults: they are as much its settings as the flags that it writes down. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/megatron.h"

/* argparse's defaults where they are not ours. Source: Megatron-LM megatron/training/arguments.py. */
static const struct {
    enum oc_option_id option;
    const char *text;
} defaults[] = {
    {OC_OPT_framework, "megatron"},
    {OC_OPT_model_norm, "layernorm"},
    {OC_OPT_model_activation, "gelu"},
    {OC_OPT_model_linear_bias, "true"},
    {OC_OPT_model_tied, "true"},
    {OC_OPT_model_dropout, "0.1"},
    {OC_OPT_model_attention_dropout, "0.1"},
    {OC_OPT_model_vocab_multiple, "128"},
    {OC_OPT_precision, "fp32"},
    {OC_OPT_optimizer, "adam"},
};

static const struct {
    const char *theirs, *ours;
} position_types[] = {
    {"learned_absolute", "learned"}, {"rope", "rope"}, {"yarn", "rope"}, {"mrope", "rope"}, {"none", "none"}};

static bool gives(const struct megatron *m, enum oc_option_id option)
{
    return oc_given(&m->input->c.config, option);
}

static void warn(struct megatron *m, enum oc_option_id option, const struct megatron_seen *seen, const char *text)
{
    oc_note_add(m->input, OC_NOTE_WARNING, (int)option, seen->flag, m->file, seen->line, "%s", text);
}

/* A fact's value as a positive integer; 0 when it has none. An unknown value is assumed. */
static int64_t count_of(struct megatron *m, enum megatron_fact fact, enum oc_option_id option)
{
    const struct megatron_seen *seen = &m->facts[fact];
    int64_t value;
    if (!seen->flag) return 0;
    if (seen->text && !(seen->value && seen->value->unknown) && oc_parse_integer(seen->text, false, &value) &&
        value > 0)
        return value;
    megatron_assume(m, option, seen);
    return 0;
}

/* Neither --fp16 nor --bf16 is seen. That means fp32, unless they may be where this program cannot look. */
static bool precision(struct megatron *m)
{
    if (gives(m, OC_OPT_precision) || !m->hidden) return true;
    char why[160];
    bash_cause(m->script, m->hidden->cause, m->name, why, sizeof why);
    if (!megatron_set(m, OC_OPT_precision, "bf16", m->line)) return false;
    m->input->c.origin[OC_OPT_precision].from = OC_FROM_ASSUMED;
    oc_note_add(m->input, OC_NOTE_ASSUMED, OC_OPT_precision, "", m->file, m->line, "%s, and may hold --bf16 or --fp16",
                why);
    return true;
}

static bool apply_defaults(struct megatron *m)
{
    if (!precision(m)) return false;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!gives(m, defaults[i].option) && !megatron_set(m, defaults[i].option, defaults[i].text, m->line))
            return false;
    if (m->input->c.config.optimizer == OC_OPTIM_SGD && !gives(m, OC_OPT_optimizer_momentum))
        return megatron_set(m, OC_OPT_optimizer_momentum, "0.9", m->line);
    return true;
}

static bool positions(struct megatron *m)
{
    const struct megatron_seen *type = &m->facts[FACT_POSITION_EMBEDDING_TYPE];
    const struct megatron_seen *rotary = &m->facts[FACT_ROTARY], *without = &m->facts[FACT_NO_POSITION_EMBEDDING];
    if (rotary->flag) return megatron_set(m, OC_OPT_model_positions, "rope", type->flag ? type->line : rotary->line);
    if (type->flag && type->text && !(type->value && type->value->unknown)) {
        for (size_t i = 0; i < sizeof position_types / sizeof *position_types; i++)
            if (!strcmp(type->text, position_types[i].theirs))
                return megatron_set(m, OC_OPT_model_positions, position_types[i].ours, type->line);
        oc_note_add(m->input, OC_NOTE_UNMODELLED, OC_OPT_model_positions, type->flag, m->file, type->line,
                    "%.60s positions are not modelled", type->text);
        return megatron_set(m, OC_OPT_model_positions, "none", type->line);
    }
    if (type->flag) megatron_assume(m, OC_OPT_model_positions, type);
    if (without->flag) {
        warn(m, OC_OPT_model_positions, without, "Megatron wants --position-embedding-type; no positions are taken");
        return megatron_set(m, OC_OPT_model_positions, "none", without->line);
    }
    return megatron_set(m, OC_OPT_model_positions, "learned", m->line);
}

/* --num-query-groups counts only with --group-query-attention, and is 1 when only that is there. */
static bool query_groups(struct megatron *m)
{
    const struct megatron_seen *gate = &m->facts[FACT_GROUP_QUERY_ATTENTION],
                               *groups = &m->facts[FACT_NUM_QUERY_GROUPS];
    char text[24];
    if (groups->flag && !gate->flag) {
        warn(m, OC_OPT_model_kv_heads, groups, "--num-query-groups does nothing without --group-query-attention");
        return true;
    }
    if (!gate->flag) return true;
    if (!groups->flag) return megatron_set(m, OC_OPT_model_kv_heads, "1", gate->line);
    int64_t n = count_of(m, FACT_NUM_QUERY_GROUPS, OC_OPT_model_kv_heads);
    snprintf(text, sizeof text, "%lld", (long long)n);
    return n ? megatron_set(m, OC_OPT_model_kv_heads, text, groups->line) : true;
}

/* --num-layers-per-virtual-pipeline-stage counts layers; the option counts chunks. */
static bool virtual_stages(struct megatron *m)
{
    const struct oc_config *c = &m->input->c.config;
    const struct megatron_seen *seen = &m->facts[FACT_LAYERS_PER_VIRTUAL_STAGE];
    int64_t per_chunk = count_of(m, FACT_LAYERS_PER_VIRTUAL_STAGE, OC_OPT_parallel_vpp);
    if (!per_chunk || !gives(m, OC_OPT_model_layers)) return true;
    if (gives(m, OC_OPT_parallel_vpp)) {
        warn(m, OC_OPT_parallel_vpp, seen,
             "Megatron takes either layers per virtual stage or virtual stages; the latter is taken");
        return true;
    }
    int64_t pp = gives(m, OC_OPT_parallel_pp) ? c->parallel_pp : 1;
    int64_t layers = c->model_layers +
                     (gives(m, OC_OPT_parallel_embedding_in_split) && c->parallel_embedding_in_split) +
                     (gives(m, OC_OPT_parallel_loss_in_split) && c->parallel_loss_in_split);
    if (layers % pp || layers / pp % per_chunk) {
        warn(m, OC_OPT_parallel_vpp, seen,
             "the layers of a pipeline stage are no multiple of it; no interleaving is taken");
        return true;
    }
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)(layers / pp / per_chunk));
    return pp > 1 ? megatron_set(m, OC_OPT_parallel_vpp, text, seen->line) : true;
}

static bool recompute(struct megatron *m)
{
    const struct megatron_seen *selective = &m->facts[FACT_RECOMPUTE_ACTIVATIONS];
    const struct oc_config *c = &m->input->c.config;
    if (selective->flag) {
        if (gives(m, OC_OPT_recompute) && c->recompute != OC_RECOMPUTE_SELECTIVE)
            warn(m, OC_OPT_recompute, selective,
                 "--recompute-activations means selective and wins over --recompute-granularity");
        return megatron_set(m, OC_OPT_recompute, "selective", selective->line);
    }
    const struct megatron_seen *granularity = &m->options[OC_OPT_recompute];
    if (gives(m, OC_OPT_recompute) && c->recompute == OC_RECOMPUTE_FULL && !m->options[OC_OPT_recompute_method].flag &&
        strcmp(granularity->flag, "--checkpoint-activations") != 0)
        warn(m, OC_OPT_recompute_method, granularity, "full recompute wants --recompute-method; uniform is taken");
    return true;
}

/* Fusing the loss is one flag, whose kernel another. */
static bool loss(struct megatron *m)
{
    const struct megatron_seen *fusion = &m->facts[FACT_CROSS_ENTROPY_FUSION],
                               *kernel = &m->facts[FACT_CROSS_ENTROPY_IMPL];
    if (!fusion->flag) return true;
    bool te = kernel->text && !strcmp(kernel->text, "te");
    return megatron_set(m, OC_OPT_kernels_loss, te ? "te-fused" : "fused", te ? kernel->line : fusion->line);
}

/* --optimizer dist_muon is muon with the layer-wise optimizer, which --use-distributed-optimizer asks for, too. Source:
 * Megatron-LM megatron/training/arguments.py. */
static bool layer_wise(struct megatron *m)
{
    const struct megatron_seen *optimizer = &m->options[OC_OPT_optimizer];
    if (!optimizer->flag || !optimizer->text || strcmp(optimizer->text, "dist_muon") != 0) return true;
    return megatron_set(m, OC_OPT_parallel_zero, "1", optimizer->line);
}

/* --use-megatron-fsdp shares what --data-parallel-sharding-strategy says; without it the strategy is not looked at.
 * Source: Megatron-LM core/distributed/distributed_data_parallel_config.py. */
static bool sharding_strategy(struct megatron *m)
{
    static const struct {
        const char *theirs, *zero;
    } strategies[] = {{"optim_grads_params", "3"}, {"optim_grads", "2"}, {"optim", "1"}, {"no_shard", "0"}};
    const struct megatron_seen *fsdp = &m->facts[FACT_FSDP], *strategy = &m->facts[FACT_SHARDING_STRATEGY],
                               *torch = &m->facts[FACT_TORCH_FSDP2];
    if (torch->flag && !fsdp->flag) {
        oc_note_add(m->input, OC_NOTE_UNMODELLED, OC_OPT_parallel_zero, torch->flag, m->file, torch->line,
                    "PyTorch's FSDP2 under Megatron is counted as Megatron-FSDP");
        return megatron_set(m, OC_OPT_parallel_zero, "3", torch->line);
    }
    if (!fsdp->flag) return true;
    if (!strategy->flag) return megatron_set(m, OC_OPT_parallel_zero, strategies[0].zero, fsdp->line);
    if (!strategy->text || (strategy->value && strategy->value->unknown)) {
        megatron_assume(m, OC_OPT_parallel_zero, strategy);
        return true;
    }
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        if (!strcmp(strategy->text, strategies[i].theirs))
            return megatron_set(m, OC_OPT_parallel_zero, strategies[i].zero, strategy->line);
    warn(m, OC_OPT_parallel_zero, strategy, "Megatron knows no such strategy: optim_grads_params is taken");
    return megatron_set(m, OC_OPT_parallel_zero, strategies[0].zero, strategy->line);
}

/* Copies of the distributed optimizer: each has its share of the data-parallel ranks. */
static bool optimizer_instances(struct megatron *m)
{
    const struct oc_config *c = &m->input->c.config;
    int64_t n = count_of(m, FACT_OPTIMIZER_INSTANCES, OC_OPT_parallel_shard_group);
    const struct megatron_seen *seen = &m->facts[FACT_OPTIMIZER_INSTANCES];
    if (n < 2) return true;
    int64_t tp = gives(m, OC_OPT_parallel_tp) ? c->parallel_tp : 1,
            pp = gives(m, OC_OPT_parallel_pp) ? c->parallel_pp : 1;
    int64_t ranks = gives(m, OC_OPT_parallel_world) ? c->parallel_world / (tp * pp) : 0;
    if (!ranks || ranks % n) {
        warn(m, OC_OPT_parallel_shard_group, seen,
             "the data-parallel ranks cannot be dealt out over that many optimizers");
        return true;
    }
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)(ranks / n));
    return megatron_set(m, OC_OPT_parallel_shard_group, text, seen->line);
}

/* What Megatron would change or refuse. */
static bool contradictions(struct megatron *m)
{
    const struct oc_config *c = &m->input->c.config;
    const struct megatron_seen *sp = &m->options[OC_OPT_parallel_sp], *tp = &m->options[OC_OPT_parallel_tp];
    const struct megatron_seen *zero = &m->options[OC_OPT_parallel_zero],
                               *gather = &m->options[OC_OPT_parallel_overlap_param_gather];
    bool tp_known = !tp->flag || gives(m, OC_OPT_parallel_tp);
    if (sp->flag && tp_known && (!tp->flag || c->parallel_tp == 1)) {
        warn(m, OC_OPT_parallel_sp, sp, "Megatron turns --sequence-parallel off when tensor parallelism is 1");
        if (!megatron_set(m, OC_OPT_parallel_sp, "false", sp->line)) return false;
    }
    if (zero->flag && c->optimizer == OC_OPTIM_SGD)
        warn(m, OC_OPT_parallel_zero, zero, "Megatron refuses --use-distributed-optimizer with --optimizer sgd");
    if (gather->flag && !zero->flag)
        warn(m, OC_OPT_parallel_overlap_param_gather, gather,
             "Megatron refuses --overlap-param-gather without --use-distributed-optimizer");
    return true;
}

/* What must be there and is not: the value is taken and said. */
static void missing(struct megatron *m)
{
    static const struct {
        enum oc_option_id option;
        const char *flag;
    } needed[] = {{OC_OPT_batch_micro, "--micro-batch-size"}, {OC_OPT_batch_seq, "--seq-length"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (m->options[needed[i].option].flag) continue;
        oc_note_add(m->input, OC_NOTE_ASSUMED, (int)needed[i].option, needed[i].flag, m->file, m->line,
                    "%s does not set %s", m->name, needed[i].flag);
        m->input->c.origin[needed[i].option] =
            (struct oc_origin){.from = OC_FROM_ASSUMED, .file = (uint8_t)m->file, .line = m->line};
    }
}

bool megatron_rules(struct megatron *m)
{
    if (!apply_defaults(m) || !positions(m) || !query_groups(m) || !virtual_stages(m) || !recompute(m) || !loss(m))
        return false;
    if (!megatron_experts(m) || !megatron_precision(m) || !layer_wise(m) || !sharding_strategy(m) ||
        !optimizer_instances(m) || !contradictions(m))
        return false;
    missing(m);
    return true;
}
