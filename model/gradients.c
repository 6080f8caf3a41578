/* The gradients that backward makes of parameters, until each is added to what is kept of earlier ones.
 *
 * Source: torch/csrc/autograd/functions/accumulate_grad.h, input_buffer.cpp, c10d/reducer.cpp; traced with
 * PyTorch 2.4.1 (docs/step-pytorch.md, "gradients" and "DDP"). */
#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/shapes/opset.h"

static struct oc_tick gradient_tick(const struct oc_param *param, int later)
{
    return (struct oc_tick){OC_PH_BACKWARD, param->part, (uint8_t)(param->backward + later)};
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

/* The product's gradient, before it is cast. */
static void add_narrow(struct oc_build *build, struct oc_entry entry, const struct oc_param *param)
{
    entry.dtype = (uint8_t)(param->adapter ? build->plan->c.precision_autocast : build->plan->dt.compute);
    oc_build_add_when(build, entry, OC_ALWAYS, gradient_tick(param, 0), gradient_tick(param, 2),
                      "the product's gradient in the autocast type, until it is cast");
}

/* A gradient that is there from `birth` on, and added at `done` to the one that is kept. */
static void add_timed(struct oc_build *build, struct oc_entry entry, enum oc_timing timing, struct oc_tick birth,
                      struct oc_tick done)
{
    static const char added[] = "a later micro-batch's gradient, until it is added";
    switch (timing) {
    case OC_WHILE_ACCUMULATED: oc_build_add_when(build, entry, OC_ALWAYS, birth, done, NULL); return;
    case OC_UNTIL_THE_LAST:
        oc_build_add_when(build, entry, OC_FIRST_TO_LAST, birth, done, NULL);
        oc_build_add_when(build, entry, OC_LATER_MICRO_BATCHES, birth, done, added);
        return;
    default: break;
    }
    const bool stays = entry.death.phase == OC_PH_END;
    if (build->plan->has_shape)
        oc_build_add_when(build, entry, stays ? OC_ALL_BUT_THE_FIRST : OC_LATER_MICRO_BATCHES, birth, done, added);
    oc_build_add_when(build, entry, OC_ALWAYS, birth, entry.death, NULL);
}

/* The output layer as another use of the embedding's weight. */
static struct oc_param tied_head(const struct oc_build *build, const struct oc_param *embedding)
{
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)build->plan->c.kernels_transformer);
    struct oc_param head = *embedding;
    head.part = OC_PART_HEAD;
    head.backward = ops->use[OC_USE_HEAD].backward;
    head.cast = OC_CAST_KEPT;
    return head;
}

bool oc_sums_apart(const struct oc_plan *plan)
{
    return plan->c.kernels_transformer != OC_OPSET_TE && plan->c.kernels_transformer != OC_OPSET_LOCAL &&
           plan->c.kernels_loss != OC_LOSS_CHUNKED && !oc_casts_weights(plan);
}

/* Autograd adds the look-up's gradient to the head's before either is added to what is kept: into the head's where
 * nothing else refers to that, else into a tensor of its own. */
static void add_tied_gradient(struct oc_build *build, struct oc_entry entry, const struct oc_param *param,
                              enum oc_timing timing)
{
    const struct oc_param head = tied_head(build, param);
    const bool apart = oc_sums_apart(build->plan);
    /* A sum of its own is made when the look-up's backward has let go of what it read. */
    const struct oc_tick made = gradient_tick(param, apart), summed = gradient_tick(param, apart + 1);
    const int cast = casts_gradient(build, &head);
    if (cast) add_narrow(build, entry, &head);
    if (apart)
        oc_build_add_when(build, entry, OC_ALWAYS, gradient_tick(&head, 0), summed,
                          "the tied head's, until the look-up's is there");
    oc_build_add_when(build, entry, OC_ALWAYS, gradient_tick(param, 0), summed,
                      "the look-up's, added to the gradient that the tied head has made");
    add_timed(build, entry, timing, apart ? made : gradient_tick(&head, cast), summed);
}

void oc_add_gradient(struct oc_build *build, const struct oc_entry *entry, const struct oc_param *param,
                     enum oc_timing timing)
{
    if (param->tied_gradient && build->plan->has_shape) {
        add_tied_gradient(build, *entry, param, timing);
        return;
    }
    const int cast = casts_gradient(build, param);
    if (cast) add_narrow(build, *entry, param);
    add_timed(build, *entry, timing, gradient_tick(param, cast), gradient_tick(param, cast + 1));
}
