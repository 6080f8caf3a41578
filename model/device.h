/* The GPU's side: its capacity, and what lies outside PyTorch's allocator. */
#ifndef OOMCAST_MODEL_DEVICE_H
#define OOMCAST_MODEL_DEVICE_H

#include "oomcast/model.h"

/* Fills plan->capacity, sm, context and nccl from the options and the table of GPUs. */
bool oc_find_device(struct oc_plan *plan, struct oc_error *error);

#endif
