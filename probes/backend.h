/* Where the step runs: a table of functions, so that the step is written once.
 *
 * Ownership: oc_backend_host(), _dry() and _cuda() fill a caller's struct; it must not move while an allocator or a run
 * uses it. close() releases what it holds, once the allocator is gone. */
#ifndef OC_PROBES_BACKEND_H
#define OC_PROBES_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "oomcast/alloc.h"
#include "oomcast/probe.h"
#include "probes/ops.h"

struct oc_probe_backend {
    enum oc_device device;
    enum oc_evidence evidence;         /* of the bytes that its allocator hands out */
    struct oc_alloc_provider segments; /* its memory, to be given to oc_alloc_create() */
    struct oc_scalars *scalars;        /* numbers that kernels write, outside the allocator and the books */

    /* Runs a kernel over all of its pieces; `args` is the struct of ops.h that belongs to `op`. */
    void (*launch)(struct oc_probe_backend *backend, enum oc_op op, const void *args);
    void (*fill)(struct oc_probe_backend *backend, void *memory, int byte, size_t bytes);
    void (*write)(struct oc_probe_backend *backend, void *to, const void *from_host, size_t bytes);
    void (*read)(struct oc_probe_backend *backend, void *to_host, const void *from, size_t bytes);
    void (*sync)(struct oc_probe_backend *backend);  /* waits until what was launched has run */
    void (*close)(struct oc_probe_backend *backend); /* releases what it holds; its struct may be filled anew */

    bool failed;                  /* it can do nothing more; every call is safe and does nothing */
    char why[OC_PROBE_WHY];       /* one sentence, when it failed or could not be opened */
    struct oc_device_bytes bytes; /* of a GPU */
    struct oc_scalars host_scalars;
};

/* Real host memory and plain loops. `limit`: bytes of segments at most, 0 = as many as the machine gives. Pages of free
 * blocks go back to the system. */
void oc_backend_host(struct oc_probe_backend *backend, uint64_t limit);

/* The most that was ever resident of this process, bytes: VmHWM of /proc/self/status; 0 where there is none. */
uint64_t oc_host_high_water(void);

/* Imaginary addresses and no arithmetic: only the allocations happen. */
void oc_backend_dry(struct oc_probe_backend *backend, uint64_t limit);

/* GPU number `ordinal` of those that are visible, `wrap`: modulo their number. False, and `why` says what there is
 * instead, where it cannot be used; nothing is then held. */
bool oc_backend_cuda(struct oc_probe_backend *backend, int ordinal, bool wrap, uint64_t limit);

/* Runs one kernel on the host. */
void oc_host_launch(enum oc_op op, const void *args);

#endif
