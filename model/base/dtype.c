#include "oomcast/dtype.h"

static const struct {
    const char *name;
    int bits;
} dtypes[OC_DTYPES] = {
    [OC_NONE] = {"none", 0},  [OC_FP32] = {"fp32", 32}, [OC_FP16] = {"fp16", 16},
    [OC_BF16] = {"bf16", 16}, [OC_FP8] = {"fp8", 8},    [OC_INT8] = {"int8", 8},
    [OC_INT4] = {"int4", 4},  [OC_BOOL] = {"bool", 8},  [OC_INT64] = {"int64", 64},
};

int oc_dtype_bits(enum oc_dtype dtype)
{
    return dtypes[dtype].bits;
}

const char *oc_dtype_name(enum oc_dtype dtype)
{
    return dtypes[dtype].name;
}

uint64_t oc_bytes(uint64_t elements, enum oc_dtype dtype)
{
    uint64_t bits = (uint64_t)dtypes[dtype].bits;
    if (bits % 8 == 0) return oc_mul(elements, bits / 8);
    return oc_add(elements / 2, elements % 2); /* 4-bit formats: two to a byte */
}
