#include "model/frameworks/shards.h"

#include "oomcast/dtype.h"

static uint64_t parts(uint64_t value, uint64_t of)
{
    return value / of + (value % of != 0);
}

uint64_t oc_shard_fsdp2(uint64_t rows, uint64_t columns, uint64_t ranks)
{
    return oc_mul(parts(rows, ranks), columns);
}

uint64_t oc_shard_fsdp2_own(uint64_t rows, uint64_t columns, uint64_t ranks, uint64_t rank)
{
    const uint64_t chunk = parts(rows, ranks), before = oc_mul(rank, chunk);
    const uint64_t left = before < rows ? rows - before : 0;
    return oc_mul(left < chunk ? left : chunk, columns);
}

uint64_t oc_flat_fsdp1(const uint64_t *elements, size_t n, uint64_t ranks, uint64_t element_size, bool orig_params)
{
    const uint64_t align = orig_params ? 16 / element_size : 1;
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) end = oc_add(oc_mul(parts(end, align), align), elements[i]);
    return orig_params ? oc_mul(parts(end, ranks), ranks) : end;
}

uint64_t oc_shard_zero12(uint64_t elements, uint64_t ranks)
{
    return oc_mul(parts(elements, 2 * ranks), 2);
}

uint64_t oc_shard_zero3(uint64_t elements, uint64_t ranks)
{
    return parts(elements, ranks);
}
