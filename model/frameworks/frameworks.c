#include "model/frameworks/framework.h"

#include <stdarg.h>
#include <stdio.h>

static const struct oc_framework_rules *const frameworks[OC_FRAMEWORKS] = {
    [OC_FW_ARTICLE] = &oc_article_rules,   [OC_FW_ZERO_PAPER] = &oc_zero_paper_rules,
    [OC_FW_PYTORCH] = &oc_pytorch_rules,   [OC_FW_FSDP2] = &oc_fsdp2_rules,
    [OC_FW_FSDP1] = &oc_fsdp1_rules,       [OC_FW_DEEPSPEED] = &oc_deepspeed_rules,
    [OC_FW_MEGATRON] = &oc_megatron_rules, [OC_FW_MEGATRON_FSDP] = &oc_megatron_rules,
};

const struct oc_framework_rules *oc_framework(enum oc_framework framework)
{
    return frameworks[framework];
}

void oc_default(struct oc_config *config, enum oc_option_id id, int64_t value)
{
    if (!oc_given(config, id)) oc_option_put(config, id, value);
}

void oc_default_float(struct oc_config *config, enum oc_option_id id, double value)
{
    if (!oc_given(config, id)) *(double *)(void *)((char *)config + oc_option(id)->offset) = value;
}

void oc_warn(struct oc_warnings *warnings, const char *format, ...)
{
    if (!warnings || warnings->n == OC_MAX_WARNINGS) return;
    va_list args;
    va_start(args, format);
    vsnprintf(warnings->text[warnings->n++], sizeof warnings->text[0], format, args);
    va_end(args);
}

enum oc_dtype oc_precision_weights(int64_t precision)
{
    switch (precision) {
    case OC_PREC_FP16:
    case OC_PREC_PURE_FP16: return OC_FP16;
    case OC_PREC_FP8:
    case OC_PREC_BF16:
    case OC_PREC_PURE_BF16: return OC_BF16;
    default: return OC_FP32;
    }
}

enum oc_dtype oc_precision_autocast(int64_t precision)
{
    return precision == OC_PREC_AMP_FP16 ? OC_FP16 : precision == OC_PREC_AMP_BF16 ? OC_BF16 : OC_NONE;
}

void oc_override_dtypes(struct oc_plan *plan)
{
    const struct {
        enum oc_option_id option;
        enum oc_dtype *dtype;
    } overrides[] = {
        {OC_OPT_precision_weights, &plan->dt.weights}, {OC_OPT_precision_grads, &plan->dt.grads},
        {OC_OPT_precision_master, &plan->dt.master},   {OC_OPT_precision_moment1, &plan->dt.moment1},
        {OC_OPT_precision_moment2, &plan->dt.moment2}, {OC_OPT_precision_residual, &plan->dt.residual},
    };
    for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++) {
        /* A type given for a state that does not exist (moment 2 of SGD) creates nothing, and "none" removes only a
         * master copy. */
        if (overrides[i].option == OC_OPT_precision_weights &&
            oc_framework((enum oc_framework)plan->c.framework)->casts_shards)
            continue;
        const bool master = overrides[i].option == OC_OPT_precision_master;
        const enum oc_dtype given = (enum oc_dtype)oc_option_get(&plan->c, overrides[i].option);
        if (!plan->c.optimizer_precision_aware && oc_given(&plan->c, overrides[i].option) &&
            (master || (*overrides[i].dtype != OC_NONE && given != OC_NONE)))
            *overrides[i].dtype = given;
        oc_option_put(&plan->c, overrides[i].option, *overrides[i].dtype);
    }
}

enum oc_dtype oc_stored_weights(const struct oc_plan *plan)
{
    const bool casts = oc_framework((enum oc_framework)plan->c.framework)->casts_shards;
    return casts ? (enum oc_dtype)plan->c.precision_weights : plan->dt.weights;
}

bool oc_is_2021(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (c->kernels_transformer != OC_OPSET_LOCAL || c->kernels_stack[0]) return false;
    const struct oc_gpu_row *gpu = oc_gpu_find(c->gpu);
    return c->framework == OC_FW_DEEPSPEED || (c->framework == OC_FW_MEGATRON && gpu && gpu->sm == 70);
}

struct oc_tick oc_states_birth(const struct oc_plan *plan)
{
    return plan->c.run_resume ? OC_AT_SUB(INIT, 3) : OC_AT_SUB(STEP, 1); /* behind the masters */
}
