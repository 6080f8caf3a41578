/* The records of the caching allocator: taken, cut, merged and given back. */
#include "model/base/alloc_blocks.h"

#include <stdlib.h>

bool oc_blocks_prepare(struct oc_alloc *alloc, uint32_t n)
{
    if (alloc->capacity - alloc->n_blocks >= n) return true;
    uint32_t capacity = alloc->capacity ? 2 * alloc->capacity : 1024;
    if (capacity > UINT32_C(1) << 28) return false;
    struct oc_block *blocks = realloc(alloc->blocks, capacity * sizeof *blocks);
    if (!blocks) return false;
    alloc->blocks = blocks;
    alloc->capacity = capacity;
    return true;
}

uint32_t oc_block_new(struct oc_alloc *alloc, uint64_t address, uint64_t size, int pool, enum oc_block_state state)
{
    uint32_t block = alloc->spare;
    if (block)
        alloc->spare = alloc->blocks[block].next;
    else
        block = alloc->n_blocks++;
    alloc->random ^= alloc->random << 13; /* xorshift32 */
    alloc->random ^= alloc->random >> 17;
    alloc->random ^= alloc->random << 5;
    alloc->blocks[block] = (struct oc_block){
        .address = address, .size = size, .priority = alloc->random, .state = (uint8_t)state, .pool = (uint8_t)pool};
    return block;
}

void oc_block_drop(struct oc_alloc *alloc, uint32_t block)
{
    alloc->blocks[block].state = OC_BLOCK_SPARE;
    alloc->blocks[block].next = alloc->spare;
    alloc->spare = block;
}

uint32_t oc_block_cut(struct oc_alloc *alloc, uint32_t block, uint64_t size)
{
    struct oc_block *b = &alloc->blocks[block];
    uint32_t rest = oc_block_new(alloc, b->address + size, b->size - size, b->pool, b->state);
    alloc->blocks[rest].prev = block;
    alloc->blocks[rest].next = b->next;
    if (b->next) alloc->blocks[b->next].prev = rest;
    b->next = rest;
    b->size = size;
    return rest;
}

static void leave_tree(struct oc_alloc *alloc, uint32_t block)
{
    if (alloc->blocks[block].state == OC_BLOCK_FREE)
        oc_free_remove(alloc, block);
    else
        oc_unmapped_remove(alloc, block);
}

void oc_block_merge(struct oc_alloc *alloc, uint32_t block, enum oc_block_state state)
{
    struct oc_block *b = &alloc->blocks[block];
    uint32_t prev = b->prev, next = b->next;
    if (prev && alloc->blocks[prev].state == state) {
        leave_tree(alloc, prev);
        b->address = alloc->blocks[prev].address;
        b->size += alloc->blocks[prev].size;
        b->prev = alloc->blocks[prev].prev;
        if (b->prev) alloc->blocks[b->prev].next = block;
        oc_block_drop(alloc, prev);
    }
    if (next && alloc->blocks[next].state == state) {
        leave_tree(alloc, next);
        b->size += alloc->blocks[next].size;
        b->next = alloc->blocks[next].next;
        if (b->next) alloc->blocks[b->next].prev = block;
        oc_block_drop(alloc, next);
    }
}
