/* What libraries take from PyTorch's allocator for themselves. */
#include "model/build.h"
#include "model/frameworks/framework.h"

struct oc_entry oc_buffer_entry(const char *name, const char *why, const char *source, uint64_t elements,
                                enum oc_dtype dtype)
{
    return (struct oc_entry){.name = name,
                             .why = why,
                             .source = source,
                             .elements = elements,
                             .count = 1,
                             .class = OC_BUFFERS,
                             .dtype = (uint8_t)dtype,
                             .kind = OC_END_ANY,
                             .birth = OC_AT(START),
                             .death = OC_AT(END)};
}

/* Source: ATen CublasHandlePool.cpp @26a39059: 4096 KiB x 2 + 16 KiB x 8 by default, 32 MiB on Hopper and later;
 * CUBLAS_WORKSPACE_CONFIG replaces it (allocator.cublas_workspace). */
static uint64_t cublas_bytes(const struct oc_plan *plan)
{
    if (oc_given(&plan->c, OC_OPT_allocator_cublas_workspace)) return (uint64_t)plan->c.allocator_cublas_workspace;
    return plan->sm >= 90 ? 33554432 : 8519680;
}

struct oc_tick oc_first_backward(const struct oc_build *build)
{
    /* In a chunk's first backward; with several chunks on the rank it would be made once too often. */
    return build->ledger->n_chunks == 1 ? (struct oc_tick){OC_PH_BACKWARD, OC_PART_HEAD, 0} : OC_AT(START);
}

void oc_add_cublas(struct oc_build *build)
{
    if (!build->plan->sm || !build->plan->has_shape) return;
    /* PyTorch before 1.12 leaves cuBLAS to allocate for itself. */
    if (oc_is_2021(build->plan) && !oc_given(&build->plan->c, OC_OPT_allocator_cublas_workspace)) return;
    struct oc_entry workspace =
        oc_buffer_entry("cuBLAS workspace, forward", "one per thread that launches matrix products",
                        "ATen CublasHandlePool.cpp", cublas_bytes(build->plan), OC_INT8);
    oc_build_add(build, &workspace);
    workspace.name = "cuBLAS workspace, backward";
    workspace.birth = oc_first_backward(build);
    oc_build_add(build, &workspace);
}
