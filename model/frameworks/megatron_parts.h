/* The parts of Megatron's rules that have files of their own. */
#ifndef OOMCAST_MEGATRON_PARTS_H
#define OOMCAST_MEGATRON_PARTS_H

#include "model/build.h"
#include "oomcast/model.h"

/* Fills what was not given, and then decides types, kernels and what Megatron refuses: see struct oc_framework_rules.
 */
void oc_megatron_defaults(struct oc_config *config);
bool oc_megatron_decide(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error);

/* LayerWiseDistributedOptimizer: a rank keeps the states of some whole parameters, and all weights. */
bool oc_megatron_layer_wise(const struct oc_plan *plan);

/* Elements of the parameter (and gradient) buffer, of routed experts or of everything else, alignment and padding
 * included; the number of parameters when optimizer states are not distributed. */
uint64_t oc_megatron_padded(const struct oc_build *build, bool expert);

/* Workspaces, caches and tensors that outlive a step: everything that is neither a copy of a parameter nor an
 * activation. */
void oc_megatron_buffers(struct oc_build *build);

/* Megatron-FSDP's gathered weights and gradients before they are shared. Nothing below parallel.zero 2. */
void oc_megatron_fsdp_units(struct oc_build *build);

#endif
