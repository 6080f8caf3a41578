/* Properties of ledgers over random configurations: the closed sweep against the long walk, sums, sharding, recompute.
 */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- brute force: every birth and death, one by one ---- */

struct brute {
    const struct oc_ledger *ledger;
    struct oc_rank rank;
    int64_t classes[OC_CLASSES], requested;
    int64_t before[OC_ITERATIONS][OC_MOMENTS]; /* allocated when the moment's first event came */
    unsigned char *alive;                      /* [entry][instance] */
    int instances;
    int64_t count; /* live instances */
};

static int64_t allocated(const struct brute *b)
{
    int64_t sum = 0;
    for (int c = 0; c < OC_CLASSES; c++) sum += b->classes[c];
    return sum;
}

static bool visit(const struct oc_event *event, void *user)
{
    struct brute *b = user;
    const struct oc_entry *entry = &b->ledger->entries[event->entry];
    unsigned char *alive = &b->alive[event->entry * b->instances + event->instance];
    assert_int_not_equal(*alive, event->birth); /* born once, dies once */
    *alive = event->birth;
    b->count += event->birth ? 1 : -1;
    const int64_t sign = event->birth ? 1 : -1, bytes = (int64_t)entry->bytes;
    const int64_t rounded = entry->pooled || entry->is_rounding ? bytes : (bytes + 511) / 512 * 512;
    b->classes[entry->class] += sign * bytes;
    b->classes[OC_BUFFERS] += sign * (rounded - bytes);
    if (!entry->is_rounding) b->requested += sign * bytes;
    struct oc_instant *best = &b->rank.moments[event->place.iteration][event->place.moment];
    if (event->birth && (!best->exists || allocated(b) > (int64_t)best->allocated)) {
        best->exists = true;
        best->allocated = (uint64_t)allocated(b);
        best->requested = (uint64_t)b->requested;
        for (int c = 0; c < OC_CLASSES; c++) best->classes[c] = (uint64_t)b->classes[c];
        best->place = event->place;
    }
    return true;
}

static void brute_force(const struct oc_ledger *ledger, struct brute *b)
{
    memset(b, 0, sizeof *b);
    b->ledger = ledger;
    b->instances = oc_walk_instances(ledger);
    b->alive = calloc((size_t)ledger->n_entries * (size_t)b->instances, 1);
    assert_non_null(b->alive);
    oc_walk(ledger, 2, visit, b);
    free(b->alive);
}

static void check_against_brute_force(const struct oc_config *config)
{
    static struct oc_ledger ledger;
    static struct brute brute;
    struct oc_plan plan;
    struct oc_rank rank;
    assert_true(oc_resolve(config, &plan, NULL, NULL));
    for (int64_t stage = 0; stage < plan.c.parallel_pp; stage++) {
        help_rank(&plan, stage, &ledger, &rank);
        brute_force(&ledger, &brute);
        for (int i = 0; i < OC_ITERATIONS; i++)
            for (int m = 0; m < OC_MOMENTS; m++) {
                const struct oc_instant *long_way = &brute.rank.moments[i][m], *closed = &rank.moments[i][m];
                if (!long_way->exists) continue; /* nothing was born in it: the sweep gives the level around it */
                assert_true(closed->exists);
                /* Outside slots the sweep also considers the level a moment begins with. */
                if (m >= OC_M_REDUCE && closed->allocated > long_way->allocated) continue;
                assert_int_equal(closed->allocated, long_way->allocated);
                assert_int_equal(closed->requested, long_way->requested);
                assert_memory_equal(closed->classes, long_way->classes, sizeof closed->classes);
                assert_int_equal(closed->place.layer, long_way->place.layer);
                assert_int_equal(closed->place.micro_batch, long_way->place.micro_batch);
            }
    }
}

static void sweep_equals_brute_force(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 10000 / help_share(); i++) {
        const struct oc_config config = help_random_config(&seed);
        check_against_brute_force(&config);
    }
}

static void classes_sum_to_allocated(void **state)
{
    (void)state;
    uint64_t seed = 11;
    static struct oc_ledger ledger;
    for (int i = 0; i < 10000 / help_share(); i++) {
        const struct oc_config config = help_random_config(&seed);
        struct oc_plan plan;
        struct oc_rank rank;
        assert_true(oc_resolve(&config, &plan, NULL, NULL));
        help_rank(&plan, 0, &ledger, &rank);
        uint64_t most[OC_ITERATIONS] = {0};
        for (int it = 0; it < OC_ITERATIONS; it++)
            for (int m = 0; m < OC_MOMENTS; m++) {
                const struct oc_instant *instant = &rank.moments[it][m];
                if (!instant->exists) continue;
                uint64_t sum = 0;
                for (int c = 0; c < OC_CLASSES; c++) sum += instant->classes[c];
                assert_int_equal(sum, instant->allocated);
                assert_true(instant->requested <= instant->allocated);
                if (m != OC_M_INIT && instant->allocated > most[it]) most[it] = instant->allocated;
            }
        assert_int_equal(rank.peak.allocated, most[OC_STEADY]);
        assert_int_equal(rank.first_peak.allocated, most[OC_FIRST]);
        assert_true(rank.first_peak.allocated <= rank.peak.allocated);
    }
}

/* ---- what a change must not do ---- */

static struct oc_rank rank_with(struct oc_config config, enum oc_option_id id, int64_t value)
{
    static struct oc_ledger ledger;
    struct oc_plan plan;
    struct oc_rank rank;
    struct oc_error error;
    oc_option_put(&config, id, value);
    oc_set_given(&config, id, true);
    if (!oc_resolve(&config, &plan, NULL, &error)) fail_msg("%s", error.message);
    help_rank(&plan, 0, &ledger, &rank);
    return rank;
}

static void more_ranks_never_hold_more_states(void **state)
{
    (void)state;
    uint64_t seed = 13;
    for (int i = 0, done = 0; done < 2000 / help_share(); i++) {
        struct oc_config config = help_random_config(&seed);
        if (config.framework != OC_FW_MEGATRON || !config.parallel_zero) continue;
        const int64_t model = config.parallel_tp * config.parallel_pp;
        uint64_t before = UINT64_MAX;
        for (int64_t d = 1; d <= 16; d *= 2) {
            const struct oc_rank rank = rank_with(config, OC_OPT_parallel_world, model * d);
            const uint64_t now = help_states(&rank.moments[OC_STEADY][OC_M_STEP]);
            assert_true(now <= before);
            before = now;
        }
        done++;
    }
}

static void more_recompute_never_keeps_more(void **state)
{
    (void)state;
    uint64_t seed = 17;
    for (int done = 0; done < 2000 / help_share();) {
        const struct oc_config config = help_random_config(&seed);
        if (config.framework != OC_FW_MEGATRON) continue;
        const struct oc_rank none = rank_with(config, OC_OPT_recompute, OC_RECOMPUTE_NONE);
        const struct oc_rank selective = rank_with(config, OC_OPT_recompute, OC_RECOMPUTE_SELECTIVE);
        const uint64_t kept = none.moments[OC_STEADY][OC_M_FORWARD].classes[OC_ACTIVATIONS];
        assert_true(selective.moments[OC_STEADY][OC_M_FORWARD].classes[OC_ACTIVATIONS] <= kept);
        done++;
    }
}

static void sharding_changes_nothing_but_states(void **state)
{
    (void)state;
    const char *const base[] = {"framework=megatron", "model.name=llama-3-8b", "parallel.tp=8",
                                "parallel.world=64",  "precision=bf16",        NULL};
    const struct oc_config config = help_config(base);
    const struct oc_rank whole = rank_with(config, OC_OPT_parallel_zero, 0),
                         shared = rank_with(config, OC_OPT_parallel_zero, 1);
    assert_int_equal(whole.moments[OC_STEADY][OC_M_LOSS].classes[OC_ACTIVATIONS],
                     shared.moments[OC_STEADY][OC_M_LOSS].classes[OC_ACTIVATIONS]);
    assert_true(shared.peak.classes[OC_OPTIMIZER] * 8 <= whole.peak.classes[OC_OPTIMIZER]);
    assert_int_equal(shared.peak.classes[OC_WEIGHTS], whole.peak.classes[OC_WEIGHTS]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweep_equals_brute_force),
        cmocka_unit_test(classes_sum_to_allocated),
        cmocka_unit_test(more_ranks_never_hold_more_states),
        cmocka_unit_test(more_recompute_never_keeps_more),
        cmocka_unit_test(sharding_changes_nothing_but_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
