/* The caching allocator with expandable segments. */
#include "tests/base/help_alloc.h"

/* Memory comes in pages of 20 MiB (2 MiB for small blocks), and a growing request takes the free end with it. */
static void expandable_segments_grow_by_pages(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, true);
    const struct oc_alloc_stats *stats = oc_alloc_stats(alloc);
    uint32_t a = get(alloc, 5 * MIB);
    assert_bytes(stats->reserved, 20 * MIB);
    uint32_t b = get(alloc, 30 * MIB); /* 15 MiB are there: one page more */
    assert_bytes(stats->reserved, 40 * MIB);
    assert_bytes(oc_alloc_block(alloc, b), 30 * MIB);
    assert_bytes(stats->segments, 1);
    get(alloc, 100);
    assert_bytes(stats->reserved, 42 * MIB);
    assert_bytes(stats->segments, 2);
    oc_alloc_put(alloc, b);
    get(alloc, 35 * MIB);
    assert_bytes(stats->reserved, 42 * MIB);
    /* The hole is smaller than a page: nothing can be taken away. */
    oc_alloc_put(alloc, a);
    oc_alloc_empty_cache(alloc);
    assert_bytes(stats->reserved, 42 * MIB);
    oc_alloc_destroy(alloc);
}

/* The rest of a block is split off from 512 bytes on, in the large pool too. */
static void expandable_segments_split_always(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, true);
    uint32_t handle = get(alloc, 20 * MIB - 512);
    assert_bytes(oc_alloc_block(alloc, handle), 20 * MIB - 512);
    oc_alloc_destroy(alloc);
}

/* Pages that are free in the middle are taken away when memory is short, and come back at the end. */
static void expandable_segments_move_pages(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(100 * MIB, true);
    const struct oc_alloc_stats *stats = oc_alloc_stats(alloc);
    uint32_t a = get(alloc, 50 * MIB);
    get(alloc, 30 * MIB);
    assert_bytes(stats->reserved, 80 * MIB);
    oc_alloc_put(alloc, a);
    get(alloc, 60 * MIB); /* 40 of the 50 free MiB are whole pages; 3 pages at the end */
    assert_bytes(stats->reserved, 100 * MIB);
    assert_bytes(stats->retries, 1);
    uint32_t handle;
    assert_true(oc_alloc_get(alloc, 11 * MIB, &handle) == 0);
    get(alloc, 10 * MIB);
    assert_bytes(stats->allocated, 100 * MIB);
    oc_alloc_destroy(alloc);
}

/* A segment has addresses for 9/8 of the device: what was freed at its start is mapped again at its end. */
static void expandable_segments_have_spare_addresses(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(100 * MIB, true);
    uint32_t a = get(alloc, 40 * MIB), b, c;
    uintptr_t address = oc_alloc_get(alloc, 40 * MIB, &b);
    oc_alloc_put(alloc, a);
    get(alloc, 20 * MIB); /* the first page; the second is free */
    assert_true(oc_alloc_get(alloc, 30 * MIB, &c) == address + 40 * MIB);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 100 * MIB);
    oc_alloc_destroy(alloc);
}

/* The growing end is used last, though it is the best fit by its size of the moment. */
static void expandable_segments_grow_last(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, true);
    uint32_t handles[3];
    uintptr_t hole = 0;
    for (int i = 0; i < 3; i++) {
        uintptr_t address = oc_alloc_get(alloc, i == 1 ? 18 * MIB : 4 * MIB, &handles[i]);
        if (i == 1) hole = address;
    }
    oc_alloc_put(alloc, handles[1]); /* free: 18 MiB in the middle, 14 MiB at the end */
    uint32_t handle;
    assert_true(oc_alloc_get(alloc, 10 * MIB, &handle) == hole);
    oc_alloc_destroy(alloc);
}

static void choosing_expandable(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, false);
    get(alloc, 5 * MIB);
    oc_alloc_set_expandable(alloc, true);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 0);
    get(alloc, 30 * MIB);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 40 * MIB);
    oc_alloc_set_expandable(alloc, false);
    get(alloc, 30 * MIB);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 30 * MIB);
    oc_alloc_destroy(alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expandable_segments_grow_by_pages), cmocka_unit_test(expandable_segments_split_always),
        cmocka_unit_test(expandable_segments_move_pages),    cmocka_unit_test(expandable_segments_have_spare_addresses),
        cmocka_unit_test(expandable_segments_grow_last),     cmocka_unit_test(choosing_expandable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
