/* oc_reserve() on ledgers made by hand, small enough to follow with a pencil. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

#include "oomcast/model.h"

#define MIB (UINT64_C(1) << 20)
#define AT(phase_)                                                                                                     \
    {                                                                                                                  \
        OC_PH_##phase_, OC_PART_NONE, 0                                                                                \
    }
#define IN(phase_, part_, sub_)                                                                                        \
    {                                                                                                                  \
        OC_PH_##phase_, OC_PART_##part_, (sub_)                                                                        \
    }

static struct oc_ledger ledger;
static struct oc_plan plan;
static struct oc_alloc *alloc;

static int set_up(void **state)
{
    (void)state;
    alloc = oc_alloc_create(NULL);
    return alloc ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    oc_alloc_destroy(alloc);
    return 0;
}

/* One chunk of `layers` layers that runs `micro_batches` micro-batches, all forwards before all backwards. */
static void begin(int layers, int micro_batches)
{
    memset(&ledger, 0, sizeof ledger);
    memset(&plan, 0, sizeof plan);
    ledger.n_chunks = 1;
    ledger.chunks[0] = (struct oc_chunk){
        .runs = {{.kind = 0, .layers = (uint16_t)layers}}, .n_runs = 1, .embedding = true, .head = true};
    for (int k = 0; k < OC_MAX_KINDS; k++) ledger.group[k] = 1;
    for (int i = 0; i < 2 * micro_batches; i++)
        ledger.slots[ledger.n_slots++] =
            (struct oc_slot){.micro_batch = (uint16_t)(i % micro_batches), .backward = i >= micro_batches};
}

static void add(struct oc_entry entry)
{
    if (!entry.count) entry.count = 1;
    entry.name = "entry";
    entry.elements = entry.bytes;
    ledger.entries[ledger.n_entries++] = entry;
}

static uint64_t reserved(void)
{
    struct oc_rank rank = {.reserved = 1, .reserved_by = OC_MODELLED};
    assert_true(oc_reserve(&plan, &ledger, alloc, &rank));
    assert_int_equal(rank.reserved_by, OC_SIMULATED);
    return rank.reserved;
}

#define assert_mib(have, want)                                                                                         \
    do {                                                                                                               \
        uint64_t have_ = (have);                                                                                       \
        if (have_ != (want)*MIB) fail_msg("%s: %" PRIu64 " bytes, not %d MiB", #have, have_, (int)(want));             \
    } while (0)

static void nothing_reserves_nothing(void **state)
{
    (void)state;
    begin(1, 1);
    assert_mib(reserved(), 0);
    add((struct oc_entry){.bytes = 0, .birth = AT(INIT), .death = AT(END)});
    assert_mib(reserved(), 0);
}

/* Each instance is a block of its own: four of 6 MiB need two segments of 20 MiB. */
static void instances_are_blocks(void **state)
{
    (void)state;
    begin(1, 1);
    add((struct oc_entry){.bytes = 6 * MIB, .count = 4, .birth = AT(INIT), .death = AT(END)});
    assert_mib(reserved(), 40);
}

/* The first step's states take the place of activations, which then need another one in the second iteration. */
static void the_second_iteration_counts(void **state)
{
    (void)state;
    begin(1, 1);
    add((struct oc_entry){
        .bytes = 40 * MIB, .class = OC_ACTIVATIONS, .birth = IN(FORWARD, LAYER, 0), .death = IN(BACKWARD, LAYER, 0)});
    add((struct oc_entry){.bytes = 40 * MIB, .class = OC_OPTIMIZER, .birth = AT(STEP), .death = AT(END)});
    assert_mib(reserved(), 80);
}

/* What a step makes anew moves into the block that a reduction has left, which the next reduction then misses: 30 and
 * 40 MiB, and 40 more, beside an activation's 20. */
static void what_a_step_makes_anew(void **state)
{
    (void)state;
    for (int renewed = 0; renewed < 2; renewed++) {
        begin(1, 1);
        add((struct oc_entry){
            .bytes = 30 * MIB, .class = OC_GRADIENTS, .renewed = renewed, .birth = AT(INIT), .death = AT(END)});
        add((struct oc_entry){.bytes = 20 * MIB,
                              .class = OC_ACTIVATIONS,
                              .birth = IN(FORWARD, LAYER, 0),
                              .death = IN(BACKWARD, LAYER, 0)});
        add((struct oc_entry){
            .bytes = 40 * MIB, .class = OC_GRADIENTS, .birth = AT(REDUCE), .death = {OC_PH_REDUCE, OC_PART_NONE, 1}});
        assert_mib(reserved(), renewed ? 130 : 90);
    }
}

/* The first step makes what later ones renew. Its 30 MiB lie in the activation's block of 40, which the second
 * iteration makes anew; from then on gradients and activations change places: 80. Renewed at the beginning of the
 * second iteration too, the gradients would have got a segment of their own. */
static void the_first_step_renews_nothing(void **state)
{
    (void)state;
    begin(1, 1);
    add((struct oc_entry){
        .bytes = 30 * MIB, .class = OC_GRADIENTS, .renewed = true, .birth = AT(STEP), .death = AT(END)});
    add((struct oc_entry){
        .bytes = 40 * MIB, .class = OC_ACTIVATIONS, .birth = IN(FORWARD, LAYER, 0), .death = IN(BACKWARD, LAYER, 0)});
    assert_mib(reserved(), 80);
}

/* States are made layer by layer: the first layer's 12 and 30 MiB fill the activation's 42, the second's are new, and
 * the next activation is. Entry by entry, both of 12 MiB would go into it. */
static void states_are_born_layer_by_layer(void **state)
{
    (void)state;
    begin(2, 1);
    add((struct oc_entry){
        .bytes = 42 * MIB, .class = OC_ACTIVATIONS, .birth = IN(FORWARD, HEAD, 0), .death = IN(BACKWARD, HEAD, 0)});
    add((struct oc_entry){.bytes = 12 * MIB, .count = 2, .class = OC_OPTIMIZER, .birth = AT(STEP), .death = AT(END)});
    add((struct oc_entry){.bytes = 30 * MIB, .count = 2, .class = OC_OPTIMIZER, .birth = AT(STEP), .death = AT(END)});
    assert_mib(reserved(), 126);
}

/* A third iteration can still need more: what the second freed is not where the third looks for it. Here the scratch of
 * each iteration's end outlives it, so that two of them are alive at once from the second iteration on. */
static void what_outlives_its_iteration(void **state)
{
    (void)state;
    begin(1, 1);
    add((struct oc_entry){.bytes = 30 * MIB, .birth = AT(IDLE), .death = AT(START)});
    assert_mib(reserved(), 30);
    add((struct oc_entry){.bytes = 20 * MIB, .birth = AT(STEP), .death = AT(AFTER_STEP)});
    assert_mib(reserved(), 50);
}

/* A third iteration can still need more: the second laid these blocks out in segments that the first made, in another
 * order, and freed them in yet another. */
static void the_third_iteration_counts(void **state)
{
    (void)state;
    static const uint64_t mib[] = {3, 8, 8, 10, 10, 16};
    begin(1, 1);
    for (int i = 0; i < 6; i++) add((struct oc_entry){.bytes = mib[i] * MIB, .birth = AT(IDLE), .death = AT(START)});
    assert_mib(reserved(), 88); /* 72 after two iterations */
}

/* Layers and micro-batches: 3 layers x 2 micro-batches of 10 MiB are alive after the last forward. */
static void activations_of_layers_and_micro_batches(void **state)
{
    (void)state;
    begin(3, 2);
    add((struct oc_entry){
        .bytes = 10 * MIB, .class = OC_ACTIVATIONS, .birth = IN(FORWARD, LAYER, 0), .death = IN(BACKWARD, LAYER, 0)});
    assert_mib(reserved(), 60);
}

/* One gradient a layer, born in the first micro-batch, freed in idle and born again. */
static void gradients_of_layers(void **state)
{
    (void)state;
    begin(3, 2);
    add((struct oc_entry){
        .bytes = 12 * MIB, .count = 3, .class = OC_GRADIENTS, .birth = IN(BACKWARD, LAYER, 1), .death = AT(IDLE)});
    assert_mib(reserved(), 36);
}

/* Views of one buffer are one block: 4 x 3 MiB + 1 MiB = 13 MiB get a segment of 14, not five blocks of the 20 MiB
 * segment. */
static void views_are_one_block(void **state)
{
    (void)state;
    begin(4, 1);
    add((struct oc_entry){
        .bytes = 3 * MIB, .count = 4, .class = OC_GRADIENTS, .pooled = true, .birth = AT(INIT), .death = AT(END)});
    add((struct oc_entry){.bytes = MIB, .class = OC_GRADIENTS, .pooled = true, .birth = AT(INIT), .death = AT(END)});
    assert_mib(reserved(), 14);
    /* Padding is a part of the buffer; rounding is nothing that is asked for. */
    add((struct oc_entry){.bytes = 2 * MIB, .class = OC_BUFFERS, .pooled = true, .birth = AT(INIT), .death = AT(END)});
    assert_mib(reserved(), 16);
    add((struct oc_entry){.bytes = 100 * MIB,
                          .class = OC_BUFFERS,
                          .pooled = true,
                          .is_rounding = true,
                          .birth = AT(INIT),
                          .death = AT(END)});
    assert_mib(reserved(), 16);
}

/* A buffer ends where rounding, another class, another life or a tensor of its own comes. */
static void buffers_end(void **state)
{
    (void)state;
    const struct oc_entry weights = {
        .bytes = 11 * MIB, .class = OC_WEIGHTS, .pooled = true, .birth = AT(INIT), .death = AT(END)};
    struct oc_entry other;
    begin(1, 1);
    add(weights);
    add(weights);
    assert_mib(reserved(), 22);

    begin(1, 1);
    add(weights);
    add((struct oc_entry){.bytes = 511, .class = OC_BUFFERS, .is_rounding = true, .birth = AT(INIT), .death = AT(END)});
    add(weights);
    assert_mib(reserved(), 24);

    begin(1, 1);
    add(weights);
    other = weights;
    other.class = OC_GRADIENTS;
    add(other);
    assert_mib(reserved(), 24);

    begin(1, 1);
    add(weights);
    other = weights;
    other.death = (struct oc_tick)AT(STEP);
    add(other);
    assert_mib(reserved(), 24);

    begin(1, 1);
    add(weights);
    other = weights;
    other.pooled = false;
    add(other);
    add(weights);
    assert_mib(reserved(), 36);
}

/* A buffer lives as long as any of its views, and is made again in the next iteration. */
static void buffers_come_and_go(void **state)
{
    (void)state;
    begin(1, 1);
    add((struct oc_entry){
        .bytes = 6 * MIB, .count = 5, .class = OC_GRADIENTS, .pooled = true, .birth = AT(REDUCE), .death = AT(IDLE)});
    add((struct oc_entry){.bytes = 30 * MIB, .birth = IN(FORWARD, HEAD, 0), .death = IN(BACKWARD, HEAD, 0)});
    assert_mib(reserved(), 30);
    add((struct oc_entry){.bytes = 4 * MIB, .birth = AT(STEP), .death = AT(AFTER_STEP)});
    assert_mib(reserved(), 50);
}

/* Inside slots there is one block for each layer and micro-batch. */
static void views_inside_slots(void **state)
{
    (void)state;
    begin(2, 2);
    struct oc_entry half = {.bytes = 7 * MIB,
                            .count = 2,
                            .class = OC_ACTIVATIONS,
                            .pooled = true,
                            .birth = IN(FORWARD, LAYER, 0),
                            .death = IN(BACKWARD, LAYER, 0)};
    add(half);
    add(half);
    assert_mib(reserved(), 4 * 14);
    /* Layers of another kind have blocks of their own. */
    ledger.chunks[0].runs[1] = (struct oc_run){.kind = 1, .layers = 1};
    ledger.chunks[0].n_runs = 2;
    half.kind = 1;
    half.bytes = 16 * MIB;
    add(half);
    assert_mib(reserved(), 4 * 14 + 2 * 16);
}

static void expandable_segments_are_respected(void **state)
{
    (void)state;
    begin(1, 1);
    add((struct oc_entry){.bytes = 30 * MIB, .birth = AT(INIT), .death = AT(END)});
    assert_mib(reserved(), 30);
    plan.c.allocator_expandable_segments = 1;
    assert_mib(reserved(), 40);
    plan.c.allocator_expandable_segments = 0;
    assert_mib(reserved(), 30);
}

static void what_cannot_be_replayed(void **state)
{
    (void)state;
    struct oc_rank rank = {.reserved = 1, .reserved_by = OC_MODELLED};
    begin(1, 1);
    add((struct oc_entry){.bytes = UINT64_C(1) << 61, .birth = AT(INIT), .death = AT(END)});
    assert_false(oc_reserve(&plan, &ledger, alloc, &rank));
    assert_true(rank.reserved == 0);
    assert_int_equal(rank.reserved_by, OC_MODELLED);
    /* Sums of views do not wrap: 4 x 2^62 and 2 x 2 x 2^62 are both 2^64. */
    for (uint32_t count = 4; count >= 2; count /= 2) {
        begin(1, 1);
        for (uint32_t i = 0; i < 4 / count; i++)
            add((struct oc_entry){
                .bytes = UINT64_C(1) << 62, .count = count, .pooled = true, .birth = AT(INIT), .death = AT(END)});
        assert_false(oc_reserve(&plan, &ledger, alloc, &rank));
    }
    /* More instances than there may be handles. */
    begin(1, 1);
    add((struct oc_entry){.bytes = 1, .count = UINT32_MAX, .birth = AT(INIT), .death = AT(END)});
    assert_false(oc_reserve(&plan, &ledger, alloc, &rank));
    begin(1, 1);
    add((struct oc_entry){.bytes = MIB, .birth = AT(INIT), .death = AT(END)});
    assert_mib(reserved(), 2);
}

/* Reserved never lies below what oc_sweep() says is allocated at the peak. */
static void reserved_covers_allocated(void **state)
{
    (void)state;
    uint32_t random = 7;
    for (int round = 0; round < 50; round++) {
        begin(1 + round % 5, 1 + round % 3);
        for (int i = 0; i < 12; i++) {
            random = random * 1664525u + 1013904223u;
            uint8_t sub = (uint8_t)(random >> 28);
            struct oc_entry entry = {.bytes = (random >> 8) % (9 * MIB) + 1, .class = OC_ACTIVATIONS};
            struct oc_tick forward = IN(FORWARD, LAYER, sub), backward = IN(BACKWARD, LAYER, sub);
            struct oc_tick init = AT(INIT), step = AT(STEP), end = AT(END);
            entry.birth = i % 3 == 0 ? forward : i % 3 == 1 ? init : step;
            entry.death = i % 3 == 0 ? backward : end;
            add(entry);
        }
        struct oc_rank rank = {0};
        oc_sweep(&ledger, &rank);
        assert_true(reserved() >= rank.peak.allocated);
        assert_true(oc_alloc_stats(alloc)->allocated_peak >= rank.peak.allocated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_reserves_nothing),
        cmocka_unit_test(instances_are_blocks),
        cmocka_unit_test(the_second_iteration_counts),
        cmocka_unit_test(what_a_step_makes_anew),
        cmocka_unit_test(the_first_step_renews_nothing),
        cmocka_unit_test(states_are_born_layer_by_layer),
        cmocka_unit_test(what_outlives_its_iteration),
        cmocka_unit_test(the_third_iteration_counts),
        cmocka_unit_test(activations_of_layers_and_micro_batches),
        cmocka_unit_test(gradients_of_layers),
        cmocka_unit_test(views_are_one_block),
        cmocka_unit_test(buffers_end),
        cmocka_unit_test(buffers_come_and_go),
        cmocka_unit_test(views_inside_slots),
        cmocka_unit_test(expandable_segments_are_respected),
        cmocka_unit_test(what_cannot_be_replayed),
        cmocka_unit_test(reserved_covers_allocated),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
