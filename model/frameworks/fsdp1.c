/* FullyShardedDataParallel: the parameters of a layer joined in one flat parameter, and those of what lies around the
 * layers in another (the root unit); each rank holds a shard, and gathers a unit while it runs.
 *
 * Source: torch/distributed/fsdp/_flat_param.py @fe03cf69, _runtime_utils.py, api.py @acd8c9e7; accelerate
 * utils/fsdp_utils.py:802-812; measured: shared/reference/memory-pytorch.md sections 2.2 and 9. */
#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/frameworks/optimizers.h"
#include "model/frameworks/shards.h"
#include "model/frameworks/torch.h"
#include "model/shapes/opset.h"

#define FLAT       "torch/distributed/fsdp/_flat_param.py"
#define RUNTIME    "torch/distributed/fsdp/_runtime_utils.py"
#define ACCELERATE "accelerate utils/fsdp_utils.py:802-812"

/* Sub-steps after those of any op set: a unit's gradient is joined, reduced, and the unit freed. */
enum { JOIN = 58, REDUCE = 59, REDUCED = 60, RESHARD = 61 };

/* One flat parameter: a layer's, or the root's. Frozen and trained parameters have flat parameters of their own under
 * PEFT's wrapping policy, and share one elsewhere. */
struct unit {
    uint8_t part; /* OC_PART_LAYER, or OC_PART_EMBED for the root */
    uint8_t kind;
    uint32_t count;
    bool trains;        /* it holds a trained parameter */
    bool replicated;    /* every rank holds it whole */
    uint64_t flat;      /* elements, padding included */
    uint64_t shard;     /* of them on this rank */
    uint64_t trained;   /* trained elements on this rank */
    enum oc_dtype kept; /* type of the shard */
};

static void defaults(struct oc_config *c)
{
    oc_torch_defaults(c);
    oc_default(c, OC_OPT_parallel_zero, 3);
}

static bool decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    if (!oc_torch_check(plan, true, error)) return false;
    oc_torch_warn(plan, warnings);
    if (!plan->has_shape) {
        oc_fail(error, OC_E_CONFLICT, "FSDP gathers layers: parameters alone are not enough");
        return oc_hint(error, "name a model with model.name, or give model.layers, model.hidden and model.heads");
    }
    if (plan->c.parallel_zero == 1) {
        oc_fail(error, OC_E_CONFLICT, "FSDP shards everything (3) or gradients and states (2): parallel.zero=1");
        return oc_hint(error, "parallel.zero=3 is FULL_SHARD, 2 SHARD_GRAD_OP, 0 NO_SHARD");
    }
    oc_torch_dtypes(plan);
    /* MixedPrecision: units are gathered in the 16-bit type, so nothing is left for autocast to cast. */
    plan->dt.residual = plan->dt.compute;
    plan->dt.master = plan->dt.step_grads = OC_NONE;
    const bool mixed = plan->c.precision_autocast != OC_NONE, full = !plan->c.lora_rank;
    if (!oc_given(&plan->c, OC_OPT_fsdp_upcast)) plan->c.fsdp_upcast = mixed && full;
    if (plan->c.fsdp_upcast && full && !oc_given(&plan->c, OC_OPT_precision_weights)) {
        plan->dt.weights = plan->dt.grads = OC_FP32;
        oc_optimizer_dtypes(&plan->c, OC_FP32, &plan->dt.moment1, &plan->dt.moment2);
    }
    return true;
}

/* ---- units ---- */

static bool is_quantized(const struct oc_plan *plan)
{
    return plan->c.lora_rank && plan->c.lora_base >= OC_BASE_NF4;
}

/* Under PEFT's policy adapters are wrapped by themselves. */
static bool is_split(const struct oc_plan *plan)
{
    return plan->c.lora_rank && plan->c.kernels_transformer == OC_OPSET_HF;
}

static bool lies_in(const struct oc_plan *plan, const struct oc_param *param, const struct unit *unit)
{
    const bool layer = param->part == OC_PART_LAYER && plan->c.fsdp_wrap == OC_WRAP_LAYER;
    if (layer != (unit->part == OC_PART_LAYER) || (layer && param->kind != unit->kind)) return false;
    return !is_split(plan) || param->frozen != unit->trains;
}

/* Joins the parameters of a unit. Quantized matrices are counted apart: see add_packed(). */
static void join(const struct oc_build *build, struct unit *unit)
{
    const struct oc_plan *plan = build->plan;
    const uint64_t ranks = unit->replicated ? 1 : (uint64_t)plan->shard;
    uint64_t sizes[OC_MAX_PARAMS];
    size_t n = 0;
    uint64_t trained = 0;
    bool trains = false;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (!lies_in(plan, param, unit) || param->quantized) continue;
        const uint64_t elements = unit->part == OC_PART_LAYER ? param->elements : oc_mul(param->elements, param->count);
        sizes[n++] = elements;
        if (param->frozen) continue;
        trains = true;
        trained = oc_add(trained, elements);
        if (is_split(plan)) unit->kept = oc_param_dtype(plan, param);
    }
    unit->trains = trains;
    unit->flat = n ? oc_flat_fsdp1(sizes, n, ranks, plan->dt.compute == OC_FP32 ? 4 : 2, true) : 0;
    unit->shard = (unit->flat + ranks - 1) / ranks;
    unit->trained = trained == 0                           ? 0
                    : is_split(plan) || !plan->c.lora_rank ? unit->shard
                                                           : (trained + ranks - 1) / ranks;
}

/* ---- entries ---- */

static struct oc_entry entry_of(const struct unit *unit, const char *copy, const char *why, const char *source)
{
    return (struct oc_entry){.name =
                                 unit->part == OC_PART_LAYER ? "a layer's flat parameter" : "the root's flat parameter",
                             .copy = copy,
                             .why = why,
                             .source = source,
                             .count = unit->count,
                             .kind = unit->part == OC_PART_LAYER ? unit->kind : OC_END_HERE};
}

static void add(struct oc_build *build, struct oc_entry entry, enum oc_class class, uint64_t elements,
                enum oc_dtype dtype, struct oc_tick birth, struct oc_tick death)
{
    entry.class = (uint8_t) class;
    entry.elements = elements;
    entry.dtype = (uint8_t)dtype;
    entry.birth = birth;
    entry.death = death;
    oc_build_add(build, &entry);
}

static struct oc_tick tick(uint8_t phase, const struct unit *unit, uint8_t sub)
{
    return (struct oc_tick){phase, unit->part, sub};
}

/* Where backward begins to use a layer's weights. */
static struct oc_tick backward_begin(const struct unit *unit)
{
    const bool again = unit->part == OC_PART_LAYER && (unit->kind & OC_KIND_CHECKPOINTED);
    return tick(again ? OC_PH_RECOMPUTE : OC_PH_BACKWARD, unit, 0);
}

/* Units are gathered on a stream of their own. */
static struct oc_entry gathered_of(const struct unit *unit, const char *copy, const char *why, const char *source)
{
    struct oc_entry entry = entry_of(unit, copy, why, source);
    entry.stream = 1;
    return entry;
}

/* The whole unit, while it runs. */
static void add_gathered(struct oc_build *build, const struct unit *unit, uint64_t elements, enum oc_dtype dtype)
{
    const struct oc_config *c = &build->plan->c;
    const struct oc_tick begin = tick(OC_PH_FORWARD, unit, 0), end = tick(OC_PH_BACKWARD, unit, RESHARD);
    if (unit->part != OC_PART_LAYER) {
        add(build,
            gathered_of(unit, "gathered", "the root stays gathered from forward to the end of backward", RUNTIME),
            OC_BUFFERS, elements, dtype, begin, end);
        return;
    }
    if (c->parallel_zero == 2 || !c->fsdp_reshard_after_forward) {
        add(build, gathered_of(unit, "gathered", "kept from forward to backward (SHARD_GRAD_OP)", RUNTIME), OC_BUFFERS,
            elements, dtype, begin, end);
        return;
    }
    const struct oc_entry forward = gathered_of(unit, "gathered", "while the layer runs forward", RUNTIME),
                          backward = gathered_of(unit, "gathered again", "while the layer runs backward", RUNTIME);
    add(build, forward, OC_BUFFERS, elements, dtype, begin, tick(OC_PH_FORWARD, unit, RESHARD));
    add(build, backward, OC_BUFFERS, elements, dtype, backward_begin(unit), end);
    if (c->fsdp_forward_prefetch)
        add(build, gathered_of(unit, "prefetched", "the next layer, gathered while this one runs forward", RUNTIME),
            OC_BUFFERS, elements, dtype, begin, tick(OC_PH_FORWARD, unit, RESHARD));
    if (c->fsdp_backward_prefetch)
        add(build, gathered_of(unit, "prefetched", "the next layer, gathered while this one runs backward", RUNTIME),
            OC_BUFFERS, elements, dtype, backward_begin(unit), end);
}

static void add_weights(struct oc_build *build, const struct unit *unit)
{
    const struct oc_plan *plan = build->plan;
    const bool host = plan->c.offload_params == OC_OFFLOAD_CPU;
    const char *why = unit->replicated ? "not sharded: the quantized base is, its adapters are not"
                      : unit->kept == OC_FP32 && plan->c.fsdp_upcast ? "accelerate keeps trained shards in fp32"
                                                                     : "this rank's shard";
    const struct oc_entry shard = entry_of(unit, "shard", why, plan->c.fsdp_upcast ? ACCELERATE : FLAT);
    if (!host) add(build, shard, OC_WEIGHTS, unit->shard, unit->kept, OC_AT(INIT), OC_AT(END));
    if (plan->shard == 1 || unit->replicated) return;
    const enum oc_dtype dtype = plan->c.precision_autocast != OC_NONE ? plan->dt.compute : unit->kept;
    if (dtype != unit->kept || host) {
        const struct oc_entry narrow =
            entry_of(unit, "shard to gather", "the shard in the type of the products, until it is gathered", FLAT);
        add(build, narrow, OC_BUFFERS, unit->shard, dtype, tick(OC_PH_FORWARD, unit, 0), tick(OC_PH_FORWARD, unit, 1));
        const struct oc_tick begin = backward_begin(unit);
        add(build, narrow, OC_BUFFERS, unit->shard, dtype, begin, (struct oc_tick){begin.phase, begin.part, 1});
    }
    add_gathered(build, unit, unit->flat, dtype);
}

/* Gradients as autograd makes them, parameter by parameter, until they are joined. */
static void add_fresh(struct oc_build *build, const struct unit *unit, enum oc_dtype dtype)
{
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (!lies_in(build->plan, param, unit) || param->frozen) continue;
        const struct oc_entry fresh = {.name = param->name,
                                       .copy = "fresh gradients",
                                       .why = "as autograd makes it, until the unit's gradients are joined",
                                       .source = FLAT,
                                       .elements = param->elements,
                                       .count = param->count,
                                       .class = OC_GRADIENTS,
                                       .dtype = (uint8_t)dtype,
                                       .kind = param->kind,
                                       .birth = {OC_PH_BACKWARD, param->part, param->backward},
                                       .death = tick(OC_PH_BACKWARD, unit, REDUCE)};
        oc_build_add(build, &fresh);
    }
}

/* The joined gradient, and what reducing it takes. Returns whether it stays until the last micro-batch. */
static bool add_joined(struct oc_build *build, const struct unit *unit, enum oc_dtype dtype)
{
    const struct oc_plan *plan = build->plan;
    const bool waits = plan->c.parallel_no_sync && plan->accum > 1;
    struct oc_entry joined =
        entry_of(unit, "unsharded gradient", "the unit's gradients in one tensor, to be reduced", FLAT);
    if (waits) {
        joined.why = "no_sync: gradients stay unsharded until the last micro-batch";
        add(build, joined, OC_GRADIENTS, unit->flat, dtype, tick(OC_PH_BACKWARD, unit, JOIN), OC_AT(REDUCE));
        joined.why = "a later micro-batch's, until it is added";
        joined.when = OC_LATER_MICRO_BATCHES;
    }
    add(build, joined, OC_GRADIENTS, unit->flat, dtype, tick(OC_PH_BACKWARD, unit, JOIN),
        tick(OC_PH_BACKWARD, unit, RESHARD));
    const enum oc_dtype reduce =
        oc_given(&plan->c, OC_OPT_precision_reduce) ? (enum oc_dtype)plan->c.precision_reduce : dtype;
    if (reduce != dtype) {
        const struct oc_entry wide = entry_of(unit, "gradient to reduce", "in the type of the reduction", RUNTIME);
        add(build, wide, OC_GRADIENTS, unit->flat, reduce, tick(OC_PH_BACKWARD, unit, REDUCE),
            tick(OC_PH_BACKWARD, unit, RESHARD));
    }
    return waits;
}

/* This rank's part of the gradient. FSDP1 holds on to it after zero_grad, until the next forward. */
static void add_gradient_shard(struct oc_build *build, const struct unit *unit, bool waits)
{
    const struct oc_plan *plan = build->plan;
    const struct oc_tick death = plan->c.run_zero_grad_to_none ? OC_AT(START) : OC_AT(END);
    struct oc_entry shard = entry_of(unit, "gradient shard", "kept after zero_grad until the next forward", FLAT);
    if (waits) {
        add(build, shard, OC_GRADIENTS, unit->shard, unit->kept, OC_AT_SUB(REDUCE, 1), death);
        return;
    }
    add(build, shard, OC_GRADIENTS, unit->shard, unit->kept, tick(OC_PH_BACKWARD, unit, REDUCED), death);
    shard.why = "a later micro-batch's, until it is added";
    shard.when = death.phase == OC_PH_END ? OC_ALL_BUT_THE_FIRST : OC_LATER_MICRO_BATCHES;
    add(build, shard, OC_GRADIENTS, unit->shard, unit->kept, tick(OC_PH_BACKWARD, unit, REDUCED),
        tick(OC_PH_BACKWARD, unit, RESHARD));
}

static void add_optimizer(struct oc_build *build, const struct unit *unit)
{
    const struct oc_plan *plan = build->plan;
    const struct {
        enum oc_dtype dtype;
        const char *name;
    } moments[] = {{plan->dt.moment1, "momentum or exp_avg"}, {plan->dt.moment2, "exp_avg_sq"}};
    const bool given = oc_given(&plan->c, OC_OPT_precision_moment1) || oc_given(&plan->c, OC_OPT_precision_moment2);
    for (int m = 0; m < 2; m++) {
        if (!oc_optimizer_is_plain(plan, m + 1) || moments[m].dtype == OC_NONE) continue;
        add(build, entry_of(unit, moments[m].name, "zeros_like(shard), made in the first step", "torch/optim"),
            OC_OPTIMIZER, unit->trained, given ? moments[m].dtype : unit->kept, oc_states_birth(plan), OC_AT(END));
    }
    struct oc_kept kept[OC_MAX_KEPT];
    const int n =
        oc_optimizer_keeps(plan, &(struct oc_tensor_shape){.elements = unit->trained, .own = unit->kept}, kept);
    for (int k = 0; k < n; k++)
        add(build, entry_of(unit, kept[k].name, kept[k].why, "bitsandbytes, transformers"), OC_OPTIMIZER,
            kept[k].elements, kept[k].dtype, oc_states_birth(plan), OC_AT(END));
    if (oc_optimizer_is_plain(plan, 2) && plan->c.optimizer_impl == OC_IMPL_FOREACH)
        add(build,
            entry_of(unit, "optimizer scratch", "foreach: the square roots of all second moments at once",
                     "torch/optim/adam.py _multi_tensor_adam"),
            OC_BUFFERS, unit->trained, given ? moments[1].dtype : unit->kept, OC_AT_SUB(STEP, 2), OC_AT_SUB(STEP, 3));
}

/* Adapters that are not sharded have ordinary gradients. */
static void add_whole_gradients(struct oc_build *build, const struct unit *unit)
{
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (!lies_in(build->plan, param, unit) || param->frozen) continue;
        const struct oc_entry gradient = {.name = param->name,
                                          .copy = "gradients",
                                          .why = "not sharded; kept until the next forward",
                                          .source = FLAT,
                                          .elements = param->elements,
                                          .count = param->count,
                                          .class = OC_GRADIENTS,
                                          .dtype = (uint8_t)unit->kept,
                                          .kind = param->kind,
                                          .birth = {OC_PH_BACKWARD, param->part, param->backward},
                                          .death = OC_AT(START)};
        oc_build_add(build, &gradient);
    }
}

static void add_unit(struct oc_build *build, struct unit *unit)
{
    const struct oc_plan *plan = build->plan;
    unit->kept = plan->dt.weights;
    unit->replicated = is_quantized(plan) && unit->trains;
    join(build, unit);
    if (!unit->flat) return;
    add_weights(build, unit);
    if (!unit->trains) return;
    if (plan->c.offload_params != OC_OFFLOAD_CPU) add_optimizer(build, unit);
    if (unit->replicated) {
        add_whole_gradients(build, unit);
        return;
    }
    const enum oc_dtype dtype = plan->c.precision_autocast != OC_NONE ? plan->dt.compute : unit->kept;
    add_fresh(build, unit, dtype);
    const bool waits = add_joined(build, unit, dtype);
    if (plan->c.offload_params != OC_OFFLOAD_CPU) add_gradient_shard(build, unit, waits);
}

/* The quantized matrices of a layer: their packed weights are sharded, their scales are not. */
static void add_packed(struct oc_build *build, const struct unit *unit)
{
    const uint64_t ranks = (uint64_t)build->plan->shard;
    uint64_t bytes = 0;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (!param->quantized || param->kind != unit->kind) continue;
        bytes = oc_add(bytes, oc_packed_bytes(build->plan, param));
        const struct oc_entry scales = {.name = param->name,
                                        .source = "bitsandbytes, AutoGPTQ",
                                        .count = param->count,
                                        .class = OC_WEIGHTS,
                                        .kind = param->kind,
                                        .birth = OC_AT(INIT),
                                        .death = OC_AT(END)};
        oc_add_quantized(build, param, &scales, false);
    }
    if (!bytes) return;
    add(build, entry_of(unit, "packed shard", "quantized weights, this rank's shard; scales are not sharded", FLAT),
        OC_WEIGHTS, (bytes + ranks - 1) / ranks, OC_INT8, OC_AT(INIT), OC_AT(END));
    if (ranks > 1) add_gathered(build, unit, bytes, OC_INT8);
}

static void buffers(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    uint64_t largest = 0, tensors = 0;
    for (int kind = -1; kind < OC_MAX_KINDS; kind++) {
        if (kind >= 0 && !build->layers[kind]) continue;
        struct unit unit = {.part = kind < 0 ? OC_PART_EMBED : OC_PART_LAYER,
                            .kind = kind < 0 ? 0 : (uint8_t)kind,
                            .count = kind < 0 ? 1 : build->layers[kind]};
        const struct unit blank = unit;
        for (int trains = 0; trains < (is_split(plan) ? 2 : 1); trains++) {
            unit = blank;
            unit.trains = trains;
            add_unit(build, &unit);
            if (!unit.trains) continue;
            if (unit.shard > largest) largest = unit.shard;
            tensors += unit.count;
        }
        if (kind >= 0 && is_quantized(plan)) add_packed(build, &blank);
    }
    oc_add_optimizer_scratch(build, largest, tensors);
    oc_add_cublas(build);
}

/* Everything is described by unit, in buffers(). */
static const struct oc_state_rule states[] = {{0}};

const struct oc_framework_rules oc_fsdp1_rules = {.name = "FSDP1",
                                                  .source = FLAT,
                                                  .defaults = defaults,
                                                  .decide = decide,
                                                  .states = states,
                                                  .buffers = buffers,
                                                  .counts_activations = true};
