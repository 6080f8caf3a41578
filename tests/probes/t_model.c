/* The model and the probe, written apart from docs/step-pytorch.md, agree to the byte: 20 fixed configurations, every
 * moment of the first and the steady iteration, every class. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/model.h"
#include "oomcast/probe.h"

/* What differs from the base: a small Llama with grouped queries, as --set takes it. */
static const char *const base[] = {
    "framework=pytorch",      "kernels.transformer=hf", "kernels.norm=eager", "kernels.loss=eager", "model.layers=3",
    "model.hidden=32",        "model.heads=4",          "model.kv_heads=2",   "model.head_dim=8",   "model.ffn=48",
    "model.vocab=67",         "batch.seq=12",           "batch.micro=2",      "precision=fp32",     "optimizer=adamw",
    "optimizer.impl=foreach", "kernels.attention=flash"};

static const char *const configurations[][8] = {
    {"batch.micro=2"},
    {"kernels.attention=eager"},
    {"recompute=full", "optimizer.impl=fused"},
    {"kernels.attention=eager", "recompute=full"},
    {"precision=amp-bf16"},
    {"precision=amp-bf16", "kernels.attention=eager", "optimizer.impl=loop"},
    {"precision=amp-fp16", "recompute=full", "optimizer.impl=fused"},
    {"precision=amp-fp16", "kernels.attention=eager", "recompute=full", "optimizer=sgd"},
    {"precision=pure-bf16"},
    {"precision=pure-bf16", "kernels.attention=eager"},
    {"precision=pure-fp16", "recompute=full", "optimizer=sgd", "optimizer.momentum=0.9"},
    {"precision=pure-fp16", "kernels.attention=eager", "recompute=full", "kernels.logits_fp32=false"},
    {"precision=bf16", "precision.master=fp32", "optimizer.impl=loop"},
    {"precision=fp16", "precision.master=fp32", "kernels.attention=eager", "batch.accum=2", "optimizer=sgd"},
    {"batch.accum=3", "run.zero_grad_to_none=false", "model.tied=true"},
    {"precision=amp-bf16", "batch.accum=2", "model.tied=true", "kernels.attention=eager"},
    {"batch.micro=1", "kernels.attention=eager", "model.kv_heads=4", "precision=pure-bf16"},
    {"batch.micro=3", "kernels.attention=eager", "model.kv_heads=4", "precision=amp-fp16", "batch.accum=2"},
    {"batch.micro=1", "model.kv_heads=4", "recompute=full", "model.vocab=3001", "precision=amp-bf16", "batch.accum=2"},
    {"batch.micro=1", "kernels.attention=eager", "model.hidden=128", "model.head_dim=16", "batch.seq=40",
     "model.layers=1", "run.zero_grad_to_none=false", "batch.accum=2"},
};

static const enum oc_moment moments[] = {OC_M_FORWARD, OC_M_LOSS, OC_M_BACKWARD, OC_M_STEP, OC_M_AFTER_STEP, OC_M_IDLE};

static void resolve(int i, struct oc_plan *plan)
{
    struct oc_config config = oc_config_default();
    struct oc_error error = {0};
    char text[512];
    for (size_t s = 0; s < sizeof base / sizeof base[0]; s++)
        if (!oc_config_assign(&config, base[s], NULL, &error)) fail_msg("%s", oc_error_text(&error, text, sizeof text));
    for (int s = 0; s < 8 && configurations[i][s]; s++)
        if (!oc_config_assign(&config, configurations[i][s], NULL, &error))
            fail_msg("%s", oc_error_text(&error, text, sizeof text));
    if (!oc_resolve(&config, plan, NULL, &error)) fail_msg("%s", oc_error_text(&error, text, sizeof text));
}

/* Prints what differs; returns whether anything does. */
static bool differs(int i, const char *what, const struct oc_instant *model, const struct oc_instant *probe)
{
    bool same = model->exists == probe->exists && model->requested == probe->requested &&
                model->allocated == probe->allocated &&
                memcmp(model->classes, probe->classes, sizeof model->classes) == 0;
    if (same) return false;
    char a[64], b[64];
    print_error("configuration %d, %s: model %" PRIu64 " (%s), probe %" PRIu64 " (%s)\n", i, what, model->requested,
                oc_place_text(&model->place, a, sizeof a), probe->requested, oc_place_text(&probe->place, b, sizeof b));
    for (int class = 0; class < OC_CLASSES; class ++)
        if (model->classes[class] != probe->classes[class])
            print_error("  %c: model %" PRIu64 ", probe %" PRIu64 "\n", oc_class_letter((enum oc_class) class),
                        model->classes[class], probe->classes[class]);
    return true;
}

static void the_model_is_the_probe(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    static struct oc_probe_result result;
    int different = 0;
    for (int i = 0; i < (int)(sizeof configurations / sizeof configurations[0]); i++) {
        struct oc_plan plan;
        struct oc_rank model = {0};
        struct oc_error error = {0};
        char what[64];
        resolve(i, &plan);
        if (oc_probe_covers(&plan)) fail_msg("configuration %d: %s", i, oc_probe_covers(&plan));
        assert_true(oc_estimate(&plan, 0, &ledger, &error));
        oc_sweep(&ledger, &model);
        struct oc_probe_options options = {.device = OC_DEVICE_HOST, .steps = 3};
        assert_true(oc_probe_run(&plan, &options, &result));
        assert_int_equal(model.params, result.rank.params);
        for (int it = 0; it < OC_ITERATIONS; it++)
            for (size_t m = 0; m < sizeof moments / sizeof moments[0]; m++) {
                snprintf(what, sizeof what, "%s %s", oc_iteration_name((enum oc_iteration)it),
                         oc_moment_name(moments[m]));
                different += differs(i, what, &model.moments[it][moments[m]], &result.rank.moments[it][moments[m]]);
            }
        different += differs(i, "first peak", &model.first_peak, &result.rank.first_peak);
        different += differs(i, "steady peak", &model.peak, &result.rank.peak);
    }
    assert_int_equal(different, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_model_is_the_probe)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
