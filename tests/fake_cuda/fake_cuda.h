/* A CUDA runtime in host memory, with faults on demand: linked in place of the real one, so that everything but the
 * kernels' CUDA wrappers is tested where there is no GPU.
 *
 * What it does wrong, and what the device looks like, it reads from the environment at its first call:
 *
 *     FAKE_CUDA="devices=0,driver=0,..."
 *         driver=N       version of the driver (13000); 0: there is none; below 13000: too old
 *         stub=1         the toolkit's stub library stands in for the driver
 *         devices=N      visible GPUs (1)
 *         taken=1        another process has the GPU for itself
 *         slice=1        the GPU is a MIG slice
 *         total=BYTES    of the GPU (16 GiB)
 *         ctx=BYTES      that a context takes (300 MiB)
 *         other=BYTES    that other processes use (0)
 *         oom_after=B    bytes beyond the context from which there is no memory
 *         oom_call=N     the N-th cudaMalloc finds none, once
 *         launch_fail=N  the N-th launch meets an ECC error, which is sticky
 *         crash=N        the N-th launch crashes the process
 *         hang=N         the N-th launch never returns
 *         terms=N        ... and TERM is ignored from the start
 *
 * Like the real one it refuses what would go wrong: memory that is not the device's, an empty grid, a grid with blocks
 * that have nothing to do, a kernel that is not in the table. */
#ifndef OC_TESTS_FAKE_CUDA_H
#define OC_TESTS_FAKE_CUDA_H

#include <stdint.h>

/* Forgets everything, faults and the context included, and reads FAKE_CUDA again. */
void fake_cuda_reset(void);

struct fake_cuda_counts {
    int mallocs, launches;
    int live;      /* pieces of memory that were not freed */
    uint64_t used; /* bytes of them, rounded to 2 MiB, and of the context */
};
struct fake_cuda_counts fake_cuda_counts(void);

/* The table of "kernels" (see kernels.c): which operation an entry stands for, -1 for none. */
int fake_cuda_op(const void *kernel);

#endif
