/* No memory and no arithmetic: the step's allocations go through the allocator at imaginary addresses, so that a model
 * of any size runs in milliseconds. */
#include <string.h>

#include "probes/backend.h"

static void dry_launch(struct oc_probe_backend *backend, enum oc_op op, const void *args)
{
    (void)backend, (void)op, (void)args;
}

static void dry_fill(struct oc_probe_backend *backend, void *memory, int byte, size_t bytes)
{
    (void)backend, (void)memory, (void)byte, (void)bytes;
}

static void dry_write(struct oc_probe_backend *backend, void *to, const void *from_host, size_t bytes)
{
    (void)backend, (void)to, (void)from_host, (void)bytes;
}

/* What is read is known to be nothing: zeros. */
static void dry_read(struct oc_probe_backend *backend, void *to_host, const void *from, size_t bytes)
{
    (void)backend, (void)from;
    memset(to_host, 0, bytes);
}

static void dry_nothing(struct oc_probe_backend *backend)
{
    (void)backend;
}

void oc_backend_dry(struct oc_probe_backend *backend, uint64_t limit)
{
    *backend = (struct oc_probe_backend){.device = OC_DEVICE_DRY,
                                         .evidence = OC_SIMULATED,
                                         .segments = {.limit = limit},
                                         .launch = dry_launch,
                                         .fill = dry_fill,
                                         .write = dry_write,
                                         .read = dry_read,
                                         .sync = dry_nothing,
                                         .close = dry_nothing};
    backend->scalars = &backend->host_scalars;
}
