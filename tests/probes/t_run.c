/* Whole runs of the probe: it learns, the dry run is the host run in every number, and it ends well when it cannot go
 * on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/alloc.h"
#include "oomcast/probe.h"
#include "tests/probes/help_plan.h"

static struct oc_probe_result result, other;

static bool run(const struct oc_plan *plan, enum oc_device device, int steps, struct oc_probe_result *into)
{
    struct oc_probe_options options = {.device = device, .steps = steps};
    return oc_probe_run(plan, &options, into);
}

/* Number `i`: Llamas under PyTorch, then other families, then one rank of Megatron, from 60 on one of FSDP2. */
static struct oc_plan any_plan(int i)
{
    if (i < 30) return help_mixed_plan(i);
    if (i >= 60) return help_fsdp2_plan(i - 60);
    return i < 36 ? help_family_plan(i - 30) : help_megatron_plan(i);
}

/* ---- Numerics ---- */

static void the_loss_falls_over_20_steps(void **state)
{
    (void)state;
    for (int precision = OC_PREC_FP32; precision <= OC_PREC_PURE_BF16; precision++) {
        for (int optimizer = 0; optimizer < 4; optimizer++) {
            struct oc_plan plan = help_plan();
            help_optimizer(&plan, optimizer < 2 ? OC_OPTIM_SGD : OC_OPTIM_ADAMW,
                           optimizer == 2 ? OC_IMPL_FUSED : OC_IMPL_LOOP, optimizer == 1 ? 0.9 : 0);
            help_precision(&plan, (enum oc_precision)precision);
            assert_true(run(&plan, OC_DEVICE_HOST, 20, &result));
            assert_int_equal(result.n_losses, 20);
            assert_true(fabs(result.losses[0] - log(67)) < 1.0);
            if (!(result.losses[19] < 0.5 * result.losses[0]))
                fail_msg("precision %d, optimizer %d: %g to %g", precision, optimizer, result.losses[0],
                         result.losses[19]);
        }
    }
}

static void so_it_does_under_megatron(void **state)
{
    (void)state;
    for (int i = 0; i < 36; i++) {
        struct oc_plan plan = help_megatron_plan(i);
        if (oc_probe_covers(&plan)) continue;
        assert_true(run(&plan, OC_DEVICE_HOST, 20, &result));
        assert_int_equal(result.n_losses, 20);
        const double left = plan.c.model_dropout > 0 ? 0.75 : 0.6;
        if (!(result.losses[19] < left * result.losses[0]))
            fail_msg("plan %d: %g to %g", i, result.losses[0], result.losses[19]);
    }
}

/* Four shares that are one look alike to the model, so that it learns less. */
static void so_it_does_under_fsdp2(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct oc_plan plan = help_fsdp2_plan(i);
        assert_null(oc_probe_covers(&plan));
        assert_true(run(&plan, OC_DEVICE_HOST, 20, &result));
        if (!(result.losses[19] < 0.75 * result.losses[0]))
            fail_msg("plan %d: %g to %g", i, result.losses[0], result.losses[19]);
    }
}

/* Gradients go through buckets, or lie in them: the numbers are those of one rank. */
static void so_does_a_rank_of_ddp(void **state)
{
    (void)state;
    for (int i = 0; i < 14; i++) {
        struct oc_plan alone = help_mixed_plan(i), shared = alone;
        alone.dp = alone.c.parallel_world = 1, alone.c.parallel_bucket_view = 0;
        shared.dp = shared.c.parallel_world = 2;
        shared.c.parallel_bucket_view = i % 2 && !alone.c.model_tied && alone.c.precision_autocast == OC_NONE;
        assert_true(run(&alone, OC_DEVICE_HOST, 3, &other));
        assert_true(run(&shared, OC_DEVICE_HOST, 3, &result));
        assert_memory_equal(result.losses, other.losses, sizeof result.losses);
        if (!shared.c.parallel_bucket_view) assert_true(result.rank.peak.allocated > other.rank.peak.allocated);
    }
}

/* How Adam is written changes what memory it takes, not what it computes. */
static void fused_foreach_and_loop_are_one_adam(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    help_optimizer(&plan, OC_OPTIM_ADAMW, OC_IMPL_FUSED, 0);
    assert_true(run(&plan, OC_DEVICE_HOST, 10, &result));
    for (int impl = OC_IMPL_FOREACH; impl <= OC_IMPL_LOOP; impl++) {
        help_optimizer(&plan, OC_OPTIM_ADAMW, (enum oc_optimizer_impl)impl, 0);
        assert_true(run(&plan, OC_DEVICE_HOST, 10, &other));
        for (int i = 0; i < 10; i++) assert_true(fabs(result.losses[i] - other.losses[i]) < 1e-4 * result.losses[i]);
    }
}

static void poisoned_losses_are_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < 72; i++) {
        struct oc_plan plan = any_plan(i);
        if (oc_probe_covers(&plan)) continue;
        struct oc_probe_options options = {.device = OC_DEVICE_HOST, .steps = 2, .poison = true};
        assert_true(oc_probe_run(&plan, &options, &other));
        options.poison = false;
        assert_true(oc_probe_run(&plan, &options, &result));
        assert_memory_equal(result.losses, other.losses, sizeof result.losses);
    }
}

/* ---- Books ---- */

static void assert_same_instant(const struct oc_instant *a, const struct oc_instant *b)
{
    assert_int_equal(a->exists, b->exists);
    assert_int_equal(a->requested, b->requested);
    assert_int_equal(a->allocated, b->allocated);
    assert_memory_equal(a->classes, b->classes, sizeof a->classes);
    assert_int_equal(a->place.moment, b->place.moment);
    assert_int_equal(a->place.micro_batch, b->place.micro_batch);
    assert_int_equal(a->place.layer, b->place.layer);
}

static void dry_is_host_in_every_number(void **state)
{
    (void)state;
    for (int i = 0; i < 72; i++) {
        struct oc_plan plan = any_plan(i);
        if (oc_probe_covers(&plan)) continue;
        assert_true(run(&plan, OC_DEVICE_HOST, 2, &result));
        assert_true(run(&plan, OC_DEVICE_DRY, 2, &other));
        for (int it = 0; it < OC_ITERATIONS; it++)
            for (int m = 0; m < OC_MOMENTS; m++)
                assert_same_instant(&result.rank.moments[it][m], &other.rank.moments[it][m]);
        assert_same_instant(&result.rank.first_peak, &other.rank.first_peak);
        assert_same_instant(&result.rank.peak, &other.rank.peak);
        assert_int_equal(result.rank.reserved, other.rank.reserved);
        assert_int_equal(result.rank.params, other.rank.params);
        assert_int_equal(result.n_entries, other.n_entries);
        assert_memory_equal(result.entries, other.entries, sizeof result.entries);
        assert_int_equal(result.rank.allocated_by, OC_MEASURED);
        assert_int_equal(other.rank.allocated_by, OC_SIMULATED);
        assert_int_equal(other.n_losses, 0);
    }
}

static void books_add_up(void **state)
{
    (void)state;
    for (int i = 0; i < 42; i++) {
        struct oc_plan plan = help_mixed_plan(i);
        assert_true(run(&plan, OC_DEVICE_DRY, 3, &result));
        for (int it = 0; it < OC_ITERATIONS; it++)
            for (int m = 0; m < OC_MOMENTS; m++) {
                const struct oc_instant *instant = &result.rank.moments[it][m];
                const bool absent = m == OC_M_INIT && it == OC_STEADY;
                assert_int_equal(instant->exists, !absent);
                uint64_t sum = 0;
                for (int class = 0; class < OC_CLASSES; class ++) sum += instant->classes[class];
                assert_int_equal(sum, instant->allocated);
                assert_true(instant->requested <= instant->allocated && instant->allocated <= result.rank.reserved);
                if (!absent) {
                    assert_int_equal(instant->place.moment, m);
                    assert_int_equal(instant->place.iteration, it);
                }
                if (m != OC_M_INIT && it == OC_STEADY) assert_true(instant->allocated <= result.rank.peak.allocated);
            }
        uint64_t entries = 0;
        for (int e = 0; e < result.n_entries; e++) entries += result.entries[e].bytes;
        assert_int_equal(entries, result.rank.peak.requested);
    }
}

/* Known sizes of a plan small enough to add up by hand: 2 layers of 4224 + 48 x 32 x 3 + ... parameters. */
static void states_are_as_large_as_they_should_be(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    const uint64_t layer = 2 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32, params = 2 * layer + 2 * 67 * 32 + 32;
    assert_true(run(&plan, OC_DEVICE_DRY, 2, &result));
    assert_int_equal(result.rank.params, params);
    const struct oc_instant *after = &result.rank.moments[OC_STEADY][OC_M_AFTER_STEP];
    assert_int_equal(after->classes[OC_WEIGHTS], 4 * params);
    assert_int_equal(after->classes[OC_GRADIENTS], 4 * params);
    assert_int_equal(after->classes[OC_OPTIMIZER], 8 * params);
    assert_int_equal(after->classes[OC_ACTIVATIONS], 0);
    assert_int_equal(result.rank.moments[OC_STEADY][OC_M_IDLE].classes[OC_GRADIENTS], 0);
    assert_int_equal(result.rank.moments[OC_FIRST][OC_M_FORWARD].classes[OC_OPTIMIZER], 0);
    assert_int_equal(result.rank.moments[OC_STEADY][OC_M_FORWARD].classes[OC_OPTIMIZER], 8 * params);
    assert_int_equal(result.rank.moments[OC_STEADY][OC_M_STEP].requested - 16 * params,
                     4 * params); /* foreach's sqrt */
    plan.c.run_resume = 1;
    assert_true(run(&plan, OC_DEVICE_DRY, 2, &result));
    assert_int_equal(result.rank.moments[OC_FIRST][OC_M_INIT].classes[OC_OPTIMIZER], 8 * params);
}

/* ---- Ends ---- */

static void too_little_memory_is_said(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    const enum oc_device devices[] = {OC_DEVICE_HOST, OC_DEVICE_DRY};
    for (uint64_t mib = 0; mib <= 120; mib += 12) {
        plan.c.model_layers = 6;
        plan.c.model_ffn = 4800;
        for (int d = 0; d < 2; d++) {
            struct oc_probe_options options = {
                .device = devices[d], .steps = 2, .limit = (mib << 20) + 1, .poison = true};
            if (oc_probe_run(&plan, &options, &result)) {
                assert_true(result.rank.reserved <= options.limit);
                continue;
            }
            assert_int_equal(result.status, OC_PROBE_OOM);
            assert_non_null(strstr(result.why, "no room for"));
            assert_non_null(strstr(result.why, "bytes"));
        }
    }
    assert_int_equal(result.status, OC_PROBE_DONE); /* 120 MiB are enough */
}

static void absurd_sizes_are_out_of_memory(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    plan.c.model_hidden = 1048576, plan.c.model_ffn = 4194304, plan.c.model_vocab = plan.vocab = 16777216;
    plan.c.batch_seq = 16777216, plan.c.batch_micro = 65536, plan.c.model_heads = 65536, plan.c.model_kv_heads = 65536;
    plan.c.model_head_dim = 65536, plan.q = plan.kv = (int64_t)65536 * 65536;
    plan.c.kernels_attention = OC_ATTN_EAGER;
    struct oc_probe_options options = {.device = OC_DEVICE_DRY, .steps = 2, .limit = (uint64_t)1 << 50};
    assert_false(oc_probe_run(&plan, &options, &result));
    assert_int_equal(result.status, OC_PROBE_OOM);
}

struct countdown {
    int calls, left;
    char phase[32];
};

static bool count_down(void *user, const char *phase, int step, int steps)
{
    struct countdown *countdown = user;
    assert_true(step >= 0 && step < steps);
    snprintf(countdown->phase, sizeof countdown->phase, "%s", phase);
    countdown->calls++;
    return countdown->left-- > 0;
}

static void it_can_be_cancelled_anywhere(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    plan.c.recompute = OC_RECOMPUTE_FULL;
    bool done = false;
    int left = 0;
    for (; !done; left++) {
        struct countdown countdown = {.left = left};
        struct oc_probe_options options = {
            .device = OC_DEVICE_DRY, .steps = 2, .progress = count_down, .user = &countdown};
        done = oc_probe_run(&plan, &options, &result);
        if (done) break;
        assert_int_equal(result.status, OC_PROBE_CANCELLED);
        assert_int_equal(countdown.calls, left + 1); /* it is not asked again */
        assert_true(strlen(result.why) > 0);
    }
    assert_true(left > 20);
}

static void a_cancel_comes_through_within_a_layer(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    plan.c.model_vocab = plan.vocab = 40000; /* a head that takes a while */
    plan.c.batch_seq = 64;
    struct countdown countdown = {.left = 5};
    struct oc_probe_options options = {
        .device = OC_DEVICE_HOST, .steps = 1000, .progress = count_down, .user = &countdown};
    assert_false(oc_probe_run(&plan, &options, &result));
    assert_int_equal(result.status, OC_PROBE_CANCELLED);
    assert_true(result.seconds < 2);
}

static void what_it_cannot_run_is_said(void **state)
{
    (void)state;
    struct oc_plan plan = help_plan();
    const bool gpu = run(&plan, OC_DEVICE_CUDA, 2, &result);
    assert_int_equal(result.status, gpu ? OC_PROBE_DONE : OC_PROBE_FAILED);
    assert_int_equal(strlen(result.why) > 0, !gpu);
    assert_true(run(&plan, OC_DEVICE_AUTO, 0, &result)); /* fewer than two steps are two */
    assert_int_equal(result.device, gpu ? OC_DEVICE_CUDA : OC_DEVICE_HOST);
    assert_int_equal(strlen(result.fallback) > 0, !gpu);
    assert_int_equal(result.n_losses, 2);
    plan.c.framework = OC_FW_MEGATRON;
    assert_false(run(&plan, OC_DEVICE_DRY, 2, &result));
    assert_int_equal(result.status, OC_PROBE_FAILED);
    assert_string_equal(result.why, oc_probe_covers(&plan));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_falls_over_20_steps),
        cmocka_unit_test(so_it_does_under_megatron),
        cmocka_unit_test(so_it_does_under_fsdp2),
        cmocka_unit_test(so_does_a_rank_of_ddp),
        cmocka_unit_test(fused_foreach_and_loop_are_one_adam),
        cmocka_unit_test(poisoned_losses_are_the_same),
        cmocka_unit_test(dry_is_host_in_every_number),
        cmocka_unit_test(books_add_up),
        cmocka_unit_test(states_are_as_large_as_they_should_be),
        cmocka_unit_test(too_little_memory_is_said),
        cmocka_unit_test(absurd_sizes_are_out_of_memory),
        cmocka_unit_test(it_can_be_cancelled_anywhere),
        cmocka_unit_test(a_cancel_comes_through_within_a_layer),
        cmocka_unit_test(what_it_cannot_run_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
