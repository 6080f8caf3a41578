/* The free blocks of the caching allocator: bins of trees. The trees are treaps: ordered by key from left to right, and
 * by a random priority from the root down, which keeps them shallow whatever the order of operations. */
#include "model/base/alloc_blocks.h"

/* Order of a block in its tree: free blocks by size, then address; unmapped ones by address alone. */
static uint64_t key(const struct oc_block *block)
{
    return block->state == OC_BLOCK_UNMAPPED ? 0 : block->size;
}

static bool before(const struct oc_block *a, uint64_t size, uint64_t address)
{
    uint64_t own = key(a);
    return own < size || (own == size && a->address < address);
}

static void tree_add(struct oc_block *blocks, uint32_t *link, uint32_t node)
{
    struct oc_block *new = &blocks[node];
    uint64_t size = key(new), address = new->address;
    while (*link && blocks[*link].priority >= new->priority)
        link = before(&blocks[*link], size, address) ? &blocks[*link].right : &blocks[*link].left;
    /* `node` takes this place; what was below it is dealt out to its left and right. */
    uint32_t below = *link, *left = &new->left, *right = &new->right;
    *link = node;
    while (below) {
        if (before(&blocks[below], size, address)) {
            *left = below;
            left = &blocks[below].right;
            below = *left;
        } else {
            *right = below;
            right = &blocks[below].left;
            below = *right;
        }
    }
    *left = *right = 0;
}

/* Takes out the node that `link` leads to: its two sides become one tree again. */
static void tree_unlink(struct oc_block *blocks, uint32_t *link)
{
    uint32_t left = blocks[*link].left, right = blocks[*link].right;
    while (left && right) {
        if (blocks[left].priority >= blocks[right].priority) {
            *link = left;
            link = &blocks[left].right;
            left = *link;
        } else {
            *link = right;
            link = &blocks[right].left;
            right = *link;
        }
    }
    *link = left ? left : right;
}

static void tree_remove(struct oc_block *blocks, uint32_t *link, uint32_t node)
{
    uint64_t size = key(&blocks[node]), address = blocks[node].address;
    while (*link != node) link = before(&blocks[*link], size, address) ? &blocks[*link].right : &blocks[*link].left;
    tree_unlink(blocks, link);
}

/* What leads to the first node at or after (size, address); NULL when there is none. */
static uint32_t *tree_from(struct oc_block *blocks, uint32_t *link, uint64_t size, uint64_t address)
{
    uint32_t *found = NULL;
    while (*link) {
        if (before(&blocks[*link], size, address)) {
            link = &blocks[*link].right;
        } else {
            found = link;
            link = &blocks[*link].left;
        }
    }
    return found;
}

static unsigned bin_of(uint64_t size)
{
    uint64_t units = size / OC_BLOCK_UNIT;
    if (units < 16) return (unsigned)units;
    unsigned log = 63 - (unsigned)__builtin_clzll(units);
    return (log - 3) * 16 + (unsigned)((units >> (log - 4)) & 15);
}

void oc_free_add(struct oc_alloc *alloc, uint32_t block)
{
    struct oc_pool *pool = &alloc->pools[alloc->blocks[block].pool];
    unsigned bin = bin_of(alloc->blocks[block].size);
    tree_add(alloc->blocks, &pool->bins[bin], block);
    pool->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void mark_if_empty(struct oc_pool *pool, unsigned bin)
{
    if (!pool->bins[bin]) pool->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

void oc_free_remove(struct oc_alloc *alloc, uint32_t block)
{
    struct oc_pool *pool = &alloc->pools[alloc->blocks[block].pool];
    unsigned bin = bin_of(alloc->blocks[block].size);
    tree_remove(alloc->blocks, &pool->bins[bin], block);
    mark_if_empty(pool, bin);
}

/* What leads to the first free block at or after (size, address), and its bin; NULL when there is none. */
static uint32_t *find(struct oc_alloc *alloc, struct oc_pool *pool, uint64_t size, uint64_t address, unsigned *bin)
{
    *bin = bin_of(size);
    uint32_t *found = tree_from(alloc->blocks, &pool->bins[*bin], size, address);
    if (found) return found;
    unsigned next = *bin + 1, word = next / 64;
    if (word >= OC_BIN_WORDS) return NULL;
    uint64_t bits = pool->filled[word] & (~UINT64_C(0) << next % 64);
    while (!bits && ++word < OC_BIN_WORDS) bits = pool->filled[word];
    if (!bits) return NULL;
    *bin = word * 64 + (unsigned)__builtin_ctzll(bits);
    return tree_from(alloc->blocks, &pool->bins[*bin], 0, 0);
}

uint32_t oc_free_from(struct oc_alloc *alloc, int pool, uint64_t size, uint64_t address)
{
    unsigned bin;
    const uint32_t *link = find(alloc, &alloc->pools[pool], size, address, &bin);
    return link ? *link : 0;
}

uint32_t oc_free_take(struct oc_alloc *alloc, int pool_index, uint64_t size)
{
    unsigned bin;
    struct oc_pool *pool = &alloc->pools[pool_index];
    uint32_t *link = find(alloc, pool, size, 0, &bin);
    if (!link) return 0;
    uint32_t block = *link;
    tree_unlink(alloc->blocks, link);
    mark_if_empty(pool, bin);
    return block;
}

void oc_unmapped_add(struct oc_alloc *alloc, uint32_t block)
{
    tree_add(alloc->blocks, &alloc->pools[alloc->blocks[block].pool].unmapped, block);
}

void oc_unmapped_remove(struct oc_alloc *alloc, uint32_t block)
{
    tree_remove(alloc->blocks, &alloc->pools[alloc->blocks[block].pool].unmapped, block);
}

uint32_t oc_unmapped_from(struct oc_alloc *alloc, int pool, uint64_t address)
{
    const uint32_t *link = tree_from(alloc->blocks, &alloc->pools[pool].unmapped, 0, address);
    return link ? *link : 0;
}
