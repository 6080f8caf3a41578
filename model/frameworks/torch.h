/* What plain PyTorch and both FSDPs have in common: defaults, number formats, what they refuse. */
#ifndef OOMCAST_TORCH_H
#define OOMCAST_TORCH_H

#include "model/frameworks/framework.h"

/* Kernels and types that were not given. */
void oc_torch_defaults(struct oc_config *config);

/* False, with an error, when the plan splits the model, or asks for kernels or a recompute that these do not have.
 * `shards`: parallel.zero has a meaning. */
bool oc_torch_check(struct oc_plan *plan, bool shards, struct oc_error *error);

/* Fills plan->dt: weights, products, gradients and states in the type of the parameters; autocast. */
void oc_torch_dtypes(struct oc_plan *plan);

/* Says which options were given that change nothing in what is modelled of these frameworks. */
void oc_torch_warn(const struct oc_plan *plan, struct oc_warnings *warnings);

#endif
