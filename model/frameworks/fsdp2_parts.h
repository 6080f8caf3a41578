/* The parts of FSDP2's rules that have files of their own. */
#ifndef OOMCAST_FSDP2_PARTS_H
#define OOMCAST_FSDP2_PARTS_H

#include "model/build.h"

/* The types of the shards, and of gradients while they are reduced. */
enum oc_dtype oc_fsdp2_storage(const struct oc_plan *plan);
enum oc_dtype oc_fsdp2_reduce(const struct oc_plan *plan);

/* Elements of one tensor of a parameter on a rank, padding included. */
uint64_t oc_fsdp2_share(const struct oc_build *build, const struct oc_param *param);

/* Gathered weights, gradients before they are shared, the buffers of their reduction, and what becomes of them. */
void oc_fsdp2_units(struct oc_build *build);

#endif
