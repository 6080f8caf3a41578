/* Megatron-FSDP (parallel.zero 2 and 3): what is whole for a while where parameters or gradients are shared.
 *
 * A transformer layer is a unit; embedding, final norm and output layer are the root. A unit's weights are gathered
 * while it runs, and those of the units that come next are gathered ahead; its gradients are made in a buffer as large,
 * which waits in a queue until it has been reduced. Both lookaheads are counted in elements, not in units: small models
 * are gathered whole. The step goes the way of the distributed optimizer.
 *
 * Source: Megatron-LM core/distributed/fsdp/src/docs/mfsdp_design.md @17517455 (what is shared, flow);
 * src/megatron_fsdp/ megatron_fsdp.py (lookahead; until PR 7134 of 2026-09), param_and_grad_buffer.py (queue). */
#include "model/frameworks/framework.h"
#include "model/frameworks/megatron_parts.h"
#include "model/shapes/opset.h"

#define DESIGN "Megatron-LM core/distributed/fsdp/src/docs/mfsdp_design.md"
#define AHEAD  "Megatron-LM core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py suggested_AG_prefetch_size"
#define QUEUE  "Megatron-LM core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py suggested_RS_queue_capacity"

enum { LAST = OC_MAX_SUB - 1 };

/* suggested_communication_unit_size is 1e9 elements or two units, whichever is more: all of it may wait for its
 * reduction, and half of it is gathered ahead. */
static const uint64_t COMMUNICATION_UNIT = 1000000000;

/* What an entry holds, in elements. */
enum measure { UNIT, LOOKAHEAD, WAITING, EVERYTHING, MEASURES };

struct row {
    const char *name, *why, *source;
    uint8_t zero;    /* from this stage on */
    uint8_t measure; /* enum measure */
    bool gradient;   /* in the type of the main grads, else in that of the weights */
    bool overlaps;   /* with parallel.overlap_param_gather only */
    struct oc_tick birth, death;
};

/* clang-format off */
static const struct row layer_rows[] = {
    {"gathered layer", "the weights that the layer reads", DESIGN, 3, UNIT, false, false, OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"layers gathered ahead", "of those above, 5e8 elements or one layer", AHEAD, 3, LOOKAHEAD, false, false, OC_FWD(LAYER, 0), OC_FWD(LAYER, LAST)},
    {"gathered layer", "gathered again for backward", DESIGN, 3, UNIT, false, false, OC_AGAIN, OC_BWD(LAYER, LAST)},
    {"layers gathered ahead", "of those below, 5e8 elements or one layer", AHEAD, 3, LOOKAHEAD, false, false, OC_AGAIN, OC_BWD(LAYER, LAST)},
    {"unsharded main grads", "the layer's gradients", DESIGN, 2, UNIT, true, false, OC_BWD(LAYER, 0), OC_BWD(LAYER, LAST)},
    {"main grads being reduced", "of the layers above: at most 1e9 elements, or two layers, wait", QUEUE, 2, WAITING, true, false, OC_AGAIN, OC_BWD(LAYER, LAST)},
    {0}};

static const struct row root_rows[] = {
    {"gathered root", "embedding, last norm and output layer, from forward to the end of backward", DESIGN, 3, UNIT, false, false, OC_FWD(EMBED, 0), OC_BWD(EMBED, LAST)},
    {"layers gathered ahead", "the last layers, while the output layer runs backward", AHEAD, 3, LOOKAHEAD, false, false, OC_BWD(HEAD, 0), OC_BWD(HEAD, LAST)},
    {"main grads being reduced", "what still waits when the embedding's are made", QUEUE, 2, WAITING, true, false, OC_BWD(EMBED, 0), OC_BWD(EMBED, LAST)},
    {"weights gathered ahead", "start_param_sync behind the step", AHEAD, 3, EVERYTHING, false, true, {OC_PH_AFTER_STEP, OC_PART_NONE, 0}, {OC_PH_START, OC_PART_NONE, 0}},
    {0}};
/* clang-format on */

/* A layer of one kind, or the root: OC_MAX_KINDS. What waits for its reduction grows from layer to layer until the
 * queue is full; here it is full from the second layer on, which is too much for the layers before. */
struct unit {
    int kind;
    uint64_t elements[MEASURES];
};

static uint64_t less_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* `all`: elements of this stage's layers; `window`: of what may wait at most. */
static struct unit unit_of(const struct oc_build *build, int kind, uint64_t all, uint64_t window)
{
    const uint64_t own = oc_build_unit(build, kind), others = kind < OC_MAX_KINDS ? all - own : all;
    return (struct unit){.kind = kind,
                         .elements = {[UNIT] = own,
                                      [LOOKAHEAD] = less_of(others, window / 2),
                                      [WAITING] = less_of(others, window),
                                      [EVERYTHING] = less_of(oc_add(others, own), window / 2)}};
}

static void add_rows(struct oc_build *build, const struct unit *unit, const struct row *rows)
{
    const struct oc_plan *plan = build->plan;
    const bool layer = unit->kind < OC_MAX_KINDS;
    for (const struct row *row = rows; row->name; row++) {
        if (plan->c.parallel_zero < row->zero || (row->overlaps && !plan->c.parallel_overlap_param_gather)) continue;
        const struct oc_entry entry = {.name = row->name,
                                       .why = row->why,
                                       .source = row->source,
                                       .elements = unit->elements[row->measure],
                                       .count = layer ? build->layers[unit->kind] : 1,
                                       .class = row->gradient ? OC_GRADIENTS : OC_BUFFERS,
                                       .dtype = (uint8_t)(row->gradient ? plan->dt.grads : plan->dt.weights),
                                       .kind = layer ? (uint8_t)unit->kind : OC_END_ANY,
                                       .spares_top = layer && row->measure == WAITING,
                                       .birth = row->birth,
                                       .death = row->death};
        oc_build_add(build, &entry);
    }
}

/* The root's gradients: of the output layer from its product, of the embedding at the end. */
static void add_root_gradients(struct oc_build *build)
{
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (param->part == OC_PART_LAYER) continue;
        const struct oc_entry entry = {.name = param->name,
                                       .copy = "unsharded main grads",
                                       .why = "until they are reduced at the end of backward",
                                       .source = DESIGN,
                                       .elements = param->elements,
                                       .count = param->count,
                                       .class = OC_GRADIENTS,
                                       .dtype = (uint8_t)build->plan->dt.grads,
                                       .kind = param->kind,
                                       .birth = {OC_PH_BACKWARD, param->part, param->backward},
                                       .death = OC_BWD(EMBED, LAST)};
        if (!param->tied_gradient) oc_build_add(build, &entry);
    }
}

void oc_megatron_fsdp_units(struct oc_build *build)
{
    if (build->plan->c.parallel_zero < 2 || build->plan->shard == 1) return;
    uint64_t all = 0, largest = 0;
    for (int kind = 0; kind < OC_MAX_KINDS; kind++) {
        const uint64_t elements = build->layers[kind] ? oc_build_unit(build, kind) : 0;
        all = oc_add(all, oc_mul(elements, build->layers[kind]));
        if (elements > largest) largest = elements;
    }
    const uint64_t window = COMMUNICATION_UNIT > oc_mul(largest, 2) ? COMMUNICATION_UNIT : oc_mul(largest, 2);
    for (int kind = 0; kind < OC_MAX_KINDS; kind++) {
        if (!build->layers[kind]) continue;
        const struct unit unit = unit_of(build, kind, all, window);
        add_rows(build, &unit, layer_rows);
    }
    const struct unit root = unit_of(build, OC_MAX_KINDS, all, window);
    add_rows(build, &root, root_rows);
    add_root_gradients(build);
}
