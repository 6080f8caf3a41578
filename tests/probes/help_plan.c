#include "tests/probes/help_plan.h"

struct oc_plan help_plan(void)
{
    struct oc_plan plan = {.c = oc_config_default()};
    struct oc_config *c = &plan.c;
    c->framework = OC_FW_PYTORCH;
    c->model_layers = 2, c->model_hidden = 32, c->model_heads = 4, c->model_kv_heads = 2, c->model_head_dim = 8;
    c->model_ffn = 48, c->model_vocab = 67;
    c->batch_seq = 12, c->batch_micro = 2, c->batch_accum = 1;
    c->kernels_transformer = OC_OPSET_HF, c->kernels_attention = OC_ATTN_FLASH;
    plan.vocab = 67, plan.q = 32, plan.kv = 16;
    plan.gated = plan.has_shape = true;
    plan.dp = plan.shard = plan.accum = 1;
    plan.hash = 42;
    help_precision(&plan, OC_PREC_FP32);
    help_optimizer(&plan, OC_OPTIM_ADAMW, OC_IMPL_FOREACH, 0);
    return plan;
}

void help_precision(struct oc_plan *plan, enum oc_precision precision)
{
    static const struct {
        enum oc_dtype weights, compute, master;
    } rows[] = {
        [OC_PREC_FP32] = {OC_FP32, OC_FP32, OC_NONE},      [OC_PREC_AMP_FP16] = {OC_FP32, OC_FP16, OC_NONE},
        [OC_PREC_AMP_BF16] = {OC_FP32, OC_BF16, OC_NONE},  [OC_PREC_FP16] = {OC_FP16, OC_FP16, OC_FP32},
        [OC_PREC_BF16] = {OC_BF16, OC_BF16, OC_FP32},      [OC_PREC_PURE_FP16] = {OC_FP16, OC_FP16, OC_NONE},
        [OC_PREC_PURE_BF16] = {OC_BF16, OC_BF16, OC_NONE},
    };
    struct oc_dtypes *dt = &plan->dt;
    plan->c.precision = precision;
    dt->weights = dt->residual = dt->grads = rows[precision].weights;
    dt->compute = rows[precision].compute;
    dt->master = rows[precision].master;
    dt->step_grads = dt->master;
    plan->c.precision_autocast = dt->compute != dt->weights ? (int64_t)dt->compute : OC_NONE;
    plan->c.kernels_logits_fp32 = dt->compute != OC_FP32;
    help_optimizer(plan, (enum oc_optimizer)plan->c.optimizer, (enum oc_optimizer_impl)plan->c.optimizer_impl,
                   plan->c.optimizer_momentum);
}

void help_optimizer(struct oc_plan *plan, enum oc_optimizer optimizer, enum oc_optimizer_impl impl, double momentum)
{
    struct oc_dtypes *dt = &plan->dt;
    const enum oc_dtype updated = dt->master != OC_NONE ? dt->master : dt->weights;
    plan->c.optimizer = optimizer;
    plan->c.optimizer_impl = impl;
    plan->c.optimizer_momentum = momentum;
    dt->moment1 = optimizer != OC_OPTIM_SGD || momentum > 0 ? updated : OC_NONE;
    dt->moment2 = optimizer != OC_OPTIM_SGD ? updated : OC_NONE;
}

struct oc_plan help_mixed_plan(int i)
{
    static const struct {
        int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq, micro;
    } shapes[] = {
        {2, 32, 4, 2, 8, 48, 67, 12, 2},  {3, 64, 4, 4, 16, 160, 211, 24, 1}, {1, 96, 6, 2, 16, 256, 130, 40, 3},
        {4, 48, 3, 1, 16, 80, 509, 9, 1}, {2, 40, 2, 2, 24, 64, 33, 17, 4},
    };
    static const enum oc_precision precisions[] = {OC_PREC_FP32,      OC_PREC_AMP_BF16, OC_PREC_PURE_BF16, OC_PREC_BF16,
                                                   OC_PREC_PURE_FP16, OC_PREC_AMP_FP16, OC_PREC_FP16};
    static const enum oc_optimizer optimizers[] = {OC_OPTIM_ADAMW, OC_OPTIM_SGD, OC_OPTIM_ADAM};
    struct oc_plan plan = help_plan();
    struct oc_config *c = &plan.c;
    const int s = i % 5;
    c->model_layers = shapes[s].layers, c->model_hidden = shapes[s].hidden, c->model_heads = shapes[s].heads;
    c->model_kv_heads = shapes[s].kv_heads, c->model_head_dim = shapes[s].head_dim, c->model_ffn = shapes[s].ffn;
    c->model_vocab = plan.vocab = shapes[s].vocab, c->batch_seq = shapes[s].seq, c->batch_micro = shapes[s].micro;
    plan.q = c->model_heads * c->model_head_dim, plan.kv = c->model_kv_heads * c->model_head_dim;
    help_optimizer(&plan, optimizers[i % 3], (enum oc_optimizer_impl)(i / 3 % 3), i % 2 ? 0.9 : 0);
    help_precision(&plan, precisions[i % 7]);
    c->kernels_attention = i % 2 ? OC_ATTN_EAGER : OC_ATTN_FLASH;
    c->recompute = i / 2 % 2 ? OC_RECOMPUTE_FULL : OC_RECOMPUTE_NONE;
    c->model_tied = i / 4 % 2;
    c->run_zero_grad_to_none = i % 4 != 3;
    c->kernels_logits_fp32 = i % 11 != 2;
    c->run_resume = i % 13 == 4;
    plan.dp = c->parallel_world = i % 9 == 7 ? 2 : 1;
    c->parallel_bucket_view = plan.dp > 1;
    plan.accum = c->batch_accum = 1 + i / 3 % 2;
    return plan;
}

struct oc_plan help_family_plan(int family)
{
    static const struct {
        enum oc_norm norm;
        enum oc_positions positions;
        enum oc_activation activation;
        bool linear_bias, qkv_bias, head_bias, tied;
        enum oc_loss loss;
        double dropout, attention_dropout;
    } rows[HELP_FAMILIES] = {
        {OC_NORM_LAYERNORM, OC_POS_LEARNED, OC_ACT_GELU, true, false, false, true, OC_LOSS_EAGER, 0.1, 0.1},
        {OC_NORM_LAYERNORM, OC_POS_LEARNED, OC_ACT_RELU, true, false, true, false, OC_LOSS_FUSED, 0, 0.2},
        {OC_NORM_RMSNORM, OC_POS_ROPE, OC_ACT_SWIGLU, false, true, false, false, OC_LOSS_FUSED, 0, 0},
        {OC_NORM_LAYERNORM, OC_POS_NONE, OC_ACT_SQUARED_RELU, false, false, true, false, OC_LOSS_EAGER, 0.2, 0},
        {OC_NORM_RMSNORM, OC_POS_ROPE, OC_ACT_GEGLU, true, false, false, true, OC_LOSS_FUSED, 0.1, 0.1},
        {OC_NORM_RMSNORM, OC_POS_LEARNED, OC_ACT_GELU, false, true, false, false, OC_LOSS_EAGER, 0, 0.1},
    };
    struct oc_plan plan = help_plan();
    struct oc_config *c = &plan.c;
    c->model_norm = rows[family].norm, c->kernels_norm = OC_NORMK_FUSED;
    c->model_positions = rows[family].positions, c->model_max_positions = c->batch_seq + 3;
    c->model_activation = rows[family].activation;
    plan.gated = c->model_activation == OC_ACT_SWIGLU || c->model_activation == OC_ACT_GEGLU;
    c->model_linear_bias = rows[family].linear_bias, c->model_qkv_bias = rows[family].qkv_bias;
    c->model_head_bias = rows[family].head_bias, c->model_tied = rows[family].tied;
    c->kernels_loss = rows[family].loss;
    c->model_dropout = rows[family].dropout, c->model_attention_dropout = rows[family].attention_dropout;
    return plan;
}

struct oc_plan help_fsdp2_plan(int i)
{
    static const enum oc_dtype types[] = {OC_FP32, OC_BF16, OC_FP16};
    struct oc_plan plan = i % 3 == 2 ? help_family_plan(i / 3 % HELP_FAMILIES) : help_mixed_plan(i);
    struct oc_config *c = &plan.c;
    struct oc_dtypes *dt = &plan.dt;
    c->framework = OC_FW_FSDP2;
    c->parallel_zero = 2 + i % 2, c->fsdp_reshard_after_forward = i % 2;
    c->fsdp_forward_prefetch = i / 2 % 2, c->fsdp_backward_prefetch = i / 4 % 2 == 0;
    c->parallel_no_sync = i / 2 % 2, c->run_zero_grad_to_none = 1, c->precision = OC_PREC_FP32;
    plan.dp = plan.shard = c->parallel_world = 2 + i % 3;
    dt->weights = dt->compute = dt->residual = types[i / 3 % 3];
    dt->grads = i % 4 ? OC_FP32 : dt->weights;
    dt->master = dt->step_grads = OC_NONE;
    c->precision_autocast = OC_NONE, c->precision_weights = dt->grads;
    c->precision_reduce = i % 5 ? OC_FP32 : dt->grads;
    if (dt->moment1 != OC_NONE) dt->moment1 = dt->grads;
    if (dt->moment2 != OC_NONE) dt->moment2 = dt->grads;
    return plan;
}

struct oc_plan help_megatron_plan(int i)
{
    static const enum oc_dtype types[] = {OC_FP32, OC_BF16, OC_FP16};
    static const enum oc_recompute recomputes[] = {OC_RECOMPUTE_NONE, OC_RECOMPUTE_FULL, OC_RECOMPUTE_SELECTIVE};
    static const enum oc_loss losses[] = {OC_LOSS_EAGER, OC_LOSS_FUSED, OC_LOSS_TE_FUSED};
    struct oc_plan plan = i % 4 == 3 ? help_family_plan(i / 4 % HELP_FAMILIES) : help_plan();
    struct oc_config *c = &plan.c;
    struct oc_dtypes *dt = &plan.dt;
    c->framework = OC_FW_MEGATRON, c->kernels_transformer = OC_OPSET_TE;
    if (i % 4 == 2) c->model_dropout = 0.1;
    c->parallel_world = c->parallel_tp = c->parallel_pp = c->parallel_vpp = 1;
    c->parallel_cp = i % 12 == 4 ? 2 : 1;
    c->megatron_gradient_accumulation_fusion = 1;
    c->kernels_attention = i % 2 ? OC_ATTN_UNFUSED : OC_ATTN_FLASH;
    c->recompute = recomputes[i / 2 % 3];
    c->recompute_modules = c->recompute == OC_RECOMPUTE_SELECTIVE ? OC_MODULE_CORE_ATTN : 0;
    c->recompute_method = i % 5 == 1 ? OC_METHOD_BLOCK : OC_METHOD_UNIFORM;
    c->kernels_loss = losses[i % 3];
    c->optimizer = i % 5 == 4 ? OC_OPTIM_SGD : OC_OPTIM_ADAMW;
    c->parallel_zero = i % 3 != 1 && c->optimizer != OC_OPTIM_SGD;
    c->megatron_softmax_in_fp32 = i % 7 == 3, c->megatron_masked_softmax_fusion = i % 7 != 3;
    plan.accum = c->batch_accum = 1 + i % 2;
    dt->weights = dt->compute = dt->residual = types[i / 3 % 3];
    dt->grads = i % 4 == 1 ? dt->weights : OC_FP32;
    dt->master = dt->weights != OC_FP32 ? OC_FP32 : OC_NONE;
    dt->step_grads = dt->grads != OC_FP32 ? OC_FP32 : OC_NONE;
    dt->moment1 = OC_FP32;
    dt->moment2 = c->optimizer != OC_OPTIM_SGD ? OC_FP32 : OC_NONE;
    plan.shard = 1;
    return plan;
}
