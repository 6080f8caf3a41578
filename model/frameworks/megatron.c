/* Megatron-LM core: parameters in 16 bits with an fp32 master copy, gradients summed into a buffer that always exists.
 *
 * Source: NVIDIA/Megatron-LM @d98e8a64; shared/reference/memory-megatron.md sections 1 and 8. */
#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/frameworks/megatron_parts.h"

#define OPTIMIZER "Megatron-LM core/optimizer/optimizer.py"
#define BUFFER    "Megatron-LM core/distributed/param_and_grad_buffer.py"

static bool has_parameter_buffer(const struct oc_plan *plan)
{
    return plan->c.parallel_zero >= 1 && !oc_megatron_layer_wise(plan);
}

static bool weights(const struct oc_plan *plan, struct oc_state *state)
{
    const bool buffer = has_parameter_buffer(plan), shared = plan->c.parallel_zero >= 3;
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = plan->dt.weights,
                               .sharded = shared,
                               .pooled = buffer && !shared,
                               .birth = buffer ? OC_AT_SUB(INIT, 1) : OC_AT(INIT),
                               .death = OC_AT(END),
                               .why = shared   ? "Megatron-FSDP: this rank's part of the compute weights"
                                      : buffer ? "views of the distributed optimizer's parameter buffer"
                                               : "parameters in the training type"};
    return true;
}

/* The model is built first; the buffer then takes over its parameters one by one. What they leave in the allocator's
 * cache is used by activations later. */
static bool first_weights(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_WEIGHTS,
                               .dtype = plan->dt.weights,
                               .birth = OC_AT(INIT),
                               .death = OC_AT_SUB(INIT, 2),
                               .why = "parameters as the model is built, until the buffer has taken them over"};
    return has_parameter_buffer(plan);
}

static bool master(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){
        .class = OC_MASTER,
        .dtype = plan->dt.master,
        .sharded = plan->c.parallel_zero >= 1,
        .offloads = true,
        .birth = OC_AT_SUB(INIT, 2),
        .death = OC_AT(END),
        .why = plan->c.optimizer_precision_aware && plan->dt.master == OC_BF16
                   ? "the 16 bits that bf16 weights lack of fp32"
                   : "param.detach().clone().float(): the fp32 weights that the optimizer updates, for good"};
    return true;
}

/* Megatron-LM 2.x under its local DDP: gradients are PyTorch's own until they are copied to fp32. */
static bool has_own_gradients(const struct oc_plan *plan)
{
    return oc_is_2021(plan) && plan->dt.weights == OC_FP16 && plan->dt.step_grads == OC_FP32 &&
           plan->c.parallel_zero == 0;
}

static bool own_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .timing = OC_AS_GRADIENT,
                               .death = OC_AT_SUB(REDUCE, 1),
                               .why = "param.grad, made anew in each iteration"};
    return has_own_gradients(plan);
}

/* Local DDP joins all gradients for its all-reduce, whatever the number of ranks. */
static bool joined_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .pooled = true,
                               .birth = OC_AT_SUB(REDUCE, 1),
                               .death = OC_AT_SUB(REDUCE, 2),
                               .why = "all gradients flattened into one tensor for the all-reduce"};
    return has_own_gradients(plan);
}

/* allreduce_gradients() sets param.main_grad = param.grad, which refers to the last iteration's gradient until the next
 * reduction: zero_grad() frees nothing. Measured so: 22 B a parameter in backward and 20 after the step, on 12 ranks of
 * three runs (bigscience, meg_gpt2). */
static bool last_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .birth = OC_AT_SUB(REDUCE, 1),
                               .death = OC_AT(END),
                               .why = "param.main_grad still refers to them in the next iteration's backward"};
    return has_own_gradients(plan);
}

static bool main_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    const bool shared = plan->c.parallel_zero >= 2;
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.grads,
                               .sharded = shared,
                               .pooled = !shared,
                               .birth = OC_AT_SUB(INIT, 1),
                               .death = OC_AT(END),
                               .why = shared ? "Megatron-FSDP: this rank's part of the sums"
                                      : plan->dt.weights == OC_BF16 && plan->dt.grads == OC_FP32
                                          ? "main_grad: one buffer that always exists; fp32 whenever weights are bf16"
                                          : "main_grad: one buffer that always exists"};
    return !has_own_gradients(plan);
}

static bool fp32_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.step_grads,
                               .sharded = plan->c.parallel_zero >= 1,
                               .renewed = has_own_gradients(plan),
                               .offloads = true,
                               .birth = OC_AT(STEP),
                               .death = has_own_gradients(plan) ? OC_AT(END) : OC_AT(IDLE),
                               .why = has_own_gradients(plan)
                                          ? "made in the step; Megatron 2.x frees fp16 gradients only"
                                          : "main_grad.float(): made in the step, freed by the next zero_grad"};
    return true;
}

/* Without the fused kernel each weight gradient is a tensor of its own until it has been added. */
static bool fresh_gradients(const struct oc_plan *plan, struct oc_state *state)
{
    *state = (struct oc_state){.class = OC_GRADIENTS,
                               .dtype = plan->dt.weights,
                               .timing = OC_WHILE_ACCUMULATED,
                               .why = "param.grad, until the hook adds it to main_grad"};
    return plan->has_shape && !plan->c.megatron_gradient_accumulation_fusion && !has_own_gradients(plan);
}

static bool moment(const struct oc_plan *plan, struct oc_state *state, enum oc_dtype dtype, const char *why)
{
    *state = (struct oc_state){.class = OC_OPTIMIZER,
                               .dtype = dtype,
                               .sharded = plan->c.parallel_zero >= 1,
                               .offloads = true,
                               .birth = oc_states_birth(plan),
                               .death = OC_AT(END),
                               .why = why};
    return true;
}

static bool moment1(const struct oc_plan *plan, struct oc_state *state)
{
    const bool sgd = plan->c.optimizer == OC_OPTIM_SGD;
    return moment(plan, state, plan->dt.moment1,
                  sgd ? "momentum_buffer: FusedSGD makes it whatever the momentum"
                      : "made in the first step that is not skipped");
}

static bool moment2(const struct oc_plan *plan, struct oc_state *state)
{
    return moment(plan, state, plan->dt.moment2, "made in the first step that is not skipped");
}

/* FusedAdam makes fp32 copies of all states of a kind that is not fp32, unless both moments are bf16. */
static bool unscaled(const struct oc_plan *plan, struct oc_state *state, enum oc_dtype dtype)
{
    const bool both_bf16 = plan->dt.moment1 == OC_BF16 && plan->dt.moment2 == OC_BF16;
    *state = (struct oc_state){.class = OC_BUFFERS,
                               .dtype = OC_FP32,
                               .sharded = true,
                               .birth = OC_AT_SUB(STEP, 2),
                               .death = OC_AT_SUB(STEP, 3),
                               .why = "an fp32 copy of a narrower state, while the step runs (Megatron-LM#1477)"};
    return plan->c.optimizer_precision_aware && dtype != OC_FP32 && dtype != OC_NONE && !both_bf16;
}

static bool unscaled1(const struct oc_plan *plan, struct oc_state *state)
{
    return unscaled(plan, state, plan->dt.moment1);
}

static bool unscaled2(const struct oc_plan *plan, struct oc_state *state)
{
    return unscaled(plan, state, plan->dt.moment2);
}

static const struct oc_state_rule states[] = {
    {"weights at first", BUFFER, "", first_weights},
    {"weights", BUFFER, "", weights},
    {"main params", OPTIMIZER ":550 Float16OptimizerWithFloat16Params", "", master},
    {"main grads", BUFFER, "", main_gradients},
    {"gradients", "Megatron-LM v2.2 megatron/model/distributed.py", "", own_gradients},
    {"flattened gradients", "Megatron-LM v2.2 megatron/model/distributed.py allreduce_params", "", joined_gradients},
    {"gradients of the last iteration", "Megatron-LM v2.2 megatron/model/distributed.py allreduce_gradients", "",
     last_gradients},
    {"fp32 gradient copy", OPTIMIZER " _copy_model_grads_to_main_grads", "", fp32_gradients},
    {"fresh gradients", "Megatron-LM core/distributed/distributed_data_parallel.py:555-585", "", fresh_gradients},
    {"momentum or exp_avg", "TransformerEngine pytorch/optimizers", "", moment1},
    {"exp_avg_sq", "TransformerEngine pytorch/optimizers", "", moment2},
    {"exp_avg in fp32", "TransformerEngine pytorch/optimizers/fused_adam.py get_unscaled_state", "", unscaled1},
    {"exp_avg_sq in fp32", "TransformerEngine pytorch/optimizers/fused_adam.py get_unscaled_state", "", unscaled2},
    {0}};

const struct oc_framework_rules oc_megatron_rules = {.name = "Megatron-LM",
                                                     .source = "NVIDIA/Megatron-LM @d98e8a64, core",
                                                     .defaults = oc_megatron_defaults,
                                                     .decide = oc_megatron_decide,
                                                     .states = states,
                                                     .buffers = oc_megatron_buffers,
                                                     .padded = oc_megatron_padded,
                                                     .counts_activations = true};
