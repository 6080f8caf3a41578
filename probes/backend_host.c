/* Host memory: segments from the C library, kernels as plain loops. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/backend.h"

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void *host_segment(void *user, size_t bytes)
{
    (void)user;
    void *segment = NULL;
    if (posix_memalign(&segment, page_size(), bytes) != 0) return NULL;
    madvise(segment, bytes, MADV_NOHUGEPAGE);
    return segment;
}

/* A block is there from the moment it is handed out, as a GPU's is, whether the step writes into it or not. */
static void host_used(void *user, void *memory, size_t bytes)
{
    (void)user;
    volatile char *byte = memory;
    const size_t page = page_size();
    for (size_t at = 0; at < bytes; at += page) byte[at] = 0;
    byte[bytes - 1] = 0;
}

/* Whole pages go back to the system, so that what is resident is what is allocated. */
static void host_unused(void *user, void *memory, size_t bytes)
{
    (void)user;
    const uintptr_t page = page_size(), address = (uintptr_t)memory;
    const uintptr_t begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
    if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static void host_release(void *user, void *segment, size_t bytes)
{
    (void)user, (void)bytes;
    free(segment);
}

uint64_t oc_host_high_water(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long kib = 0;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
    if (status) fclose(status);
    return (uint64_t)kib * 1024;
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
                                         .segments = {.segment = host_segment,
                                                      .release = host_release,
                                                      .used = host_used,
                                                      .unused = host_unused,
                                                      .limit = limit},
                                         .launch = host_run,
                                         .fill = host_fill,
                                         .write = host_copy,
                                         .read = host_copy,
                                         .sync = host_nothing,
                                         .close = host_nothing};
    backend->scalars = &backend->host_scalars;
}
