/* Random configurations. Small, so that the long walk through them is short; what does not resolve is drawn again. */
#include "help_model.h"

#include "model/frameworks/framework.h"

void help_put(struct oc_config *config, enum oc_option_id id, int64_t value)
{
    oc_option_put(config, id, value);
    oc_set_given(config, id, true);
}

static void put_float(struct oc_config *config, enum oc_option_id id, double value)
{
    *(double *)(void *)((char *)config + oc_option(id)->offset) = value;
    oc_set_given(config, id, true);
}

/* One of the values, all equally likely. */
#define ANY(state, ...)                                                                                                \
    ((const int64_t[]){__VA_ARGS__}[help_below((state), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

static int64_t coin(uint64_t *s)
{
    return (int64_t)help_below(s, 2);
}

static int64_t up_to(uint64_t *s, uint64_t most)
{
    return (int64_t)(1 + help_below(s, most));
}

static void random_shape(struct oc_config *c, uint64_t *s)
{
    const int64_t a = ANY(s, 2, 4, 8, 16), d = ANY(s, 8, 16, 64);
    help_put(c, OC_OPT_model_layers, up_to(s, 12));
    help_put(c, OC_OPT_model_heads, a);
    help_put(c, OC_OPT_model_hidden, a * d);
    help_put(c, OC_OPT_model_kv_heads, coin(s) ? a : a / 2);
    help_put(c, OC_OPT_model_ffn, a * d * up_to(s, 4));
    help_put(c, OC_OPT_model_vocab, 100 + up_to(s, 4000));
    help_put(c, OC_OPT_model_tied, coin(s));
    help_put(c, OC_OPT_model_norm, coin(s));
    help_put(c, OC_OPT_model_norms_per_layer, ANY(s, 1, 2, 2, 2, 4));
    help_put(c, OC_OPT_model_activation, ANY(s, OC_ACT_GELU, OC_ACT_RELU, OC_ACT_SQUARED_RELU, OC_ACT_SWIGLU));
    help_put(c, OC_OPT_model_linear_bias, coin(s));
    help_put(c, OC_OPT_model_qkv_bias, coin(s));
    help_put(c, OC_OPT_model_positions, ANY(s, OC_POS_ROPE, OC_POS_LEARNED, OC_POS_ALIBI, OC_POS_NONE));
    help_put(c, OC_OPT_model_qk_norm, !help_below(s, 4));
    help_put(c, OC_OPT_model_parallel_residual, !help_below(s, 4));
    help_put(c, OC_OPT_model_embedding_norm, !help_below(s, 4));
    help_put(c, OC_OPT_batch_seq, 16 << help_below(s, 4));
    help_put(c, OC_OPT_batch_micro, up_to(s, 3));
    help_put(c, OC_OPT_batch_accum, up_to(s, 9));
    if (coin(s)) put_float(c, OC_OPT_model_dropout, 0.1);
    if (coin(s)) put_float(c, OC_OPT_model_attention_dropout, 0.1);
}

static void random_experts(struct oc_config *c, uint64_t *s)
{
    help_put(c, OC_OPT_model_experts, ANY(s, 2, 4, 8));
    help_put(c, OC_OPT_model_experts_per_token, up_to(s, 2));
    help_put(c, OC_OPT_model_expert_ffn, 32 * up_to(s, 4));
    if (coin(s)) help_put(c, OC_OPT_model_shared_expert_ffn, 64);
    if (coin(s)) help_put(c, OC_OPT_model_dense_layers, up_to(s, 3));
    if (coin(s)) help_put(c, OC_OPT_model_moe_every, up_to(s, 2));
    if (coin(s)) put_float(c, OC_OPT_model_capacity_factor, 1.25);
    help_put(c, OC_OPT_moe_dispatcher, ANY(s, OC_DISPATCH_ALLGATHER, OC_DISPATCH_ALLTOALL, OC_DISPATCH_FLEX));
    help_put(c, OC_OPT_moe_grouped_gemm, coin(s));
}

static void random_latent(struct oc_config *c, uint64_t *s)
{
    help_put(c, OC_OPT_model_kv_heads, c->model_heads);
    help_put(c, OC_OPT_model_kv_lora_rank, 32);
    if (coin(s)) help_put(c, OC_OPT_model_q_lora_rank, 48);
    help_put(c, OC_OPT_model_qk_nope_head_dim, 16);
    help_put(c, OC_OPT_model_qk_rope_head_dim, 8);
    help_put(c, OC_OPT_model_v_head_dim, 16);
}

static void random_adapters(struct oc_config *c, uint64_t *s)
{
    help_put(c, OC_OPT_lora_rank, up_to(s, 16));
    help_put(c, OC_OPT_lora_targets, up_to(s, 127));
    help_put(c, OC_OPT_lora_base, (int64_t)help_below(s, OC_BASE_INT8_GPTQ + 1));
    help_put(c, OC_OPT_lora_dtype, ANY(s, OC_FP32, OC_BF16));
    if (coin(s)) put_float(c, OC_OPT_lora_dropout, 0.1);
    help_put(c, OC_OPT_lora_train_embeddings, !help_below(s, 4));
}

static void random_recompute(struct oc_config *c, uint64_t *s)
{
    help_put(c, OC_OPT_recompute, ANY(s, OC_RECOMPUTE_NONE, OC_RECOMPUTE_SELECTIVE, OC_RECOMPUTE_FULL));
    help_put(c, OC_OPT_recompute_method, coin(s));
    help_put(c, OC_OPT_recompute_layers, up_to(s, 3));
    if (coin(s)) help_put(c, OC_OPT_recompute_modules, up_to(s, 127));
}

static void random_megatron(struct oc_config *c, uint64_t *s)
{
    help_put(c, OC_OPT_parallel_tp, 1 << help_below(s, 3));
    help_put(c, OC_OPT_parallel_pp, 1 << help_below(s, 3));
    help_put(c, OC_OPT_parallel_vpp, up_to(s, 3));
    help_put(c, OC_OPT_parallel_cp, ANY(s, 1, 1, 2));
    help_put(c, OC_OPT_parallel_sp, coin(s));
    help_put(c, OC_OPT_parallel_world, c->parallel_tp * c->parallel_pp * c->parallel_cp * (1 << help_below(s, 3)));
    help_put(c, OC_OPT_parallel_zero, ANY(s, 0, 1, 1, 2, 3));
    help_put(c, OC_OPT_parallel_overlap_grad_reduce, coin(s));
    help_put(c, OC_OPT_parallel_overlap_param_gather, coin(s));
    help_put(c, OC_OPT_megatron_gradient_accumulation_fusion, coin(s));
    help_put(c, OC_OPT_kernels_transformer, ANY(s, OC_OPSET_TE, OC_OPSET_TE, OC_OPSET_LOCAL));
    help_put(c, OC_OPT_kernels_loss, ANY(s, OC_LOSS_EAGER, OC_LOSS_FUSED, OC_LOSS_TE_FUSED));
    help_put(c, OC_OPT_precision, ANY(s, OC_PREC_FP32, OC_PREC_FP16, OC_PREC_BF16, OC_PREC_BF16, OC_PREC_FP8));
    if (!help_below(s, 3)) random_experts(c, s);
    if (c->model_experts) help_put(c, OC_OPT_parallel_ep, ANY(s, 1, 2, 4));
    if (c->model_experts && coin(s)) help_put(c, OC_OPT_parallel_etp, up_to(s, 2));
    if (!help_below(s, 5)) random_latent(c, s);
    if (!help_below(s, 5)) help_put(c, OC_OPT_model_mtp_layers, up_to(s, 2));
}

static void random_deepspeed(struct oc_config *c, uint64_t *s)
{
    random_megatron(c, s);
    help_put(c, OC_OPT_parallel_vpp, 1);
    help_put(c, OC_OPT_parallel_zero, (int64_t)help_below(s, 4));
    help_put(c, OC_OPT_kernels_transformer, ANY(s, OC_OPSET_LOCAL, OC_OPSET_HF));
}

static void random_pytorch(struct oc_config *c, uint64_t *s)
{
    help_put(c, OC_OPT_precision, (int64_t)help_below(s, OC_PREC_FP8));
    help_put(c, OC_OPT_kernels_attention, coin(s) ? OC_ATTN_EAGER : OC_ATTN_FLASH);
    help_put(c, OC_OPT_kernels_loss, ANY(s, OC_LOSS_EAGER, OC_LOSS_EAGER, OC_LOSS_FUSED, OC_LOSS_FUSED_LINEAR));
    help_put(c, OC_OPT_optimizer_impl, (int64_t)help_below(s, 3));
    help_put(c, OC_OPT_run_zero_grad_to_none, coin(s));
    help_put(c, OC_OPT_parallel_world, up_to(s, 3));
    help_put(c, OC_OPT_parallel_bucket_view, coin(s));
    if (!help_below(s, 3)) help_put(c, OC_OPT_precision_master, OC_FP32);
    if (!help_below(s, 4)) random_adapters(c, s);
    if (!help_below(s, 6)) random_experts(c, s);
    if (!help_below(s, 8)) help_put(c, OC_OPT_model_kind, OC_KIND_ENCODER);
    if (!help_below(s, 8)) help_put(c, OC_OPT_model_head, ANY(s, OC_HEAD_CLASSIFICATION, OC_HEAD_NONE));
}

static void random_fsdp(struct oc_config *c, uint64_t *s)
{
    random_pytorch(c, s);
    help_put(c, OC_OPT_kernels_transformer,
             ANY(s, OC_OPSET_HF, OC_OPSET_HF, OC_OPSET_TORCHTITAN, OC_OPSET_TORCHTUNE, OC_OPSET_LITGPT));
    help_put(c, OC_OPT_parallel_world, 1 << up_to(s, 4));
    help_put(c, OC_OPT_parallel_zero, ANY(s, 2, 3, 3));
    help_put(c, OC_OPT_fsdp_forward_prefetch, coin(s));
    help_put(c, OC_OPT_fsdp_wrap, ANY(s, OC_WRAP_LAYER, OC_WRAP_LAYER, OC_WRAP_NONE));
}

/* An accounting on paper: states only. */
static void random_paper(struct oc_config *c, uint64_t *s)
{
    help_put(c, OC_OPT_precision, (int64_t)help_below(s, OC_PREC_FP8));
}

static void (*const drawers[OC_FRAMEWORKS])(struct oc_config *c, uint64_t *s) = {
    [OC_FW_ARTICLE] = random_paper,     [OC_FW_ZERO_PAPER] = random_paper, [OC_FW_PYTORCH] = random_pytorch,
    [OC_FW_FSDP1] = random_fsdp,        [OC_FW_FSDP2] = random_fsdp,       [OC_FW_DEEPSPEED] = random_deepspeed,
    [OC_FW_MEGATRON] = random_megatron,
};

/* One draw, which may not resolve. */
static struct oc_config draw(uint64_t *state, enum oc_framework framework)
{
    struct oc_config config = oc_config_default();
    random_shape(&config, state);
    help_put(&config, OC_OPT_framework, framework);
    random_recompute(&config, state);
    drawers[framework](&config, state);
    help_put(&config, OC_OPT_optimizer, (int64_t)help_below(state, OC_OPTIM_ADAMW + 1));
    help_put(&config, OC_OPT_run_resume, !help_below(state, 4));
    return config;
}

struct oc_config help_random_config_of(uint64_t *state, enum oc_framework framework)
{
    for (;;) {
        const struct oc_config config = draw(state, framework);
        struct oc_plan plan;
        if (oc_resolve(&config, &plan, NULL, NULL)) return config;
    }
}

struct oc_config help_random_config(uint64_t *state)
{
    enum oc_framework framework;
    do /* what people run most is drawn most */
        framework =
            (enum oc_framework)ANY(state, OC_FW_MEGATRON, OC_FW_MEGATRON, OC_FW_MEGATRON, OC_FW_PYTORCH, OC_FW_PYTORCH,
                                   OC_FW_FSDP1, OC_FW_FSDP2, OC_FW_DEEPSPEED, OC_FW_ARTICLE, OC_FW_ZERO_PAPER);
    while (!oc_framework(framework));
    return help_random_config_of(state, framework);
}
