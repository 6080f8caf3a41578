/* How Megatron's distributed optimizer lays parameters out in its buffer. */
#ifndef OOMCAST_MEGATRON_LAYOUT_H
#define OOMCAST_MEGATRON_LAYOUT_H

#include "model/build.h"

/* Elements of the parameter (and gradient) buffer, alignment and padding included; the number of parameters when
 * optimizer states are not distributed. */
uint64_t oc_megatron_padded(const struct oc_build *build, bool expert);

#endif
