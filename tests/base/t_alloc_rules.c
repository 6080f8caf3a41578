/* The caching allocator against a slow second statement of its rules: one flat list of pieces, searched from end to
 * end. Random traces; every figure is compared after every operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "oomcast/alloc.h"

#define MIB (UINT64_C(1) << 20)

enum { PIECES = 8192, LIVE = 400, SPACE_MIB = 1 << 20 };

enum what { FREE, USED, NOTHING }; /* NOTHING: addresses of an expandable segment with no memory behind them */

struct piece {
    uint64_t size;
    int segment; /* pieces of one segment stand together, in the order of their addresses */
    bool small;
    enum what what;
    int id; /* USED: whose it is */
};

/* The list is in the order of addresses: segments in the order of their making. */
struct slow {
    struct piece list[PIECES];
    int n, made;
    uint64_t limit;
    bool expandable;
    uint64_t retries;
};

static uint64_t up(uint64_t n, uint64_t unit)
{
    return n % unit ? n + unit - n % unit : n;
}

static uint64_t sum(const struct slow *s, bool used_only)
{
    uint64_t total = 0;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].what == USED || (!used_only && s->list[i].what == FREE)) total += s->list[i].size;
    return total;
}

static void insert(struct slow *s, int at, struct piece piece)
{
    assert_true(s->n < PIECES);
    memmove(&s->list[at + 1], &s->list[at], (size_t)(s->n - at) * sizeof piece);
    s->list[at] = piece;
    s->n++;
}

static void erase(struct slow *s, int at)
{
    s->n--;
    memmove(&s->list[at], &s->list[at + 1], (size_t)(s->n - at) * sizeof s->list[0]);
}

/* Neighbours of one segment that are both free, or both without memory, are one piece. */
static void join(struct slow *s)
{
    for (int i = 0; i + 1 < s->n;) {
        struct piece *a = &s->list[i], *b = &s->list[i + 1];
        if (a->segment == b->segment && a->what == b->what && a->what != USED) {
            a->size += b->size;
            erase(s, i + 1);
        } else {
            i++;
        }
    }
}

static bool grows(const struct slow *s, int i)
{
    return i + 1 < s->n && s->list[i + 1].segment == s->list[i].segment && s->list[i + 1].what == NOTHING;
}

/* Smallest free piece that is large enough, the lowest address among equals. In expandable segments the walk goes on to
 * the next larger piece as long as that one, counted with what it can grow by, is smaller. */
static int best(const struct slow *s, uint64_t size, bool small)
{
    int found = -1;
    for (int i = 0; i < s->n; i++) {
        const struct piece *p = &s->list[i];
        if (p->what == FREE && p->small == small && p->size >= size && (found < 0 || p->size < s->list[found].size))
            found = i;
    }
    while (s->expandable && found >= 0) {
        int next = -1;
        for (int i = 0; i < s->n; i++) {
            const struct piece *p = &s->list[i], *f = &s->list[found];
            bool after = p->size > f->size || (p->size == f->size && i > found);
            if (p->what == FREE && p->small == small && after && (next < 0 || p->size < s->list[next].size)) next = i;
        }
        if (next < 0) break;
        uint64_t next_size = s->list[next].size + (grows(s, next) ? s->list[next + 1].size : 0);
        uint64_t found_size = s->list[found].size + (grows(s, found) ? s->list[found + 1].size : 0);
        if (next_size >= found_size) break;
        found = next;
    }
    return found;
}

static int fixed_segment(struct slow *s, uint64_t size, bool small)
{
    uint64_t bytes = small ? 2 * MIB : size < 10 * MIB ? 20 * MIB : up(size, 2 * MIB);
    if (s->limit && sum(s, false) + bytes > s->limit) return -1;
    insert(s, s->n, (struct piece){.size = bytes, .segment = s->made++, .small = small, .what = FREE});
    return s->n - 1;
}

/* Index of the first piece from which `size` bytes can be had without crossing a used one; the lowest such place. */
static int place(struct slow *s, uint64_t size, bool small)
{
    for (int i = 0; i < s->n; i++) {
        if (s->list[i].what != NOTHING || s->list[i].small != small) continue;
        int start = i > 0 && s->list[i - 1].segment == s->list[i].segment && s->list[i - 1].what == FREE ? i - 1 : i;
        uint64_t have = 0;
        for (int j = start; j < s->n && s->list[j].segment == s->list[i].segment && s->list[j].what != USED; j++)
            have += s->list[j].size;
        if (have >= size) return start;
    }
    uint64_t space = s->limit ? up(s->limit + s->limit / 8, 20 * MIB) : SPACE_MIB * 20 * MIB;
    insert(s, s->n, (struct piece){.size = space, .segment = s->made++, .small = small, .what = NOTHING});
    return s->n - 1;
}

static int grown_segment(struct slow *s, uint64_t size, bool small)
{
    if (s->limit && size > s->limit) return -1;
    uint64_t page = small ? 2 * MIB : 20 * MIB;
    for (int at = place(s, size, small);;) {
        if (s->list[at].what == FREE && s->list[at].size >= size) return at;
        int gap = s->list[at].what == NOTHING ? at : at + 1;
        uint64_t have = gap == at ? 0 : s->list[at].size, room = s->list[gap].size;
        uint64_t bytes = up(size - have < room ? size - have : room, page);
        if (s->limit && sum(s, false) + bytes > s->limit) return -1;
        struct piece mapped = s->list[gap];
        mapped.size = bytes;
        mapped.what = FREE;
        s->list[gap].size -= bytes;
        if (s->list[gap].size)
            insert(s, gap, mapped);
        else
            s->list[gap] = mapped;
        join(s);
    }
}

static uint64_t address_in_segment(const struct slow *s, int at)
{
    uint64_t address = 0;
    for (int i = at - 1; i >= 0 && s->list[i].segment == s->list[at].segment; i--) address += s->list[i].size;
    return address;
}

static void take_pages_away(struct slow *s, int at)
{
    struct piece p = s->list[at];
    uint64_t page = p.small ? 2 * MIB : 20 * MIB, address = address_in_segment(s, at);
    uint64_t begin = up(address, page), end = (address + p.size) / page * page;
    if (begin >= end) return;
    struct piece head = p, middle = p, tail = p;
    head.size = begin - address;
    middle.size = end - begin;
    middle.what = NOTHING;
    tail.size = address + p.size - end;
    s->list[at] = middle;
    if (tail.size) insert(s, at + 1, tail);
    if (head.size) insert(s, at, head);
}

static void empty(struct slow *s)
{
    for (int i = s->n - 1; i >= 0; i--) {
        if (s->list[i].what != FREE) continue;
        bool first = i == 0 || s->list[i - 1].segment != s->list[i].segment;
        bool last = i + 1 == s->n || s->list[i + 1].segment != s->list[i].segment;
        if (s->expandable)
            take_pages_away(s, i);
        else if (first && last)
            erase(s, i);
    }
    join(s);
}

static bool slow_get(struct slow *s, uint64_t bytes, int id)
{
    uint64_t size = up(bytes ? bytes : 1, 512);
    bool small = size <= MIB;
    int at = best(s, size, small);
    if (at < 0) at = s->expandable ? grown_segment(s, size, small) : fixed_segment(s, size, small);
    if (at < 0) {
        s->retries++;
        empty(s);
        at = s->expandable ? grown_segment(s, size, small) : fixed_segment(s, size, small);
    }
    if (at < 0) return false;
    struct piece rest = s->list[at];
    rest.size -= size;
    if (rest.size >= 512 && (small || s->expandable || rest.size > MIB)) {
        s->list[at].size = size;
        insert(s, at + 1, rest);
    }
    s->list[at].what = USED;
    s->list[at].id = id;
    return true;
}

static void slow_put(struct slow *s, int id)
{
    for (int i = 0; i < s->n; i++)
        if (s->list[i].what == USED && s->list[i].id == id) s->list[i].what = FREE;
    join(s);
}

static uint64_t slow_block(const struct slow *s, int id)
{
    for (int i = 0; i < s->n; i++)
        if (s->list[i].what == USED && s->list[i].id == id) return s->list[i].size;
    return 0;
}

static uint64_t slow_segments(const struct slow *s)
{
    uint64_t n = 0;
    for (int i = 0; i < s->n; i++) {
        bool first = i == 0 || s->list[i - 1].segment != s->list[i].segment;
        bool alone = i + 1 == s->n || s->list[i + 1].segment != s->list[i].segment;
        if (first && !(alone && s->list[i].what == NOTHING)) n++;
    }
    return n;
}

static uint32_t next_random(uint32_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    return *random;
}

/* Sizes as a training step has them: a few that come again and again, and others of every magnitude. */
static uint64_t random_size(uint32_t *random)
{
    static const uint64_t usual[] = {512, 8192, 3 * MIB, 5 * MIB + 512, MIB, MIB + 1, 10 * MIB, 12 * MIB - 512, 0};
    uint32_t r = next_random(random);
    if (r & 1) return usual[(r >> 1) % (sizeof usual / sizeof *usual)];
    unsigned bits = 4 + (r >> 1) % 22;
    return next_random(random) % (UINT64_C(1) << bits);
}

struct totals {
    uint64_t requested, requested_peak, allocated_peak, reserved_peak;
};

static void compare(const struct slow *s, const struct oc_alloc *alloc, struct totals *t, int operation)
{
    const struct oc_alloc_stats *stats = oc_alloc_stats(alloc);
    uint64_t allocated = sum(s, true), reserved = sum(s, false);
    if (t->requested > t->requested_peak) t->requested_peak = t->requested;
    if (allocated > t->allocated_peak) t->allocated_peak = allocated;
    if (reserved > t->reserved_peak) t->reserved_peak = reserved;
    if (stats->allocated != allocated || stats->reserved != reserved)
        fail_msg("operation %d: allocated %" PRIu64 " not %" PRIu64 ", reserved %" PRIu64 " not %" PRIu64, operation,
                 stats->allocated, allocated, stats->reserved, reserved);
    assert_true(stats->requested == t->requested && stats->requested_peak == t->requested_peak);
    assert_true(stats->allocated_peak == t->allocated_peak && stats->retries == s->retries);
    assert_true(stats->segments == slow_segments(s));
    /* Memory that is mapped and lost again inside one failed request may lift the peak further. */
    assert_true(stats->reserved_peak >= t->reserved_peak);
    t->reserved_peak = stats->reserved_peak;
    assert_true(stats->requested <= stats->allocated && stats->allocated <= stats->reserved);
    assert_true(stats->allocated % 512 == 0 && stats->reserved % (2 * MIB) == 0);
    assert_true(!s->limit || stats->reserved_peak <= s->limit);
}

static void random_trace(uint32_t seed, uint64_t limit, bool expandable, int operations)
{
    static struct slow s;
    memset(&s, 0, sizeof s);
    s.limit = limit;
    s.expandable = expandable;
    struct oc_alloc_provider provider = {.limit = limit, .expandable_segments = expandable};
    struct oc_alloc *alloc = oc_alloc_create(&provider);
    assert_non_null(alloc);
    uint32_t handles[LIVE] = {0}, random = seed * 2654435761u + 1;
    uint64_t sizes[LIVE];
    struct totals totals = {0};
    for (int i = 0; i < operations; i++) {
        int id = (int)(next_random(&random) % LIVE);
        if (next_random(&random) % 200 == 0) {
            oc_alloc_empty_cache(alloc);
            empty(&s);
        } else if (handles[id]) {
            oc_alloc_put(alloc, handles[id]);
            slow_put(&s, id);
            totals.requested -= sizes[id];
            handles[id] = 0;
        } else {
            sizes[id] = random_size(&random);
            bool got = oc_alloc_get(alloc, sizes[id], &handles[id]) != 0;
            assert_true(slow_get(&s, sizes[id], id) == got);
            if (got) {
                totals.requested += sizes[id];
                assert_true(oc_alloc_block(alloc, handles[id]) == slow_block(&s, id));
            } else {
                handles[id] = 0;
            }
        }
        compare(&s, alloc, &totals, i);
    }
    if (limit) assert_true(s.retries > 0);
    oc_alloc_destroy(alloc);
}

static void fixed_segments(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) random_trace(seed, 0, false, 2000);
}

static void fixed_segments_with_a_limit(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) random_trace(seed, (200 + 20 * seed) * MIB, false, 2000);
}

static void expandable_segments(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) random_trace(seed, 0, true, 2000);
}

static void expandable_segments_with_a_limit(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) random_trace(seed, (150 + 20 * seed) * MIB, true, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_segments),
        cmocka_unit_test(fixed_segments_with_a_limit),
        cmocka_unit_test(expandable_segments),
        cmocka_unit_test(expandable_segments_with_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
