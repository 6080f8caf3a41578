/* PyTorch's CUDA caching allocator, as rules: block sizes, segments, best fit, splitting, merging.
 * Source: pytorch c10/cuda/CUDACachingAllocator.cpp @001074d2 (round_size, get_allocation_size, should_split,
 * get_free_block).
 *
 * It hands out addresses in an imaginary address space, or asks `provider` for real segments. One stream.
 *
 * Ownership: oc_alloc_create() allocates; oc_alloc_destroy() releases it and every segment. */
#ifndef OOMCAST_ALLOC_H
#define OOMCAST_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The block size that a request gets: a multiple of 512 bytes, at least 512; UINT64_MAX when that overflows. */
uint64_t oc_alloc_round(uint64_t bytes);

/* The size of the segment that a fresh block of `rounded` bytes is cut from: 2 MiB, 20 MiB, or a multiple of 2 MiB. */
uint64_t oc_alloc_segment(uint64_t rounded);

/* Where segments come from. NULL functions: an imaginary address space of `limit` bytes (0 = no limit). */
struct oc_alloc_provider {
    void *(*segment)(void *user, size_t bytes); /* NULL: out of memory */
    void (*release)(void *user, void *segment, size_t bytes);
    void *user;
    /* Parts of real segments that are handed out, and that are free again: a block with the free ones beside it. Both
     * may be NULL. */
    void (*used)(void *user, void *memory, size_t bytes);
    void (*unused)(void *user, void *memory, size_t bytes);
    uint64_t limit;           /* bytes of segments at most; 0 = as many as asked for */
    bool expandable_segments; /* PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; imaginary segments only */
};

struct oc_alloc_stats {
    uint64_t requested, requested_peak; /* sums of the bytes asked for */
    uint64_t allocated, allocated_peak; /* sums of the blocks handed out: what torch.cuda.memory_allocated() counts */
    uint64_t reserved, reserved_peak;   /* sums of segments: torch.cuda.memory_reserved() */
    uint64_t segments, retries;         /* live segments; times the cache was emptied to make room */
};

struct oc_alloc;

/* NULL when out of host memory. */
struct oc_alloc *oc_alloc_create(const struct oc_alloc_provider *provider);
void oc_alloc_destroy(struct oc_alloc *alloc);

/* Everything is free and no segment is held, as after oc_alloc_create(), without giving host memory back. */
void oc_alloc_reset(struct oc_alloc *alloc);

/* Resets, and chooses between fixed and expandable segments from here on. Real segments stay fixed. */
void oc_alloc_set_expandable(struct oc_alloc *alloc, bool expandable);

/* Resets, and lets imaginary segments take `bytes` at most from here on (0: no limit). */
void oc_alloc_set_limit(struct oc_alloc *alloc, uint64_t bytes);

/* Room for at least `n` numbers beside the blocks, for what a caller must remember of them (which handle belongs to
 * what), so that a replay needs no memory of its own. Owned by the allocator; grows as asked, keeping what is in it,
 * over oc_alloc_reset() too; new numbers are 0. NULL when out of host memory. */
uint32_t *oc_alloc_notes(struct oc_alloc *alloc, size_t n);

/* A block for `bytes` bytes (0 is rounded up like any other). Returns its address, never 0, or 0 when neither the cache
 * nor the provider has room, after freeing unsplit cached segments and trying again as PyTorch does. `*handle` names
 * the block. */
uintptr_t oc_alloc_get(struct oc_alloc *alloc, uint64_t bytes, uint32_t *handle);

/* Returns the block to the cache. `handle` must come from oc_alloc_get() and not have been put back. */
void oc_alloc_put(struct oc_alloc *alloc, uint32_t handle);

/* Size of the block behind a handle: at least the rounded request, up to 1 MiB more where a large block was not split.
 */
uint64_t oc_alloc_block(const struct oc_alloc *alloc, uint32_t handle);

/* torch.cuda.empty_cache(): gives back segments that are wholly free. */
void oc_alloc_empty_cache(struct oc_alloc *alloc);

/* Sets the peaks to the current values. */
void oc_alloc_reset_peaks(struct oc_alloc *alloc);

const struct oc_alloc_stats *oc_alloc_stats(const struct oc_alloc *alloc);

#endif
