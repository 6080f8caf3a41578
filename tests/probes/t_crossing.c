/* Why 16 bits can take more than 32: Megatron, SGD, full recompute. The step itself shows it, at full size in no memory
 * and in miniature in real memory, by exactly the bytes that the model says; and so does the micro-batch from which it
 * is the other way around. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/model.h"
#include "oomcast/probe.h"

static const char *const full[] = {"model.name=llama-3-8b", "parallel.tp=8", "parallel.sp=true", "batch.seq=2048",
                                   NULL};
static const char *const miniature[] = {"model.layers=2",  "model.hidden=64",        "model.heads=4", "model.ffn=160",
                                        "model.vocab=500", "model.vocab_multiple=1", "batch.seq=16",  NULL};

static void assign(struct oc_config *config, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void assign(struct oc_config *config, const char *format, ...)
{
    char text[96];
    struct oc_error error;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!oc_config_assign(config, text, NULL, &error)) fail_msg("%s: %s", text, error.message);
}

static uint64_t larger(const struct oc_rank *rank)
{
    return rank->first_peak.requested > rank->peak.requested ? rank->first_peak.requested : rank->peak.requested;
}

/* The peak of a step, which the model knows to the byte. */
static uint64_t peak(const char *const *shape, const char *precision, int micro, enum oc_device device)
{
    static struct oc_probe_result result;
    static struct oc_ledger ledger;
    struct oc_config config = oc_config_default();
    struct oc_plan plan;
    struct oc_rank model = {0};
    struct oc_error error;
    assign(&config, "framework=megatron");
    for (; *shape; shape++) assign(&config, "%s", *shape);
    assign(&config, "optimizer=sgd");
    assign(&config, "recompute=full");
    assign(&config, "gpu=none");
    assign(&config, "precision=%s", precision);
    assign(&config, "batch.micro=%d", micro);
    assert_true(oc_resolve(&config, &plan, NULL, &error));
    const struct oc_probe_options options = {.device = device, .steps = 2};
    if (!oc_probe_run(&plan, &options, &result)) fail_msg("%s: %s", precision, result.why);
    assert_true(oc_estimate(&plan, 0, &ledger, &error));
    oc_sweep(&ledger, &model);
    assert_int_equal(larger(&result.rank), larger(&model));
    return larger(&result.rank);
}

/* The first micro-batch at which 16 bits take no more than 32; 0 when there is none up to `most`. */
static int crossing(const char *const *shape, const char *precision, int most, enum oc_device device)
{
    for (int micro = 1; micro <= most; micro++)
        if (peak(shape, precision, micro, device) <= peak(shape, "fp32", micro, device)) return micro;
    return 0;
}

static void sixteen_bits_take_more_until_they_do_not(void **state)
{
    (void)state;
    static const char *const precisions[] = {"fp16", "bf16"};
    for (int i = 0; i < 2; i++) {
        const int large = crossing(full, precisions[i], 32, OC_DEVICE_DRY);
        const int small = crossing(miniature, precisions[i], 32, OC_DEVICE_HOST);
        print_message("%s: full size from micro-batch %d on, miniature from %d on\n", precisions[i], large, small);
        assert_true(large > 1);
        assert_true(small > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sixteen_bits_take_more_until_they_do_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
