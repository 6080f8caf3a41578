/* Number formats and byte counts. */
#ifndef OOMCAST_DTYPE_H
#define OOMCAST_DTYPE_H

#include <stdint.h>

enum oc_dtype {
    OC_NONE = 0, /* the tensor does not exist */
    OC_FP32,
    OC_FP16,
    OC_BF16,
    OC_FP8,
    OC_INT8,
    OC_INT4,
    OC_BOOL,  /* one byte: dropout and attention masks */
    OC_INT64, /* token ids */
    OC_DTYPES
};

/* Bits of one element; 0 for OC_NONE. */
int oc_dtype_bits(enum oc_dtype dtype);

/* "fp32", "bf16", ...; "none" for OC_NONE. */
const char *oc_dtype_name(enum oc_dtype dtype);

/* Bytes of `elements` numbers, rounded up to whole bytes; UINT64_MAX when that overflows. */
uint64_t oc_bytes(uint64_t elements, enum oc_dtype dtype);

/* a*b and a+b that stop at UINT64_MAX instead of wrapping: sizes are checked once, at the end. */
static inline uint64_t oc_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t oc_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
