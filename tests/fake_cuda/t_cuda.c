/* The CUDA backend over a runtime that pretends: the books and the numbers are the host's, what there is in place of a
 * GPU is said in one sentence, and every fault ends as it should, with nothing leaked (the sanitizers look on). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/alloc.h"
#include "oomcast/probe.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/probes/help_plan.h"

enum { MIB = 1 << 20 };

static struct oc_probe_result result, other;

static void fake(const char *settings)
{
    setenv("FAKE_CUDA", settings, 1);
    fake_cuda_reset();
}

static bool run(const struct oc_plan *plan, enum oc_device device, struct oc_probe_result *into)
{
    struct oc_probe_options options = {.device = device, .steps = 2};
    return oc_probe_run(plan, &options, into);
}

static int clean(void **state)
{
    (void)state;
    unsetenv("FAKE_NVML");
    fake("");
    return 0;
}

/* ---- The same step ---- */

static void it_is_the_host_in_every_number(void **state)
{
    (void)state;
    for (int i = 0; i < 54; i++) {
        struct oc_plan plan = i < 30 ? help_mixed_plan(i) : i < 36 ? help_family_plan(i - 30) : help_megatron_plan(i);
        if (oc_probe_covers(&plan)) continue;
        assert_true(run(&plan, OC_DEVICE_HOST, &result));
        assert_true(run(&plan, OC_DEVICE_CUDA, &other));
        assert_int_equal(other.device, OC_DEVICE_CUDA);
        assert_memory_equal(&result.rank, &other.rank, sizeof result.rank);
        assert_int_equal(result.n_entries, other.n_entries);
        assert_memory_equal(result.entries, other.entries, sizeof result.entries);
        assert_int_equal(result.n_losses, 2);
        assert_memory_equal(result.losses, other.losses, sizeof result.losses);
        assert_int_equal(fake_cuda_counts().live, 0);
    }
}

static void auto_takes_the_gpu(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    assert_true(run(&plan, OC_DEVICE_AUTO, &result));
    assert_int_equal(result.device, OC_DEVICE_CUDA);
    assert_string_equal(result.fallback, "");
    assert_string_equal(result.bytes.name, "Stand-in GPU");
}

/* ---- What there is in place of a GPU ---- */

static void what_is_there_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *visible, *said;
    } rows[] = {
        {"driver=0", NULL, "there is no NVIDIA driver on this machine"},
        {"driver=12040", NULL, "the NVIDIA driver is too old: it knows CUDA 12.4, and this build needs 13.0"},
        {"stub=1", NULL, "stub of libcuda.so"},
        {"devices=0", NULL, "no GPU is visible to this process"},
        {"devices=0", "7", "CUDA_VISIBLE_DEVICES=\"7\" leaves no GPU"},
        {"taken=1", NULL, "in use by another process alone"},
        {"total=100e6", NULL, "no memory left for a CUDA context"},
        {"launch_fail=1", NULL, "uncorrectable ECC error"},
    };
    struct oc_plan plan = help_plan();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].visible)
            setenv("CUDA_VISIBLE_DEVICES", rows[i].visible, 1);
        else
            unsetenv("CUDA_VISIBLE_DEVICES");
        fake(rows[i].settings);
        assert_false(run(&plan, OC_DEVICE_CUDA, &result));
        assert_int_equal(result.status, OC_PROBE_FAILED);
        if (!strstr(result.why, rows[i].said)) fail_msg("%s: %s", rows[i].settings, result.why);
        assert_int_equal(result.n_losses, 0);
        fake(rows[i].settings);
        assert_true(run(&plan, OC_DEVICE_AUTO, &result)); /* on the host instead, and says so */
        assert_int_equal(result.device, OC_DEVICE_HOST);
        assert_non_null(strstr(result.fallback, rows[i].said));
        assert_false(result.bytes.measured);
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void a_gpu_that_is_not_there_is_said(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    struct oc_probe_options options = {.device = OC_DEVICE_CUDA, .steps = 2, .ordinal = 2};
    fake("devices=2");
    assert_false(oc_probe_run(&plan, &options, &result));
    assert_string_equal(result.why, "there is no GPU number 2: 2 are visible");
    options.ordinal = 1;
    assert_true(oc_probe_run(&plan, &options, &result));
    options.ordinal = 5, options.wrap = true; /* six ranks share two */
    assert_true(oc_probe_run(&plan, &options, &result));
}

/* ---- Memory ---- */

static void too_little_memory_is_said(void **state)
{
    (void)state;
    struct oc_plan plan = help_mixed_plan(2);
    plan.c.model_vocab = plan.vocab = 12000; /* segments of many sizes */
    assert_true(run(&plan, OC_DEVICE_CUDA, &other));
    int ended = 0;
    for (int mib = 0; mib < 100; mib += 8) {
        char settings[32];
        snprintf(settings, sizeof settings, "oom_after=%de6", mib);
        fake(settings);
        if (run(&plan, OC_DEVICE_CUDA, &result)) break;
        assert_true(result.status == (mib < 2 ? OC_PROBE_FAILED : OC_PROBE_OOM)); /* at 0 there is no context */
        assert_true(strlen(result.why) > 0);
        assert_int_equal(fake_cuda_counts().live, 0);
        ended++;
    }
    assert_true(ended > 3);
    assert_int_equal(result.status, OC_PROBE_DONE);
    assert_memory_equal(&result.rank.peak, &other.rank.peak, sizeof result.rank.peak);
}

/* One cudaMalloc that fails makes the allocator give its cache back and try again, as PyTorch does. */
static void one_failed_allocation_is_tried_again(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    assert_true(run(&plan, OC_DEVICE_CUDA, &other));
    fake("oom_call=2"); /* the first is the backend's own */
    assert_true(run(&plan, OC_DEVICE_CUDA, &result));
    assert_memory_equal(result.losses, other.losses, sizeof result.losses);
    assert_memory_equal(&result.rank.peak, &other.rank.peak, sizeof result.rank.peak);
}

/* ---- Errors for good ---- */

static void a_sticky_error_ends_the_run_wherever_it_comes(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    plan.c.recompute = OC_RECOMPUTE_FULL;
    assert_true(run(&plan, OC_DEVICE_CUDA, &other));
    const int launches = fake_cuda_counts().launches;
    assert_true(launches > 100);
    for (int n = 1; n <= launches; n += n < 45 ? 1 : 41) {
        char settings[32];
        snprintf(settings, sizeof settings, "launch_fail=%d", n);
        fake(settings);
        assert_false(run(&plan, OC_DEVICE_CUDA, &result));
        assert_int_equal(result.status, OC_PROBE_FAILED);
        assert_non_null(strstr(result.why, "ECC"));
        assert_true(fake_cuda_counts().launches == n); /* nothing is called after it */
        assert_true(result.bytes.peak < 16384ull * MIB);
    }
    fake("launch_fail=1000000");
    assert_true(run(&plan, OC_DEVICE_CUDA, &result));
}

/* ---- What the device says ---- */

static void device_bytes_are_reserved_and_context(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    plan.c.model_vocab = plan.vocab = 12000;
    setenv("FAKE_NVML", "used=1e9,others=1", 1);
    fake("ctx=444e6,other=1e9,total=20e9");
    assert_true(run(&plan, OC_DEVICE_CUDA, &result));
    const struct oc_device_bytes *bytes = &result.bytes;
    assert_true(bytes->measured && bytes->context_known);
    assert_int_equal(bytes->total, 20000000000);
    assert_int_equal(bytes->context, 444000000 + 2 * MIB); /* and the scalars' granule */
    assert_int_equal(bytes->before, 1000000000 + bytes->context);
    assert_int_equal(bytes->peak - bytes->before, result.rank.reserved);
    assert_int_equal(bytes->others, 1);
}

static void without_nvml_the_context_is_not_known(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    assert_true(run(&plan, OC_DEVICE_CUDA, &result));
    assert_true(result.bytes.measured);
    assert_false(result.bytes.context_known);
    assert_int_equal(result.bytes.others, -1);
    setenv("FAKE_NVML", "used=0,others=3", 1);
    fake("slice=1"); /* NVML would speak of the whole card */
    assert_true(run(&plan, OC_DEVICE_CUDA, &result));
    assert_false(result.bytes.context_known);
    assert_int_equal(result.bytes.others, -1);
    setenv("FAKE_NVML", "used=5e6,others=3,v1=1", 1);
    fake("other=5e6"); /* an old library */
    assert_true(run(&plan, OC_DEVICE_CUDA, &result));
    assert_true(result.bytes.context_known);
    assert_int_equal(result.bytes.others, -1);
    setenv("FAKE_NVML", "used=9e9", 1);
    fake(""); /* somebody else has gone in between */
    assert_true(run(&plan, OC_DEVICE_CUDA, &result));
    assert_false(result.bytes.context_known);
}

static void a_gpu_in_use_is_left_alone_when_asked(void **state)
{
    (void)state;
    static const struct {
        const char *nvml;
        enum oc_device device;
    } rows[] = {{"used=0,others=0", OC_DEVICE_CUDA}, {"used=0,others=2", OC_DEVICE_HOST}, {NULL, OC_DEVICE_HOST}};
    struct oc_plan plan = help_plan();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].nvml)
            setenv("FAKE_NVML", rows[i].nvml, 1);
        else
            unsetenv("FAKE_NVML");
        fake("");
        struct oc_probe_options options = {.device = OC_DEVICE_AUTO, .steps = 2, .alone = true};
        assert_true(oc_probe_run(&plan, &options, &result));
        assert_int_equal(result.device, rows[i].device);
        assert_int_equal(strlen(result.fallback) > 0, rows[i].device == OC_DEVICE_HOST);
        assert_int_equal(fake_cuda_counts().live, 0);
        options.device = OC_DEVICE_CUDA; /* asked for by name it is used all the same */
        assert_true(oc_probe_run(&plan, &options, &result));
        assert_int_equal(result.device, OC_DEVICE_CUDA);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_is_the_host_in_every_number, clean),
        cmocka_unit_test_setup(auto_takes_the_gpu, clean),
        cmocka_unit_test_setup(what_is_there_is_said, clean),
        cmocka_unit_test_setup(a_gpu_that_is_not_there_is_said, clean),
        cmocka_unit_test_setup(too_little_memory_is_said, clean),
        cmocka_unit_test_setup(one_failed_allocation_is_tried_again, clean),
        cmocka_unit_test_setup(a_sticky_error_ends_the_run_wherever_it_comes, clean),
        cmocka_unit_test_setup(device_bytes_are_reserved_and_context, clean),
        cmocka_unit_test_setup(without_nvml_the_context_is_not_known, clean),
        cmocka_unit_test_setup(a_gpu_in_use_is_left_alone_when_asked, clean),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_cuda_reset();
    return failed;
}
