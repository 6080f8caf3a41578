/* Plain PyTorch: parameters, .grad and optimizer states in the type of the parameters; autocast; DDP over data-parallel
 * ranks.
 *
 * Source: shared/reference/memory-pytorch.md sections 1 and 5, activations.md section 2 (measured),
 * docs/step-pytorch.md. */
#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/frameworks/optimizers.h"
#include "model/frameworks/torch.h"

#define TORCH "torch/optim, torch/csrc/autograd; measured: shared/reference/activations.md section 2"

static bool decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (!oc_torch_check(plan, false, error)) return false;
    oc_torch_dtypes(plan);
    oc_torch_warn(plan, warnings);
    if ((c->precision == OC_PREC_FP16 || c->precision == OC_PREC_BF16) && plan->dt.master == OC_NONE)
        oc_warn(warnings,
                "PyTorch keeps no fp32 master of 16-bit weights: updates below half a step of the weight are lost "
                "(precision.master=fp32 adds one, precision=amp-bf16 keeps fp32 weights)");
    return true;
}

static bool is_ddp(const struct oc_plan *plan)
{
    return plan->dp > 1;
}

static bool weights(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = plan->dt.weights,
                               .birth = OC_AT(INIT),
                               .death = OC_AT(END),
                               .why = "module parameters"};
    return true;
}

static bool master(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_MASTER,
                               .dtype = plan->dt.master,
                               .birth = OC_AT_SUB(INIT, 1),
                               .death = OC_AT(END),
                               .why = "a wider copy of the weights, which the optimizer updates"};
    return true;
}

static bool gradients(const struct oc_plan *plan, struct oc_state *state)
{
    const bool views = is_ddp(plan) && plan->c.parallel_bucket_view;
    if (plan->c.optimizer_in_backward && !views) {
        *state = (struct oc_state){.class = OC_GRADIENTS,
                                   .dtype = plan->dt.grads,
                                   .timing = OC_WHILE_ACCUMULATED,
                                   .why = "freed as soon as the optimizer, called in backward, has used it"};
        return true;
    }
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.grads,
                               .timing = views ? OC_BY_TICKS : OC_AS_GRADIENT,
                               .pooled = views,
                               .birth = OC_AT(INIT),
                               .death = plan->c.run_zero_grad_to_none && !views ? OC_AT(IDLE) : OC_AT(END),
                               .why = views ? "views of the DDP buckets, which stay"
                                            : "param.grad has the type of the parameter, under autocast too"};
    return true;
}

static bool accumulated(const struct oc_plan *plan, struct oc_state *state)
{
    const bool waits = oc_torch_waits(plan);
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.grads,
                               .timing = waits ? OC_UNTIL_THE_LAST : OC_WHILE_ACCUMULATED,
                               .why = waits ? "no_sync: summed apart, until the last micro-batch's is in the bucket"
                                            : "a fresh gradient, until it is added into the bucket"};
    return is_ddp(plan) && plan->c.parallel_bucket_view;
}

static bool buckets(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_BUFFERS,
                               .dtype = plan->dt.grads,
                               .birth = OC_AT_SUB(INIT, 1),
                               .death = OC_AT(END),
                               .pooled = true,
                               .why = "DDP copies every gradient into a bucket unless gradient_as_bucket_view is set"};
    return is_ddp(plan) && !plan->c.parallel_bucket_view;
}

static bool step_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.step_grads,
                               .birth = OC_AT(STEP),
                               .death = OC_AT(IDLE),
                               .why = "the gradients in the master's type, made for the step"};
    return true;
}

static bool moment1(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_OPTIMIZER,
                               .dtype = plan->dt.moment1,
                               .birth = oc_states_birth(plan),
                               .death = OC_AT(END),
                               .why = "zeros_like(parameter), made in the first step"};
    return oc_optimizer_is_plain(plan, 1);
}

static bool moment2(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_OPTIMIZER,
                               .dtype = plan->dt.moment2,
                               .birth = oc_states_birth(plan),
                               .death = OC_AT(END),
                               .why = "zeros_like(parameter), made in the first step"};
    return oc_optimizer_is_plain(plan, 2);
}

/* Adam's foreach implementation makes the square roots of all second moments before it uses the first. */
static bool square_roots(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_BUFFERS,
                               .dtype = plan->dt.moment2,
                               .birth = OC_AT_SUB(STEP, 2),
                               .death = OC_AT_SUB(STEP, 3),
                               .why = "foreach: the square roots of all second moments at once"};
    return oc_optimizer_is_plain(plan, 2) && plan->c.optimizer_impl == OC_IMPL_FOREACH &&
           !plan->c.optimizer_in_backward;
}

static const struct oc_state_rule states[] = {
    {"weights", TORCH, "", weights},
    {"master", TORCH, "", master},
    {"gradients", TORCH, "", gradients},
    {"fresh gradients", TORCH, "", accumulated},
    {"DDP buckets", "torch/csrc/distributed/c10d/reducer.cpp", "", buckets},
    {"gradients for the step", TORCH, "", step_gradients},
    {"momentum or exp_avg", TORCH, "", moment1},
    {"exp_avg_sq", TORCH, "", moment2},
    {"optimizer scratch", "torch/optim/adam.py _multi_tensor_adam", "2.0", square_roots},
    {0}};

static void buffers(struct oc_build *build)
{
    if (build->plan->has_shape) {
        oc_add_optimizer_states(build, false);
        oc_add_optimizer_scratch(build, oc_build_largest(build), oc_build_tensors(build));
    }
    oc_add_cublas(build);
}

const struct oc_framework_rules oc_pytorch_rules = {.name = "PyTorch",
                                                    .source = TORCH,
                                                    .defaults = oc_torch_defaults,
                                                    .decide = decide,
                                                    .states = states,
                                                    .buffers = buffers,
                                                    .counts_activations = true};
