/* The kernels as plain loops: one function per line of OC_OPS. */
#include "probes/kernels.h"

#include "probes/backend.h"

#define OC_HOST_ELEMENT(name, type)                                                                                    \
    static void host_##name(const void *args)                                                                          \
    {                                                                                                                  \
        const struct type *op = args;                                                                                  \
        for (int64_t i = 0; i < op->n; i++) oc_##name##_element(op, i);                                                \
    }
#define OC_HOST_ROW(name, type)                                                                                        \
    static void host_##name(const void *args)                                                                          \
    {                                                                                                                  \
        const struct type *op = args;                                                                                  \
        for (int64_t i = 0; i < op->n; i++) oc_##name##_row(op, i, 0, 1);                                              \
    }
#define OC_HOST_TILE(name, type)                                                                                       \
    static void host_##name(const void *args)                                                                          \
    {                                                                                                                  \
        const struct type *op = args;                                                                                  \
        for (int64_t i = 0; i < op->n; i++) oc_##name##_tile(op, i);                                                   \
    }
OC_OPS(OC_HOST_ELEMENT, OC_HOST_ROW, OC_HOST_TILE)

#define OC_HOST_ENTRY(name, type) [OC_OP_##name] = host_##name,
static void (*const kernels[OC_N_OPS])(const void *) = {OC_OPS(OC_HOST_ENTRY, OC_HOST_ENTRY, OC_HOST_ENTRY)};

void oc_host_launch(enum oc_op op, const void *args)
{
    kernels[op](args);
}
