/* fp16 and bf16 in integer arithmetic, and arrays of any number format.
 *
 * Written in the common subset of C and CUDA C: no compiler's half type is assumed. Rounding is to nearest, ties to
 * even; subnormal numbers are exact; a NaN stays a (quiet) NaN. */
#ifndef OC_PROBES_HALF_H
#define OC_PROBES_HALF_H

#include <stdint.h>
#include <string.h>

#include "oomcast/dtype.h"

/* How a kernel's functions are declared; a CUDA C file defines it before it includes this. */
#ifndef OC_FN
#define OC_FN static inline
#endif

OC_FN uint32_t oc_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

OC_FN float oc_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* bf16 is the upper half of an fp32 number. */
OC_FN float oc_from_bf16(uint16_t half)
{
    return oc_bits_float((uint32_t)half << 16);
}

OC_FN uint16_t oc_to_bf16(float value)
{
    uint32_t bits = oc_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u); /* NaN: keep it one */
    uint32_t odd = (bits >> 16) & 1u;
    return (uint16_t)((bits + 0x7fffu + odd) >> 16);
}

/* fp16: 1 sign, 5 exponent (bias 15) and 10 mantissa bits; fp32: 1, 8 (bias 127) and 23. */
OC_FN float oc_from_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
    if (exponent == 31u) return oc_bits_float(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u));
    if (exponent > 0u) return oc_bits_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    float subnormal = (float)mantissa * 5.9604644775390625e-8f; /* mantissa x 2^-24, exact in fp32 */
    return oc_bits_float(sign | oc_float_bits(subnormal));
}

/* The upper bits of `value` once its lowest `shift` bits have been rounded away. */
OC_FN uint32_t oc_round_bits(uint32_t value, uint32_t shift)
{
    uint32_t kept = value >> shift, rest = value & ((1u << shift) - 1u), half = 1u << (shift - 1u);
    return kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u);
}

OC_FN uint16_t oc_to_fp16(float value)
{
    uint32_t bits = oc_float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu)); /* NaN */
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more round to infinity */
    if (magnitude <= 0x33000000u) return (uint16_t)sign;             /* 2^-25 and less round to zero */
    if (magnitude < 0x38800000u) {                                   /* below 2^-14: an fp16 subnormal */
        uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        return (uint16_t)(sign | oc_round_bits(mantissa, 126u - (magnitude >> 23)));
    }
    return (uint16_t)(sign | oc_round_bits(magnitude - 0x38000000u, 13u)); /* a carry moves into the exponent */
}

/* The numbers of a tensor: where they lie and what they are (enum oc_dtype: OC_FP32, OC_FP16, OC_BF16 or OC_INT64). */
struct oc_array {
    void *data;
    int dtype;
};

OC_FN float oc_load(struct oc_array array, int64_t i)
{
    if (array.dtype == OC_FP32) return ((const float *)array.data)[i];
    if (array.dtype == OC_BF16) return oc_from_bf16(((const uint16_t *)array.data)[i]);
    return oc_from_fp16(((const uint16_t *)array.data)[i]);
}

OC_FN void oc_store(struct oc_array array, int64_t i, float value)
{
    if (array.dtype == OC_FP32)
        ((float *)array.data)[i] = value;
    else if (array.dtype == OC_BF16)
        ((uint16_t *)array.data)[i] = oc_to_bf16(value);
    else
        ((uint16_t *)array.data)[i] = oc_to_fp16(value);
}

OC_FN int64_t oc_load_id(struct oc_array ids, int64_t i)
{
    return ((const int64_t *)ids.data)[i];
}

#endif
