/* In place of backend_cuda.c where no CUDA compiler was found, or none was wanted. */
#include <stdio.h>

#include "probes/backend.h"

bool oc_backend_cuda(struct oc_probe_backend *backend, int ordinal, bool wrap, uint64_t limit)
{
    (void)ordinal, (void)wrap, (void)limit;
    *backend = (struct oc_probe_backend){.device = OC_DEVICE_CUDA};
    snprintf(backend->why, sizeof backend->why,
             "this build has no CUDA: it was made without nvcc, or with OOMCAST_CUDA=OFF");
    return false;
}
