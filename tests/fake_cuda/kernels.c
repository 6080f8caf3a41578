/* In place of kernels.cu: one address for each kernel. The runtime finds the operation by it and runs the host's body.
 */
#include "probes/ops.h"

#include "tests/fake_cuda/fake_cuda.h"

static const char tags[OC_N_OPS];

#define TAG(name, type) &tags[OC_OP_##name],
extern const void *const oc_cuda_kernels[OC_N_OPS];
const void *const oc_cuda_kernels[OC_N_OPS] = {OC_OPS(TAG, TAG, TAG)};

int fake_cuda_op(const void *kernel)
{
    for (int op = 0; op < OC_N_OPS; op++)
        if (oc_cuda_kernels[op] == kernel) return op;
    return -1;
}
