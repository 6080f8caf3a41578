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

static void tree_remove(struct oc_block *blocks, uint32_t *link, uint32_t node)
{
    uint64_t size = key(&blocks[node]), address = blocks[node].address;
    while (*link != node) link = before(&blocks[*link], size, address) ? &blocks[*link].right : &blocks[*link].left;
    uint32_t left = blocks[node].left, right = blocks[node].right;
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

static uint32_t tree_from(const struct oc_block *blocks, uint32_t root, uint64_t size, uint64_t address)
{
    uint32_t found = 0;
    while (root) {
        if (before(&blocks[root], size, address)) {
            root = blocks[root].right;
        } else {
            found = root;
            root = blocks[root].left;
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

void oc_free_remove(struct oc_alloc *alloc, uint32_t block)
{
    struct oc_pool *pool = &alloc->pools[alloc->blocks[block].pool];
    unsigned bin = bin_of(alloc->blocks[block].size);
    tree_remove(alloc->blocks, &pool->bins[bin], block);
    if (!pool->bins[bin]) pool->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

uint32_t oc_free_from(const struct oc_alloc *alloc, int pool_index, uint64_t size, uint64_t address)
{
    const struct oc_pool *pool = &alloc->pools[pool_index];
    unsigned bin = bin_of(size);
    uint32_t found = tree_from(alloc->blocks, pool->bins[bin], size, address);
    if (found) return found;
    unsigned word = ++bin / 64;
    if (word >= OC_BIN_WORDS) return 0;
    uint64_t bits = pool->filled[word] & (~UINT64_C(0) << bin % 64);
    while (!bits && ++word < OC_BIN_WORDS) bits = pool->filled[word];
    if (!bits) return 0;
    return tree_from(alloc->blocks, pool->bins[word * 64 + (unsigned)__builtin_ctzll(bits)], 0, 0);
}

void oc_unmapped_add(struct oc_alloc *alloc, uint32_t block)
{
    tree_add(alloc->blocks, &alloc->pools[alloc->blocks[block].pool].unmapped, block);
}

void oc_unmapped_remove(struct oc_alloc *alloc, uint32_t block)
{
    tree_remove(alloc->blocks, &alloc->pools[alloc->blocks[block].pool].unmapped, block);
}

uint32_t oc_unmapped_from(const struct oc_alloc *alloc, int pool, uint64_t address)
{
    return tree_from(alloc->blocks, alloc->pools[pool].unmapped, 0, address);
}
