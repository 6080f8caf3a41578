/* The closed sweep against the long walk, event by event, over random configurations. */
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
    unsigned char *alive; /* [entry][instance] */
    int instances;
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
    for (int i = 0; i < 100000 / help_share(); i++) {
        const struct oc_config config = help_random_config(&seed);
        check_against_brute_force(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweep_equals_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
