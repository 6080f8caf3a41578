/* oc_alive_at(): what is alive at a moment adds up to the moment's figure, class by class, over random runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>

#include "help_model.h"
#include "model/base/alive.h"

static struct oc_ledger ledger;
static struct oc_alive alive;

static void check_moment(const struct oc_instant *instant, bool replayed)
{
    uint64_t classes[OC_CLASSES] = {0}, sum = 0;
    oc_alive_at(&ledger, instant, &alive);
    for (int i = 0; i < ledger.n_entries; i++) {
        assert_int_equal(alive.bytes[i], alive.instances[i] * ledger.entries[i].bytes);
        classes[ledger.entries[i].class] += alive.bytes[i];
    }
    classes[OC_BUFFERS] += alive.rounding + alive.unsplit;
    for (int c = 0; c < OC_CLASSES; c++) {
        if (classes[c] != instant->classes[c])
            fail_msg("%s: %" PRIu64 " bytes of %s, not %" PRIu64, oc_moment_name(instant->place.moment), classes[c],
                     oc_class_name((enum oc_class)c), instant->classes[c]);
        sum += classes[c];
    }
    assert_int_equal(sum, instant->allocated);
    assert_int_equal(sum, alive.allocated);
    if (!replayed) assert_int_equal(alive.unsplit, 0);
}

static void entries_add_up_to_every_moment(void **state)
{
    (void)state;
    uint64_t seed = 77;
    struct oc_alloc *alloc = oc_alloc_create(NULL);
    assert_non_null(alloc);
    for (int n = 0; n < 400 / help_share(); n++) {
        const struct oc_config config = help_random_config(&seed);
        struct oc_plan plan;
        struct oc_rank rank;
        assert_true(oc_resolve(&config, &plan, NULL, NULL));
        const int64_t stage = (int64_t)help_below(&seed, (uint64_t)plan.c.parallel_pp);
        help_rank(&plan, stage, &ledger, &rank);
        for (int m = 0; m < OC_MOMENTS; m++)
            if (rank.moments[OC_STEADY][m].exists) check_moment(&rank.moments[OC_STEADY][m], false);
        assert_true(oc_reserve(&plan, &ledger, alloc, &rank));
        check_moment(&rank.peak, true);
    }
    oc_alloc_destroy(alloc);
}

/* Of parameters without a shape nothing is born in forward, and gradients in backward. */
static void quiet_moments_have_the_level_around_them(void **state)
{
    (void)state;
    static const char *const frameworks[] = {"framework=pytorch", "framework=article", "framework=megatron"};
    for (size_t i = 0; i < sizeof frameworks / sizeof *frameworks; i++) {
        const struct oc_plan plan = help_plan(HELP_WORDS(frameworks[i], "model.params=7e9", "precision=fp16"));
        struct oc_rank rank;
        help_rank(&plan, 0, &ledger, &rank);
        for (int m = 0; m < OC_MOMENTS; m++)
            if (rank.moments[OC_STEADY][m].exists) check_moment(&rank.moments[OC_STEADY][m], false);
    }
}

/* Large blocks that are not split hold more than was asked for. */
static void rests_of_large_blocks_are_an_entry(void **state)
{
    (void)state;
    const struct oc_plan plan = help_plan(HELP_WORDS("framework=pytorch", "model.name=gpt2-large", "batch.seq=1000"));
    struct oc_alloc *alloc = oc_alloc_create(NULL);
    struct oc_rank rank;
    help_rank(&plan, 0, &ledger, &rank);
    assert_true(oc_reserve(&plan, &ledger, alloc, &rank));
    check_moment(&rank.peak, true);
    assert_true(alive.unsplit > 0);
    const struct oc_entry entry = oc_unsplit_entry(&alive);
    assert_int_equal(entry.bytes, alive.unsplit);
    assert_int_equal(entry.class, OC_BUFFERS);
    oc_alloc_destroy(alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries_add_up_to_every_moment),
                                       cmocka_unit_test(quiet_moments_have_the_level_around_them),
                                       cmocka_unit_test(rests_of_large_blocks_are_an_entry)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
