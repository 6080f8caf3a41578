/* Deciding everything, or saying in a sentence with a hint why it cannot be decided. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LLAMA "framework=megatron", "model.name=llama-3-8b"
#define TORCH "framework=pytorch", "model.name=llama-3-8b"

static void refuses(const char *const *words, const char *message, const char *hint)
{
    const struct oc_config config = help_config(words);
    struct oc_plan plan;
    struct oc_error error;
    assert_false(oc_resolve(&config, &plan, NULL, &error));
    if (!strstr(error.message, message)) fail_msg("'%s' lacks '%s'", error.message, message);
    if (!strstr(error.hint, hint)) fail_msg("hint '%s' lacks '%s'", error.hint, hint);
}

static void warns(const char *const *words, const char *text)
{
    const struct oc_config config = help_config(words);
    struct oc_plan plan;
    struct oc_warnings warnings;
    struct oc_error error;
    if (!oc_resolve(&config, &plan, &warnings, &error)) fail_msg("%s", error.message);
    for (int i = 0; i < warnings.n; i++)
        if (strstr(warnings.text[i], text)) return;
    fail_msg("no warning has '%s'", text);
}

static void impossible_combinations_are_refused(void **state)
{
    (void)state;
    refuses(HELP_WORDS(LLAMA, "parallel.tp=3"), "tp=3 does not divide 32 heads", "tp can be 1, 2, 4, 8");
    refuses(HELP_WORDS(LLAMA, "parallel.world=0"), "parallel.world=0", "is the least");
    refuses(HELP_WORDS(LLAMA, "parallel.world=6", "parallel.tp=4"), "no multiple of tp x pp x cp", "parallel.world=8");
    refuses(HELP_WORDS(LLAMA, "parallel.pp=5"), "32 layers cannot be dealt out", "must divide");
    refuses(HELP_WORDS(LLAMA, "parallel.vpp=2"), "needs a pipeline", "parallel.pp");
    refuses(HELP_WORDS(LLAMA, "batch.global=3", "parallel.world=2"), "does not divide batch.global", "divided by");
    refuses(HELP_WORDS(LLAMA, "parallel.zero=1", "optimizer=sgd"), "refuses sgd", "optimizer=adam");
    refuses(HELP_WORDS("framework=megatron", "model.params=7B", "parallel.zero=3"), "gathers layers",
            "parallel.zero=1");
    refuses(HELP_WORDS("framework=megatron-fsdp", "model.name=llama-3-8b", "parallel.zero=1"), "shares gradients",
            "framework=megatron");
    refuses(HELP_WORDS("framework=pytorch", "model.name=llama-3-8b", "parallel.tp=2"), "no meaning in plain PyTorch",
            "megatron");
    refuses(HELP_WORDS("model.layers=4"), "model.hidden is not known", "model.name");
    refuses(HELP_WORDS("model.name=nonesuch"), "there is no model", "oomcast models");
    refuses(HELP_WORDS("gpu=abacus"), "there is no GPU", "oomcast gpus");
    refuses(HELP_WORDS("model.params=7B", "framework=megatron", "parallel.tp=8"), "alone cannot be split",
            "model.name");
    refuses(HELP_WORDS(LLAMA, "batch.seq=1000", "parallel.cp=16"), "parallel.cp=16 does not divide batch.seq=1000",
            "divided by");
}

static void rewrites_are_said(void **state)
{
    (void)state;
    warns(HELP_WORDS(LLAMA, "parallel.sp=true"), "switched off");
    warns(HELP_WORDS(LLAMA, "precision=fp32"), "unfused");
    warns(HELP_WORDS(LLAMA, "precision=amp-bf16"), "read as precision=bf16");
    warns(HELP_WORDS("framework=pytorch", "precision=bf16"), "keeps no fp32 master");
    warns(HELP_WORDS("model.params=7B"), "activations are not modelled");
}

static void accumulation_follows_the_global_batch(void **state)
{
    (void)state;
    struct oc_plan plan =
        help_plan(HELP_WORDS(LLAMA, "batch.global=64", "batch.micro=2", "parallel.world=16", "parallel.tp=8"));
    assert_int_equal(plan.dp, 2);
    assert_int_equal(plan.accum, 16);
    plan = help_plan(HELP_WORDS(LLAMA, "batch.global=64", "batch.micro=2", "parallel.world=32", "parallel.tp=8"));
    assert_int_equal(plan.accum, 8);
}

static void what_is_not_given_follows(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan(HELP_WORDS("framework=megatron", "model.layers=2", "model.hidden=1024",
                                               "model.heads=16", "model.vocab=50257", "parallel.tp=2"));
    assert_int_equal(plan.vocab, 50432);      /* the next multiple of 128 x 2 */
    assert_int_equal(plan.c.model_ffn, 2688); /* int(4h x 2/3 / 64) x 64 */
    assert_int_equal(plan.c.model_kv_heads, 16);
    assert_int_equal(plan.c.model_head_dim, 64);
    plan = help_plan(HELP_WORDS("framework=pytorch", "model.layers=2", "model.hidden=1024", "model.heads=16",
                                "model.vocab=50257", "model.activation=gelu"));
    assert_int_equal(plan.vocab, 50257);
    assert_int_equal(plan.c.model_ffn, 4096);
}

static void dtypes_follow_the_framework(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan(HELP_WORDS(LLAMA, "precision=bf16"));
    assert_int_equal(plan.dt.weights, OC_BF16);
    assert_int_equal(plan.dt.grads, OC_FP32);
    assert_int_equal(plan.dt.step_grads, OC_NONE);
    plan = help_plan(HELP_WORDS("framework=pytorch", "precision=amp-fp16"));
    assert_int_equal(plan.dt.weights, OC_FP32);
    assert_int_equal(plan.dt.compute, OC_FP16);
    plan = help_plan(HELP_WORDS("framework=pytorch", "precision=pure-bf16", "precision.master=fp32"));
    assert_int_equal(plan.dt.master, OC_FP32);
    assert_int_equal(plan.dt.step_grads, OC_FP32);
    assert_int_equal(plan.dt.moment1, OC_FP32);
}

static void huge_values_are_errors_not_wrapped(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    const struct oc_plan plan = help_plan(HELP_WORDS(
        "framework=megatron", "model.layers=10000", "model.hidden=1048576", "model.heads=65536", "model.ffn=4194304",
        "model.vocab=16777216", "batch.seq=16777216", "batch.micro=65536", "kernels.attention=unfused"));
    struct oc_error error;
    assert_false(oc_estimate(&plan, 0, &ledger, &error));
    assert_int_equal(error.code, OC_E_LIMIT);
}

static void hash_tells_plans_apart(void **state)
{
    (void)state;
    const struct oc_plan a = help_plan(HELP_WORDS(LLAMA)), same = help_plan(HELP_WORDS(LLAMA, "batch.micro=1")),
                         other = help_plan(HELP_WORDS(LLAMA, "batch.micro=2"));
    assert_int_equal(a.hash, same.hash); /* the value that would have followed, given */
    assert_true(a.hash != other.hash);
}

/* PyTorch 2.0 began to free gradients in zero_grad(); what cannot be a release is none. */
static void an_old_torch_keeps_its_gradients(void **state)
{
    (void)state;
    const struct oc_plan now = help_plan(HELP_WORDS(TORCH)),
                         old = help_plan(HELP_WORDS(TORCH, "kernels.stack=torch 1.12", "gpu=v100-32g")),
                         odd = help_plan(HELP_WORDS(TORCH, "kernels.stack=torch 99999999999999999999.1"));
    assert_true(now.c.run_zero_grad_to_none && odd.c.run_zero_grad_to_none && !old.c.run_zero_grad_to_none);
    assert_int_equal(old.context.low, UINT64_C(1113) << 20);
}

static void stages_share_out_all_layers(void **state)
{
    (void)state;
    const struct oc_plan plan = help_plan(
        HELP_WORDS("framework=megatron", "model.name=llama-3-70b", "parallel.pp=4", "parallel.vpp=5", "batch.accum=8"));
    int64_t layers = 0;
    for (int stage = 0; stage < 4; stage++)
        for (int chunk = 0; chunk < 5; chunk++) layers += oc_plan_layers(&plan, stage, chunk);
    assert_int_equal(layers, 80);
    const struct oc_plan uneven =
        help_plan(HELP_WORDS("framework=megatron", "model.name=llama-3-8b", "parallel.pp=4",
                             "parallel.first_stage_layers=5", "parallel.last_stage_layers=7"));
    assert_int_equal(oc_plan_layers(&uneven, 0, 0), 5);
    assert_int_equal(oc_plan_layers(&uneven, 1, 0), 10);
    assert_int_equal(oc_plan_layers(&uneven, 3, 0), 7);
}

static void stages_written_out_decide_on_chunks(void **state)
{
    (void)state;
    const struct oc_plan plan =
        help_plan(HELP_WORDS("framework=megatron", "model.layers=16", "model.hidden=1024", "model.heads=16",
                             "parallel.pp=2", "megatron.pipeline_layout=Et*3|(tt|)*6tL"));
    assert_int_equal(plan.c.parallel_vpp, 4);
    assert_int_equal(oc_plan_layers(&plan, 0, 0), 3);
    assert_int_equal(oc_plan_layers(&plan, 0, 3), 2);
    assert_int_equal(oc_plan_layers(&plan, 1, 3), 1);
    const char *const refused[] = {"megatron.pipeline_layout=Ett|ttL", "megatron.pipeline_layout=Et*8|t*4|t*4L",
                                   "megatron.pipeline_layout=t*8|t*8L"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct oc_config config =
            help_config(HELP_WORDS("framework=megatron", "model.layers=16", "model.hidden=1024", "model.heads=16",
                                   "parallel.pp=2", refused[i]));
        struct oc_plan none;
        struct oc_error error;
        assert_false(oc_resolve(&config, &none, NULL, &error));
    }
}

/* In flight at once: 1F1B holds min(m, p - r) micro-batches, the interleaved schedule 2 (p - r - 1) + (v - 1) p + 1
 * chunks. */
static int in_flight(const struct oc_ledger *ledger)
{
    int now = 0, most = 0;
    for (int i = 0; i < ledger->n_slots; i++) {
        now += ledger->slots[i].backward ? -1 : 1;
        if (now > most) most = now;
    }
    assert_int_equal(now, 0);
    return most;
}

static void schedule_keeps_the_documented_number_in_flight(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    for (int accum = 1; accum <= 12; accum++) {
        char words[32];
        snprintf(words, sizeof words, "batch.accum=%d", accum);
        const struct oc_plan plan = help_plan(HELP_WORDS(LLAMA, "parallel.pp=4", words));
        for (int stage = 0; stage < 4; stage++) {
            help_rank(&plan, stage, &ledger, &rank);
            assert_int_equal(in_flight(&ledger), accum < 4 - stage ? accum : 4 - stage);
        }
    }
    const struct oc_plan plan = help_plan(HELP_WORDS("framework=megatron", "model.name=llama-3-70b", "parallel.pp=4",
                                                     "parallel.vpp=5", "batch.accum=32"));
    for (int stage = 0; stage < 4; stage++) {
        help_rank(&plan, stage, &ledger, &rank);
        assert_int_equal(in_flight(&ledger), 2 * (4 - stage - 1) + 4 * 4 + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_combinations_are_refused),
        cmocka_unit_test(rewrites_are_said),
        cmocka_unit_test(accumulation_follows_the_global_batch),
        cmocka_unit_test(what_is_not_given_follows),
        cmocka_unit_test(dtypes_follow_the_framework),
        cmocka_unit_test(huge_values_are_errors_not_wrapped),
        cmocka_unit_test(hash_tells_plans_apart),
        cmocka_unit_test(an_old_torch_keeps_its_gradients),
        cmocka_unit_test(stages_share_out_all_layers),
        cmocka_unit_test(stages_written_out_decide_on_chunks),
        cmocka_unit_test(schedule_keeps_the_documented_number_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
