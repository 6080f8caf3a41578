/* How FSDP1, FSDP2 and ZeRO pad and split parameters, to the element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/frameworks/shards.h"

enum { MOST = 64 };

/* The numbers of a line, spaces, 'x' and '|' between them. Returns how many. */
static size_t numbers(const char *line, uint64_t *values)
{
    size_t n = 0;
    for (const char *at = line; *at && n < MOST;) {
        char *end;
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        values[n++] = strtoull(at, &end, 10);
        at = end;
    }
    return n;
}

static void check_fsdp2(const uint64_t *v, size_t n)
{
    const uint64_t rows = v[0], columns = v[1], ranks = v[2];
    assert_int_equal(oc_shard_fsdp2(rows, columns, ranks), v[3]);
    assert_int_equal(oc_shard_fsdp2(rows, columns, ranks) * ranks, v[4]);
    for (size_t i = 0; i + 5 < n; i++) {
        const uint64_t rank = ranks > 8 && i > 1 ? ranks - (n - 5 - i) : i;
        assert_int_equal(oc_shard_fsdp2_own(rows, columns, ranks, rank), v[5 + i]);
    }
}

static void check_fsdp1(const uint64_t *v, size_t n)
{
    const uint64_t flat = oc_flat_fsdp1(v + 5, n - 5, v[2], v[0], v[1]);
    assert_int_equal(flat, v[3]);
    assert_int_equal((flat + v[2] - 1) / v[2], v[4]);
}

static void check_zero12(const uint64_t *v)
{
    assert_int_equal(oc_shard_zero12(v[0], v[1]) * v[1], v[2]);
    assert_int_equal(oc_shard_zero12(v[0], v[1]), v[3]);
}

static void check_zero3(const uint64_t *v, size_t n)
{
    uint64_t partition = 0, persistent = 0;
    for (size_t i = 4; i < n; i++) {
        partition += oc_shard_zero3(v[i], v[0]);
        if (v[i] <= v[1]) persistent += v[i];
    }
    assert_int_equal(partition, v[2]);
    assert_int_equal(persistent, v[3]);
}

static void all_rows(void **state)
{
    (void)state;
    FILE *file = fopen(OOMCAST_SOURCE "/tests/data/shards.txt", "r");
    assert_non_null(file);
    char line[1024];
    int rows = 0;
    while (fgets(line, sizeof line, file)) {
        uint64_t v[MOST];
        char *rest = strchr(line, ' ');
        if (line[0] == '#' || !rest) continue;
        const size_t n = numbers(rest, v);
        if (!strncmp(line, "fsdp2", 5))
            check_fsdp2(v, n);
        else if (!strncmp(line, "fsdp1", 5))
            check_fsdp1(v, n);
        else if (!strncmp(line, "zero12", 6))
            check_zero12(v);
        else
            check_zero3(v, n);
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, 40 + 32 + 25 + 8);
}

/* Sizes near the top of the range stop instead of wrapping. */
static void huge(void **state)
{
    (void)state;
    const uint64_t elements[] = {UINT64_MAX, UINT64_MAX};
    assert_true(oc_shard_fsdp2(UINT64_MAX, UINT64_MAX, 1) == UINT64_MAX);
    assert_true(oc_shard_fsdp2_own(3, 1, 8, UINT64_MAX) == 0);
    assert_true(oc_flat_fsdp1(elements, 2, 3, 2, true) >= UINT64_MAX - 3);
    assert_true(oc_shard_zero12(UINT64_MAX, 1) >= UINT64_MAX - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_rows), cmocka_unit_test(huge)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
