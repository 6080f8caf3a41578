/* The 16-bit copies that autocast makes of fp32 parameters.
 *
 * Source: aten/src/ATen/autocast_mode.cpp cached_cast; measured in shared/reference/memory-pytorch.md 1.2: a cast is
 * cached once per autocast context; the graph keeps the cast of a matrix until its product's backward has run, and what
 * only the cache holds is freed when the context ends. */
#include "model/shapes/opset.h"

#define SOURCE "aten/src/ATen/autocast_mode.cpp, cached_cast"

static const struct oc_tick context_end = OC_LOSS_AT(2);

static void add_cast(struct oc_build *build, const struct oc_param *param, bool checkpointed)
{
    struct oc_entry entry = {.name = param->name,
                             .copy = "autocast copy",
                             .source = SOURCE,
                             .elements = param->elements,
                             .count = param->count,
                             .class = OC_BUFFERS,
                             .dtype = (uint8_t)build->plan->dt.compute,
                             .kind = param->kind,
                             .birth = {OC_PH_FORWARD, param->part, param->forward}};
    /* With no shape the whole model is one parameter, of which each layer's cast dies before its gradient is complete.
     */
    const struct oc_tick release = {OC_PH_BACKWARD, param->part,
                                    (uint8_t)(param->backward + (build->plan->has_shape ? 1 : 0))};
    const bool kept = param->cast == OC_CAST_KEPT && !checkpointed;
    entry.death = kept ? release : context_end;
    entry.why = kept ? "autocast's 16-bit copy, kept by the graph until this matrix's backward"
                     : "autocast's 16-bit copy, cached until the autocast context ends";
    oc_build_add(build, &entry);
    if (!checkpointed) return;
    entry.birth.phase = OC_PH_RECOMPUTE;
    entry.death = param->cast == OC_CAST_KEPT ? release : (struct oc_tick){OC_PH_BACKWARD, OC_PART_LAYER, 0};
    entry.why = "cast anew when the layer is recomputed";
    oc_build_add(build, &entry);
}

void oc_build_casts(struct oc_build *build)
{
    if (!oc_casts_weights(build->plan)) return;
    bool output = false;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        if (param->cast == OC_CAST_NONE) continue;
        output |= param->part == OC_PART_HEAD && param->cast == OC_CAST_KEPT;
        add_cast(build, param, param->part == OC_PART_LAYER && (param->kind & OC_KIND_CHECKPOINTED));
    }
    if (output || build->plan->c.model_head != OC_HEAD_LM) return;
    /* A tied head casts the embedding's weight, which the look-up itself does not. */
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)build->plan->c.kernels_transformer);
    const struct oc_param tied = {.name = "head.output (tied)",
                                  .elements = oc_mul(build->sizes.dim[OC_D_VOCAB], build->sizes.dim[OC_D_HIDDEN]),
                                  .count = 1,
                                  .part = OC_PART_HEAD,
                                  .kind = OC_END_HERE,
                                  .forward = ops->use[OC_USE_HEAD].forward,
                                  .backward = ops->use[OC_USE_HEAD].backward,
                                  .cast = OC_CAST_KEPT};
    add_cast(build, &tied, false);
}
