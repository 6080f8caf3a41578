/* What the probe covers, and how a plan is cut until it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/probe.h"
#include "tests/probes/help_plan.h"

static const uint64_t MIB = 1 << 20;

/* ---- What is covered ---- */

static void sgd_in_fp8(struct oc_plan *plan)
{
    plan->dt.weights = OC_FP8;
}
static void wide_gradients(struct oc_plan *plan)
{
    plan->dt.grads = OC_FP32, plan->dt.weights = OC_BF16;
}
static void other_framework(struct oc_plan *plan)
{
    plan->c.framework = OC_FW_MEGATRON;
}
static void other_ops(struct oc_plan *plan)
{
    plan->c.kernels_transformer = OC_OPSET_TE;
}
static void unfused(struct oc_plan *plan)
{
    plan->c.kernels_attention = OC_ATTN_UNFUSED;
}
static void linear_loss(struct oc_plan *plan)
{
    plan->c.kernels_loss = OC_LOSS_FUSED_LINEAR;
}
static void alibi(struct oc_plan *plan)
{
    plan->c.model_positions = OC_POS_ALIBI;
}
static void selective(struct oc_plan *plan)
{
    plan->c.recompute = OC_RECOMPUTE_SELECTIVE;
}
static void in_twos(struct oc_plan *plan)
{
    plan->c.recompute = OC_RECOMPUTE_FULL, plan->c.recompute_layers = 2;
}
static void query_norms(struct oc_plan *plan)
{
    plan->c.model_qk_norm = 1;
}
static void side_by_side(struct oc_plan *plan)
{
    plan->c.model_parallel_residual = 1;
}
static void embedding_norm(struct oc_plan *plan)
{
    plan->c.model_embedding_norm = 1;
}
static void odd_heads(struct oc_plan *plan)
{
    plan->c.model_head_dim = 7;
}
static void four_norms(struct oc_plan *plan)
{
    plan->c.model_norms_per_layer = 4;
}
static void split(struct oc_plan *plan)
{
    plan->c.parallel_tp = 2;
}
static void sharded(struct oc_plan *plan)
{
    plan->c.parallel_zero = 1;
}

static void encoder(struct oc_plan *plan)
{
    plan->c.model_kind = OC_KIND_ENCODER;
}
static void classifier(struct oc_plan *plan)
{
    plan->c.model_head = OC_HEAD_CLASSIFICATION;
}
static void experts(struct oc_plan *plan)
{
    plan->c.model_experts = 8;
}
static void latent(struct oc_plan *plan)
{
    plan->c.model_kv_lora_rank = 512;
}
static void lora(struct oc_plan *plan)
{
    plan->c.lora_rank = 8;
}
static void offloaded(struct oc_plan *plan)
{
    plan->c.offload_optimizer = OC_OFFLOAD_CPU;
}
static void compiled(struct oc_plan *plan)
{
    plan->c.kernels_compile = 1;
}
static void more_tokens(struct oc_plan *plan)
{
    plan->c.batch_max_tokens = 1000;
}
static void adafactor(struct oc_plan *plan)
{
    plan->c.optimizer = OC_OPTIM_ADAFACTOR;
    plan->dt.moment1 = plan->dt.moment2 = OC_NONE;
}
static void eight_bits(struct oc_plan *plan)
{
    plan->c.optimizer = OC_OPTIM_ADAM8BIT;
    plan->dt.moment1 = plan->dt.moment2 = OC_INT8;
}
static void one_state(struct oc_plan *plan)
{
    plan->dt.moment1 = OC_NONE;
}

static void (*const changes[])(struct oc_plan *plan) = {
    sgd_in_fp8, wide_gradients, other_framework, other_ops,    unfused,    linear_loss, alibi,
    selective,  in_twos,        query_norms,     side_by_side, odd_heads,  four_norms,  embedding_norm,
    split,      sharded,        encoder,         classifier,   experts,    latent,      lora,
    offloaded,  compiled,       more_tokens,     adafactor,    eight_bits, one_state};

static void what_is_not_covered_has_a_reason(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    assert_null(oc_probe_covers(&plan));
    for (int i = 0; i < 42; i++) {
        plan = help_mixed_plan(i);
        assert_null(oc_probe_covers(&plan));
    }
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        plan = help_plan();
        changes[i](&plan);
        assert_non_null(oc_probe_covers(&plan));
    }
    plan = help_plan();
    plan.has_shape = false;
    assert_non_null(oc_probe_covers(&plan));
}

/* ---- Cutting ---- */

static struct oc_plan large_plan(void)
{
    struct oc_plan plan = help_plan();
    struct oc_config *c = &plan.c;
    c->model_layers = 32, c->model_hidden = 4096, c->model_heads = 32, c->model_kv_heads = 8, c->model_head_dim = 128;
    c->model_ffn = 14336, c->model_vocab = plan.vocab = 128256, c->batch_seq = 8192, c->batch_micro = 2;
    c->batch_accum = plan.accum = 8;
    plan.q = 4096, plan.kv = 1024;
    return plan;
}

static void small_plans_are_left_alone(void **state)
{
    (void)state;
    char what[256];
    struct oc_plan plan = help_plan(), before = plan;
    oc_probe_fit(&plan, 256 * MIB, 3, what, sizeof what);
    assert_string_equal(what, "");
    assert_int_equal(plan.c.model_layers, before.c.model_layers);
    assert_int_equal(plan.c.model_hidden, before.c.model_hidden);
    assert_int_equal(plan.vocab, before.vocab);
    assert_int_equal(plan.hash, oc_plan_hash(&plan));
}

static void layers_go_first(void **state)
{
    (void)state;
    char what[256];
    struct oc_plan plan = help_plan(), before = plan;
    static struct oc_probe_result result;
    plan.c.model_layers = before.c.model_layers = 400;
    oc_probe_fit(&plan, 4 * MIB, 100, what, sizeof what);
    assert_true(plan.c.model_layers > 2 && plan.c.model_layers < 400);
    char expected[64];
    snprintf(expected, sizeof expected, "layers 400 to %d", (int)plan.c.model_layers);
    assert_string_equal(what, expected);
    struct oc_probe_options options = {.device = OC_DEVICE_HOST, .steps = 2, .limit = 4 * MIB};
    assert_true(oc_probe_run(&plan, &options, &result));
    plan.c.model_layers++; /* it was the most that fits */
    assert_false(oc_probe_run(&plan, &options, &result));
}

/* Whatever comes in, what goes out is covered, consistent, small and in time. */
static void everything_ends_up_runnable(void **state)
{
    (void)state;
    static struct oc_probe_result result;
    char what[256];
    for (size_t i = 0; i <= sizeof changes / sizeof changes[0]; i++) {
        struct oc_plan plan = large_plan();
        if (i > 0) changes[i - 1](&plan);
        oc_probe_fit(&plan, 256 * MIB, 1, what, sizeof what);
        if (oc_probe_covers(&plan)) fail_msg("change %d: %s", (int)i, oc_probe_covers(&plan));
        assert_int_equal(plan.c.model_heads % plan.c.model_kv_heads, 0);
        assert_int_equal(plan.q, plan.c.model_heads * plan.c.model_head_dim);
        assert_int_equal(plan.vocab, plan.c.model_vocab);
        assert_int_equal(plan.accum, plan.c.batch_accum);
        assert_int_equal(plan.c.batch_global, plan.c.batch_micro * plan.accum);
        assert_int_equal(plan.hash, oc_plan_hash(&plan));
        assert_true(plan.c.model_layers >= 2 && plan.accum <= 2);
        assert_non_null(strstr(what, "layers 32 to"));
        struct oc_probe_options options = {.device = OC_DEVICE_DRY, .steps = 3, .limit = 256 * MIB};
        assert_true(oc_probe_run(&plan, &options, &result));
    }
}

/* What the shape had to give, layers get back as far as the budget goes. */
static void layers_grow_back(void **state)
{
    (void)state;
    static struct oc_probe_result result;
    int grown = 0;
    for (uint64_t mib = 100; mib <= 400; mib += 50) {
        struct oc_plan plan = large_plan();
        oc_probe_fit(&plan, mib * MIB, 100, NULL, 0);
        grown += plan.c.model_layers > 2;
        struct oc_probe_options options = {.device = OC_DEVICE_DRY, .steps = 2, .limit = mib * MIB};
        assert_true(oc_probe_run(&plan, &options, &result));
        plan.c.model_layers++;
        assert_false(oc_probe_run(&plan, &options, &result)); /* no more than this */
    }
    assert_true(grown >= 2);
}

static void a_cut_in_layers_alone_is_known(void **state)
{
    (void)state;
    struct oc_plan whole = help_plan(), cut;
    whole.c.model_layers = 400;
    cut = whole;
    oc_probe_fit(&cut, 4 * MIB, 100, NULL, 0);
    assert_true(oc_probe_cut_layers_alone(&whole, &cut));
    whole = cut = large_plan();
    oc_probe_fit(&cut, 256 * MIB, 5, NULL, 0);
    assert_false(oc_probe_cut_layers_alone(&whole, &cut));
}

static void another_framework_is_said(void **state)
{
    (void)state;
    char what[256], little[12];
    struct oc_plan plan = large_plan();
    help_precision(&plan, OC_PREC_BF16);
    plan.c.framework = OC_FW_MEGATRON, plan.c.kernels_transformer = OC_OPSET_TE, plan.c.parallel_tp = 8, plan.dp = 2;
    plan.dt.grads = OC_FP32, plan.dt.residual = OC_BF16;
    struct oc_plan again = plan;
    oc_probe_fit(&plan, 256 * MIB, 3, what, sizeof what);
    assert_non_null(strstr(what, "one rank without parallelism"));
    assert_non_null(strstr(what, "at PyTorch's op set"));
    assert_int_equal(plan.dt.master, OC_FP32); /* the states stay what they were */
    assert_int_equal(plan.dt.weights, OC_BF16);
    oc_probe_fit(&again, 256 * MIB, 3, little, sizeof little); /* cut, not overrun */
    assert_int_equal(strlen(little), sizeof little - 1);
    oc_probe_fit(&again, 256 * MIB, 3, NULL, 0);
}

static void no_budget_at_all_ends(void **state)
{
    (void)state;
    char what[256];
    struct oc_plan plan = large_plan();
    oc_probe_fit(&plan, 1, 1e-9, what, sizeof what);
    assert_int_equal(plan.c.model_layers, 2);
    assert_int_equal(plan.c.batch_micro, 1);
    assert_true(plan.c.model_hidden >= 1 && plan.c.batch_seq >= 1 && plan.vocab >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_covered_has_a_reason),
        cmocka_unit_test(small_plans_are_left_alone),
        cmocka_unit_test(layers_go_first),
        cmocka_unit_test(everything_ends_up_runnable),
        cmocka_unit_test(layers_grow_back),
        cmocka_unit_test(a_cut_in_layers_alone_is_known),
        cmocka_unit_test(another_framework_is_said),
        cmocka_unit_test(no_budget_at_all_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
