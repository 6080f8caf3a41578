#include "oomcast/plan.h"

#include "model/base/choices.h"
#include "model/base/layout.h"

/* Stages written out: megatron.pipeline_layout, which oc_resolve() has checked. */
static int64_t layers_written_out(const struct oc_config *c, int64_t stage, int64_t chunk)
{
    struct oc_layout layout;
    const int64_t virtual_stage = chunk * c->parallel_pp + stage;
    if (oc_layout_read(c->megatron_pipeline_layout, &layout) || virtual_stage >= layout.stages) return 0;
    return layout.layers[virtual_stage];
}

int64_t oc_plan_layers(const struct oc_plan *plan, int64_t stage, int64_t chunk)
{
    const struct oc_config *c = &plan->c;
    if (c->megatron_pipeline_layout[0]) return layers_written_out(c, stage, chunk);
    const bool first = stage == 0, last = stage == c->parallel_pp - 1;
    const int64_t given_first = c->parallel_first_stage_layers, given_last = c->parallel_last_stage_layers;
    if (given_first || given_last) {
        const int64_t middle = c->parallel_pp - (given_first > 0) - (given_last > 0);
        const int64_t rest = c->model_layers - given_first - given_last;
        const int64_t own = first && given_first ? given_first
                            : last && given_last ? given_last
                            : middle             ? rest / middle
                                                 : 0;
        return own / c->parallel_vpp;
    }
    const int64_t dealt = c->model_layers + (c->parallel_embedding_in_split != 0) + (c->parallel_loss_in_split != 0);
    int64_t layers = dealt / c->parallel_pp / c->parallel_vpp;
    if (c->parallel_embedding_in_split && first && chunk == 0) layers--;
    if (c->parallel_loss_in_split && last && chunk == c->parallel_vpp - 1) layers--;
    return layers;
}

int64_t oc_plan_expert_layers(const struct oc_plan *plan, int64_t first, int64_t layers)
{
    int64_t count = 0;
    if (!plan->c.model_experts) return 0;
    for (int64_t i = first; i < first + layers; i++)
        count += i >= plan->c.model_dense_layers && i % plan->c.model_moe_every == 0;
    return count;
}

uint64_t oc_plan_shard(const struct oc_plan *plan, bool expert)
{
    return (uint64_t)(expert ? plan->expert_shard : plan->shard);
}

bool oc_plan_has_embedding(const struct oc_plan *plan, int64_t stage, int64_t chunk)
{
    (void)plan;
    return stage == 0 && chunk == 0;
}

bool oc_plan_has_head(const struct oc_plan *plan, int64_t stage, int64_t chunk)
{
    return stage == plan->c.parallel_pp - 1 && chunk == plan->c.parallel_vpp - 1;
}

int64_t oc_plan_tokens(const struct oc_plan *plan)
{
    const int64_t longest = plan->c.batch_max_tokens;
    return (longest ? longest : plan->c.batch_micro * plan->c.batch_seq) / plan->c.parallel_cp;
}

int64_t oc_plan_tokens_sp(const struct oc_plan *plan)
{
    return plan->c.parallel_sp ? oc_plan_tokens(plan) / plan->c.parallel_tp : oc_plan_tokens(plan);
}

const char *oc_plan_framework(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const bool fsdp = c->framework == OC_FW_MEGATRON && c->parallel_zero >= 2;
    const struct oc_choice *choice = oc_choices_framework;
    while (choice->name && choice->value != (fsdp ? OC_FW_MEGATRON_FSDP : c->framework)) choice++;
    return choice->name ? choice->name : "";
}

bool oc_plan_has_moment1(const struct oc_plan *plan)
{
    return plan->dt.moment1 != OC_NONE;
}

bool oc_plan_has_moment2(const struct oc_plan *plan)
{
    return plan->dt.moment2 != OC_NONE;
}
