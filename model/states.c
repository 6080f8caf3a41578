/* Every copy of the parameters that a framework's rules name, as entries of the ledger. */
#include <string.h>

#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/shapes/opset.h"

#include "oomcast/alloc.h"

/* What offloading leaves on the GPU, element for element of every parameter. */
static uint64_t left_on_gpu(const struct oc_plan *plan, const struct oc_state *state, uint64_t elements)
{
    const struct oc_config *c = &plan->c;
    if (!state->offloads || c->offload_optimizer == OC_OFFLOAD_NONE || !(c->offload_fraction > 0)) return elements;
    return c->offload_fraction < 1 ? (uint64_t)((double)elements * (1 - c->offload_fraction)) : 0;
}

static struct oc_entry entry_of(const struct oc_plan *plan, const struct oc_state_rule *rule,
                                const struct oc_state *state, const struct oc_param *param)
{
    return (struct oc_entry){.name = param->name,
                             .copy = rule->name,
                             .why = state->why,
                             .source = rule->source,
                             .elements = left_on_gpu(plan, state, param->elements),
                             .count = param->count,
                             .class = (uint8_t)state->class,
                             .dtype = (uint8_t)state->dtype,
                             .kind = param->kind,
                             .pooled = state->pooled,
                             .renewed = state->renewed,
                             .birth = state->birth,
                             .death = state->death};
}

/* An adapter's gradients and states have its own type, unless a wider master copy is what the optimizer updates. */
static enum oc_dtype dtype_of_copy(const struct oc_build *build, const struct oc_state *state,
                                   const struct oc_param *param)
{
    const struct oc_plan *plan = build->plan;
    const bool gradient = state->timing != OC_BY_TICKS;
    if (state->class == OC_WEIGHTS && oc_stays_fp32(plan, param)) return OC_FP32;
    if (state->class == OC_WEIGHTS || gradient) return param->adapter ? oc_param_dtype(plan, param) : state->dtype;
    if (!param->adapter || state->class == OC_MASTER || plan->dt.master != OC_NONE) return state->dtype;
    const bool given = oc_given(&plan->c, OC_OPT_precision_moment1) || oc_given(&plan->c, OC_OPT_precision_moment2);
    return given && state->class == OC_OPTIMIZER ? state->dtype : oc_param_dtype(plan, param);
}

/* A copy that is shared over ranks: this rank's part of all parameters together, and of the padding. */
static void add_share(struct oc_build *build, const struct oc_state_rule *rule, const struct oc_state *state,
                      bool expert)
{
    const uint64_t shard = oc_plan_shard(build->plan, expert);
    /* What is frozen has weights and nothing else; the padding of what is left is too little to know. */
    const bool whole = state->class == OC_WEIGHTS || build->trained[expert] == build->total[expert];
    const uint64_t total = whole ? build->total[expert] : build->trained[expert],
                   padded = whole ? build->padded[expert] : total;
    const struct oc_param all = {.name =
                                     expert ? "all experts, this rank's share" : "all parameters, this rank's share",
                                 .elements = total / shard,
                                 .count = 1};
    struct oc_entry entry = entry_of(build->plan, rule, state, &all);
    oc_build_add(build, &entry);
    struct oc_entry padding = entry;
    padding.name = "padding";
    padding.class = OC_BUFFERS;
    padding.elements = left_on_gpu(build->plan, state, padded / shard - total / shard);
    padding.why = "the buffer's length is made a multiple of the ranks that share it";
    oc_build_add(build, &padding);
}

/* One buffer that all tensors of a copy are views of: its padding, and what the allocator adds. */
static void close_pool(struct oc_build *build, const struct oc_state_rule *rule, const struct oc_state *state)
{
    const uint64_t total = oc_add(build->total[false], build->total[true]),
                   padded = oc_add(build->padded[false], build->padded[true]);
    const struct oc_param rest = {.name = "padding", .elements = padded - total, .count = 1};
    struct oc_entry entry = entry_of(build->plan, rule, state, &rest);
    entry.class = OC_BUFFERS;
    entry.why = "the buffer's length is made a multiple of the ranks that share it";
    oc_build_add(build, &entry);
    const uint64_t bytes = oc_bytes(padded, state->dtype);
    if (bytes > UINT64_MAX / 4) {
        build->overflow = true;
        return;
    }
    entry.name = "block rounding";
    entry.why = "the buffer is one block of the allocator";
    entry.dtype = OC_INT8;
    entry.elements = oc_alloc_round(bytes) - bytes;
    entry.is_rounding = true;
    oc_build_add(build, &entry);
}

static void add_state(struct oc_build *build, const struct oc_state_rule *rule, const struct oc_state *state)
{
    /* What is born at one tick of a slot is one tensor there, even when a single rank holds all of it. */
    const bool in_slot = state->timing == OC_BY_TICKS && state->birth.part != OC_PART_NONE;
    const struct oc_framework_rules *framework = oc_framework((enum oc_framework)build->plan->c.framework);
    const bool apart = state->sharded && framework->share;
    if (state->sharded && !apart && (build->plan->shard > 1 || build->plan->expert_shard > 1 || in_slot)) {
        add_share(build, rule, state, false);
        add_share(build, rule, state, true);
        return;
    }
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (param->frozen && state->class != OC_WEIGHTS) continue;
        struct oc_param own = *param;
        if (apart) own.elements = framework->share(build, param);
        struct oc_entry entry = entry_of(build->plan, rule, state, &own);
        entry.dtype = (uint8_t)dtype_of_copy(build, state, param);
        if (param->quantized) {
            oc_add_quantized(build, &own, &entry, true);
            continue;
        }
        if (state->timing == OC_BY_TICKS)
            oc_build_add(build, &entry);
        else
            oc_add_gradient(build, &entry, param, (enum oc_timing)state->timing);
    }
    if (state->pooled) close_pool(build, rule, state);
}

/* Laying the buffers out takes longer than all else, so it is done once for all rules. */
static void fill_totals(struct oc_build *build, const struct oc_framework_rules *framework)
{
    for (int expert = 0; expert < 2; expert++) {
        build->total[expert] = build->padded[expert] = oc_build_part(build, expert);
        if (framework->padded && build->total[expert]) build->padded[expert] = framework->padded(build, expert);
        build->trained[expert] = 0;
    }
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        uint64_t *trained = &build->trained[param->expert];
        if (!param->frozen) *trained = oc_add(*trained, oc_mul(param->elements, param->count));
    }
}

void oc_build_states(struct oc_build *build)
{
    const struct oc_framework_rules *framework = oc_framework((enum oc_framework)build->plan->c.framework);
    fill_totals(build, framework);
    for (const struct oc_state_rule *rule = framework->states; rule->name; rule++) {
        struct oc_state state;
        memset(&state, 0, sizeof state);
        if (rule->exists(build->plan, &state) && state.dtype != OC_NONE) add_state(build, rule, &state);
    }
    if (framework->buffers) framework->buffers(build);
}
