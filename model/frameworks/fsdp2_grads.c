/* FSDP2: autograd's gradients of unsharded weights, from where backward makes them to their reduction.
 *
 * Under no_sync they stay whole until the last of several micro-batches: as they are where they are reduced in their
 * own type, else one after the other is cast when its unit has run backward for the first time.
 *
 * Source: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py @62a45b6f post_backward, _fsdp_param.py @17a7e1e0
 * to_accumulated_grad_if_needed and accumulate_unsharded_grad_if_needed. */
#include "model/frameworks/framework.h"
#include "model/frameworks/fsdp2_parts.h"
#include "model/shapes/opset.h"

#define GROUP "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py @62a45b6f"
#define PARAM "torch/distributed/fsdp/_fully_shard/_fsdp_param.py @17a7e1e0"

struct grads {
    struct oc_build *build;
    bool waits, casts;            /* no_sync; its sums are of another type */
    int before[OC_MAX_KINDS + 1]; /* parameters of the unit that were cast before */
};

/* A tied head's gradient waits for the look-up's; a third tensor is their sum. */
static void add_tied(const struct grads *g, const struct oc_param *embedding, const struct oc_entry *fresh)
{
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)g->build->plan->c.kernels_transformer);
    const struct oc_tick summed = {OC_PH_BACKWARD, embedding->part, (uint8_t)(embedding->backward + 2)};
    struct oc_entry head = *fresh;
    head.kind = OC_END_HERE;
    oc_build_add_when(g->build, head, OC_ALWAYS,
                      (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, ops->use[OC_USE_HEAD].backward}, summed,
                      "the tied head's, until the look-up's is there");
    oc_build_add_when(g->build, *fresh, OC_ALWAYS, fresh->birth, summed,
                      "the look-up's, until it is added to the tied head's");
}

/* Under no_sync, reduced in another type: cast parameter by parameter when the unit's weights have been freed. */
static void add_cast(struct grads *g, const struct oc_entry *fresh, uint8_t end, int unit)
{
    int sub = OC_FSDP2_FREED + 1 + g->before[unit]++;
    if (sub > OC_FSDP2_REDUCES - 1) sub = OC_FSDP2_REDUCES - 1; /* more than there are sub-steps: at once */
    const struct oc_tick cast = {OC_PH_BACKWARD, end, (uint8_t)sub}, gone = {OC_PH_BACKWARD, end, (uint8_t)(sub + 1)};
    struct oc_entry sum = *fresh;
    oc_build_add_when(g->build, *fresh, OC_FIRST_MICRO_BATCH, fresh->birth, gone, NULL);
    oc_build_add_when(g->build, *fresh, OC_LATER_MICRO_BATCHES, fresh->birth,
                      (struct oc_tick){OC_PH_BACKWARD, end, OC_FSDP2_FREED},
                      "a later micro-batch's, added when the unit has run backward");
    sum.dtype = (uint8_t)oc_fsdp2_reduce(g->build->plan);
    sum.copy = "unsharded gradient sum";
    sum.source = PARAM;
    if (end == OC_PART_EMBED) { /* of the root's unit: all at once */
        sum.elements = oc_mul(sum.elements, sum.count);
        sum.count = 1;
        sum.kind = OC_END_ANY;
    }
    oc_build_add_when(g->build, sum, OC_FIRST_TO_LAST, cast,
                      (struct oc_tick){OC_PH_BACKWARD, end, OC_FSDP2_REDUCES + 1},
                      "no_sync: whole, in the type of the reduction, until the last micro-batch");
}

/* `added`: when autograd has added it to one that is there. */
static void add_fresh(struct grads *g, const struct oc_entry *fresh, struct oc_tick added, uint8_t end, int unit)
{
    const struct oc_tick reduced = {OC_PH_BACKWARD, end, OC_FSDP2_REDUCES + 1};
    if (!g->waits) {
        oc_build_add_when(g->build, *fresh, OC_ALWAYS, fresh->birth, reduced, NULL);
    } else if (g->casts) {
        add_cast(g, fresh, end, unit);
    } else {
        oc_build_add_when(g->build, *fresh, OC_FIRST_TO_LAST, fresh->birth, reduced,
                          "no_sync: whole until the last micro-batch");
        oc_build_add_when(g->build, *fresh, OC_LATER_MICRO_BATCHES, fresh->birth, added,
                          "a later micro-batch's, until it is added");
    }
}

void oc_fsdp2_gradients(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    struct grads g = {
        .build = build, .waits = oc_torch_waits(plan), .casts = oc_fsdp2_reduce(plan) != plan->dt.weights};
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (param->frozen) continue;
        const bool layer = oc_fsdp2_in_layer(build, param);
        struct oc_entry fresh = {.name = param->name,
                                 .copy = "unsharded gradient",
                                 .why = "from where backward makes it to its reduction",
                                 .source = GROUP,
                                 .elements = param->elements,
                                 .count = param->count,
                                 .class = OC_GRADIENTS,
                                 .dtype = (uint8_t)plan->dt.weights,
                                 .kind = param->kind,
                                 .birth = {OC_PH_BACKWARD, param->part, param->backward}};
        if (param->tied_gradient) {
            add_tied(&g, param, &fresh);
            fresh.birth.sub++; /* the sum, when the look-up's backward has let go of what it read */
        }
        const struct oc_tick added = {OC_PH_BACKWARD, param->part, (uint8_t)(fresh.birth.sub + 1)};
        add_fresh(&g, &fresh, added, layer ? OC_PART_LAYER : OC_PART_EMBED, layer ? param->kind : OC_MAX_KINDS);
    }
}
