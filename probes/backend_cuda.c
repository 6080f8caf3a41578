/* A GPU, through the CUDA runtime and in plain C: the kernels come as a table of pointers, so that tests link a runtime
 * that pretends. The runtime is linked statically and does nothing before it is called: a machine without a driver
 * needs no CUDA library to start the program.
 *
 * Every error but a lack of memory is for good ("sticky": each later call returns it, only a new process helps). The
 * first one is kept in words, and nothing is called after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "probes/backend.h"
#include "probes/nvml.h"

enum { THREADS = 256, WARPS = 8, MOST_BLOCKS = 1 << 20, MOST_ARGS = 512 };

extern const void *const oc_cuda_kernels[OC_N_OPS];

#define EACH_ELEMENT(name, type) THREADS,
#define EACH_ROW(name, type)     WARPS,
#define EACH_TILE(name, type)    1,
static const int pieces_per_block[OC_N_OPS] = {OC_OPS(EACH_ELEMENT, EACH_ROW, EACH_TILE)};

/* ---- Errors ---- */

static bool failed(struct oc_probe_backend *backend, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return false;
    if (!backend->failed)
        snprintf(backend->why, sizeof backend->why, "%s: %s (%s)", what, cudaGetErrorString(error),
                 cudaGetErrorName(error));
    return backend->failed = true;
}

/* What is there in place of a GPU, as one sentence. */
static void explain(struct oc_probe_backend *backend, cudaError_t error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    char *why = backend->why;
    const size_t size = sizeof backend->why;
    if (error == cudaErrorStubLibrary)
        snprintf(why, size, "the library path leads to the CUDA toolkit's stub of libcuda.so instead of a driver");
    else if (driver == 0)
        snprintf(why, size, "there is no NVIDIA driver on this machine");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(why, size, "the NVIDIA driver is too old: it knows CUDA %d.%d, and this build needs %d.%d",
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    else if (error == cudaErrorNoDevice && visible)
        snprintf(why, size, "there is an NVIDIA driver, but CUDA_VISIBLE_DEVICES=\"%.40s\" leaves no GPU", visible);
    else if (error == cudaErrorNoDevice)
        snprintf(why, size, "there is an NVIDIA driver, but no GPU is visible to this process");
    else if (error == cudaErrorDevicesUnavailable)
        snprintf(why, size, "the GPU is in use by another process alone, or its compute mode forbids contexts");
    else if (error == cudaErrorSystemDriverMismatch)
        snprintf(why, size, "the NVIDIA driver's kernel module and its libraries are of different versions");
    else if (error == cudaErrorNoKernelImageForDevice)
        snprintf(why, size, "this build has no code for this GPU (CMAKE_CUDA_ARCHITECTURES chooses)");
    else
        snprintf(why, size, "CUDA cannot be used here: %s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
}

/* ---- Memory: the allocator's segments, and what the device says of all of it ---- */

/* The largest of what everybody on the device uses. A reading that fails leaves the last good one. */
static void read_device(struct oc_probe_backend *backend)
{
    size_t free_bytes = 0, total = 0;
    if (backend->failed || failed(backend, cudaMemGetInfo(&free_bytes, &total), "reading the device's memory")) return;
    const uint64_t used = total - free_bytes;
    backend->bytes.total = total;
    if (used > backend->bytes.peak) backend->bytes.peak = used;
}

static void *cuda_segment(void *user, size_t bytes)
{
    struct oc_probe_backend *backend = user;
    void *segment = NULL;
    if (backend->failed) return NULL;
    const cudaError_t error = cudaMalloc(&segment, bytes);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* the one error that passes */
        return NULL;
    }
    if (failed(backend, error, "allocating device memory")) return NULL;
    read_device(backend);
    return segment;
}

static void cuda_release(void *user, void *segment, size_t bytes)
{
    (void)bytes;
    failed(user, cudaFree(segment), "freeing device memory");
}

static void cuda_fill(struct oc_probe_backend *backend, void *memory, int byte, size_t bytes)
{
    if (!backend->failed) failed(backend, cudaMemset(memory, byte, bytes), "filling device memory");
}

static void cuda_write(struct oc_probe_backend *backend, void *to, const void *from_host, size_t bytes)
{
    if (!backend->failed)
        failed(backend, cudaMemcpy(to, from_host, bytes, cudaMemcpyHostToDevice), "copying to the device");
}

static void cuda_read(struct oc_probe_backend *backend, void *to_host, const void *from, size_t bytes)
{
    if (backend->failed ||
        failed(backend, cudaMemcpy(to_host, from, bytes, cudaMemcpyDeviceToHost), "reading a result"))
        memset(to_host, 0, bytes);
}

/* ---- Kernels ---- */

static void run_kernel(struct oc_probe_backend *backend, enum oc_op op, const void *args, int64_t pieces)
{
    const int64_t per = pieces_per_block[op], blocks = (pieces + per - 1) / per;
    const dim3 grid = {.x = blocks < MOST_BLOCKS ? (unsigned)blocks : MOST_BLOCKS, .y = 1, .z = 1};
    const dim3 block = {.x = THREADS, .y = 1, .z = 1};
    void *list[] = {(void *)(uintptr_t)args}; /* the runtime reads through it, and copies */
    failed(backend, cudaLaunchKernel(oc_cuda_kernels[op], grid, block, list, 0, 0), "launching a kernel");
}

static void cuda_launch(struct oc_probe_backend *backend, enum oc_op op, const void *args)
{
    int64_t pieces;
    memcpy(&pieces, args, sizeof pieces); /* `n` is the first member of every kernel's struct */
    if (!backend->failed && pieces > 0) run_kernel(backend, op, args, pieces);
}

static void cuda_sync(struct oc_probe_backend *backend)
{
    if (!backend->failed) failed(backend, cudaDeviceSynchronize(), "running the step");
}

/* Each kernel once, over nothing: their code is loaded when they are first launched, and belongs to the context's
 * bytes, not to the step's. */
static void load_kernels(struct oc_probe_backend *backend)
{
    static const union {
        unsigned char bytes[MOST_ARGS];
        int64_t n;
    } nothing = {{0}};
    for (int op = 0; op < OC_N_OPS && !backend->failed; op++) run_kernel(backend, (enum oc_op)op, &nothing, 1);
    cuda_sync(backend);
}

/* ---- Opening ---- */

static void cuda_close(struct oc_probe_backend *backend)
{
    if (backend->scalars) cudaFree(backend->scalars);
    backend->scalars = NULL;
}

/* A slice of a GPU is its own device to CUDA; NVML would speak of the whole card. */
static bool is_slice(const struct oc_probe_backend *backend)
{
    return strstr(backend->bytes.name, "MIG") != NULL;
}

/* What NVML sees before this process has a context: otherwise nobody could tell the context's bytes. */
static void look_before(struct oc_probe_backend *backend, int ordinal, struct oc_nvml *nvml)
{
    char bus_id[32] = "";
    *nvml = (struct oc_nvml){.others = -1};
    if (!is_slice(backend) && cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, ordinal) == cudaSuccess)
        oc_nvml_read(bus_id, nvml);
    backend->bytes.others = nvml->others;
}

/* `wrap`: *ordinal is taken modulo the number of devices. */
static bool find_device(struct oc_probe_backend *backend, int *wanted, bool wrap)
{
    int devices = 0, driver = 0;
    cudaError_t error = cudaDriverGetVersion(&driver);
    if (error == cudaSuccess) error = cudaGetDeviceCount(&devices); /* leaves the number alone when it fails */
    if (error == cudaSuccess && devices == 0) error = cudaErrorNoDevice;
    struct cudaDeviceProp properties;
    if (wrap && devices > 0) *wanted %= devices;
    const int ordinal = *wanted;
    if (error == cudaSuccess && ordinal < devices) error = cudaGetDeviceProperties(&properties, ordinal);
    if (error != cudaSuccess) {
        explain(backend, error);
        return false;
    }
    if (ordinal >= devices) {
        snprintf(backend->why, sizeof backend->why, "there is no GPU number %d: %d %s visible", ordinal, devices,
                 devices == 1 ? "is" : "are");
        return false;
    }
    snprintf(backend->bytes.name, sizeof backend->bytes.name, "%.*s", (int)sizeof backend->bytes.name - 1,
             properties.name);
    return true;
}

static bool make_context(struct oc_probe_backend *backend, int ordinal)
{
    void *scalars = NULL;
    cudaError_t error = cudaSetDevice(ordinal);
    if (error == cudaSuccess) error = cudaMalloc(&scalars, sizeof *backend->scalars);
    if (error == cudaErrorMemoryAllocation) {
        snprintf(backend->why, sizeof backend->why, "the GPU has no memory left for a CUDA context");
        return false;
    }
    if (error == cudaSuccess) {
        backend->scalars = scalars;
        load_kernels(backend);
        if (backend->failed) return false;
        return true;
    }
    explain(backend, error);
    return false;
}

bool oc_backend_cuda(struct oc_probe_backend *backend, int ordinal, bool wrap, uint64_t limit)
{
    *backend = (struct oc_probe_backend){.device = OC_DEVICE_CUDA,
                                         .evidence = OC_MEASURED,
                                         .segments = {.segment = cuda_segment, .release = cuda_release, .limit = limit},
                                         .launch = cuda_launch,
                                         .fill = cuda_fill,
                                         .write = cuda_write,
                                         .read = cuda_read,
                                         .sync = cuda_sync,
                                         .close = cuda_close};
    backend->segments.user = backend;
    if (!find_device(backend, &ordinal, wrap)) return false;
    struct oc_nvml nvml;
    look_before(backend, ordinal, &nvml);
    if (!make_context(backend, ordinal)) {
        cuda_close(backend);
        return false;
    }
    read_device(backend);
    backend->bytes.before = backend->bytes.peak;
    backend->bytes.measured = !backend->failed;
    if (nvml.memory && backend->bytes.before >= nvml.used) {
        backend->bytes.context = backend->bytes.before - nvml.used;
        backend->bytes.context_known = true;
    }
    return !backend->failed;
}
