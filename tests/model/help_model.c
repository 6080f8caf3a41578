#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

uint64_t help_below(uint64_t *state, uint64_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % n;
}

struct oc_config help_config(const char *const *words)
{
    struct oc_config config = oc_config_default();
    for (; *words; words++) {
        struct oc_error error;
        if (!oc_config_assign(&config, *words, NULL, &error)) fail_msg("%s: %s", *words, error.message);
    }
    return config;
}

struct oc_plan help_plan(const char *const *words)
{
    const struct oc_config config = help_config(words);
    struct oc_plan plan;
    struct oc_error error;
    if (!oc_resolve(&config, &plan, NULL, &error)) fail_msg("%s (%s)", error.message, error.hint);
    return plan;
}

void help_rank(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger, struct oc_rank *rank)
{
    struct oc_error error;
    if (!oc_estimate(plan, stage, ledger, &error)) fail_msg("%s", error.message);
    oc_sweep(ledger, rank);
}

uint64_t help_states(const struct oc_instant *instant)
{
    return instant->classes[OC_WEIGHTS] + instant->classes[OC_MASTER] + instant->classes[OC_GRADIENTS] +
           instant->classes[OC_OPTIMIZER];
}

static void put(struct oc_config *config, enum oc_option_id id, int64_t value)
{
    oc_option_put(config, id, value);
    oc_set_given(config, id, true);
}

static void random_shape(struct oc_config *c, uint64_t *s)
{
    static const int64_t heads[] = {2, 4, 8, 16}, dims[] = {8, 16, 64};
    const int64_t a = heads[help_below(s, 4)], d = dims[help_below(s, 3)];
    put(c, OC_OPT_model_layers, (int64_t)(1 + help_below(s, 12)));
    put(c, OC_OPT_model_heads, a);
    put(c, OC_OPT_model_hidden, a * d);
    put(c, OC_OPT_model_kv_heads, help_below(s, 2) ? a : a / 2);
    put(c, OC_OPT_model_ffn, a * d * (int64_t)(1 + help_below(s, 4)));
    put(c, OC_OPT_model_vocab, (int64_t)(100 + help_below(s, 4000)));
    put(c, OC_OPT_model_tied, (int64_t)help_below(s, 2));
    put(c, OC_OPT_model_norm, (int64_t)help_below(s, 2));
    put(c, OC_OPT_model_activation, help_below(s, 2) ? OC_ACT_SWIGLU : OC_ACT_GELU);
    put(c, OC_OPT_model_linear_bias, (int64_t)help_below(s, 2));
    put(c, OC_OPT_model_positions, help_below(s, 2) ? OC_POS_ROPE : OC_POS_LEARNED);
    put(c, OC_OPT_batch_seq, (int64_t)(16 << help_below(s, 4)));
    put(c, OC_OPT_batch_micro, (int64_t)(1 + help_below(s, 3)));
    put(c, OC_OPT_batch_accum, (int64_t)(1 + help_below(s, 9)));
}

static void random_megatron(struct oc_config *c, uint64_t *s)
{
    put(c, OC_OPT_framework, OC_FW_MEGATRON);
    put(c, OC_OPT_parallel_tp, (int64_t)(1 << help_below(s, 3)));
    put(c, OC_OPT_parallel_pp, (int64_t)(1 << help_below(s, 3)));
    put(c, OC_OPT_parallel_vpp, (int64_t)(1 + help_below(s, 3)));
    put(c, OC_OPT_parallel_sp, (int64_t)help_below(s, 2));
    put(c, OC_OPT_parallel_world, c->parallel_tp * c->parallel_pp * (int64_t)(1 << help_below(s, 3)));
    put(c, OC_OPT_parallel_zero, (int64_t)help_below(s, 2));
    put(c, OC_OPT_recompute, (int64_t)help_below(s, 3));
    put(c, OC_OPT_recompute_method, (int64_t)help_below(s, 2));
    put(c, OC_OPT_recompute_layers, (int64_t)(1 + help_below(s, 3)));
    put(c, OC_OPT_recompute_modules, (int64_t)(1 + help_below(s, 7)));
    put(c, OC_OPT_megatron_gradient_accumulation_fusion, (int64_t)help_below(s, 2));
    static const int64_t precisions[] = {OC_PREC_FP32, OC_PREC_FP16, OC_PREC_BF16};
    put(c, OC_OPT_precision, precisions[help_below(s, 3)]);
}

static void random_pytorch(struct oc_config *c, uint64_t *s)
{
    put(c, OC_OPT_framework, OC_FW_PYTORCH);
    put(c, OC_OPT_precision, (int64_t)help_below(s, 7));
    put(c, OC_OPT_kernels_attention, help_below(s, 2) ? OC_ATTN_EAGER : OC_ATTN_FLASH);
    put(c, OC_OPT_recompute, help_below(s, 2) ? OC_RECOMPUTE_NONE : OC_RECOMPUTE_FULL);
    put(c, OC_OPT_optimizer_impl, (int64_t)help_below(s, 3));
    put(c, OC_OPT_run_zero_grad_to_none, (int64_t)help_below(s, 2));
    put(c, OC_OPT_parallel_world, (int64_t)(1 + help_below(s, 3)));
    put(c, OC_OPT_parallel_bucket_view, (int64_t)help_below(s, 2));
    if (!help_below(s, 3)) put(c, OC_OPT_precision_master, OC_FP32);
}

struct oc_config help_random_config(uint64_t *state)
{
    for (;;) {
        struct oc_config config = oc_config_default();
        struct oc_plan plan;
        random_shape(&config, state);
        if (help_below(state, 2))
            random_megatron(&config, state);
        else
            random_pytorch(&config, state);
        put(&config, OC_OPT_optimizer, (int64_t)help_below(state, 3));
        put(&config, OC_OPT_run_resume, !help_below(state, 4));
        if (oc_resolve(&config, &plan, NULL, NULL)) return config;
    }
}

int help_share(void)
{
    return getenv("OOMCAST_LONG") ? 1 : 10;
}
