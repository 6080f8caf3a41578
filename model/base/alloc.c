/* PyTorch's CUDA caching allocator, as rules.
 * Source: pytorch c10/cuda/CUDACachingAllocator.cpp @001074d2 (round_size, get_allocation_size, should_split,
 * get_free_block, malloc, free_block). */
#include "model/base/alloc_blocks.h"

#include <stdlib.h>
#include <string.h>

uint64_t oc_alloc_round(uint64_t bytes)
{
    if (bytes > UINT64_MAX - OC_BLOCK_UNIT) return UINT64_MAX;
    return bytes <= OC_BLOCK_UNIT ? OC_BLOCK_UNIT : (bytes + OC_BLOCK_UNIT - 1) / OC_BLOCK_UNIT * OC_BLOCK_UNIT;
}

uint64_t oc_alloc_segment(uint64_t rounded)
{
    if (rounded <= OC_SMALL_MOST) return OC_SMALL_SEGMENT;
    if (rounded < OC_LARGE_OWN) return OC_LARGE_SEGMENT;
    if (rounded > UINT64_MAX - OC_SEGMENT_UNIT) return UINT64_MAX;
    return (rounded + OC_SEGMENT_UNIT - 1) / OC_SEGMENT_UNIT * OC_SEGMENT_UNIT;
}

/* ---- Life of the allocator ---- */

static void start_over(struct oc_alloc *alloc)
{
    memset(&alloc->stats, 0, sizeof alloc->stats);
    memset(alloc->pools, 0, sizeof alloc->pools);
    alloc->n_blocks = 1; /* index 0 is no block */
    alloc->spare = 0;
    alloc->random = 2463534242u;
    alloc->next_address = OC_FIRST_ADDRESS;
}

struct oc_alloc *oc_alloc_create(const struct oc_alloc_provider *provider)
{
    struct oc_alloc *alloc = calloc(1, sizeof *alloc);
    if (!alloc) return NULL;
    if (provider) alloc->provider = *provider;
    if (alloc->provider.segment) alloc->provider.expandable_segments = false;
    if (!oc_blocks_prepare(alloc, 2)) {
        free(alloc);
        return NULL;
    }
    start_over(alloc);
    return alloc;
}

/* Every real segment goes back to the provider, whatever is in it. */
static void return_segments(struct oc_alloc *alloc)
{
    if (!alloc->provider.segment) return;
    for (uint32_t i = 1; i < alloc->n_blocks; i++) {
        const struct oc_block *first = &alloc->blocks[i];
        if (first->state == OC_BLOCK_SPARE || first->prev) continue;
        uint64_t bytes = first->size;
        for (uint32_t next = first->next; next; next = alloc->blocks[next].next) bytes += alloc->blocks[next].size;
        alloc->provider.release(alloc->provider.user, (void *)(uintptr_t)first->address, (size_t)bytes);
    }
}

void oc_alloc_destroy(struct oc_alloc *alloc)
{
    if (!alloc) return;
    return_segments(alloc);
    free(alloc->blocks);
    free(alloc->notes);
    free(alloc);
}

void oc_alloc_reset(struct oc_alloc *alloc)
{
    return_segments(alloc);
    start_over(alloc);
}

void oc_alloc_set_limit(struct oc_alloc *alloc, uint64_t bytes)
{
    oc_alloc_reset(alloc);
    alloc->provider.limit = bytes;
}

void oc_alloc_set_expandable(struct oc_alloc *alloc, bool expandable)
{
    oc_alloc_reset(alloc);
    alloc->provider.expandable_segments = expandable && !alloc->provider.segment;
}

uint32_t *oc_alloc_notes(struct oc_alloc *alloc, size_t n)
{
    if (n <= alloc->n_notes) return alloc->notes;
    size_t room = n > 2 * alloc->n_notes ? n : 2 * alloc->n_notes;
    if (room > SIZE_MAX / 4 / sizeof *alloc->notes) return NULL;
    uint32_t *notes = realloc(alloc->notes, room * sizeof *notes);
    if (!notes) return NULL;
    memset(notes + alloc->n_notes, 0, (room - alloc->n_notes) * sizeof *notes);
    alloc->notes = notes;
    alloc->n_notes = room;
    return notes;
}

/* ---- Blocks ---- */

/* What a block could become: the growing end of an expandable segment counts with the address space after it, so that
 * it is used last. */
static uint64_t size_when_grown(const struct oc_alloc *alloc, uint32_t block)
{
    uint32_t next = alloc->blocks[block].next;
    bool grows = next && alloc->blocks[next].state == OC_BLOCK_UNMAPPED;
    return alloc->blocks[block].size + (grows ? alloc->blocks[next].size : 0);
}

/* The smallest free block of at least `size` bytes, but an end that can still grow after all that are smaller than what
 * it can become. Leaves its bin; 0 = none. */
static uint32_t take_expandable(struct oc_alloc *alloc, int pool, uint64_t size)
{
    uint32_t block = oc_free_from(alloc, pool, size, 0);
    if (!block) return 0;
    for (;;) {
        uint32_t next = oc_free_from(alloc, pool, alloc->blocks[block].size, alloc->blocks[block].address + 1);
        if (!next || size_when_grown(alloc, next) >= size_when_grown(alloc, block)) break;
        block = next;
    }
    oc_free_remove(alloc, block);
    return block;
}

static uint32_t take_cached(struct oc_alloc *alloc, int pool, uint64_t size)
{
    return alloc->provider.expandable_segments ? take_expandable(alloc, pool, size) : oc_free_take(alloc, pool, size);
}

static uint32_t take_new(struct oc_alloc *alloc, int pool, uint64_t size)
{
    if (alloc->provider.limit && size > alloc->provider.limit) return 0;
    return alloc->provider.expandable_segments ? oc_segment_grow(alloc, pool, size) : oc_segment_new(alloc, pool, size);
}

static bool should_split(const struct oc_alloc *alloc, int pool, uint64_t rest)
{
    if (pool == OC_POOL_SMALL || alloc->provider.expandable_segments) return rest >= OC_BLOCK_UNIT;
    return rest > OC_SPLIT_LARGE;
}

uintptr_t oc_alloc_get(struct oc_alloc *alloc, uint64_t bytes, uint32_t *handle)
{
    uint64_t size = oc_alloc_round(bytes);
    if (size > OC_REQUEST_MOST) return 0;
    int pool = size <= OC_SMALL_MOST ? OC_POOL_SMALL : OC_POOL_LARGE;
    uint32_t block = take_cached(alloc, pool, size);
    if (!block) block = take_new(alloc, pool, size);
    if (!block) {
        alloc->stats.retries++;
        oc_segments_release(alloc);
        block = take_new(alloc, pool, size);
    }
    if (!block) return 0;
    if (should_split(alloc, pool, alloc->blocks[block].size - size)) {
        if (!oc_blocks_prepare(alloc, 1)) {
            oc_free_add(alloc, block);
            return 0;
        }
        oc_free_add(alloc, oc_block_cut(alloc, block, size));
    }
    struct oc_block *b = &alloc->blocks[block];
    b->state = OC_BLOCK_USED;
    b->requested = bytes;
    struct oc_alloc_stats *stats = &alloc->stats;
    stats->requested += bytes;
    stats->allocated += b->size;
    if (stats->requested > stats->requested_peak) stats->requested_peak = stats->requested;
    if (stats->allocated > stats->allocated_peak) stats->allocated_peak = stats->allocated;
    *handle = block;
    const struct oc_alloc_provider *provider = &alloc->provider;
    if (provider->segment && provider->used)
        provider->used(provider->user, (void *)(uintptr_t)b->address, (size_t)size);
    return (uintptr_t)b->address;
}

static bool is_used(const struct oc_alloc *alloc, uint32_t handle)
{
    return handle && handle < alloc->n_blocks && alloc->blocks[handle].state == OC_BLOCK_USED;
}

void oc_alloc_put(struct oc_alloc *alloc, uint32_t handle)
{
    if (!is_used(alloc, handle)) return;
    struct oc_block *b = &alloc->blocks[handle];
    alloc->stats.requested -= b->requested;
    alloc->stats.allocated -= b->size;
    b->state = OC_BLOCK_FREE;
    oc_block_merge(alloc, handle, OC_BLOCK_FREE);
    oc_free_add(alloc, handle);
    const struct oc_alloc_provider *provider = &alloc->provider;
    if (provider->segment && provider->unused)
        provider->unused(provider->user, (void *)(uintptr_t)b->address, (size_t)b->size);
}

uint64_t oc_alloc_block(const struct oc_alloc *alloc, uint32_t handle)
{
    return is_used(alloc, handle) ? alloc->blocks[handle].size : 0;
}

void oc_alloc_empty_cache(struct oc_alloc *alloc)
{
    oc_segments_release(alloc);
}

void oc_alloc_reset_peaks(struct oc_alloc *alloc)
{
    alloc->stats.requested_peak = alloc->stats.requested;
    alloc->stats.allocated_peak = alloc->stats.allocated;
    alloc->stats.reserved_peak = alloc->stats.reserved;
}

const struct oc_alloc_stats *oc_alloc_stats(const struct oc_alloc *alloc)
{
    return &alloc->stats;
}
