/* Host memory: segments from the C library, kernels as plain loops. */
#include <stdlib.h>
#include <string.h>

#include "probes/backend.h"

enum { PAGE = 4096 };

static void *host_segment(void *user, size_t bytes)
{
    (void)user;
    void *segment = NULL;
    return posix_memalign(&segment, PAGE, bytes) == 0 ? segment : NULL;
}

static void host_release(void *user, void *segment, size_t bytes)
{
    (void)user, (void)bytes;
    free(segment);
}

static void host_run(struct oc_probe_backend *backend, enum oc_op op, const void *args)
{
    (void)backend;
    oc_host_launch(op, args);
}

static void host_fill(struct oc_probe_backend *backend, void *memory, int byte, size_t bytes)
{
    (void)backend;
    memset(memory, byte, bytes);
}

static void host_copy(struct oc_probe_backend *backend, void *to, const void *from, size_t bytes)
{
    (void)backend;
    memcpy(to, from, bytes);
}

/* Kernels have run when they return, and the struct holds nothing. */
static void host_nothing(struct oc_probe_backend *backend)
{
    (void)backend;
}

void oc_backend_host(struct oc_probe_backend *backend, uint64_t limit)
{
    *backend = (struct oc_probe_backend){.device = OC_DEVICE_HOST,
                                         .evidence = OC_MEASURED,
                                         .segments = {.segment = host_segment, .release = host_release, .limit = limit},
                                         .launch = host_run,
                                         .fill = host_fill,
                                         .write = host_copy,
                                         .read = host_copy,
                                         .sync = host_nothing,
                                         .close = host_nothing};
    backend->scalars = &backend->host_scalars;
}
