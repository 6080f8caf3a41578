/* The whole model's gradient in fp32, against finite differences, against itself under other ways to compute it, and
 * with each saved tensor taken away in turn: what autograd keeps is enough, and all of it is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/probes/help_plan.h"
#include "tests/probes/help_train.h"

/* ---- Finite differences ---- */

/* The loss when the parameter is moved by `distance` along `direction`. */
static double loss_at(struct help_train *help, struct oc_param *param, const float *direction, double distance)
{
    float *weight = param->weight->array.data, *before = malloc((size_t)param->weight->bytes);
    assert_non_null(before);
    memcpy(before, weight, (size_t)param->weight->bytes);
    for (uint64_t i = 0; i < param->weight->elements; i++) weight[i] += (float)distance * direction[i];
    double loss = help_train_run(help);
    memcpy(weight, before, (size_t)param->weight->bytes);
    free(before);
    return loss;
}

/* For each parameter one direction: half its own gradient (so that the slope is large), half random. */
static void check_slopes(const struct oc_plan *plan, double tolerance)
{
    struct help_train help;
    help_train_open(&help, plan, false, NULL);
    help_train_run(&help);
    float *gradients = help_train_gradients(&help, NULL), *gradient = gradients;
    uint32_t random = 7;
    for (int i = 0; i < help.train.n_params; i++) {
        struct oc_param *param = &help_train_params(&help)[i];
        const int64_t n = (int64_t)param->weight->elements;
        float *direction = malloc((size_t)n * sizeof *direction);
        assert_non_null(direction);
        double length = 0, slope = 0;
        for (int64_t j = 0; j < n; j++) length += (double)gradient[j] * (double)gradient[j];
        length = sqrt(length);
        /* Without rope it moves all scores of a row alike. */
        if (length < 1e-5 && plan->c.model_positions != OC_POS_ROPE &&
            strcmp(param->block, "layers.attention.k.bias") == 0) {
            free(direction);
            gradient += n;
            continue;
        }
        assert_true(length > 1e-4);
        for (int64_t j = 0; j < n; j++) {
            random = random * 1664525u + 1013904223u;
            double noise = ((double)(random >> 8) / 8388608.0 - 1.0) / sqrt((double)n);
            direction[j] = (float)((double)gradient[j] / length + noise);
            slope += (double)direction[j] * (double)gradient[j];
        }
        const double least = plan->c.framework == OC_FW_FSDP2 ? 1e-3 : 3e-3; /* repeated shares bend more */
        const double step = least / (1 + length);
        const double measured =
            (loss_at(&help, param, direction, step) - loss_at(&help, param, direction, -step)) / (2 * step);
        if (fabs(measured - slope) > tolerance * fabs(slope))
            fail_msg("%s (parameter %d): slope %g, finite difference %g", param->block, i, slope, measured);
        free(direction);
        gradient += n;
    }
    free(gradients);
    help_train_close(&help);
}

static void gradients_agree_with_finite_differences(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct oc_plan plan = help_plan();
        plan.c.kernels_attention = i & 1 ? OC_ATTN_EAGER : OC_ATTN_FLASH;
        plan.c.recompute = i & 2 ? OC_RECOMPUTE_FULL : OC_RECOMPUTE_NONE;
        plan.c.model_tied = (i & 4) != 0;
        check_slopes(&plan, 0.01);
    }
    for (int i = 0; i < 2 * HELP_FAMILIES; i++) {
        struct oc_plan plan = help_family_plan(i / 2);
        plan.c.kernels_attention = i & 1 ? OC_ATTN_EAGER : OC_ATTN_FLASH;
        plan.c.recompute = i % 3 == 2 ? OC_RECOMPUTE_FULL : OC_RECOMPUTE_NONE;
        check_slopes(&plan, 0.03); /* relu has a kink */
    }
}

/* Megatron's step on one rank, in fp32: flash and unfused, kept and recomputed. */
static void so_do_those_of_megatron(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct oc_plan plan = help_megatron_plan(i);
        plan.dt = help_megatron_plan(0).dt; /* fp32 */
        check_slopes(&plan, 0.03);
    }
}

/* FSDP2's, whose ranks hold the same shares: the gradient of a share is the sum over the weights made of it. */
static void so_do_those_of_fsdp2(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct oc_plan plan = help_fsdp2_plan(i);
        plan.dt = help_plan().dt; /* fp32 */
        plan.c.precision_reduce = OC_FP32;
        check_slopes(&plan, 0.03);
    }
}

/* ---- The same gradient in other ways ---- */

static float *gradients_of(const struct oc_plan *plan, bool poison, const char *drop, struct help_train *help)
{
    help_train_open(help, plan, poison, drop);
    help_train_run(help);
    return help_train_gradients(help, NULL);
}

static double distance_between(const struct oc_plan *a, const struct oc_plan *b, bool poison_b)
{
    struct help_train help_a, help_b;
    float *of_a = gradients_of(a, false, NULL, &help_a), *of_b = gradients_of(b, poison_b, NULL, &help_b);
    double distance = help_train_distance(&help_a, of_b, of_a);
    if (help_a.train.loss != help_b.train.loss) distance = fmax(distance, 1e-12);
    free(of_a);
    free(of_b);
    help_train_close(&help_a);
    help_train_close(&help_b);
    return distance;
}

static void flash_is_eager(void **state)
{
    (void)state;
    for (int micro = 1; micro <= 2; micro++) {
        struct oc_plan flash = help_plan(), eager = flash;
        flash.c.batch_micro = eager.c.batch_micro = micro;
        eager.c.kernels_attention = OC_ATTN_EAGER;
        assert_true(distance_between(&flash, &eager, false) < 1e-5);
    }
}

/* Number `i`: Llamas first, then the other families in all precisions, eager and flash. */
static struct oc_plan plan_of_any_family(int i)
{
    if (i < 28) return help_mixed_plan(i);
    struct oc_plan plan = help_family_plan(i % HELP_FAMILIES);
    plan.c.kernels_attention = i % 4 < 2 ? OC_ATTN_EAGER : OC_ATTN_FLASH;
    plan.c.recompute = i % 5 == 0 ? OC_RECOMPUTE_FULL : OC_RECOMPUTE_NONE;
    plan.c.kernels_norm = i % 3 ? OC_NORMK_FUSED : OC_NORMK_EAGER;
    help_precision(&plan, (enum oc_precision)(i % (OC_PREC_PURE_BF16 + 1)));
    return plan;
}

static void recomputed_is_kept_to_the_bit(void **state)
{
    (void)state;
    for (int i = 0; i < 28 + 42; i++) {
        struct oc_plan kept = plan_of_any_family(i), again = kept;
        kept.c.recompute = OC_RECOMPUTE_NONE;
        again.c.recompute = OC_RECOMPUTE_FULL;
        assert_true(distance_between(&kept, &again, false) == 0);
    }
    for (int i = 0; i < 9; i++) {
        struct oc_plan kept = help_fsdp2_plan(i), again = kept;
        kept.c.recompute = OC_RECOMPUTE_NONE;
        again.c.recompute = OC_RECOMPUTE_FULL;
        assert_true(distance_between(&kept, &again, false) == 0);
    }
}

static void so_it_is_under_megatron(void **state)
{
    (void)state;
    for (int i = 0; i < 36; i++) {
        struct oc_plan kept = help_megatron_plan(i), again = kept;
        kept.c.recompute = OC_RECOMPUTE_NONE;
        for (int recompute = OC_RECOMPUTE_SELECTIVE; recompute <= OC_RECOMPUTE_FULL; recompute++) {
            again.c.recompute = recompute;
            /* The scores are made again in the type of the probabilities: fp32 there is not what a 16-bit product was.
             */
            const bool exact = recompute == OC_RECOMPUTE_FULL || !again.c.megatron_softmax_in_fp32 ||
                               again.dt.weights == OC_FP32 || again.c.kernels_attention == OC_ATTN_FLASH;
            assert_true(distance_between(&kept, &again, false) <= (exact ? 0 : 0.02));
        }
    }
}

static void nothing_reads_freed_or_fresh_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 28 + 42; i++) {
        struct oc_plan plan = plan_of_any_family(i);
        assert_true(distance_between(&plan, &plan, true) == 0);
    }
    for (int i = 0; i < 36; i++) {
        struct oc_plan plan = help_megatron_plan(i);
        assert_true(distance_between(&plan, &plan, true) == 0);
    }
    for (int i = 0; i < 9; i++) {
        struct oc_plan plan = help_fsdp2_plan(i);
        assert_true(distance_between(&plan, &plan, true) == 0);
    }
}

/* What waits, whole, for the last micro-batch is what is reduced with each: FSDP2's, and what becomes views of DDP's
 * buckets. */
static void what_waits_is_what_is_reduced_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct oc_plan synced = help_fsdp2_plan(i);
        synced.accum = synced.c.batch_accum = 2 + i % 2;
        synced.c.parallel_no_sync = 0;
        struct oc_plan waits = synced;
        waits.c.parallel_no_sync = 1;
        const bool wide = synced.dt.weights == OC_FP32 && synced.c.precision_reduce == OC_FP32;
        assert_true(distance_between(&synced, &waits, false) < (wide ? 1e-5 : 0.02));
    }
    for (int i = 0; i < 8; i++) {
        struct oc_plan synced = help_mixed_plan(i);
        synced.accum = synced.c.batch_accum = 3;
        synced.dp = synced.c.parallel_world = 2;
        synced.c.parallel_bucket_view = synced.c.run_zero_grad_to_none = 1;
        synced.c.parallel_no_sync = 0;
        struct oc_plan waits = synced;
        waits.c.parallel_no_sync = 1;
        assert_true(distance_between(&synced, &waits, true) == 0);
    }
}

static void accumulation_is_the_mean(void **state)
{
    (void)state;
    struct oc_plan once = help_plan(), twice = once;
    once.c.batch_micro = 1;
    twice.c.batch_micro = 1;
    twice.accum = twice.c.batch_accum = 2;
    struct help_train first, both;
    float *of_first = gradients_of(&once, false, NULL, &first);
    float *of_both = gradients_of(&twice, false, NULL, &both);
    first.train.micro_batch = 1;
    for (int i = 0; i < first.train.n_params; i++) oc_let_go(&first.train, &first.train.params[i].grad);
    oc_micro_batch(&first.train);
    int64_t n;
    float *of_second = help_train_gradients(&first, &n);
    for (int64_t i = 0; i < n; i++) of_first[i] = (of_first[i] + of_second[i]) / 2;
    assert_true(help_train_distance(&first, of_both, of_first) < 1e-5);
    free(of_first);
    free(of_second);
    free(of_both);
    help_train_close(&first);
    help_train_close(&both);
}

/* ---- Lower precision is near ---- */

static void half_precision_is_near_fp32(void **state)
{
    (void)state;
    static const struct {
        enum oc_precision precision;
        double most;
    } rows[] = {
        {OC_PREC_AMP_BF16, 0.06}, {OC_PREC_AMP_FP16, 0.01}, {OC_PREC_PURE_BF16, 0.06}, {OC_PREC_PURE_FP16, 0.02}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct oc_plan full = help_plan(), half;
        full.c.kernels_attention = i % 2 ? OC_ATTN_EAGER : OC_ATTN_FLASH;
        half = full;
        help_precision(&half, rows[i / 2].precision);
        double distance = distance_between(&full, &half, false);
        if (!(distance < rows[i / 2].most)) fail_msg("precision %d: %g", (int)rows[i / 2].precision, distance);
        assert_true(distance > 1e-6); /* it is another precision */
    }
}

/* ---- Every saved tensor is needed ---- */

enum { MOST_NAMES = 128, NAME = 64 };

static int saved_names(const struct help_train *help, char names[MOST_NAMES][NAME])
{
    int n = 0;
    for (int i = 0; i < help->books.n_rows; i++) {
        const struct oc_book_row *row = &help->books.rows[i];
        if (!row->saved) continue;
        assert_true(n < MOST_NAMES);
        snprintf(names[n++], NAME, "%s.%s", row->block, row->name);
    }
    return n;
}

static void check_drops(const struct oc_plan *plan, int at_least)
{
    static char names[MOST_NAMES][NAME];
    struct help_train whole;
    float *gradients = gradients_of(plan, true, NULL, &whole);
    int n = saved_names(&whole, names);
    assert_true(n >= at_least);
    for (int i = 0; i < n; i++) {
        struct help_train help;
        float *without = gradients_of(plan, true, names[i], &help);
        double distance = help_train_distance(&whole, without, gradients);
        if (!(distance > 0.05)) fail_msg("without %s the gradient is off by %g only", names[i], distance);
        free(without);
        help_train_close(&help);
    }
    free(gradients);
    help_train_close(&whole);
}

static void every_saved_tensor_is_needed(void **state)
{
    (void)state;
    static const enum oc_precision precisions[] = {OC_PREC_FP32, OC_PREC_AMP_BF16, OC_PREC_PURE_BF16,
                                                   OC_PREC_PURE_FP16};
    for (int i = 0; i < 16; i++) {
        struct oc_plan plan = help_plan();
        plan.c.kernels_attention = i & 1 ? OC_ATTN_EAGER : OC_ATTN_FLASH;
        plan.c.recompute = i & 2 ? OC_RECOMPUTE_FULL : OC_RECOMPUTE_NONE;
        help_precision(&plan, precisions[i / 4]);
        check_drops(&plan, 20);
    }
    for (int i = 0; i < 4 * HELP_FAMILIES; i++) {
        struct oc_plan plan = help_family_plan(i / 4);
        plan.c.kernels_attention = i & 1 ? OC_ATTN_EAGER : OC_ATTN_FLASH;
        help_precision(&plan, i & 2 ? OC_PREC_AMP_BF16 : OC_PREC_PURE_FP16);
        check_drops(&plan, 12);
    }
    for (int i = 0; i < 3; i++) {
        struct oc_plan plan = help_fsdp2_plan(i);
        check_drops(&plan, 12);
    }
    for (int i = 0; i < 12; i++) {
        struct oc_plan plan = help_megatron_plan(i);
        check_drops(&plan, plan.c.recompute == OC_RECOMPUTE_FULL ? 12 : 14);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_finite_differences),
        cmocka_unit_test(so_do_those_of_megatron),
        cmocka_unit_test(so_do_those_of_fsdp2),
        cmocka_unit_test(flash_is_eager),
        cmocka_unit_test(recomputed_is_kept_to_the_bit),
        cmocka_unit_test(so_it_is_under_megatron),
        cmocka_unit_test(nothing_reads_freed_or_fresh_memory),
        cmocka_unit_test(what_waits_is_what_is_reduced_at_once),
        cmocka_unit_test(accumulation_is_the_mean),
        cmocka_unit_test(half_precision_is_near_fp32),
        cmocka_unit_test(every_saved_tensor_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
