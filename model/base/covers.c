/* What the probe's training steps are: a Hugging Face decoder in eager PyTorch, on one rank or on one of FSDP2's
 * (docs/step-pytorch.md), and one rank of Megatron-LM over TransformerEngine (docs/step-megatron.md). */
#include <string.h>

#include "model/base/covers.h"
#include "oomcast/plan.h"

/* Keys that the probe follows, that the checks below judge, or that change nothing on one rank under PyTorch's rules. A
 * dot or star at the end stands for all that begins so. */
static const char *const known[] = {
    "framework",
    "model.name",
    "model.params",
    "model.kind",
    "model.head",
    "model.embedding_dim",
    "model.final_norm",
    "model.mlp_bias",
    "model.layers",
    "model.hidden",
    "model.heads",
    "model.kv_heads",
    "model.head_dim",
    "model.ffn",
    "model.vocab",
    "model.vocab_multiple",
    "model.max_positions",
    "model.positions",
    "model.tied",
    "model.linear_bias",
    "model.qkv_bias",
    "model.head_bias",
    "model.qk_norm",
    "model.parallel_residual",
    "model.embedding_norm",
    "model.norm",
    "model.norms_per_layer",
    "model.activation",
    "model.dropout",
    "model.attention_dropout",
    "precision*",
    "parallel.",
    "optimizer",
    "optimizer.momentum",
    "optimizer.impl",
    "recompute*",
    "batch.seq",
    "batch.micro",
    "batch.accum",
    "batch.global",
    "run.resume",
    "run.zero_grad_to_none",
    "kernels.transformer",
    "kernels.attention",
    "kernels.loss",
    "kernels.norm",
    "kernels.logits_fp32",
    "kernels.stack",
    "megatron.",
    "fsdp.",
    "gpu*",
    "allocator.",
};

static bool is_known(const char *key)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t length = strlen(known[i]);
        const char last = known[i][length - 1];
        if (last == '.' && strncmp(key, known[i], length) == 0) return true;
        if (last == '*' && strncmp(key, known[i], length - 1) == 0) return true;
        if (strcmp(key, known[i]) == 0) return true;
    }
    return false;
}

static bool is_default(const struct oc_config *c, enum oc_option_id id)
{
    const struct oc_option *option = oc_option(id);
    const void *value = (const char *)c + option->offset;
    if (option->type == OC_T_STRING) return *(const char *)value == '\0';
    if (option->type == OC_T_FLOAT) return *(const double *)value == option->fdef;
    return oc_option_get(c, id) == option->def;
}

enum oc_option_id oc_probe_unknown(const struct oc_config *c, int from)
{
    for (int i = from; i < OC_OPTIONS; i++) {
        const enum oc_option_id id = (enum oc_option_id)i;
        const struct oc_option *option = oc_option(id);
        if (is_default(c, id) || is_known(option->key)) continue;
        if (!option->inapplicable || !option->inapplicable(c)) return id;
    }
    return OC_OPTIONS;
}

/* Why the probe has none of a whole section of the options table. */
static const char *uncovered_option(const struct oc_config *c)
{
    static const struct {
        const char *group, *reason;
    } reasons[] = {{"Experts", "the probe has no experts"},
                   {"Latent attention", "the probe has no latent attention"},
                   {"Fine-tuning", "the probe trains every parameter"},
                   {"Offload", "the probe offloads nothing"}};
    const enum oc_option_id id = oc_probe_unknown(c, 0);
    if (id == OC_OPTIONS) return NULL;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(oc_option(id)->group, reasons[i].group) == 0) return reasons[i].reason;
    return "an option is set that the probe does not know";
}

static bool is_half(enum oc_dtype dtype)
{
    return dtype == OC_FP16 || dtype == OC_BF16;
}

static bool is_float(enum oc_dtype dtype)
{
    return dtype == OC_FP32 || is_half(dtype);
}

static const char *uncovered_shape(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (!plan->has_shape) return "the model has no shape: only its number of parameters is known";
    if (c->model_head != OC_HEAD_LM) return "the probe has an output layer over the vocabulary";
    if (c->model_embedding_dim && c->model_embedding_dim != c->model_hidden)
        return "the probe's embedding is as wide as its layers";
    if (!c->model_final_norm) return "the probe has a final norm";
    if (c->model_kind != OC_KIND_DECODER) return "the probe runs decoders only";
    if (c->model_norms_per_layer != 2) return "the probe's layer has two norms";
    if (c->model_positions == OC_POS_ALIBI) return "the probe's positions are rope, learned or none";
    if (c->model_qk_norm) return "the probe has no norm over queries and keys";
    if (c->model_parallel_residual) return "the probe's attention and MLP follow one another";
    if (c->model_embedding_norm) return "the probe has no norm after the embedding";
    if (c->model_positions == OC_POS_ROPE && c->model_head_dim % 2) return "rope turns pairs: head_dim must be even";
    if (c->model_kv_heads < 1 || c->model_heads % c->model_kv_heads) return "heads must be a multiple of kv_heads";
    if (c->kernels_attention == OC_ATTN_FLASH && c->model_head_dim > 256)
        return "the probe's flash attention takes a head_dim of up to 256";
    if (c->optimizer > OC_OPTIM_ADAMW) return "the probe's optimizers are SGD and Adam";
    if (c->recompute == OC_RECOMPUTE_FULL && c->recompute_method == OC_METHOD_UNIFORM && c->recompute_layers != 1)
        return "the probe recomputes each layer by itself";
    return NULL;
}

/* Optimizer states and master copies, under either framework. */
static const char *uncovered_states(const struct oc_plan *plan)
{
    const struct oc_dtypes *dt = &plan->dt;
    if (dt->master != OC_NONE && (dt->master != OC_FP32 || !is_half(dt->weights)))
        return "the probe's master copies are fp32 beside 16-bit weights";
    const bool adam = plan->c.optimizer != OC_OPTIM_SGD;
    if ((dt->moment2 != OC_NONE) != adam || (adam && dt->moment1 == OC_NONE))
        return "the probe's Adam has two states for each parameter, its SGD at most one";
    if ((dt->moment1 != OC_NONE && !is_float(dt->moment1)) || (dt->moment2 != OC_NONE && !is_float(dt->moment2)))
        return "the probe's optimizer states are fp32, fp16 or bf16";
    return NULL;
}

/* ---- PyTorch ---- */

static const char *uncovered_torch_types(const struct oc_plan *plan)
{
    const struct oc_dtypes *dt = &plan->dt;
    const bool pure = dt->compute == dt->weights && dt->residual == dt->weights && is_float(dt->weights) &&
                      plan->c.precision_autocast == OC_NONE;
    const bool amp = dt->weights == OC_FP32 && dt->residual == OC_FP32 && is_half(dt->compute);
    if (!pure && !amp) return "the probe computes in the type of the weights, or under autocast over fp32 weights";
    if (dt->grads != dt->weights) return "the probe's gradients have the type of the weights";
    return NULL;
}

static const char *uncovered_torch_kernels(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (c->kernels_transformer != OC_OPSET_HF) return "the probe runs PyTorch's op set hf only";
    if (c->kernels_attention == OC_ATTN_UNFUSED) return "the probe's attention under PyTorch is eager or flash";
    if (c->kernels_loss != OC_LOSS_EAGER && c->kernels_loss != OC_LOSS_FUSED)
        return "the probe's loss under PyTorch is eager or fused";
    if (c->recompute == OC_RECOMPUTE_SELECTIVE || (c->recompute && c->recompute_method == OC_METHOD_BLOCK))
        return "under PyTorch the probe recomputes nothing or every layer";
    return NULL;
}

static const char *uncovered_torch(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (c->parallel_tp != 1 || c->parallel_pp != 1 || c->parallel_cp != 1 || c->parallel_vpp != 1)
        return "the probe splits no model under PyTorch";
    if (c->parallel_zero != 0) return "the probe shards nothing under PyTorch, but under FSDP2";
    const char *reason = uncovered_torch_kernels(plan);
    return reason ? reason : uncovered_torch_types(plan);
}

/* ---- FSDP2 ---- */

static const char *uncovered_fsdp2(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const struct oc_dtypes *dt = &plan->dt;
    if (c->parallel_tp != 1 || c->parallel_pp != 1 || c->parallel_cp != 1 || c->parallel_vpp != 1)
        return "the probe splits a model under FSDP2 over data-parallel ranks alone";
    if (plan->shard < 2) return "FSDP2 on one rank shares nothing: the probe runs framework=pytorch";
    if (c->fsdp_wrap != OC_WRAP_LAYER) return "the probe's FSDP2 has a unit for each layer";
    if (!c->run_zero_grad_to_none) return "the probe's FSDP2 frees gradients";
    if (dt->master != OC_NONE || dt->step_grads != OC_NONE) return "FSDP2's shares are what its optimizer updates";
    if (dt->compute != dt->weights || dt->residual != dt->weights || !is_float(dt->weights) ||
        c->precision == OC_PREC_FP8)
        return "the probe computes in the type that FSDP2 gathers";
    if (!is_float(dt->grads) || !is_float((enum oc_dtype)c->precision_reduce))
        return "the probe's shards and reductions are fp32, fp16 or bf16";
    return uncovered_torch_kernels(plan);
}

/* ---- Megatron ---- */

static const char *uncovered_megatron_types(const struct oc_plan *plan)
{
    const struct oc_dtypes *dt = &plan->dt;
    if (!is_float(dt->weights) || dt->compute != dt->weights || dt->residual != dt->weights)
        return "the probe's weights, products and residual stream have one type under Megatron";
    if (!is_float(dt->grads)) return "the probe's main grads are fp32, fp16 or bf16";
    if ((dt->step_grads != OC_NONE) != (dt->grads != OC_FP32) ||
        (dt->step_grads != OC_NONE && dt->step_grads != OC_FP32))
        return "the probe steps with fp32 gradients";
    if ((dt->master != OC_NONE) != is_half(dt->weights)) return "16-bit weights have a master copy under Megatron";
    return NULL;
}

static const char *uncovered_megatron(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (c->parallel_cp > 1 && c->kernels_attention != OC_ATTN_FLASH)
        return "the probe's context parallelism runs over flash attention";
    if (c->parallel_cp > 1 && c->parallel_cp_comm == OC_CP_A2A_P2P)
        return "the probe's context parallelism exchanges heads, or passes keys on, but not both";
    if (c->parallel_zero > 1) return "the probe shares out the optimizer's states at most";
    if (c->kernels_transformer != OC_OPSET_TE) return "the probe runs Megatron over TransformerEngine only";
    if (c->kernels_stack[0]) return "the probe runs one generation of Megatron";
    if (c->kernels_attention == OC_ATTN_EAGER) return "the probe's attention under Megatron is unfused or flash";
    if (c->kernels_loss == OC_LOSS_FUSED_LINEAR || c->kernels_loss == OC_LOSS_CHUNKED)
        return "the probe's loss under Megatron is eager, fused or te-fused";
    if (c->recompute == OC_RECOMPUTE_SELECTIVE && c->recompute_modules != OC_MODULE_CORE_ATTN)
        return "the probe recomputes nothing, attention's core or whole layers";
    if (c->recompute_partition_activations) return "the probe partitions no checkpoints";
    if (!c->megatron_gradient_accumulation_fusion)
        return "the probe adds weight gradients straight into the main grads";
    if (c->megatron_defer_embedding_wgrad || c->megatron_tp_comm_overlap)
        return "the probe neither defers the embedding's gradient nor overlaps tensor-parallel communication";
    return uncovered_megatron_types(plan);
}

const char *oc_probe_covers(const struct oc_plan *plan)
{
    const bool megatron = plan->c.framework == OC_FW_MEGATRON;
    const char *reason = NULL;
    const bool fsdp2 = plan->c.framework == OC_FW_FSDP2;
    if (!megatron && !fsdp2 && plan->c.framework != OC_FW_PYTORCH)
        reason = "the probe runs the rules of PyTorch, FSDP2 and Megatron only";
    if (!reason) reason = uncovered_option(&plan->c);
    if (!reason) reason = uncovered_shape(plan);
    if (!reason) reason = uncovered_states(plan);
    if (!reason) reason = (megatron ? uncovered_megatron : fsdp2 ? uncovered_fsdp2 : uncovered_torch)(plan);
    return reason;
}
