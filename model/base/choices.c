#include "model/base/choices.h"

#include "oomcast/dtype.h"

const struct oc_choice oc_choices_framework[] = {
    {"article", OC_FW_ARTICLE, "the accounting of a well-read article: 112 GB against 84 GB for 7B"},
    {"zero-paper", OC_FW_ZERO_PAPER, "the ZeRO paper's accounting: 2 + 2 + 12 bytes per parameter"},
    {"pytorch", OC_FW_PYTORCH, "plain PyTorch, with autocast or 16-bit weights; DDP over ranks"},
    {"megatron", OC_FW_MEGATRON, "Megatron-LM core: main grads, fp32 master weights, distributed optimizer"},
    {0}};
const struct oc_choice oc_choices_kind[] = {{"decoder", OC_KIND_DECODER, "GPT, Llama and their kin"}, {0}};
const struct oc_choice oc_choices_positions[] = {{"learned", OC_POS_LEARNED, "an embedding with parameters"},
                                                 {"rope", OC_POS_ROPE, "rotary, no parameters"},
                                                 {"alibi", OC_POS_ALIBI, "a bias on the scores"},
                                                 {"none", OC_POS_NONE, NULL},
                                                 {0}};
const struct oc_choice oc_choices_norm[] = {
    {"layernorm", OC_NORM_LAYERNORM, "weight and bias"}, {"rmsnorm", OC_NORM_RMSNORM, "weight only"}, {0}};
const struct oc_choice oc_choices_activation[] = {
    {"gelu", OC_ACT_GELU, NULL},     {"relu", OC_ACT_RELU, NULL},   {"squared-relu", OC_ACT_SQUARED_RELU, NULL},
    {"swiglu", OC_ACT_SWIGLU, NULL}, {"geglu", OC_ACT_GEGLU, NULL}, {0}};
const struct oc_choice oc_choices_precision[] = {
    {"fp32", OC_PREC_FP32, "everything in 32 bits"},
    {"amp-fp16", OC_PREC_AMP_FP16, "torch.autocast: fp32 weights, fp16 matrix products"},
    {"amp-bf16", OC_PREC_AMP_BF16, "torch.autocast: fp32 weights, bf16 matrix products"},
    {"fp16", OC_PREC_FP16, "fp16 weights with the framework's fp32 master copy"},
    {"bf16", OC_PREC_BF16, "bf16 weights with the framework's fp32 master copy"},
    {"pure-fp16", OC_PREC_PURE_FP16, "fp16 weights, no master copy"},
    {"pure-bf16", OC_PREC_PURE_BF16, "bf16 weights, no master copy"},
    {0}};
const struct oc_choice oc_choices_autocast[] = {
    {"none", OC_NONE, NULL}, {"fp16", OC_FP16, NULL}, {"bf16", OC_BF16, NULL}, {0}};
const struct oc_choice oc_choices_dtype[] = {
    {"fp32", OC_FP32, NULL}, {"fp16", OC_FP16, NULL}, {"bf16", OC_BF16, NULL}, {0}};
const struct oc_choice oc_choices_dtype_none[] = {
    {"none", OC_NONE, NULL}, {"fp32", OC_FP32, NULL}, {"fp16", OC_FP16, NULL}, {"bf16", OC_BF16, NULL}, {0}};
const struct oc_choice oc_choices_cp_comm[] = {{"p2p", OC_CP_P2P, "ring"},
                                               {"a2a", OC_CP_A2A, "heads against sequence"},
                                               {"a2a+p2p", OC_CP_A2A_P2P, NULL},
                                               {"allgather", OC_CP_ALLGATHER, NULL},
                                               {0}};
const struct oc_choice oc_choices_optimizer[] = {{"sgd", OC_OPTIM_SGD, "no state, or one with momentum"},
                                                 {"adam", OC_OPTIM_ADAM, "two states per parameter"},
                                                 {"adamw", OC_OPTIM_ADAMW, "two states per parameter"},
                                                 {0}};
const struct oc_choice oc_choices_impl[] = {{"fused", OC_IMPL_FUSED, "no scratch"},
                                            {"foreach", OC_IMPL_FOREACH, "scratch as large as the parameters"},
                                            {"loop", OC_IMPL_LOOP, "scratch for one tensor"},
                                            {0}};
const struct oc_choice oc_choices_recompute[] = {{"none", OC_RECOMPUTE_NONE, "keep everything"},
                                                 {"selective", OC_RECOMPUTE_SELECTIVE, "recompute some modules"},
                                                 {"full", OC_RECOMPUTE_FULL, "keep layer inputs only"},
                                                 {0}};
const struct oc_choice oc_choices_method[] = {
    {"uniform", OC_METHOD_UNIFORM, NULL}, {"block", OC_METHOD_BLOCK, NULL}, {0}};
const struct oc_choice oc_choices_modules[] = {{"core_attn", OC_MODULE_CORE_ATTN, "scores, softmax, weighted sum"},
                                               {"mlp", OC_MODULE_MLP, "the whole dense MLP"},
                                               {"layernorm", OC_MODULE_LAYERNORM, "the outputs of the norms"},
                                               {0}};
const struct oc_choice oc_choices_opset[] = {{"te", OC_OPSET_TE, "TransformerEngine"},
                                             {"local", OC_OPSET_LOCAL, "Megatron's own modules"},
                                             {"hf", OC_OPSET_HF, "Hugging Face transformers"},
                                             {"transformer_engine", OC_OPSET_TE, NULL},
                                             {0}};
const struct oc_choice oc_choices_attention[] = {{"eager", OC_ATTN_EAGER, "one op at a time: scores, mask, softmax"},
                                                 {"unfused", OC_ATTN_UNFUSED, "scale, mask and softmax in one kernel"},
                                                 {"flash", OC_ATTN_FLASH, "no seq x seq tensor is kept"},
                                                 {0}};
const struct oc_choice oc_choices_loss[] = {{"eager", OC_LOSS_EAGER, "one op at a time"},
                                            {"fused", OC_LOSS_FUSED, "one kernel; in Megatron one more fp32 copy"},
                                            {"te-fused", OC_LOSS_TE_FUSED, "the gradient replaces the logits"},
                                            {0}};
const struct oc_choice oc_choices_norm_kernel[] = {
    {"eager", OC_NORMK_EAGER, "op by op, in fp32"}, {"fused", OC_NORMK_FUSED, "one kernel"}, {0}};
const struct oc_choice oc_choices_backend[] = {{"auto", OC_BACKEND_AUTO, NULL},   {"flash", OC_BACKEND_FLASH, NULL},
                                               {"fused", OC_BACKEND_FUSED, NULL}, {"unfused", OC_BACKEND_UNFUSED, NULL},
                                               {"local", OC_BACKEND_LOCAL, NULL}, {0}};

const char *oc_needs_learned_positions(const struct oc_config *c)
{
    return c->model_positions == OC_POS_LEARNED ? NULL : "needs learned positions";
}
const char *oc_needs_adam(const struct oc_config *c)
{
    return c->optimizer == OC_OPTIM_SGD ? "needs adam" : NULL;
}
const char *oc_needs_sgd(const struct oc_config *c)
{
    return c->optimizer == OC_OPTIM_SGD ? NULL : "needs sgd";
}
const char *oc_needs_torch_optimizer(const struct oc_config *c)
{
    return c->framework == OC_FW_PYTORCH ? NULL : "decided by the framework";
}
const char *oc_needs_dp(const struct oc_config *c)
{
    return c->parallel_world > c->parallel_tp * c->parallel_pp * c->parallel_cp ? NULL : "needs data-parallel ranks";
}
const char *oc_needs_ddp(const struct oc_config *c)
{
    return c->framework == OC_FW_PYTORCH ? oc_needs_dp(c) : "only PyTorch DDP";
}
const char *oc_needs_tp(const struct oc_config *c)
{
    return c->parallel_tp > 1 ? NULL : "needs tp > 1";
}
const char *oc_needs_pp(const struct oc_config *c)
{
    return c->parallel_pp > 1 ? NULL : "needs pp > 1";
}
const char *oc_needs_cp(const struct oc_config *c)
{
    return c->parallel_cp > 1 ? NULL : "needs cp > 1";
}
const char *oc_needs_zero(const struct oc_config *c)
{
    return c->parallel_zero > 0 ? NULL : "needs zero > 0";
}
const char *oc_needs_full_recompute(const struct oc_config *c)
{
    return c->recompute == OC_RECOMPUTE_FULL ? NULL : "needs recompute = full";
}
const char *oc_needs_selective_recompute(const struct oc_config *c)
{
    return c->recompute == OC_RECOMPUTE_SELECTIVE ? NULL : "needs recompute = selective";
}
const char *oc_needs_megatron(const struct oc_config *c)
{
    return c->framework == OC_FW_MEGATRON ? NULL : "only Megatron";
}
