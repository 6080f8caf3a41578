/* Peaks of whole steps against steps that were measured: 412 small GPT-2 and Llama models in fp32 and under
 * autocast, with every optimizer of the fixture, gradients freed and kept (tests/data/steps.txt). The measurement is of
 * a CPU and of blocks written by hand, which hold on to local names a little longer; so a distribution is held, not
 * each row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fixture.h"

enum { MOST_ROWS = 800 };

static double error_of(const struct help_row *run, const char *optimizer, int freed, long long peak)
{
    static struct oc_ledger ledger;
    struct oc_config config = help_row_config(run);
    struct oc_plan plan;
    struct oc_rank rank;
    struct oc_error error;
    const bool momentum = help_is(optimizer, "sgdm");
    help_assign(&config, "optimizer", "%s", momentum ? "sgd" : optimizer);
    help_assign(&config, "optimizer.momentum", "%s", momentum ? "0.9" : "0");
    help_assign(&config, "optimizer.impl", "loop");
    help_assign(&config, "run.zero_grad_to_none", "%d", freed);
    if (!oc_resolve(&config, &plan, NULL, &error)) fail_msg("%s (%s)", error.message, error.hint);
    help_rank(&plan, 0, &ledger, &rank);
    return ((double)rank.peak.requested - (double)peak) / (double)peak;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Holds the rows of one kind of recompute: median, 90th percentile and largest absolute error, and the mean error. */
static void check(const char *mode, const char *recompute, double median, double p90, double most, double bias)
{
    FILE *file = fopen(OOMCAST_SOURCE "/tests/data/steps.txt", "r");
    assert_non_null(file);
    static double size[MOST_ROWS];
    char text[256];
    int n = 0;
    double sum = 0;
    while (fgets(text, sizeof text, file) && n < MOST_ROWS) {
        struct help_row run;
        const char *rest;
        char optimizer[8];
        int freed;
        long long peak;
        if (!help_read_row(text, &run, &rest) || !help_is(run.recompute, recompute)) continue;
        if (!help_is(run.mode, mode)) continue;
        assert_int_equal(sscanf(rest, "%7s %d %lld", optimizer, &freed, &peak), 3);
        const double error = error_of(&run, optimizer, freed, peak);
        sum += error;
        size[n++] = error < 0 ? -error : error;
    }
    fclose(file);
    assert_true(n >= 20);
    qsort(size, (size_t)n, sizeof *size, by_size);
    const double got[] = {size[n / 2], size[n * 9 / 10], size[n - 1], sum / n < 0 ? -sum / n : sum / n};
    const double wanted[] = {median, p90, most, bias};
    for (int i = 0; i < 4; i++)
        if (got[i] > wanted[i])
            fail_msg("%s, recompute %s, figure %d: %.3f %% above %.3f %%", mode, recompute, i, 100 * got[i],
                     100 * wanted[i]);
}

static void nothing_recomputed(void **state)
{
    (void)state;
    check("fp32", "none", 0.0003, 0.0045, 0.047, 0.0022);
    check("amp_cuda", "none", 0.0002, 0.004, 0.021, 0.0009);
}

static void layers_recomputed(void **state)
{
    (void)state;
    check("fp32", "full", 0.0014, 0.016, 0.063, 0.0014);
    check("amp_cuda", "full", 0.0036, 0.015, 0.046, 0.0036);
}

static void attention_recomputed(void **state)
{
    (void)state;
    check("fp32", "attn", 0.0043, 0.046, 0.086, 0.012);
    check("amp_cuda", "attn", 0.0034, 0.028, 0.044, 0.0105);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_recomputed), cmocka_unit_test(layers_recomputed),
                                       cmocka_unit_test(attention_recomputed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
