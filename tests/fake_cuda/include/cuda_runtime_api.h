/* The part of the CUDA runtime that probes/backend_cuda.c calls, declared anew so that tests build with no toolkit.
 * Its numbers (numbers.h) are CUDA's own: where a toolkit is found, t_numbers.c compares them. */
#ifndef OC_TESTS_FAKE_CUDA_RUNTIME_API_H
#define OC_TESTS_FAKE_CUDA_RUNTIME_API_H

#include <stddef.h>

#include "tests/fake_cuda/numbers.h"

#define FAKE_CUDA_NUMBER(name, value) name = value,
typedef enum cudaError { FAKE_CUDA_ERRORS(FAKE_CUDA_NUMBER) } cudaError_t;
enum cudaMemcpyKind { FAKE_CUDA_COPIES(FAKE_CUDA_NUMBER) };
#undef FAKE_CUDA_NUMBER

typedef struct dim3 {
    unsigned int x, y, z;
} dim3;

typedef struct CUstream_st *cudaStream_t;

struct cudaDeviceProp {
    char name[256];
};

cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int size, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMemset(void *memory, int byte, size_t bytes);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

#endif
