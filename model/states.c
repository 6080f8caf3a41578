/* Every copy of the parameters that a framework's rules name, as entries of the ledger. */
#include <string.h>

#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/shapes/opset.h"

#include "oomcast/alloc.h"

static struct oc_tick gradient_tick(const struct oc_param *param, int later)
{
    return (struct oc_tick){OC_PH_BACKWARD, param->part, (uint8_t)(param->backward + later)};
}

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

/* Whether the gradient of this parameter comes in the compute type first and is cast to the weights' type. */
static bool casts_gradient(const struct oc_build *build, const struct oc_param *param)
{
    const struct oc_plan *plan = build->plan;
    if (!plan->has_shape || param->cast != OC_CAST_KEPT) return false;
    if (param->adapter)
        return plan->c.precision_autocast != OC_NONE && plan->c.precision_autocast != plan->c.lora_dtype;
    return oc_casts_weights(plan);
}

/* A gradient is kept from where backward makes it; later micro-batches make another one and add it. */
static void add_gradient(struct oc_build *build, struct oc_entry entry, const struct oc_param *param)
{
    const int cast = casts_gradient(build, param);
    if (cast) {
        struct oc_entry narrow = entry;
        narrow.dtype = (uint8_t)(param->adapter ? build->plan->c.precision_autocast : build->plan->dt.compute);
        narrow.why = "the product's gradient in the autocast type, until it is cast";
        narrow.birth = gradient_tick(param, 0);
        narrow.death = gradient_tick(param, 2);
        oc_build_add(build, &narrow);
    }
    struct oc_entry added = entry;
    added.why = "a later micro-batch's gradient, until it is added";
    added.birth = gradient_tick(param, cast);
    added.death = gradient_tick(param, cast + 1);
    added.when = entry.death.phase == OC_PH_END ? OC_ALL_BUT_THE_FIRST : OC_LATER_MICRO_BATCHES;
    if (param->tied_gradient) {
        added.when = OC_ALWAYS;
        added.why = "added to the gradient that the tied head has made";
        oc_build_add(build, &added);
        return;
    }
    if (build->plan->has_shape) oc_build_add(build, &added);
    entry.birth = gradient_tick(param, cast);
    oc_build_add(build, &entry);
}

/* The gradient of the output layer becomes that of the embedding when they are tied. */
static void add_tied_gradient(struct oc_build *build, const struct oc_state_rule *rule, const struct oc_state *state,
                              const struct oc_param *embedding, const struct oc_param *head)
{
    struct oc_param param = *embedding;
    param.part = OC_PART_HEAD;
    param.backward = head->backward;
    param.cast = OC_CAST_KEPT;
    param.tied_gradient = false;
    add_gradient(build, entry_of(build->plan, rule, state, &param), &param);
}

static void add_accumulated(struct oc_build *build, struct oc_entry entry, const struct oc_param *param)
{
    entry.birth = gradient_tick(param, 0);
    entry.death = gradient_tick(param, 1);
    oc_build_add(build, &entry);
}

/* A copy that is shared over ranks: this rank's part of all parameters together, and of the padding. */
static void add_share(struct oc_build *build, const struct oc_state_rule *rule, const struct oc_state *state,
                      bool expert)
{
    const uint64_t shard = (uint64_t)(expert ? build->plan->expert_shard : build->plan->shard);
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
    const struct oc_param *embedding = NULL;
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
        if (param->tied_gradient) embedding = param;
        if (state->timing == OC_AS_GRADIENT)
            add_gradient(build, entry, param);
        else if (state->timing == OC_WHILE_ACCUMULATED)
            add_accumulated(build, entry, param);
        else
            oc_build_add(build, &entry);
    }
    if (state->timing == OC_AS_GRADIENT && embedding) {
        const struct oc_opset_rules *ops = oc_opset((enum oc_opset)build->plan->c.kernels_transformer);
        const struct oc_param head = {.backward = ops->use[OC_USE_HEAD].backward};
        add_tied_gradient(build, rule, state, embedding, &head);
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
