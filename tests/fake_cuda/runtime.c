#include "tests/fake_cuda/fake_cuda.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "probes/backend.h"

enum { MIB = 1 << 20, GRAIN = 2 * MIB, MOST = 1024, RUNTIME = 13000 };

struct piece {
    char *memory;
    size_t bytes, rounded;
};

/* The one device, and what goes wrong with it. A test's stand-in: state of the process, as the real runtime's is. */
static struct {
    bool ready;
    double driver, stub, devices, taken, slice, total, ctx, other, oom_after, oom_call, launch_fail, crash, hang, terms;
    bool context;
    struct piece pieces[MOST];
    int n_pieces, mallocs, launches;
    size_t used;
    cudaError_t last, sticky;
} device;

/* ---- Configuration ---- */

static double *setting(const char *name)
{
    const struct {
        const char *name;
        double *value;
    } settings[] = {
        {"driver", &device.driver},
        {"stub", &device.stub},
        {"devices", &device.devices},
        {"taken", &device.taken},
        {"slice", &device.slice},
        {"total", &device.total},
        {"ctx", &device.ctx},
        {"other", &device.other},
        {"oom_after", &device.oom_after},
        {"oom_call", &device.oom_call},
        {"launch_fail", &device.launch_fail},
        {"crash", &device.crash},
        {"hang", &device.hang},
        {"terms", &device.terms},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strcmp(settings[i].name, name) == 0) return settings[i].value;
    fprintf(stderr, "FAKE_CUDA: there is no '%s'\n", name);
    abort();
}

void fake_cuda_reset(void)
{
    for (int i = 0; i < device.n_pieces; i++) free(device.pieces[i].memory);
    memset(&device, 0, sizeof device);
    device.ready = true;
    device.driver = RUNTIME, device.devices = 1, device.total = 16384.0 * MIB, device.ctx = 300.0 * MIB;
    device.oom_after = 1e18;
    char text[512];
    snprintf(text, sizeof text, "%s", getenv("FAKE_CUDA") ? getenv("FAKE_CUDA") : "");
    for (char *rest, *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(word, '=');
        if (!value) abort();
        *value++ = '\0';
        *setting(word) = strtod(value, NULL);
    }
    if (device.terms > 0) signal(SIGTERM, SIG_IGN);
}

struct fake_cuda_counts fake_cuda_counts(void)
{
    return (struct fake_cuda_counts){device.mallocs, device.launches, device.n_pieces, device.used};
}

/* ---- Errors ---- */

static cudaError_t say(cudaError_t error)
{
    if (error != cudaSuccess) device.last = error;
    return error;
}

static cudaError_t look(void)
{
    if (!device.ready) fake_cuda_reset();
    if (device.stub > 0) return say(cudaErrorStubLibrary);
    if (device.driver < RUNTIME) return say(cudaErrorInsufficientDriver);
    if (device.devices < 1) return say(cudaErrorNoDevice);
    return say(device.sticky);
}

/* Almost every call makes the context, if it is not there. */
static cudaError_t context(void)
{
    const cudaError_t error = look();
    if (error != cudaSuccess || device.context) return error;
    if (device.taken > 0) return say(cudaErrorDevicesUnavailable);
    if (device.ctx + device.other > device.total) return say(cudaErrorMemoryAllocation);
    device.context = true;
    device.used += (size_t)device.ctx;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = device.last;
    device.last = device.sticky;
    return error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    default: return "cudaErrorOther";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorECCUncorrectable ? "uncorrectable ECC error encountered" : "an error";
}

/* ---- The device ---- */

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    if (!device.ready) fake_cuda_reset();
    *version = (int)device.driver;
    return cudaSuccess;
}

/* Leaves *count alone when it fails, as the real one does. */
cudaError_t cudaGetDeviceCount(int *count)
{
    const cudaError_t error = look();
    if (error == cudaSuccess) *count = (int)device.devices;
    return error;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal)
{
    if (ordinal >= (int)device.devices) return say(cudaErrorInvalidDevice);
    snprintf(properties->name, sizeof properties->name, "Stand-in GPU%s", device.slice > 0 ? " MIG 1g.10gb" : "");
    return look();
}

cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int size, int ordinal)
{
    snprintf(bus_id, (size_t)size, "0000:%02x:00.0", ordinal + 1);
    return look();
}

cudaError_t cudaSetDevice(int ordinal)
{
    return ordinal < (int)device.devices ? context() : say(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize(void)
{
    return context();
}

/* ---- Memory ---- */

static size_t free_bytes_now(void)
{
    const size_t used = device.used + (size_t)device.other, total = (size_t)device.total;
    return used < total ? total - used : 0;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    const cudaError_t error = context();
    if (error != cudaSuccess) return error;
    *free_bytes = free_bytes_now();
    *total = (size_t)device.total;
    return cudaSuccess;
}

/* Device memory comes in pieces of 2 MiB, and holds whatever was there. */
cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    const cudaError_t error = context();
    if (error != cudaSuccess) return error;
    const size_t rounded = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    const bool full = rounded > free_bytes_now() || (double)(device.used + rounded) - device.ctx > device.oom_after ||
                      device.n_pieces == MOST;
    if (++device.mallocs == (int)device.oom_call || full) return say(cudaErrorMemoryAllocation);
    struct piece piece = {.memory = malloc(bytes), .bytes = bytes, .rounded = rounded};
    if (!piece.memory) return say(cudaErrorMemoryAllocation);
    memset(piece.memory, 0xA5, bytes);
    device.pieces[device.n_pieces++] = piece;
    device.used += rounded;
    *memory = piece.memory;
    return cudaSuccess;
}

/* After a sticky error the real memory is lost with the context; here it is kept for fake_cuda_reset() to free. */
cudaError_t cudaFree(void *memory)
{
    const cudaError_t error = context();
    if (error != cudaSuccess || !memory) return error;
    for (int i = 0; i < device.n_pieces; i++) {
        if (device.pieces[i].memory != memory) continue;
        device.used -= device.pieces[i].rounded;
        free(memory);
        device.pieces[i] = device.pieces[--device.n_pieces];
        return cudaSuccess;
    }
    return say(cudaErrorInvalidValue);
}

static bool is_on_device(const void *memory, size_t bytes)
{
    const char *at = memory;
    for (int i = 0; i < device.n_pieces; i++) {
        const struct piece *piece = &device.pieces[i];
        if (at >= piece->memory && at + bytes <= piece->memory + piece->bytes) return true;
    }
    return false;
}

cudaError_t cudaMemset(void *memory, int byte, size_t bytes)
{
    const cudaError_t error = context();
    if (error != cudaSuccess) return error;
    if (!is_on_device(memory, bytes)) return say(cudaErrorInvalidValue);
    memset(memory, byte, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    const cudaError_t error = context();
    if (error != cudaSuccess) return error;
    const bool to_device = kind == cudaMemcpyHostToDevice;
    if (is_on_device(to, bytes) != to_device || is_on_device(from, bytes) == to_device)
        return say(cudaErrorInvalidValue);
    memcpy(to, from, bytes);
    return cudaSuccess;
}

/* ---- Kernels ---- */

#define PER_ELEMENT(name, type) 256,
#define PER_ROW(name, type)     8,
#define PER_TILE(name, type)    1,
static const int pieces_per_block[OC_N_OPS] = {OC_OPS(PER_ELEMENT, PER_ROW, PER_TILE)};

static void misbehave(void)
{
    if (device.launches == (int)device.crash) raise(SIGSEGV);
    while (device.launches == (int)device.hang) pause();
    if (device.launches == (int)device.launch_fail) device.sticky = cudaErrorECCUncorrectable;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    (void)shared, (void)stream;
    cudaError_t error = context();
    if (error != cudaSuccess) return error;
    device.launches++;
    misbehave();
    if (device.sticky != cudaSuccess) return say(device.sticky);
    const int op = fake_cuda_op(kernel);
    if (op < 0) return say(cudaErrorInvalidDeviceFunction);
    if (!grid.x || grid.x > 2147483647u || grid.y != 1 || grid.z != 1 || block.x != 256 || block.y != 1 || block.z != 1)
        return say(cudaErrorInvalidConfiguration);
    int64_t pieces;
    memcpy(&pieces, args[0], sizeof pieces);
    if (grid.x > 1 && (int64_t)(grid.x - 1) * pieces_per_block[op] >= pieces) return say(cudaErrorInvalidConfiguration);
    oc_host_launch((enum oc_op)op, args[0]);
    return cudaSuccess;
}
