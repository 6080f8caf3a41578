/* The parts of FSDP2's rules that have files of their own. */
#ifndef OOMCAST_FSDP2_PARTS_H
#define OOMCAST_FSDP2_PARTS_H

#include "model/build.h"

/* The types of the shards, and of gradients while they are reduced. */
enum oc_dtype oc_fsdp2_storage(const struct oc_plan *plan);
enum oc_dtype oc_fsdp2_reduce(const struct oc_plan *plan);

/* Elements of one tensor of a parameter on a rank, padding included. */
uint64_t oc_fsdp2_share(const struct oc_build *build, const struct oc_param *param);

/* Sub-steps of a unit's backward, behind all that the op set has: its weights are freed, gradients are cast one after
 * the other; the reduction begins; its output is there, and gradients are gone; it has ended. */
enum { OC_FSDP2_FREED = 63, OC_FSDP2_REDUCES = OC_MAX_SUB - 3, OC_FSDP2_REDUCED, OC_FSDP2_ENDS };

/* Whether a parameter belongs to its layer's unit, else to the root's. */
bool oc_fsdp2_in_layer(const struct oc_build *build, const struct oc_param *param);

/* Autograd's gradients of unsharded weights. */
void oc_fsdp2_gradients(struct oc_build *build);

/* Gathered weights, gradients before they are shared, the buffers of their reduction, and what becomes of them. */
void oc_fsdp2_units(struct oc_build *build);

#endif
