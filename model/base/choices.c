#include "model/base/choices.h"

#include "oomcast/dtype.h"

const struct oc_choice oc_choices_framework[] = {
    {"article", OC_FW_ARTICLE, "the accounting of a well-read article: 112 GB against 84 GB for 7B"},
    {"zero-paper", OC_FW_ZERO_PAPER, "the ZeRO paper's accounting: 2 + 2 + 12 bytes per parameter"},
    {"pytorch", OC_FW_PYTORCH, "plain PyTorch, with autocast or 16-bit weights; DDP over ranks"},
    {"fsdp1", OC_FW_FSDP1, "FullyShardedDataParallel: flat parameters of a layer, sharded"},
    {"fsdp2", OC_FW_FSDP2, "fully_shard: each parameter sharded by itself"},
    {"deepspeed", OC_FW_DEEPSPEED, "ZeRO 0 to 3 with DeepSpeed's buffers"},
    {"megatron", OC_FW_MEGATRON, "Megatron-LM core: main grads, fp32 master weights, distributed optimizer"},
    {"megatron-fsdp", OC_FW_MEGATRON_FSDP, "Megatron-FSDP: the same with gradients and weights shared (zero 3)"},
    {0}};
const struct oc_choice oc_choices_kind[] = {
    {"decoder", OC_KIND_DECODER, "GPT, Llama and their kin"}, {"encoder", OC_KIND_ENCODER, "BERT and its kin"}, {0}};
const struct oc_choice oc_choices_head[] = {{"lm", OC_HEAD_LM, "a distribution over the vocabulary"},
                                            {"classification", OC_HEAD_CLASSIFICATION, "a few classes"},
                                            {"none", OC_HEAD_NONE, "the last hidden state"},
                                            {0}};
const struct oc_choice oc_choices_fp8_recipe[] = {
    {"delayed", OC_FP8_DELAYED, NULL},     {"tensorwise", OC_FP8_TENSORWISE, NULL}, {"rowwise", OC_FP8_ROWWISE, NULL},
    {"blockwise", OC_FP8_BLOCKWISE, NULL}, {"mxfp8", OC_FP8_MXFP8, NULL},           {0}};
const struct oc_choice oc_choices_loss_fusion[] = {
    {"native", OC_FUSION_NATIVE, "torch.compile"}, {"te", OC_FUSION_TE, "TransformerEngine"}, {0}};
const struct oc_choice oc_choices_dispatcher[] = {{"allgather", OC_DISPATCH_ALLGATHER, "every rank gathers all tokens"},
                                                  {"alltoall", OC_DISPATCH_ALLTOALL, NULL},
                                                  {"flex", OC_DISPATCH_FLEX, NULL},
                                                  {0}};
const struct oc_choice oc_choices_lora_targets[] = {{"q", OC_LORA_Q, NULL},
                                                    {"k", OC_LORA_K, NULL},
                                                    {"v", OC_LORA_V, NULL},
                                                    {"o", OC_LORA_O, NULL},
                                                    {"gate", OC_LORA_GATE, NULL},
                                                    {"up", OC_LORA_UP, NULL},
                                                    {"down", OC_LORA_DOWN, NULL},
                                                    {"head", OC_LORA_HEAD, NULL},
                                                    {"qkv", OC_LORA_QKV, "one fused matrix"},
                                                    {0}};
const struct oc_choice oc_choices_lora_base[] = {{"same", OC_BASE_SAME, "as precision says"},
                                                 {"fp32", OC_BASE_FP32, NULL},
                                                 {"bf16", OC_BASE_BF16, NULL},
                                                 {"fp16", OC_BASE_FP16, NULL},
                                                 {"nf4", OC_BASE_NF4, "bitsandbytes, 4.5 bits"},
                                                 {"nf4-dq", OC_BASE_NF4_DQ, "with double quantization, 4.13 bits"},
                                                 {"int4-gptq", OC_BASE_INT4_GPTQ, NULL},
                                                 {"int8-gptq", OC_BASE_INT8_GPTQ, NULL},
                                                 {0}};
const struct oc_choice oc_choices_offload[] = {{"none", OC_OFFLOAD_NONE, NULL}, {"cpu", OC_OFFLOAD_CPU, NULL}, {0}};
const struct oc_choice oc_choices_fsdp_wrap[] = {
    {"layer", OC_WRAP_LAYER, "each layer, and the rest"}, {"none", OC_WRAP_NONE, "the whole model at once"}, {0}};
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
    {"fp8", OC_PREC_FP8, "bf16 weights with a master copy; linear layers compute in fp8"},
    {0}};
const struct oc_choice oc_choices_autocast[] = {
    {"none", OC_NONE, NULL}, {"fp16", OC_FP16, NULL}, {"bf16", OC_BF16, NULL}, {0}};
const struct oc_choice oc_choices_dtype[] = {
    {"fp32", OC_FP32, NULL}, {"fp16", OC_FP16, NULL}, {"bf16", OC_BF16, NULL}, {0}};
const struct oc_choice oc_choices_dtype_none[] = {{"none", OC_NONE, NULL}, {"fp32", OC_FP32, NULL},
                                                  {"fp16", OC_FP16, NULL}, {"bf16", OC_BF16, NULL},
                                                  {"fp8", OC_FP8, NULL},   {0}};
const struct oc_choice oc_choices_cp_comm[] = {{"p2p", OC_CP_P2P, "ring"},
                                               {"a2a", OC_CP_A2A, "heads against sequence"},
                                               {"a2a+p2p", OC_CP_A2A_P2P, NULL},
                                               {"allgather", OC_CP_ALLGATHER, NULL},
                                               {0}};
const struct oc_choice oc_choices_optimizer[] = {
    {"sgd", OC_OPTIM_SGD, "no state, or one with momentum"},
    {"adam", OC_OPTIM_ADAM, "two states per parameter"},
    {"adamw", OC_OPTIM_ADAMW, "two states per parameter"},
    {"adam8bit", OC_OPTIM_ADAM8BIT, "bitsandbytes: two states of one byte"},
    {"paged-adamw8bit", OC_OPTIM_PAGED_ADAMW8BIT, "the same, in pages the driver may move to host memory"},
    {"adafactor", OC_OPTIM_ADAFACTOR, "row and column means instead of a second moment"},
    {"lion", OC_OPTIM_LION, "one state per parameter"},
    {"muon", OC_OPTIM_MUON, "one state for matrices, adam for the rest"},
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
const struct oc_choice oc_choices_modules[] = {
    {"core_attn", OC_MODULE_CORE_ATTN, "scores, softmax, weighted sum"},
    {"mlp", OC_MODULE_MLP, "the whole dense MLP"},
    {"layernorm", OC_MODULE_LAYERNORM, "the outputs of the norms"},
    {"moe", OC_MODULE_MOE, "whole mixture-of-experts layers"},
    {"moe_act", OC_MODULE_MOE_ACT, "the experts' activation function"},
    {"mla_up_proj", OC_MODULE_MLA_UP_PROJ, "up projections of latent attention"},
    {"shared_experts", OC_MODULE_SHARED_EXPERTS, "the shared experts"},
    {"torchtitan-op", OC_MODULE_TORCHTITAN_OP, "torchtitan's per-op list: every second product is kept"},
    {0}};
const struct oc_choice oc_choices_opset[] = {
    {"te", OC_OPSET_TE, "TransformerEngine"},         {"local", OC_OPSET_LOCAL, "Megatron's own modules"},
    {"hf", OC_OPSET_HF, "Hugging Face transformers"}, {"torchtitan", OC_OPSET_TORCHTITAN, NULL},
    {"torchtune", OC_OPSET_TORCHTUNE, NULL},          {"litgpt", OC_OPSET_LITGPT, NULL},
    {"transformer_engine", OC_OPSET_TE, NULL},        {0}};
const struct oc_choice oc_choices_attention[] = {{"eager", OC_ATTN_EAGER, "one op at a time: scores, mask, softmax"},
                                                 {"unfused", OC_ATTN_UNFUSED, "scale, mask and softmax in one kernel"},
                                                 {"flash", OC_ATTN_FLASH, "no seq x seq tensor is kept"},
                                                 {0}};
const struct oc_choice oc_choices_loss[] = {
    {"eager", OC_LOSS_EAGER, "one op at a time"},
    {"fused", OC_LOSS_FUSED, "one kernel; in Megatron one more fp32 copy"},
    {"te-fused", OC_LOSS_TE_FUSED, "the gradient replaces the logits"},
    {"fused-linear", OC_LOSS_FUSED_LINEAR, "output layer and loss in one kernel: almost no logits"},
    {"chunked", OC_LOSS_CHUNKED, "output layer and loss in pieces"},
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
static bool is_megatron(const struct oc_config *c)
{
    return c->framework == OC_FW_MEGATRON || c->framework == OC_FW_MEGATRON_FSDP;
}
const char *oc_needs_torch_optimizer(const struct oc_config *c)
{
    return is_megatron(c) || c->framework == OC_FW_DEEPSPEED ? "decided by the framework" : NULL;
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
    return is_megatron(c) ? NULL : "only Megatron";
}
const char *oc_needs_experts(const struct oc_config *c)
{
    return c->model_experts ? NULL : "dense model";
}
const char *oc_needs_mla(const struct oc_config *c)
{
    return c->model_kv_lora_rank ? NULL : "needs a kv rank";
}
const char *oc_needs_fp8(const struct oc_config *c)
{
    return c->precision == OC_PREC_FP8 ? NULL : "needs precision = fp8";
}
const char *oc_needs_fsdp(const struct oc_config *c)
{
    return c->framework == OC_FW_FSDP1 || c->framework == OC_FW_FSDP2 ? NULL : "only FSDP";
}
const char *oc_needs_no_sync(const struct oc_config *c)
{
    return oc_needs_fsdp(c) && oc_needs_ddp(c) ? "only FSDP and DDP" : NULL;
}
const char *oc_needs_fsdp2(const struct oc_config *c)
{
    return c->framework == OC_FW_FSDP2 ? NULL : "only FSDP2";
}
const char *oc_needs_optimizer_offload(const struct oc_config *c)
{
    return c->offload_optimizer != OC_OFFLOAD_NONE ? NULL : "needs offload.optimizer";
}
const char *oc_needs_deepspeed(const struct oc_config *c)
{
    return c->framework == OC_FW_DEEPSPEED ? NULL : "only DeepSpeed";
}
const char *oc_needs_lora(const struct oc_config *c)
{
    return c->lora_rank ? NULL : "needs lora.rank > 0";
}
