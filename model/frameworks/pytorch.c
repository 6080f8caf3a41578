/* Plain PyTorch: parameters, .grad and optimizer states in the type of the parameters; autocast; DDP over data-parallel
 * ranks.
 *
 * Source: shared/reference/memory-pytorch.md sections 1 and 5, activations.md section 2 (measured),
 * docs/step-pytorch.md. */
#include "model/build.h"
#include "model/frameworks/framework.h"

#define TORCH "torch/optim, torch/csrc/autograd; measured: shared/reference/activations.md section 2"

static void defaults(struct oc_config *c)
{
    oc_default(c, OC_OPT_kernels_transformer, OC_OPSET_HF);
    oc_default(c, OC_OPT_kernels_logits_fp32, 1); /* Hugging Face Llama, Mistral, Mixtral: logits.float() */
    oc_default(c, OC_OPT_model_vocab_multiple, 1);
    if (c->kernels_transformer != OC_OPSET_HF) oc_default(c, OC_OPT_kernels_norm, OC_NORMK_FUSED);
}

static bool only_data_parallel(const struct oc_config *c, struct oc_error *error)
{
    const struct {
        int64_t ranks;
        enum oc_option_id option;
    } splits[] = {{c->parallel_tp, OC_OPT_parallel_tp},
                  {c->parallel_pp, OC_OPT_parallel_pp},
                  {c->parallel_cp, OC_OPT_parallel_cp},
                  {c->parallel_zero + 1, OC_OPT_parallel_zero}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (splits[i].ranks > 1) {
            oc_fail(error, OC_E_CONFLICT,
                    "%s has no meaning in plain PyTorch, which only copies the model to every rank",
                    oc_option(splits[i].option)->key);
            return oc_hint(error, "framework=megatron splits the model");
        }
    return true;
}

static bool decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (!only_data_parallel(c, error)) return false;
    if (c->kernels_transformer != OC_OPSET_HF) {
        oc_fail(error, OC_E_CONFLICT, "kernels.transformer=te belongs to Megatron");
        return oc_hint(error, "kernels.transformer=hf, or framework=megatron");
    }
    if (c->recompute == OC_RECOMPUTE_SELECTIVE) {
        oc_fail(error, OC_E_CONFLICT, "Hugging Face models have no selective recompute");
        return oc_hint(error, "recompute=full or none");
    }
    const enum oc_dtype weights = oc_given(c, OC_OPT_precision_weights) ? (enum oc_dtype)c->precision_weights
                                                                        : oc_precision_weights(c->precision);
    const enum oc_dtype autocast = oc_given(c, OC_OPT_precision_autocast) ? (enum oc_dtype)c->precision_autocast
                                                                          : oc_precision_autocast(c->precision);
    plan->c.precision_autocast = autocast;
    plan->dt.weights = plan->dt.residual = plan->dt.grads = weights;
    plan->dt.compute = autocast != OC_NONE ? autocast : weights;
    plan->dt.master = oc_given(c, OC_OPT_precision_master) ? (enum oc_dtype)c->precision_master : OC_NONE;
    plan->dt.step_grads = plan->dt.master != OC_NONE ? plan->dt.master : OC_NONE;
    const enum oc_dtype updated = plan->dt.master != OC_NONE ? plan->dt.master : weights;
    const bool adam = c->optimizer != OC_OPTIM_SGD;
    plan->dt.moment1 = adam || c->optimizer_momentum > 0 ? updated : OC_NONE;
    plan->dt.moment2 = adam ? updated : OC_NONE;
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
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.grads,
                               .timing = OC_WHILE_ACCUMULATED,
                               .why = "a fresh gradient, until it is added into the bucket"};
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
    return true;
}

static bool moment2(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_OPTIMIZER,
                               .dtype = plan->dt.moment2,
                               .birth = oc_states_birth(plan),
                               .death = OC_AT(END),
                               .why = "zeros_like(parameter), made in the first step"};
    return true;
}

/* Adam's foreach implementation makes the square roots of all second moments before it uses the first. */
static bool square_roots(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_BUFFERS,
                               .dtype = plan->dt.moment2,
                               .birth = OC_AT_SUB(STEP, 2),
                               .death = OC_AT_SUB(STEP, 3),
                               .why = "foreach: the square roots of all second moments at once"};
    return plan->c.optimizer != OC_OPTIM_SGD && plan->c.optimizer_impl == OC_IMPL_FOREACH;
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
    const struct oc_plan *plan = build->plan;
    const bool adam = plan->c.optimizer != OC_OPTIM_SGD;
    if (adam && plan->c.optimizer_impl == OC_IMPL_LOOP && plan->has_shape) {
        struct oc_entry scratch = {.name = "optimizer scratch, square root",
                                   .why = "loop: one tensor at a time, the largest decides",
                                   .source = "torch/optim/adam.py _single_tensor_adam",
                                   .elements = oc_build_largest(build),
                                   .count = 1,
                                   .class = OC_BUFFERS,
                                   .dtype = (uint8_t)plan->dt.moment2,
                                   .birth = OC_AT_SUB(STEP, 2),
                                   .death = OC_AT_SUB(STEP, 3)};
        oc_build_add(build, &scratch);
        scratch.name = "optimizer scratch, quotient";
        oc_build_add(build, &scratch);
    }
    if (adam && plan->c.optimizer_impl == OC_IMPL_FUSED && plan->has_shape) {
        const struct oc_entry steps = {.name = "step counters",
                                       .why = "fused: the step count lives on the device, a block a tensor",
                                       .source = "torch/optim/adam.py",
                                       .elements = 1,
                                       .count = (uint32_t)oc_build_tensors(build),
                                       .class = OC_OPTIMIZER,
                                       .dtype = OC_FP32,
                                       .birth = oc_states_birth(plan),
                                       .death = OC_AT(END)};
        oc_build_add(build, &steps);
    }
    oc_add_cublas(build);
}

const struct oc_framework_rules oc_pytorch_rules = {.name = "PyTorch",
                                                    .source = TORCH,
                                                    .defaults = defaults,
                                                    .decide = decide,
                                                    .states = states,
                                                    .buffers = buffers,
                                                    .counts_activations = true};
