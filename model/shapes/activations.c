/* The rows of an op set's table, as entries of the ledger. */
#include "model/shapes/opset.h"

static enum oc_dtype dtype_of(const struct oc_plan *plan, uint64_t facts, uint8_t role)
{
    switch (role) {
    case OC_R_COMPUTE: return plan->dt.compute;
    case OC_R_STREAM: return plan->dt.residual;
    case OC_R_LINEAR: return facts & OC_F_FP8 ? OC_FP8 : plan->dt.compute;
    case OC_R_WEIGHTS: return plan->dt.weights;
    case OC_R_BOOL: return OC_BOOL;
    case OC_R_INT64: return OC_INT64;
    case OC_R_LOGPROB: return facts & OC_F_LOGITS32 ? OC_FP32 : plan->dt.compute;
    case OC_R_ADAPTER: return oc_adapter_dtype(plan);
    case OC_R_ADAPTER_COMPUTE:
        return (enum oc_dtype)(plan->c.precision_autocast != OC_NONE ? plan->c.precision_autocast : plan->c.lora_dtype);
    case OC_R_NORMALIZED: return plan->c.kernels_transformer == OC_OPSET_LITGPT ? OC_FP32 : plan->dt.residual;
    case OC_R_SOFTMAX: return facts & OC_F_SOFTMAX32 ? OC_FP32 : plan->dt.compute;
    case OC_R_ROUTER:
        return (enum oc_dtype)(plan->c.megatron_router_dtype != OC_NONE ? plan->c.megatron_router_dtype
                                                                        : plan->dt.compute);
    default: return OC_FP32;
    }
}

static uint64_t elements_of(const struct oc_build *build, const struct oc_tensor *row)
{
    uint64_t elements = row->times ? row->times : 1;
    for (int i = 0; i < 3; i++) elements = oc_mul(elements, build->sizes.dim[row->dims[i]]);
    return elements;
}

static struct oc_tick in_phase(struct oc_tick tick, enum oc_phase phase)
{
    tick.phase = (uint8_t)phase;
    return tick;
}

static bool is_kept(const struct oc_tensor *row, uint64_t facts)
{
    return (row->keep & facts) == row->keep && !(row->drop & facts);
}

/* What a layer keeps for backward. Offloaded, it goes to the host as its layer ends and comes back before the layer's
 * backward. Source: torchtune training/_activation_offloading.py; TransformerEngine pytorch/cpu_offload.py. */
static void add_over_layers(struct oc_build *build, struct oc_entry entry)
{
    const struct oc_tick birth = entry.birth, death = entry.death;
    const bool spans = birth.part == OC_PART_LAYER && birth.phase == OC_PH_FORWARD && death.phase == OC_PH_BACKWARD;
    if (build->plan->c.offload_activations == OC_OFFLOAD_NONE || !spans) {
        oc_build_add(build, &entry);
        return;
    }
    entry.death = (struct oc_tick){OC_PH_FORWARD, OC_PART_LAYER, OC_MAX_SUB - 1};
    oc_build_add(build, &entry);
    entry.birth = (struct oc_tick){OC_PH_RECOMPUTE, OC_PART_LAYER, 0};
    entry.death = death;
    entry.why = "brought back from the host for the layer's backward";
    oc_build_add(build, &entry);
}

/* A tensor of a layer that is recomputed as a whole: once in its first forward, which forgets it, and again before
 * backward. */
static void add_checkpointed(struct oc_build *build, const struct oc_tensor *row, struct oc_entry entry, bool kept)
{
    const struct oc_tick birth = row->birth;
    const bool listed = row->listed && kept && oc_keeps_listed_ops(build->plan);
    if (row->mode == OC_ONLY_FORWARD || listed) {
        add_over_layers(build, entry);
        return;
    }
    if (row->mode == OC_BOTH) {
        entry.death = (struct oc_tick){OC_PH_FORWARD, OC_PART_LAYER, row->forgotten};
        oc_build_add(build, &entry);
    }
    entry.birth = in_phase(birth, OC_PH_RECOMPUTE);
    entry.death = kept ? row->release : in_phase(row->death, OC_PH_RECOMPUTE);
    oc_build_add(build, &entry);
}

/* A tensor of a module that selective recompute forgets: it is made again where the module's backward begins. */
static void add_recomputed_module(struct oc_build *build, const struct oc_tensor *row, struct oc_entry entry)
{
    const uint8_t begin = oc_opset((enum oc_opset)build->plan->c.kernels_transformer)->module_backward[row->module];
    entry.death = (struct oc_tick){OC_PH_FORWARD, OC_PART_LAYER, row->forgotten};
    oc_build_add(build, &entry);
    entry.birth = (struct oc_tick){OC_PH_BACKWARD, OC_PART_LAYER, begin};
    entry.death = row->release;
    oc_build_add(build, &entry);
}

void oc_add_tensor(struct oc_build *build, const struct oc_tensor *row, uint64_t facts, int kind, uint32_t count,
                   const char *source)
{
    if ((row->need & facts) != row->need || (row->without & facts)) return;
    if (row->mode == OC_ONLY_RECOMPUTE && !(kind & OC_KIND_CHECKPOINTED)) return;
    const struct oc_plan *plan = build->plan;
    const bool kept = is_kept(row, facts);
    const enum oc_dtype dtype = dtype_of(plan, facts, row->role);
    struct oc_entry entry = {.name = row->name,
                             .copy = row->copy,
                             .why = row->why,
                             .source = source,
                             .elements = elements_of(build, row),
                             .count = count,
                             .class = row->buffer ? OC_BUFFERS : OC_ACTIVATIONS,
                             .dtype = (uint8_t)dtype,
                             .kind = row->birth.part == OC_PART_LAYER ? (uint8_t)kind : row->end,
                             .birth = row->birth,
                             .death = kept ? row->release : row->death};
    if (row->mode == OC_ONLY_FORWARD && kept && (row->need & OC_F_FULL)) {
        /* One input for every group of layers: counted as its share of each. Partitioned over tp when asked to. */
        const uint64_t group = (uint64_t)build->ledger->group[kind];
        const uint64_t parts =
            plan->c.recompute_partition_activations && !plan->c.parallel_sp ? (uint64_t)plan->c.parallel_tp : 1;
        entry.elements = (entry.elements + group * parts - 1) / (group * parts);
    }
    const bool layer_forward = row->birth.part == OC_PART_LAYER && row->birth.phase == OC_PH_FORWARD;
    const bool forgotten = plan->c.recompute == OC_RECOMPUTE_SELECTIVE && (row->module & plan->c.recompute_modules);
    if (layer_forward && (kind & OC_KIND_CHECKPOINTED))
        add_checkpointed(build, row, entry, kept);
    else if (layer_forward && forgotten && kept)
        add_recomputed_module(build, row, entry);
    else
        add_over_layers(build, entry);
}

/* What holds for the layers of one kind. */
static uint64_t facts_of_kind(uint64_t facts, int kind)
{
    if (kind & OC_KIND_CHECKPOINTED) facts |= OC_F_FULL;
    if (kind & OC_KIND_MOE) facts |= OC_F_MOE;
    return facts;
}

void oc_build_activations(struct oc_build *build)
{
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)build->plan->c.kernels_transformer);
    const uint64_t facts = oc_facts(build->plan);
    const uint32_t *layers = build->layers;
    uint64_t whole = facts;
    for (int kind = 0; kind < OC_MAX_KINDS; kind++)
        if (layers[kind] && (kind & OC_KIND_CHECKPOINTED)) whole |= OC_F_FULL;
    const struct oc_tensor *tables[] = {ops->rows, ops->layer_rows, ops->expert_rows};
    for (int t = 0; t < 3; t++)
        for (const struct oc_tensor *row = tables[t]; row && row->name; row++) {
            if (row->birth.part != OC_PART_LAYER) {
                oc_add_tensor(build, row, whole, OC_KIND_KEPT, 1, ops->source);
                continue;
            }
            for (int kind = 0; kind < OC_MAX_KINDS; kind++)
                if (layers[kind])
                    oc_add_tensor(build, row, facts_of_kind(facts, kind), kind, layers[kind], ops->source);
        }
    if (!(facts & OC_F_LORA)) return;
    for (int kind = 0; kind < OC_MAX_KINDS; kind++)
        if (layers[kind]) oc_build_lora(build, kind, layers[kind]);
    oc_build_lora_rest(build);
}
