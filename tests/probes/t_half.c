/* fp16 and bf16 against a slow statement of IEEE 754 in long double: every half, and floats around every half. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "probes/half.h"

/* A format: exponent and mantissa bits. */
struct format {
    int exponent, mantissa;
    float (*from)(uint16_t half);
    uint16_t (*to)(float value);
};

static const struct format formats[] = {{5, 10, oc_from_fp16, oc_to_fp16}, {8, 7, oc_from_bf16, oc_to_bf16}};

/* The value of a half, from the definition; NaN and infinity included. */
static double value_of(const struct format *format, uint16_t half)
{
    const int bias = (1 << (format->exponent - 1)) - 1;
    const int exponent = half >> format->mantissa & ((1 << format->exponent) - 1);
    const int mantissa = half & ((1 << format->mantissa) - 1);
    const double sign = half & 0x8000 ? -1.0 : 1.0;
    if (exponent == (1 << format->exponent) - 1) return mantissa ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - format->mantissa);
    return sign * ldexp(mantissa + (1 << format->mantissa), exponent - bias - format->mantissa);
}

static void every_half_has_its_value_and_comes_back(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        for (uint32_t half = 0; half < 65536; half++) {
            const double expected = value_of(&formats[f], (uint16_t)half);
            const float value = formats[f].from((uint16_t)half);
            if (isnan(expected)) {
                assert_true(isnan(value));
                assert_true(isnan(formats[f].from(formats[f].to(value))));
                assert_int_equal(formats[f].to(value) >> 15, half >> 15);
            } else {
                assert_true((double)value == expected);
                assert_int_equal(formats[f].to(value), half);
            }
        }
    }
}

/* Between two neighbouring halves: the nearer one, and the even one from the middle. */
static void floats_round_to_the_nearest_half(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const struct format *format = &formats[f];
        const uint16_t largest = (uint16_t)((((1 << format->exponent) - 1) << format->mantissa) - 1);
        for (uint16_t half = 0; half < largest; half++) {
            const double low = value_of(format, half), high = value_of(format, (uint16_t)(half + 1));
            const float middle = (float)((low + high) / 2); /* exact in fp32 */
            const uint16_t even = half % 2 ? (uint16_t)(half + 1) : half;
            assert_int_equal(format->to(middle), even);
            assert_int_equal(format->to(-middle), even | 0x8000);
            assert_int_equal(format->to(nextafterf(middle, 0.0f)), half);
            assert_int_equal(format->to(nextafterf(middle, INFINITY)), half + 1);
        }
    }
}

static void too_large_is_infinite(void **state)
{
    (void)state;
    assert_int_equal(oc_to_fp16(65519.996f), 0x7bff);
    assert_int_equal(oc_to_fp16(65520.0f), 0x7c00);
    assert_int_equal(oc_to_fp16(-1e30f), 0xfc00);
    assert_int_equal(oc_to_bf16(3.4e38f), 0x7f80); /* above the middle of the largest bf16 and infinity */
    assert_int_equal(oc_to_bf16(3.389e38f), 0x7f7f);
    assert_int_equal(oc_to_fp16(INFINITY), 0x7c00);
    assert_int_equal(oc_to_bf16(-INFINITY), 0xff80);
}

/* Floats from all exponents, with mantissas drawn: never further from the result than from its neighbours. */
static void sampled_floats_are_nearest(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int i = 0; i < 400000; i++) {
        random = random * 1664525u + 1013904223u;
        const float value = oc_bits_float((uint32_t)(i % 255) << 23 | (random >> 9) | (uint32_t)(i & 1) << 31);
        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
            const uint16_t half = formats[f].to(value);
            const double distance = fabs(value_of(&formats[f], half) - (double)value);
            if (isinf(value_of(&formats[f], half))) continue; /* too_large_is_infinite */
            assert_true(distance <= fabs(value_of(&formats[f], (uint16_t)(half + 1)) - (double)value));
            if ((half & 0x7fff) > 0)
                assert_true(distance <= fabs(value_of(&formats[f], (uint16_t)(half - 1)) - (double)value));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_has_its_value_and_comes_back),
        cmocka_unit_test(floats_round_to_the_nearest_half),
        cmocka_unit_test(too_large_is_infinite),
        cmocka_unit_test(sampled_floats_are_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
