/* What tests of the caching allocator share. */
#ifndef OOMCAST_TESTS_HELP_ALLOC_H
#define OOMCAST_TESTS_HELP_ALLOC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>

#include "oomcast/alloc.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static inline struct oc_alloc *fresh(uint64_t limit, bool expandable)
{
    struct oc_alloc_provider provider = {.limit = limit, .expandable_segments = expandable};
    struct oc_alloc *alloc = oc_alloc_create(&provider);
    assert_non_null(alloc);
    return alloc;
}

static inline uint32_t get(struct oc_alloc *alloc, uint64_t bytes)
{
    uint32_t handle = 0;
    assert_true(oc_alloc_get(alloc, bytes, &handle) != 0);
    return handle;
}

#define assert_bytes(have, want)                                                                                       \
    do {                                                                                                               \
        uint64_t have_ = (have), want_ = (want);                                                                       \
        if (have_ != want_) fail_msg("%s: %" PRIu64 ", not %" PRIu64, #have, have_, want_);                            \
    } while (0)

#endif
