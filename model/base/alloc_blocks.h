/* Inside the caching allocator: its blocks, and the free ones by size.
 *
 * Blocks are records in one growing array and name each other by index, so that nothing is allocated per operation.
 * Index 0 is no block. Every byte of a segment belongs to exactly one block; neighbours in a segment know each other.
 */
#ifndef OOMCAST_MODEL_BASE_ALLOC_BLOCKS_H
#define OOMCAST_MODEL_BASE_ALLOC_BLOCKS_H

#include "oomcast/alloc.h"

#define OC_KIB UINT64_C(1024)
#define OC_MIB (OC_KIB * OC_KIB)

#define OC_BLOCK_UNIT    UINT64_C(512) /* every block is a multiple of it */
#define OC_SMALL_MOST    OC_MIB        /* larger blocks come from the large pool */
#define OC_SMALL_SEGMENT (2 * OC_MIB)
#define OC_LARGE_SEGMENT (20 * OC_MIB)
#define OC_LARGE_OWN     (10 * OC_MIB) /* from here on a block that is not in the cache gets a segment of its own */
#define OC_SEGMENT_UNIT  (2 * OC_MIB)
#define OC_SPLIT_LARGE   OC_MIB /* a rest of up to this stays with a large block */
#define OC_REQUEST_MOST  (UINT64_C(1) << 56)
#define OC_FIRST_ADDRESS (20 * OC_MIB)
#define OC_LAST_ADDRESS  (UINT64_C(1) << 62) /* the end of the imaginary address space: sums of sizes never wrap */

enum oc_block_state {
    OC_BLOCK_SPARE, /* the record is not in use */
    OC_BLOCK_USED,
    OC_BLOCK_FREE,    /* in its pool's bins */
    OC_BLOCK_UNMAPPED /* address space of an expandable segment with no memory behind it */
};

enum { OC_POOL_SMALL, OC_POOL_LARGE, OC_POOLS };

struct oc_block {
    uint64_t address, size;
    uint64_t requested;   /* USED: the bytes asked for */
    uint32_t prev, next;  /* neighbours in the segment; SPARE: next spare record */
    uint32_t left, right; /* children in the tree that a FREE or UNMAPPED block is in */
    uint32_t priority;    /* of that tree: no child's is larger than its parent's */
    uint8_t state;        /* enum oc_block_state */
    uint8_t pool;
};

/* Free blocks are kept in bins of similar size, 16 to each power of two of 512-byte units, each bin a tree ordered by
 * (size, address). A bin mostly holds a handful of blocks, so that operations take about the same short time; the tree
 * keeps them logarithmic where it holds thousands. */
enum { OC_BINS = 16 * 51, OC_BIN_WORDS = (OC_BINS + 63) / 64 };

struct oc_pool {
    uint64_t filled[OC_BIN_WORDS]; /* one bit per bin that is not empty */
    uint32_t bins[OC_BINS];        /* roots */
    uint32_t unmapped;             /* root of the tree of UNMAPPED blocks, ordered by address */
};

struct oc_alloc {
    struct oc_alloc_provider provider;
    struct oc_alloc_stats stats;
    struct oc_block *blocks;
    uint32_t n_blocks, capacity; /* records ever used since the last reset, and room for */
    uint32_t spare;              /* list of records that are free again */
    uint32_t random;
    uint64_t next_address; /* where the next imaginary segment goes */
    struct oc_pool pools[OC_POOLS];
    uint32_t *notes; /* see oc_alloc_notes() */
    size_t n_notes;
};

/* Makes sure that `n` records can be taken without asking for memory. */
bool oc_blocks_prepare(struct oc_alloc *alloc, uint32_t n);

/* A fresh record, prepared for before. */
uint32_t oc_block_new(struct oc_alloc *alloc, uint64_t address, uint64_t size, int pool, enum oc_block_state state);

/* Gives the record of a block back. */
void oc_block_drop(struct oc_alloc *alloc, uint32_t block);

/* Cuts the block after `size` bytes; returns the record of the rest, which has the same state and is in no tree. */
uint32_t oc_block_cut(struct oc_alloc *alloc, uint32_t block, uint64_t size);

/* Puts a block into the bins of its pool, or takes it out. */
void oc_free_add(struct oc_alloc *alloc, uint32_t block);
void oc_free_remove(struct oc_alloc *alloc, uint32_t block);

/* The first free block at or after (size, address) in the order of size, then address; 0 = none. */
uint32_t oc_free_from(struct oc_alloc *alloc, int pool, uint64_t size, uint64_t address);

/* Takes the smallest free block of at least `size` bytes out of its bin, the lowest address among equals; 0 = none. */
uint32_t oc_free_take(struct oc_alloc *alloc, int pool, uint64_t size);

/* Adding, removing and finding blocks of address space without memory, in the order of their addresses. */
void oc_unmapped_add(struct oc_alloc *alloc, uint32_t block);
void oc_unmapped_remove(struct oc_alloc *alloc, uint32_t block);
uint32_t oc_unmapped_from(struct oc_alloc *alloc, int pool, uint64_t address);

/* Joins a block that is in no tree with its neighbours of the given state, which leave their trees. */
void oc_block_merge(struct oc_alloc *alloc, uint32_t block, enum oc_block_state state);

/* A free block of at least `size` bytes in no tree, from a fresh segment or from the growing end of one; 0 = no room.
 */
uint32_t oc_segment_new(struct oc_alloc *alloc, int pool, uint64_t size);
uint32_t oc_segment_grow(struct oc_alloc *alloc, int pool, uint64_t size);

/* Gives back what the cache holds: segments that are one free block, or free pages of expandable segments. */
void oc_segments_release(struct oc_alloc *alloc);

#endif
