/* The kernels on a GPU: the bodies of kernels.h, one __global__ function per line of OC_OPS. Nothing else is CUDA C, and
 * the host reaches these through oc_cuda_kernels[], so that everything above can be linked with a stand-in.
 *
 * Blocks have 256 threads. An element kernel gives each thread one number, a row kernel each warp one row, a tile
 * kernel each block one tile; all of them stride over the grid, so that any grid covers all of the work. */
#include <stdint.h>

#define OC_FN static __device__ __forceinline__
#define OC_SHARED __shared__
#define OC_SYNC() __syncthreads()
#define OC_FOR_LANES(lane) for (int lane = (int)threadIdx.x, oc_once = 1; lane >= 0 && oc_once; oc_once = 0)
#define OC_PRIVATE(type, name, count) type name[count]
#define OC_MINE(name, lane) name
#define OC_UNROLL _Pragma("unroll")
#define OC_HEAD_DIMS_PER_LANE 8 /* a head_dim of up to 256, over the 32 lanes of a warp */
#define OC_ADD(to, value) atomicAdd(to, value)
/* Unrolled to a fixed length: an array that is indexed by a variable would lie in local memory. */
#define OC_FOR_MY_DIMS(i, count)                                                                                       \
    _Pragma("unroll") for (int i = 0; i < OC_HEAD_DIMS_PER_LANE; i++) if (i < (count))

enum { OC_WARP = 32 };

OC_FN void oc_lanes_wait(void)
{
    __syncwarp();
}

OC_FN float oc_lanes_sum(float value)
{
    OC_UNROLL for (int apart = OC_WARP / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
    return value;
}

OC_FN float oc_lanes_max(float value)
{
    OC_UNROLL for (int apart = OC_WARP / 2; apart > 0; apart /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
    return value;
}

#include "probes/kernels.h"

#define OC_CUDA_ELEMENT(name, type)                                                                                    \
    extern "C" __global__ void __launch_bounds__(OC_TILE_LANES) oc_cuda_##name(const struct type op)                   \
    {                                                                                                                  \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                                          \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < op.n; i += step)                          \
            oc_##name##_element(&op, i);                                                                               \
    }
#define OC_CUDA_ROW(name, type)                                                                                        \
    extern "C" __global__ void __launch_bounds__(OC_TILE_LANES, 1) oc_cuda_##name(const struct type op)                   \
    {                                                                                                                  \
        const int64_t step = (int64_t)gridDim.x * (blockDim.x / OC_WARP);                                              \
        const int lane = (int)(threadIdx.x % OC_WARP);                                                                 \
        for (int64_t i = (int64_t)blockIdx.x * (blockDim.x / OC_WARP) + threadIdx.x / OC_WARP; i < op.n; i += step)    \
            oc_##name##_row(&op, i, lane, OC_WARP);                                                                    \
    }
#define OC_CUDA_TILE(name, type)                                                                                       \
    extern "C" __global__ void __launch_bounds__(OC_TILE_LANES) oc_cuda_##name(const struct type op)                   \
    {                                                                                                                  \
        for (int64_t i = blockIdx.x; i < op.n; i += gridDim.x) oc_##name##_tile(&op, i);                               \
    }
OC_OPS(OC_CUDA_ELEMENT, OC_CUDA_ROW, OC_CUDA_TILE)

#define OC_CUDA_ENTRY(name, type) (const void *)oc_cuda_##name,
extern "C" const void *const oc_cuda_kernels[OC_N_OPS] = {OC_OPS(OC_CUDA_ENTRY, OC_CUDA_ENTRY, OC_CUDA_ENTRY)};
