/* What ticks mean, on ledgers made by hand: every figure here can be checked with a pencil. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/ledger.h"

#define OUTSIDE(phase_, sub_)                                                                                          \
    {                                                                                                                  \
        OC_PH_##phase_, OC_PART_NONE, sub_                                                                             \
    }
#define IN(phase_, part_, sub_)                                                                                        \
    {                                                                                                                  \
        OC_PH_##phase_, OC_PART_##part_, sub_                                                                          \
    }

/* Two chunks' worth of nothing but one chunk of `layers` equal layers, `micro_batches` one after the other. */
static void lay(struct oc_ledger *ledger, int layers, int micro_batches)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->ranks = 1;
    ledger->n_chunks = 1;
    ledger->chunks[0] =
        (struct oc_chunk){.runs = {{0, (uint16_t)layers}}, .n_runs = 1, .embedding = true, .head = true};
    for (int i = 0; i < OC_MAX_KINDS; i++) ledger->group[i] = 1;
    for (int m = 0; m < micro_batches; m++) {
        ledger->slots[ledger->n_slots++] = (struct oc_slot){.micro_batch = (uint16_t)m};
        ledger->slots[ledger->n_slots++] = (struct oc_slot){.micro_batch = (uint16_t)m, .backward = true};
    }
}

static void put(struct oc_ledger *ledger, enum oc_class class, uint64_t bytes, uint32_t count, struct oc_tick birth,
                struct oc_tick death)
{
    const struct oc_entry entry = {.name = "x",
                                   .elements = bytes,
                                   .bytes = bytes,
                                   .count = count,
                                   .class = (uint8_t) class,
                                   .dtype = OC_INT8,
                                   .birth = birth,
                                   .death = death};
    assert_non_null(oc_ledger_add(ledger, &entry));
}

static uint64_t at(const struct oc_rank *rank, enum oc_iteration iteration, enum oc_moment moment)
{
    assert_true(rank->moments[iteration][moment].exists);
    return rank->moments[iteration][moment].allocated;
}

static void states_are_born_in_the_first_step(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 2, 1);
    put(&ledger, OC_WEIGHTS, 1024, 1, (struct oc_tick)OUTSIDE(INIT, 0), (struct oc_tick)OUTSIDE(END, 0));
    put(&ledger, OC_OPTIMIZER, 2048, 1, (struct oc_tick)OUTSIDE(STEP, 1), (struct oc_tick)OUTSIDE(END, 0));
    put(&ledger, OC_ACTIVATIONS, 512, 2, (struct oc_tick)IN(FORWARD, LAYER, 0), (struct oc_tick)IN(BACKWARD, LAYER, 0));
    oc_sweep(&ledger, &rank);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_INIT), 1024);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_FORWARD), 1024 + 2 * 512);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_STEP), 1024 + 2048);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_FORWARD), 1024 + 2048 + 2 * 512);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_IDLE), 1024 + 2048);
    assert_false(rank.moments[OC_STEADY][OC_M_INIT].exists);
    assert_int_equal(rank.first_peak.allocated, 3072);
    assert_int_equal(rank.peak.allocated, 4096);
    assert_int_equal(rank.peak.place.layer, 1);
}

static void blocks_are_rounded_and_pools_are_not(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 1, 1);
    put(&ledger, OC_WEIGHTS, 100, 3, (struct oc_tick)OUTSIDE(INIT, 0), (struct oc_tick)OUTSIDE(END, 0));
    put(&ledger, OC_WEIGHTS, 100, 2, (struct oc_tick)OUTSIDE(INIT, 1), (struct oc_tick)OUTSIDE(END, 0));
    ledger.entries[1].pooled = true;
    put(&ledger, OC_BUFFERS, 312, 1, (struct oc_tick)OUTSIDE(INIT, 1), (struct oc_tick)OUTSIDE(END, 0));
    ledger.entries[2].is_rounding = true;
    oc_sweep(&ledger, &rank);
    const struct oc_instant *init = &rank.moments[OC_FIRST][OC_M_INIT];
    assert_int_equal(init->requested, 500);
    assert_int_equal(init->allocated, 3 * 512 + 200 + 312);
    assert_int_equal(init->classes[OC_WEIGHTS], 500);
    assert_int_equal(init->classes[OC_BUFFERS], 3 * 412 + 312);
}

/* A gradient is born in the first micro-batch and lives until it is zeroed; what later micro-batches add comes and
 * goes. */
static void gradients_accumulate(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 4, 3);
    put(&ledger, OC_GRADIENTS, 512, 4, (struct oc_tick)IN(BACKWARD, LAYER, 1), (struct oc_tick)OUTSIDE(IDLE, 0));
    put(&ledger, OC_GRADIENTS, 1024, 4, (struct oc_tick)IN(BACKWARD, LAYER, 1), (struct oc_tick)IN(BACKWARD, LAYER, 2));
    ledger.entries[1].when = OC_LATER_MICRO_BATCHES;
    oc_sweep(&ledger, &rank);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_BACKWARD), 4 * 512 + 1024);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_AFTER_STEP), 4 * 512);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_IDLE), 0);
    assert_int_equal(rank.moments[OC_FIRST][OC_M_BACKWARD].place.micro_batch, 1);
    ledger.entries[1].when = OC_FIRST_MICRO_BATCH;
    oc_sweep(&ledger, &rank);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_BACKWARD), 4 * 512 + 1024);
    assert_int_equal(rank.moments[OC_STEADY][OC_M_BACKWARD].place.micro_batch, 0);
    assert_int_equal(rank.moments[OC_STEADY][OC_M_BACKWARD].place.layer, 0);
}

/* Gradients that are never freed are there from the first iteration on; only its first micro-batch adds nothing. */
static void kept_gradients_stay(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 2, 1);
    put(&ledger, OC_GRADIENTS, 512, 2, (struct oc_tick)IN(BACKWARD, LAYER, 0), (struct oc_tick)OUTSIDE(END, 0));
    put(&ledger, OC_GRADIENTS, 2048, 2, (struct oc_tick)IN(BACKWARD, LAYER, 0), (struct oc_tick)IN(BACKWARD, LAYER, 1));
    ledger.entries[1].when = OC_ALL_BUT_THE_FIRST;
    oc_sweep(&ledger, &rank);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_BACKWARD), 2 * 512);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_FORWARD), 2 * 512);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_BACKWARD), 2 * 512 + 2048);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_IDLE), 2 * 512);
}

/* What waits for the last micro-batch is born in the first; what only the last has is there in no other. */
static void the_last_micro_batch_reduces(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 4, 3);
    ledger.left_out = 5;
    put(&ledger, OC_GRADIENTS, 512, 4, (struct oc_tick)IN(BACKWARD, LAYER, 1), (struct oc_tick)IN(BACKWARD, LAYER, 3));
    put(&ledger, OC_BUFFERS, 1024, 4, (struct oc_tick)IN(BACKWARD, LAYER, 2), (struct oc_tick)IN(BACKWARD, LAYER, 4));
    put(&ledger, OC_GRADIENTS, 256 * 1024, 4, (struct oc_tick)IN(BACKWARD, LAYER, 4), (struct oc_tick)OUTSIDE(IDLE, 0));
    ledger.entries[0].when = OC_FIRST_TO_LAST;
    ledger.entries[1].when = ledger.entries[2].when = OC_LAST_MICRO_BATCH;
    oc_sweep(&ledger, &rank);
    /* The last layer's, and of the others: one sum with what it is reduced into. */
    const struct oc_instant *backward = &rank.moments[OC_STEADY][OC_M_BACKWARD];
    assert_int_equal(backward->allocated, 4 * 256 * 1024);
    assert_int_equal(backward->place.micro_batch, 7);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_AFTER_STEP), 4 * 256 * 1024);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_IDLE), 0);
    ledger.n_entries = 2;
    oc_sweep(&ledger, &rank);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_BACKWARD), 4 * 512 + 1024); /* the top layer, all sums */
    assert_int_equal(rank.moments[OC_STEADY][OC_M_BACKWARD].place.layer, 3);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_AFTER_STEP), 0);
}

/* Without the top layer the second is the first that has it: sums shrink on the way down. */
static void the_top_layer_is_spared(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 5, 1);
    put(&ledger, OC_ACTIVATIONS, 512, 5, (struct oc_tick)IN(FORWARD, LAYER, 0), (struct oc_tick)IN(BACKWARD, LAYER, 2));
    put(&ledger, OC_BUFFERS, 1024, 4, (struct oc_tick)IN(RECOMPUTE, LAYER, 0), (struct oc_tick)IN(BACKWARD, LAYER, 1));
    ledger.entries[1].spares_top = true;
    oc_sweep(&ledger, &rank);
    const struct oc_instant *backward = &rank.moments[OC_STEADY][OC_M_BACKWARD];
    assert_int_equal(backward->allocated, 4 * 512 + 1024);
    assert_int_equal(backward->place.layer, 3);
}

/* Three layers are recomputed together: their inputs go with the group, all three working sets are alive at once. */
static void groups_are_recomputed_together(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 7, 1);
    ledger.group[0] = 3;
    put(&ledger, OC_ACTIVATIONS, 512, 7, (struct oc_tick)IN(RECOMPUTE, LAYER, 0),
        (struct oc_tick)IN(BACKWARD, LAYER, 3));
    oc_sweep(&ledger, &rank);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_BACKWARD), 3 * 512);
    assert_int_equal(rank.moments[OC_STEADY][OC_M_BACKWARD].place.layer,
                     5); /* layer 6 is a group by itself, then 3, 4, 5 */
}

static void what_outlives_an_iteration_dies_in_the_next(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    lay(&ledger, 1, 1);
    put(&ledger, OC_BUFFERS, 512, 1, (struct oc_tick)OUTSIDE(STEP, 0), (struct oc_tick)OUTSIDE(START, 0));
    put(&ledger, OC_ACTIVATIONS, 512, 1, (struct oc_tick)IN(FORWARD, LAYER, 0), (struct oc_tick)IN(BACKWARD, LAYER, 0));
    oc_sweep(&ledger, &rank);
    assert_int_equal(at(&rank, OC_FIRST, OC_M_IDLE), 512);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_FORWARD), 512);
    assert_int_equal(at(&rank, OC_STEADY, OC_M_IDLE), 512);
}

struct count {
    int births, deaths, live, most;
};

static bool visit(const struct oc_event *event, void *user)
{
    struct count *count = user;
    if (event->birth)
        count->births++, count->live++;
    else
        count->deaths++, count->live--;
    if (count->live > count->most) count->most = count->live;
    return count->births < 1000;
}

static void the_walk_visits_every_instance(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct count count = {0};
    lay(&ledger, 3, 2);
    put(&ledger, OC_ACTIVATIONS, 512, 3, (struct oc_tick)IN(FORWARD, LAYER, 0), (struct oc_tick)IN(LOSS, HEAD, 1));
    put(&ledger, OC_WEIGHTS, 512, 5, (struct oc_tick)OUTSIDE(INIT, 0), (struct oc_tick)OUTSIDE(END, 0));
    oc_walk(&ledger, 2, visit, &count);
    assert_int_equal(count.births, 5 + 2 * 2 * 3);
    assert_int_equal(count.deaths, 2 * 2 * 3);
    assert_int_equal(count.most, 5 + 3);
}

static void a_full_ledger_says_so(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    const struct oc_entry entry = {.name = "x", .bytes = 1, .count = 1};
    lay(&ledger, 1, 1);
    for (int i = 0; i < OC_MAX_ENTRIES; i++) assert_non_null(oc_ledger_add(&ledger, &entry));
    assert_null(oc_ledger_add(&ledger, &entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_born_in_the_first_step),
        cmocka_unit_test(blocks_are_rounded_and_pools_are_not),
        cmocka_unit_test(gradients_accumulate),
        cmocka_unit_test(kept_gradients_stay),
        cmocka_unit_test(the_last_micro_batch_reduces),
        cmocka_unit_test(the_top_layer_is_spared),
        cmocka_unit_test(groups_are_recomputed_together),
        cmocka_unit_test(what_outlives_an_iteration_dies_in_the_next),
        cmocka_unit_test(the_walk_visits_every_instance),
        cmocka_unit_test(a_full_ledger_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
