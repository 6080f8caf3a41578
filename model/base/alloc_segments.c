/* Where blocks come from: fixed segments, imaginary or from the provider, and expandable segments, which grow page by
 * page. Source: pytorch c10/cuda/CUDACachingAllocator.cpp @001074d2 (alloc_block, try_allocate_expandable_block,
 * find_expandable_block, map_block, unmap_block, release_cached_blocks). */
#include "model/base/alloc_blocks.h"

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Whether the device still has `bytes` bytes. No sum here can wrap: all segments together stay below 2^62. */
static bool has_room(const struct oc_alloc *alloc, uint64_t bytes)
{
    uint64_t limit = alloc->provider.limit;
    return !limit || (bytes <= limit && alloc->stats.reserved <= limit - bytes);
}

static void add_reserved(struct oc_alloc_stats *stats, uint64_t bytes)
{
    stats->reserved += bytes;
    if (stats->reserved > stats->reserved_peak) stats->reserved_peak = stats->reserved;
}

/* `bytes` bytes of the imaginary address space; 0 when it is used up. */
static uint64_t take_addresses(struct oc_alloc *alloc, uint64_t bytes)
{
    uint64_t address = alloc->next_address;
    if (bytes > OC_LAST_ADDRESS - address) return 0;
    alloc->next_address += bytes;
    return address;
}

uint32_t oc_segment_new(struct oc_alloc *alloc, int pool, uint64_t size)
{
    uint64_t bytes = oc_alloc_segment(size);
    if (!has_room(alloc, bytes) || !oc_blocks_prepare(alloc, 1)) return 0;
    const struct oc_alloc_provider *provider = &alloc->provider;
    uint64_t address =
        provider->segment ? (uintptr_t)provider->segment(provider->user, (size_t)bytes) : take_addresses(alloc, bytes);
    if (!address) return 0;
    alloc->stats.segments++;
    add_reserved(&alloc->stats, bytes);
    return oc_block_new(alloc, address, bytes, pool, OC_BLOCK_FREE);
}

/* ---- Expandable segments: address space for the whole device at once, memory in pages as it is needed ---- */

static uint64_t page_of(int pool)
{
    return pool == OC_POOL_SMALL ? OC_SMALL_SEGMENT : OC_LARGE_SEGMENT;
}

/* Address space of one segment: 9/8 of the device, so that pages freed at its start can come back at its end. */
static uint64_t address_space(const struct oc_alloc *alloc)
{
    uint64_t limit = alloc->provider.limit, most = UINT64_C(1) << 58;
    return limit && limit < most / 2 ? round_up(limit + limit / 8, OC_LARGE_SEGMENT)
                                     : most / OC_LARGE_SEGMENT * OC_LARGE_SEGMENT;
}

static bool is_empty(const struct oc_block *block)
{
    return block->state == OC_BLOCK_FREE || block->state == OC_BLOCK_UNMAPPED;
}

/* Whether `size` bytes fit from this block on, memory or not. */
static bool has_addresses(const struct oc_alloc *alloc, uint32_t block, uint64_t size)
{
    uint64_t bytes = 0;
    for (; block && bytes < size && is_empty(&alloc->blocks[block]); block = alloc->blocks[block].next)
        bytes += alloc->blocks[block].size;
    return bytes >= size;
}

/* The lowest place that can be made a free block of `size` bytes: an unmapped block, or the free one before it. */
static uint32_t find_place(struct oc_alloc *alloc, int pool, uint64_t size)
{
    uint32_t block = oc_unmapped_from(alloc, pool, 0);
    for (; block; block = oc_unmapped_from(alloc, pool, alloc->blocks[block].address + 1)) {
        uint32_t prev = alloc->blocks[block].prev;
        uint32_t start = prev && alloc->blocks[prev].state == OC_BLOCK_FREE ? prev : block;
        if (has_addresses(alloc, start, size)) return start;
    }
    uint64_t bytes = address_space(alloc), address = oc_blocks_prepare(alloc, 1) ? take_addresses(alloc, bytes) : 0;
    if (!address) return 0;
    block = oc_block_new(alloc, address, bytes, pool, OC_BLOCK_UNMAPPED);
    oc_unmapped_add(alloc, block);
    return block;
}

/* Puts pages behind the first `size` bytes of an unmapped block, which becomes a free block with its free neighbours.
 */
static bool map(struct oc_alloc *alloc, uint32_t block, uint64_t size)
{
    if (!oc_blocks_prepare(alloc, 1)) return false;
    struct oc_block *b = &alloc->blocks[block];
    uint64_t bytes = round_up(size < b->size ? size : b->size, page_of(b->pool));
    if (!has_room(alloc, bytes)) return false;
    if (!b->prev && !b->next) alloc->stats.segments++;
    oc_unmapped_remove(alloc, block);
    if (bytes < b->size) oc_unmapped_add(alloc, oc_block_cut(alloc, block, bytes));
    b->state = OC_BLOCK_FREE;
    oc_block_merge(alloc, block, OC_BLOCK_FREE);
    oc_free_add(alloc, block);
    add_reserved(&alloc->stats, bytes);
    return true;
}

uint32_t oc_segment_grow(struct oc_alloc *alloc, int pool, uint64_t size)
{
    uint32_t block = find_place(alloc, pool, size);
    if (!block) return 0;
    if (alloc->blocks[block].state == OC_BLOCK_UNMAPPED && !map(alloc, block, size)) return 0;
    while (alloc->blocks[block].size < size) {
        uint32_t next = alloc->blocks[block].next; /* unmapped: free neighbours are one block */
        if (!map(alloc, next, size - alloc->blocks[block].size)) return 0;
        block = next;
    }
    oc_free_remove(alloc, block);
    return block;
}

/* Takes the whole pages inside a free block away. */
static void unmap(struct oc_alloc *alloc, uint32_t block)
{
    const struct oc_block *b = &alloc->blocks[block];
    uint64_t page = page_of(b->pool);
    uint64_t begin = round_up(b->address, page), end = (b->address + b->size) / page * page;
    if (begin >= end || !oc_blocks_prepare(alloc, 2)) return;
    oc_free_remove(alloc, block);
    if (end < alloc->blocks[block].address + alloc->blocks[block].size)
        oc_free_add(alloc, oc_block_cut(alloc, block, end - alloc->blocks[block].address));
    if (begin > alloc->blocks[block].address) {
        uint32_t middle = oc_block_cut(alloc, block, begin - alloc->blocks[block].address);
        oc_free_add(alloc, block);
        block = middle;
    }
    alloc->blocks[block].state = OC_BLOCK_UNMAPPED;
    oc_block_merge(alloc, block, OC_BLOCK_UNMAPPED);
    oc_unmapped_add(alloc, block);
    alloc->stats.reserved -= end - begin;
    if (!alloc->blocks[block].prev && !alloc->blocks[block].next) alloc->stats.segments--;
}

static void release(struct oc_alloc *alloc, uint32_t block)
{
    struct oc_block *b = &alloc->blocks[block];
    oc_free_remove(alloc, block);
    if (alloc->provider.segment)
        alloc->provider.release(alloc->provider.user, (void *)(uintptr_t)b->address, (size_t)b->size);
    alloc->stats.reserved -= b->size;
    oc_block_drop(alloc, block);
    if (--alloc->stats.segments == 0) alloc->next_address = OC_FIRST_ADDRESS;
}

void oc_segments_release(struct oc_alloc *alloc)
{
    for (uint32_t i = 1; i < alloc->n_blocks; i++) {
        const struct oc_block *b = &alloc->blocks[i];
        if (b->state != OC_BLOCK_FREE) continue;
        if (alloc->provider.expandable_segments)
            unmap(alloc, i);
        else if (!b->prev && !b->next)
            release(alloc, i);
    }
}
