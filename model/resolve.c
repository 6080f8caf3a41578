/* oc_resolve(): from what was given to a plan in which everything is decided.
 *
 * Order: the known model fills shapes; the framework fills its defaults; widths, ranks and accumulation are derived and
 * checked (model/check.c); the framework decides number formats; the GPU is looked up. */
#include <stdio.h>
#include <string.h>

#include "model/base/layout.h"
#include "model/check.h"
#include "model/device.h"
#include "model/frameworks/framework.h"

/* What stands when nothing at all is said of the model or the GPU. */
static const char default_model[] = "llama-3-8b";
static const char default_gpu[] = "h100-80g";

static void put_name(struct oc_config *c, enum oc_option_id id, const char *name)
{
    char *field = (char *)c + oc_option(id)->offset;
    memset(field, 0, OC_NAME_MAX);
    snprintf(field, OC_NAME_MAX, "%s", name);
}

static void fill_model(struct oc_config *c, const struct oc_model_row *m)
{
    const struct {
        enum oc_option_id option;
        int64_t value;
    } fields[] = {
        {OC_OPT_model_layers, m->layers},
        {OC_OPT_model_hidden, m->hidden},
        {OC_OPT_model_heads, m->heads},
        {OC_OPT_model_kv_heads, m->kv_heads},
        {OC_OPT_model_head_dim, m->head_dim},
        {OC_OPT_model_ffn, m->ffn},
        {OC_OPT_model_vocab, m->vocab},
        {OC_OPT_model_max_positions, m->max_positions},
        {OC_OPT_model_positions, m->positions},
        {OC_OPT_model_norm, m->norm},
        {OC_OPT_model_norms_per_layer, m->norms_per_layer},
        {OC_OPT_model_activation, m->activation},
        {OC_OPT_model_tied, m->tied},
        {OC_OPT_model_linear_bias, m->linear_bias},
        {OC_OPT_model_qkv_bias, m->qkv_bias},
        {OC_OPT_model_head_bias, m->head_bias},
        {OC_OPT_model_qk_norm, m->qk_norm},
        {OC_OPT_model_parallel_residual, m->parallel_residual},
        {OC_OPT_model_embedding_norm, m->embedding_norm},
        {OC_OPT_model_embedding_dim, m->embedding_dim},
        {OC_OPT_model_mlp_bias, m->mlp_bias},
        {OC_OPT_model_final_norm, !m->no_final_norm},
        {OC_OPT_model_attention_sinks, m->attention_sinks},
        {OC_OPT_model_experts, m->experts},
        {OC_OPT_model_expert_ffn, m->expert_ffn},
        {OC_OPT_model_shared_expert_ffn, m->shared_expert_ffn},
        {OC_OPT_model_shared_expert_gate, m->shared_expert_gate},
        {OC_OPT_model_router_bias, m->router_bias},
        {OC_OPT_model_dense_layers, m->dense_layers},
        {OC_OPT_model_q_lora_rank, m->q_lora_rank},
        {OC_OPT_model_kv_lora_rank, m->kv_lora_rank},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) oc_default(c, fields[i].option, fields[i].value);
    if (m->experts) oc_default(c, OC_OPT_model_experts_per_token, m->experts_per_token);
    if (!m->kv_lora_rank) return;
    oc_default(c, OC_OPT_model_qk_nope_head_dim, m->qk_nope_head_dim);
    oc_default(c, OC_OPT_model_qk_rope_head_dim, m->qk_rope_head_dim);
    oc_default(c, OC_OPT_model_v_head_dim, m->v_head_dim);
}

/* The options that describe a shape: when none of them is given, a preset must. */
static bool gives_shape(const struct oc_config *c)
{
    return oc_given(c, OC_OPT_model_layers) || oc_given(c, OC_OPT_model_hidden) || oc_given(c, OC_OPT_model_heads);
}

static bool choose_model(struct oc_plan *plan, struct oc_error *error)
{
    struct oc_config *c = &plan->c;
    const bool named = oc_given(c, OC_OPT_model_name) && c->model_name[0];
    plan->has_shape = named || gives_shape(c) || !c->model_params;
    if (!plan->has_shape) return true;
    if (!named && !gives_shape(c)) put_name(c, OC_OPT_model_name, default_model);
    if (c->model_name[0]) {
        const struct oc_model_row *row = oc_model_find(c->model_name);
        if (!row) {
            oc_fail(error, OC_E_VALUE, "model.name: there is no model '%s'", c->model_name);
            return oc_hint(
                error,
                "`oomcast models` lists them; a shape of your own needs model.layers, model.hidden and model.heads");
        }
        fill_model(c, row);
    }
    return oc_check_shape_given(c, error);
}

static int64_t up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* The inner width of the MLP when it was not given. Source: megatron/training/arguments.py (swiglu: int(4h x 2/3 / 64)
 * x 64). */
static int64_t default_ffn(const struct oc_plan *plan)
{
    const int64_t four = 4 * plan->c.model_hidden;
    return plan->gated ? (four * 2 / 3 / 64 > 0 ? four * 2 / 3 / 64 * 64 : four) : four;
}

static void derive_shape(struct oc_plan *plan)
{
    struct oc_config *c = &plan->c;
    plan->gated = c->model_activation == OC_ACT_SWIGLU || c->model_activation == OC_ACT_GEGLU;
    if (!plan->has_shape) return;
    if (!c->model_vocab) c->model_vocab = 32000;
    if (!c->model_kv_heads) c->model_kv_heads = c->model_heads;
    if (!c->model_head_dim) c->model_head_dim = c->model_hidden / c->model_heads;
    if (!c->model_ffn) c->model_ffn = default_ffn(plan);
    if (!c->model_max_positions) c->model_max_positions = c->batch_seq;
    if (!c->model_embedding_dim) c->model_embedding_dim = c->model_hidden;
    if (!c->model_expert_ffn) c->model_expert_ffn = c->model_ffn;
    if (!c->parallel_etp) c->parallel_etp = c->parallel_tp;
    if (!c->model_vocab_multiple) c->model_vocab_multiple = 1;
    const int64_t multiple = c->model_vocab_multiple * (c->framework == OC_FW_MEGATRON ? c->parallel_tp : 1);
    plan->vocab = up(c->model_vocab, multiple); /* Megatron: training/vocab_utils.py */
    plan->q = c->model_heads * c->model_head_dim;
    plan->kv = c->model_kv_heads * c->model_head_dim;
}

/* Stages written out say how many chunks a rank has: Megatron takes no other word for it. */
static void derive_chunks(struct oc_config *c)
{
    struct oc_layout layout;
    if (c->framework != OC_FW_MEGATRON) c->megatron_pipeline_layout[0] = 0;
    if (!c->megatron_pipeline_layout[0] || oc_layout_read(c->megatron_pipeline_layout, &layout)) return;
    const int64_t chunks = layout.stages / c->parallel_pp;
    if (chunks > 1) oc_default(c, OC_OPT_parallel_vpp, chunks);
}

static bool derive_ranks(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    struct oc_config *c = &plan->c;
    if (c->parallel_sp && c->parallel_tp == 1) {
        oc_warn(warnings, "sequence parallelism needs tp > 1: it is switched off, as Megatron does");
        c->parallel_sp = 0;
    }
    const int64_t model_ranks = c->parallel_tp * c->parallel_pp * c->parallel_cp;
    if (!oc_given(c, OC_OPT_parallel_world)) c->parallel_world = model_ranks;
    if (!oc_check_ranks(c, model_ranks, error)) return false;
    plan->dp = c->parallel_world / model_ranks;
    /* Megatron's distributed optimizer and torchtitan's FSDP2 share over context-parallel ranks, too. */
    const bool over_cp = c->framework == OC_FW_MEGATRON || c->framework == OC_FW_FSDP2;
    const int64_t group = over_cp ? plan->dp * c->parallel_cp : plan->dp;
    plan->shard = plan->expert_shard = c->parallel_zero ? group : 1;
    if (c->model_experts && c->parallel_zero)
        plan->expert_shard = c->parallel_world / (c->parallel_etp * c->parallel_ep * c->parallel_pp);
    if (c->parallel_zero && c->parallel_shard_group) {
        if (!oc_check_divides("parallel.shard_group", c->parallel_shard_group, "data-parallel ranks", group, error))
            return false;
        plan->expert_shard =
            plan->expert_shard * c->parallel_shard_group / group; /* as many instances as of the rest */
        if (plan->expert_shard < 1) plan->expert_shard = 1;
        plan->shard = c->parallel_shard_group;
    }
    return true;
}

static bool derive_batch(struct oc_plan *plan, struct oc_error *error)
{
    struct oc_config *c = &plan->c;
    const int64_t one_step = c->batch_micro * plan->dp;
    if (c->batch_global) {
        if (!oc_check_divides("batch.micro x data-parallel ranks", one_step, "batch.global", c->batch_global, error))
            return false;
        c->batch_accum = c->batch_global / one_step;
    } else {
        c->batch_global = c->batch_accum * one_step;
    }
    plan->accum = c->batch_accum;
    return true;
}

/* Megatron-FSDP is Megatron with stage 2 or 3. */
static bool name_megatron_fsdp(struct oc_config *c, struct oc_error *error)
{
    if (c->framework != OC_FW_MEGATRON_FSDP) return true;
    oc_default(c, OC_OPT_parallel_zero, 3);
    if (c->parallel_zero < 2) {
        oc_fail(error, OC_E_CONFLICT, "framework=megatron-fsdp shares gradients (parallel.zero 2) or weights too (3)");
        return oc_hint(error, "framework=megatron for parallel.zero=%d", (int)c->parallel_zero);
    }
    c->framework = OC_FW_MEGATRON;
    return true;
}

bool oc_resolve(const struct oc_config *config, struct oc_plan *plan, struct oc_warnings *warnings,
                struct oc_error *error)
{
    memset(plan, 0, sizeof *plan);
    if (warnings) warnings->n = 0;
    plan->c = *config;
    if (!name_megatron_fsdp(&plan->c, error)) return false;
    const struct oc_framework_rules *framework = oc_framework((enum oc_framework)plan->c.framework);
    if (!framework) return oc_fail(error, OC_E_VALUE, "this framework is not modelled yet");
    if (!choose_model(plan, error)) return false;
    framework->defaults(&plan->c);
    if (!oc_given(&plan->c, OC_OPT_gpu)) put_name(&plan->c, OC_OPT_gpu, default_gpu);
    derive_shape(plan);
    derive_chunks(&plan->c);
    if (!derive_ranks(plan, warnings, error) || !derive_batch(plan, error)) return false;
    if (!oc_check_plan(plan, warnings, error)) return false;
    if (!framework->decide(plan, warnings, error)) return false;
    oc_override_dtypes(plan);
    if (!oc_find_device(plan, error)) return false;
    plan->hash = oc_plan_hash(plan);
    return true;
}
