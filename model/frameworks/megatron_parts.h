/* The parts of Megatron's rules that have files of their own. */
#ifndef OOMCAST_MEGATRON_PARTS_H
#define OOMCAST_MEGATRON_PARTS_H

#include "model/build.h"

/* Elements of the parameter (and gradient) buffer, of routed experts or of everything else, alignment and padding
 * included; the number of parameters when optimizer states are not distributed. */
uint64_t oc_megatron_padded(const struct oc_build *build, bool expert);

/* Workspaces, caches and tensors that outlive a step: everything that is neither a copy of a parameter nor an
 * activation. */
void oc_megatron_buffers(struct oc_build *build);

#endif
