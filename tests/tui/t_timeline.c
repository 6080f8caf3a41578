/* The step's timeline: it says of each moment what the sweep says, and no column hides the highest instant it covers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tui/views/timeline.h"

static const struct {
    const char *set[12];
    int stage;
} cases[] = {
    {{"framework=pytorch", "model.name=gpt2", "precision=amp-fp16", "optimizer=adamw", "batch.accum=3"}, 0},
    {{"framework=megatron", "model.name=llama-3-8b", "precision=fp16", "optimizer=sgd", "recompute=full"}, 0},
    {{"framework=megatron", "model.name=llama-3-70b", "parallel.tp=8", "parallel.pp=4", "parallel.vpp=5",
      "parallel.world=64", "parallel.zero=1", "batch.global=256"},
     0},
    {{"framework=megatron", "model.name=llama-3-70b", "parallel.pp=16", "parallel.vpp=5", "batch.global=512"}, 3},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static void make_ledger(int i, struct oc_ledger *ledger)
{
    struct oc_config config = oc_config_default();
    struct oc_error error = {0};
    static struct oc_plan plan;
    for (const char *const *set = cases[i].set; *set; set++) {
        enum oc_option_id id;
        if (!oc_config_assign(&config, *set, &id, &error)) fail_msg("%s: %s", *set, error.message);
    }
    if (!oc_resolve(&config, &plan, NULL, &error)) fail_msg("%d: %s", i, error.message);
    assert_true(oc_estimate(&plan, cases[i].stage, ledger, &error));
}

static uint64_t most_of(const struct oc_timeline *timeline, int iteration, int moment)
{
    uint64_t most = 0;
    for (int n = 0; n < timeline->n[iteration]; n++) {
        const struct oc_sample *sample = &timeline->samples[iteration][n];
        if ((int)sample->place.moment == moment && sample->allocated > most) most = sample->allocated;
    }
    return most;
}

static void moments_are_those_of_the_sweep(void **state)
{
    (void)state;
    struct oc_ledger *ledger = malloc(sizeof *ledger);
    struct oc_timeline *timeline = malloc(sizeof *timeline);
    for (int c = 0; c < CASES; c++) {
        struct oc_rank rank = {0};
        make_ledger(c, ledger);
        oc_sweep(ledger, &rank);
        oc_timeline_make(ledger, &rank, timeline);
        for (int i = 0; i < OC_ITERATIONS; i++)
            for (int m = OC_M_FORWARD; m < OC_MOMENTS; m++) {
                const struct oc_instant *instant = &rank.moments[i][m];
                uint64_t most = most_of(timeline, i, m);
                /* what a moment begins with, from the moment before, belongs to the sweep's figure as well */
                if (most > instant->allocated) fail_msg("case %d: %s has more", c, oc_moment_name((enum oc_moment)m));
            }
        const struct oc_sample *top = &timeline->samples[OC_STEADY][oc_timeline_peak(timeline, OC_STEADY)];
        assert_true(top->allocated == rank.peak.allocated);
        assert_memory_equal(top->classes, rank.peak.classes, sizeof top->classes);
        assert_int_equal(top->place.moment, rank.peak.place.moment);
        assert_true(timeline->n[OC_FIRST] > 0 && timeline->n[OC_FIRST] <= OC_TIMELINE_SAMPLES);
    }
    free(timeline);
    free(ledger);
}

static void classes_add_up_and_rests_reach_the_answer(void **state)
{
    (void)state;
    struct oc_ledger *ledger = malloc(sizeof *ledger);
    struct oc_timeline *timeline = malloc(sizeof *timeline);
    struct oc_rank rank = {0};
    make_ledger(1, ledger);
    oc_sweep(ledger, &rank);
    rank.moments[OC_STEADY][OC_M_BACKWARD].allocated += 4096; /* as a replay through the allocator would add */
    rank.moments[OC_STEADY][OC_M_BACKWARD].classes[OC_BUFFERS] += 4096;
    oc_timeline_make(ledger, &rank, timeline);
    uint64_t fixed = 0;
    for (int n = 0; n < timeline->n[OC_STEADY]; n++) {
        const struct oc_sample *sample = &timeline->samples[OC_STEADY][n];
        uint64_t sum = 0;
        for (int class = 0; class < OC_CLASSES; class ++) {
            sum += sample->classes[class];
            assert_true(sample->classes[class] >= timeline->least[class]);
        }
        assert_true(sum == sample->allocated);
    }
    for (int class = 0; class < OC_CLASSES; class ++) fixed += timeline->least[class];
    assert_true(fixed == timeline->static_bytes && fixed > 0);
    assert_true(most_of(timeline, OC_STEADY, OC_M_BACKWARD) == rank.moments[OC_STEADY][OC_M_BACKWARD].allocated);
    free(timeline);
    free(ledger);
}

static void columns_cover_everything_in_order(void **state)
{
    (void)state;
    struct oc_ledger *ledger = malloc(sizeof *ledger);
    struct oc_timeline *timeline = malloc(sizeof *timeline);
    struct oc_column columns[300];
    for (int c = 0; c < CASES; c++) {
        struct oc_rank rank = {0};
        make_ledger(c, ledger);
        oc_sweep(ledger, &rank);
        oc_timeline_make(ledger, &rank, timeline);
        for (int width = 1; width <= 300; width += 7) {
            int n = oc_timeline_columns(timeline, OC_STEADY, width, columns), top = 0;
            const struct oc_sample *samples = timeline->samples[OC_STEADY];
            assert_int_equal(n, width);
            assert_int_equal(columns[0].first, 0);
            assert_int_equal(columns[n - 1].last, timeline->n[OC_STEADY] - 1);
            for (int i = 0; i < n; i++) {
                assert_true(columns[i].first <= columns[i].top && columns[i].top <= columns[i].last);
                if (i)
                    assert_true(columns[i].first == columns[i - 1].last + 1 ||
                                columns[i].first == columns[i - 1].first || columns[i].first == columns[i - 1].last);
                if (samples[columns[i].top].allocated > samples[top].allocated) top = columns[i].top;
            }
            assert_true(samples[top].allocated == samples[oc_timeline_peak(timeline, OC_STEADY)].allocated);
        }
        assert_int_equal(oc_timeline_columns(timeline, OC_STEADY, 0, columns), 0);
    }
    free(timeline);
    free(ledger);
}

/* Moments in which nothing happens are there too, holding what was there. */
static void every_moment_after_the_backward_is_there(void **state)
{
    (void)state;
    struct oc_ledger *ledger = malloc(sizeof *ledger);
    struct oc_timeline *timeline = malloc(sizeof *timeline);
    struct oc_rank rank = {0};
    make_ledger(0, ledger);
    oc_sweep(ledger, &rank);
    oc_timeline_make(ledger, &rank, timeline);
    for (int m = OC_M_REDUCE; m < OC_MOMENTS; m++) assert_true(most_of(timeline, OC_STEADY, m) > 0);
    free(timeline);
    free(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_those_of_the_sweep),
        cmocka_unit_test(classes_add_up_and_rests_reach_the_answer),
        cmocka_unit_test(columns_cover_everything_in_order),
        cmocka_unit_test(every_moment_after_the_backward_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
