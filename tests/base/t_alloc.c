/* The caching allocator: published rules and traces to the byte, and its promises at the edges. */
#include "tests/base/help_alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Vectors and traces of tests/data/allocator.txt ---- */

struct replay {
    struct oc_alloc *alloc;
    uint32_t handles[256];
    int line, vectors, traces;
};

static void check_state(const struct replay *r, uint64_t allocated, uint64_t reserved)
{
    const struct oc_alloc_stats *stats = oc_alloc_stats(r->alloc);
    if (stats->allocated != allocated || stats->reserved != reserved)
        fail_msg("line %d: allocated %" PRIu64 " reserved %" PRIu64, r->line, stats->allocated, stats->reserved);
}

static void run_line(struct replay *r, const char *line)
{
    uint64_t a, b, c;
    unsigned id;
    char pool[8];
    if (sscanf(line, "v %" SCNu64 " %" SCNu64 " %7s %" SCNu64, &a, &b, pool, &c) == 4) {
        assert_bytes(oc_alloc_round(a), b);
        assert_bytes(oc_alloc_segment(b), c);
        assert_int_equal(b > MIB, !strcmp(pool, "large"));
        r->vectors++;
    } else if (sscanf(line, "trace %u", &id) == 1) {
        oc_alloc_reset(r->alloc);
        r->traces++;
    } else if (sscanf(line, "a %u %" SCNu64 " %" SCNu64 " %" SCNu64, &id, &a, &b, &c) == 4 && id < 256) {
        r->handles[id] = get(r->alloc, a);
        check_state(r, b, c);
    } else if (sscanf(line, "f %u %" SCNu64 " %" SCNu64, &id, &a, &b) == 3 && id < 256) {
        oc_alloc_put(r->alloc, r->handles[id]);
        check_state(r, a, b);
    } else if (sscanf(line, "e %" SCNu64 " %" SCNu64, &a, &b) == 2) {
        oc_alloc_empty_cache(r->alloc);
        check_state(r, a, b);
    } else if (sscanf(line, "peak %" SCNu64 " %" SCNu64, &a, &b) == 2) {
        assert_bytes(oc_alloc_stats(r->alloc)->allocated_peak, a);
        assert_bytes(oc_alloc_stats(r->alloc)->reserved_peak, b);
    } else if (line[0] != '#') {
        fail_msg("line %d is not understood: %s", r->line, line);
    }
}

static void vectors_and_traces_to_the_byte(void **state)
{
    (void)state;
    FILE *in = fopen(OOMCAST_SOURCE "/tests/data/allocator.txt", "r");
    assert_non_null(in);
    struct replay r = {.alloc = fresh(0, false)};
    char line[128];
    while (fgets(line, sizeof line, in)) {
        r.line++;
        run_line(&r, line);
    }
    fclose(in);
    oc_alloc_destroy(r.alloc);
    assert_int_equal(r.vectors, 43);
    assert_int_equal(r.traces, 12);
}

/* ---- Edges ---- */

static void sizes_that_cannot_be(void **state)
{
    (void)state;
    assert_bytes(oc_alloc_round(0), 512);
    assert_bytes(oc_alloc_round(UINT64_MAX), UINT64_MAX);
    assert_bytes(oc_alloc_segment(UINT64_MAX), UINT64_MAX);
    for (int expandable = 0; expandable < 2; expandable++) {
        struct oc_alloc *alloc = fresh(0, expandable);
        uint32_t handle = 77;
        for (int shift = 57; shift < 64; shift++) assert_true(oc_alloc_get(alloc, UINT64_C(1) << shift, &handle) == 0);
        assert_true(oc_alloc_get(alloc, UINT64_MAX, &handle) == 0);
        assert_bytes(oc_alloc_stats(alloc)->reserved, 0);
        handle = get(alloc, 0);
        assert_bytes(oc_alloc_block(alloc, handle), 512);
        assert_bytes(oc_alloc_stats(alloc)->requested, 0);
        /* The address space ends before any sum could wrap. */
        int n = 0;
        while (oc_alloc_get(alloc, UINT64_C(1) << 56, &handle)) n++;
        assert_in_range(n, 1, 63);
        assert_bytes(oc_alloc_stats(alloc)->retries, 1);
        oc_alloc_reset(alloc);
        /* Addresses come back with the segments. */
        for (n = 0; n < 1000; n++) {
            oc_alloc_put(alloc, get(alloc, UINT64_C(1) << 56));
            oc_alloc_empty_cache(alloc);
            assert_bytes(oc_alloc_stats(alloc)->reserved, 0);
        }
        oc_alloc_destroy(alloc);
    }
}

static void handles_that_are_not_in_use(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, false);
    uint32_t handle = get(alloc, 1000);
    oc_alloc_put(alloc, handle);
    oc_alloc_put(alloc, handle);
    oc_alloc_put(alloc, 0);
    oc_alloc_put(alloc, UINT32_MAX);
    assert_bytes(oc_alloc_block(alloc, handle), 0);
    assert_bytes(oc_alloc_stats(alloc)->allocated, 0);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 2 * MIB);
    oc_alloc_destroy(alloc);
    oc_alloc_destroy(NULL);
}

/* A large block with a rest of at most 1 MiB is handed out whole; one byte block more and it is split. */
static void splitting(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, false);
    uint32_t whole = get(alloc, 19 * MIB);
    assert_bytes(oc_alloc_block(alloc, whole), 20 * MIB);
    oc_alloc_put(alloc, whole);
    uint32_t cut = get(alloc, 19 * MIB - 512);
    assert_bytes(oc_alloc_block(alloc, cut), 19 * MIB - 512);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 20 * MIB);
    oc_alloc_destroy(alloc);
}

/* Freed neighbours become one block again, in whatever order they are freed. */
static void merging(void **state)
{
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        struct oc_alloc *alloc = fresh(0, false);
        uint32_t handles[3];
        for (int j = 0; j < 3; j++) handles[j] = get(alloc, 5 * MIB);
        for (int j = 0; j < 3; j++) oc_alloc_put(alloc, handles[orders[i][j]]);
        get(alloc, 20 * MIB);
        assert_bytes(oc_alloc_stats(alloc)->reserved, 20 * MIB);
        assert_bytes(oc_alloc_stats(alloc)->segments, 1);
        oc_alloc_destroy(alloc);
    }
}

static void best_fit_is_smallest_then_lowest(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, false);
    uintptr_t address[4];
    uint32_t handles[4];
    static const uint64_t sizes[4] = {40 * MIB, 24 * MIB, 24 * MIB, 30 * MIB};
    for (int i = 0; i < 4; i++) address[i] = oc_alloc_get(alloc, sizes[i], &handles[i]);
    for (int i = 3; i >= 0; i--) oc_alloc_put(alloc, handles[i]);
    uint32_t handle;
    assert_true(oc_alloc_get(alloc, 23 * MIB, &handle) == address[1]);
    assert_true(oc_alloc_get(alloc, 23 * MIB, &handle) == address[2]);
    assert_true(oc_alloc_get(alloc, 23 * MIB, &handle) == address[3]);
    assert_bytes(oc_alloc_block(alloc, handle), 23 * MIB);
    oc_alloc_destroy(alloc);
}

/* No room: cached segments that are wholly free are given back, others are not, and the request is tried once more. */
static void retry_frees_the_cache(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(100 * MIB, false);
    uint32_t a = get(alloc, 40 * MIB), b = get(alloc, 40 * MIB), handle;
    oc_alloc_put(alloc, a);
    get(alloc, 60 * MIB);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 100 * MIB);
    assert_bytes(oc_alloc_stats(alloc)->retries, 1);
    assert_bytes(oc_alloc_stats(alloc)->segments, 2);
    oc_alloc_put(alloc, b);
    get(alloc, 10 * MIB);
    assert_true(oc_alloc_get(alloc, 50 * MIB, &handle) == 0); /* 30 MiB of a split segment cannot be given back */
    assert_bytes(oc_alloc_stats(alloc)->retries, 2);
    assert_bytes(oc_alloc_stats(alloc)->reserved, 100 * MIB);
    assert_bytes(oc_alloc_stats(alloc)->allocated, 70 * MIB);
    oc_alloc_destroy(alloc);
}

static void peaks_and_reset(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, false);
    uint32_t handle = get(alloc, 30 * MIB + 1);
    get(alloc, 100);
    oc_alloc_put(alloc, handle);
    const struct oc_alloc_stats *stats = oc_alloc_stats(alloc);
    assert_bytes(stats->requested, 100);
    assert_bytes(stats->requested_peak, 30 * MIB + 101);
    assert_bytes(stats->allocated_peak, 30 * MIB + 1024);
    oc_alloc_empty_cache(alloc);
    assert_bytes(stats->reserved, 2 * MIB);
    assert_bytes(stats->reserved_peak, 34 * MIB);
    oc_alloc_reset_peaks(alloc);
    assert_bytes(stats->requested_peak, 100);
    assert_bytes(stats->allocated_peak, 512);
    assert_bytes(stats->reserved_peak, 2 * MIB);
    oc_alloc_reset(alloc);
    struct oc_alloc_stats zero = {0};
    assert_memory_equal(oc_alloc_stats(alloc), &zero, sizeof zero);
    assert_bytes(oc_alloc_block(alloc, handle), 0);
    get(alloc, 100);
    assert_bytes(stats->reserved, 2 * MIB);
    oc_alloc_destroy(alloc);
}

static void notes_are_kept(void **state)
{
    (void)state;
    struct oc_alloc *alloc = fresh(0, false);
    uint32_t *notes = oc_alloc_notes(alloc, 10);
    assert_non_null(notes);
    assert_int_equal(notes[9], 0);
    notes[9] = 4711;
    oc_alloc_reset(alloc);
    notes = oc_alloc_notes(alloc, 100000);
    assert_non_null(notes);
    assert_int_equal(notes[9], 4711);
    assert_int_equal(notes[99999], 0);
    assert_null(oc_alloc_notes(alloc, SIZE_MAX));
    assert_int_equal(oc_alloc_notes(alloc, 5)[9], 4711);
    oc_alloc_destroy(alloc);
}

/* ---- Real memory ---- */

struct device {
    uint64_t held, most; /* bytes */
    int segments;
};

static void *device_segment(void *user, size_t bytes)
{
    struct device *device = user;
    if (device->held + bytes > device->most) return NULL;
    device->held += bytes;
    device->segments++;
    return malloc(bytes);
}

static void device_release(void *user, void *segment, size_t bytes)
{
    struct device *device = user;
    device->held -= bytes;
    device->segments--;
    free(segment);
}

/* Live blocks never overlap: each is filled with its own byte, which is still there when it is freed. */
static void real_segments(void **state)
{
    (void)state;
    struct device device = {.most = 42 * MIB};
    struct oc_alloc_provider provider = {
        .segment = device_segment, .release = device_release, .user = &device, .expandable_segments = true};
    struct oc_alloc *alloc = oc_alloc_create(&provider);
    assert_non_null(alloc);
    enum { LIVE = 64 };
    struct {
        unsigned char *p;
        size_t bytes;
        uint32_t handle;
    } live[LIVE] = {0};
    uint32_t random = 1;
    for (int i = 0; i < 3000; i++) {
        random = random * 1664525u + 1013904223u;
        int at = (int)(random >> 26);
        if (live[at].p) {
            for (size_t j = 0; j < live[at].bytes; j += 509) assert_int_equal(live[at].p[j], at);
            oc_alloc_put(alloc, live[at].handle);
            live[at].p = NULL;
        } else {
            live[at].bytes = (random >> 8 & 3) ? (random >> 8) % 70000 : (random >> 8) % (4 * MIB);
            live[at].p = (unsigned char *)oc_alloc_get(alloc, live[at].bytes, &live[at].handle);
            if (live[at].p) memset(live[at].p, at, oc_alloc_block(alloc, live[at].handle));
        }
        assert_bytes(oc_alloc_stats(alloc)->reserved, device.held);
        assert_int_equal(oc_alloc_stats(alloc)->segments, device.segments);
    }
    assert_true(oc_alloc_stats(alloc)->retries > 0);
    oc_alloc_reset(alloc);
    assert_bytes(device.held, 0);
    get(alloc, 3 * MIB);
    assert_bytes(device.held, 20 * MIB);
    oc_alloc_destroy(alloc);
    assert_bytes(device.held, 0);
    assert_int_equal(device.segments, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_and_traces_to_the_byte),
        cmocka_unit_test(sizes_that_cannot_be),
        cmocka_unit_test(handles_that_are_not_in_use),
        cmocka_unit_test(splitting),
        cmocka_unit_test(merging),
        cmocka_unit_test(best_fit_is_smallest_then_lowest),
        cmocka_unit_test(retry_frees_the_cache),
        cmocka_unit_test(peaks_and_reset),
        cmocka_unit_test(notes_are_kept),
        cmocka_unit_test(real_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
