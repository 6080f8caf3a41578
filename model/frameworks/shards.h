/* How data-parallel ranks share parameters: the elements that one rank holds, padding included. Closed forms.
 *
 * Source: shared/reference/memory-pytorch.md 2.1, 2.2, 3.2 (read in torch/distributed/fsdp and deepspeed/runtime/zero).
 */
#ifndef OOMCAST_SHARDS_H
#define OOMCAST_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FSDP2 splits the first dimension: every rank holds ceil(rows / ranks) rows of `columns` elements, even where they are
 * padding only. */
uint64_t oc_shard_fsdp2(uint64_t rows, uint64_t columns, uint64_t ranks);

/* What of them is the parameter's own on rank `rank`: gradients and states have no padding. */
uint64_t oc_shard_fsdp2_own(uint64_t rows, uint64_t columns, uint64_t ranks, uint64_t rank);

/* FSDP1 joins the parameters of a unit. With use_orig_params each begins at a multiple of 16 bytes, and the whole is
 * padded to a multiple of the ranks. Elements of the flat parameter; a shard is this over `ranks`, rounded up. */
uint64_t oc_flat_fsdp1(const uint64_t *elements, size_t n, uint64_t ranks, uint64_t element_size, bool orig_params);

/* ZeRO 1 and 2 join the parameters of an optimizer group and pad it to a multiple of 2 x ranks: a rank's partition. */
uint64_t oc_shard_zero12(uint64_t elements, uint64_t ranks);

/* ZeRO 3 pads each parameter to a multiple of the ranks: a rank's partition. */
uint64_t oc_shard_zero3(uint64_t elements, uint64_t ranks);

#endif
