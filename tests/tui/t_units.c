/* Byte counts as text: exact where they fit, never wider than their field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tui/report/units.h"

static void formats_with_the_unit(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        enum oc_unit unit;
        const char *text;
    } cases[] = {
        {0, OC_UNIT_GIB, "0.00 GiB"},
        {1, OC_UNIT_GIB, "<0.01 GiB"},
        {5368709, OC_UNIT_GIB, "<0.01 GiB"},
        {5368710, OC_UNIT_GIB, "0.01 GiB"}, /* 2^30 / 200 = 5368709.12: the first count that rounds up */
        {1u << 30, OC_UNIT_GIB, "1.00 GiB"},
        {15019868160, OC_UNIT_GIB, "13.99 GiB"},
        {15019868160, OC_UNIT_GB, "15.02 GB"},
        {15019868160, OC_UNIT_BYTES, "15,019,868,160 B"},
        {(1u << 30) - 1, OC_UNIT_GIB, "1.00 GiB"}, /* 0.9999 carries into the whole part */
        {1048576 * 3 / 2, OC_UNIT_MIB, "1.50 MiB"},
        {999, OC_UNIT_BYTES, "999 B"},
        {1000, OC_UNIT_BYTES, "1,000 B"},
        {UINT64_MAX, OC_UNIT_GIB, "17179869184.00 GiB"},
        {UINT64_MAX, OC_UNIT_BYTES, "18,446,744,073,709,551,615 B"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[OC_BYTES_TEXT];
        assert_string_equal(oc_format_bytes(cases[i].bytes, cases[i].unit, text, sizeof text), cases[i].text);
    }
}

static void changes_have_a_sign(void **state)
{
    (void)state;
    char text[OC_BYTES_TEXT];
    uint64_t gib = 1u << 30;
    assert_string_equal(oc_format_change(gib, 3 * gib, OC_UNIT_GIB, 0, text, sizeof text), "+2.00");
    assert_string_equal(oc_format_change(3 * gib, gib, OC_UNIT_GIB, 8, text, sizeof text), "-2.00");
    assert_string_equal(oc_format_change(gib, gib, OC_UNIT_GIB, 8, text, sizeof text), "0");
    assert_string_equal(oc_format_change(0, 1, OC_UNIT_GIB, 8, text, sizeof text), "+<0.01");
    assert_string_equal(oc_format_change(0, UINT64_MAX, OC_UNIT_BYTES, 0, text, sizeof text),
                        "+18,446,744,073,709,551,615");
}

static void loses_decimals_before_columns(void **state)
{
    (void)state;
    char text[OC_BYTES_TEXT];
    uint64_t gib = 1u << 30;
    assert_string_equal(oc_format_amount(1234 * gib + gib / 2, OC_UNIT_GIB, 7, text, sizeof text), "1234.50");
    assert_string_equal(oc_format_amount(1234 * gib + gib / 2, OC_UNIT_GIB, 6, text, sizeof text), "1234.5");
    assert_string_equal(oc_format_amount(1234 * gib + gib / 2, OC_UNIT_GIB, 4, text, sizeof text), "1235");
    assert_string_equal(oc_format_amount(1234 * gib + gib / 2, OC_UNIT_GIB, 3, text, sizeof text), "###");
    assert_string_equal(oc_format_amount(15019868160, OC_UNIT_BYTES, 11, text, sizeof text), "15019868160");
}

static void never_wider_than_its_field(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        uint64_t bytes = seed >> (seed % 64);
        int width = 1 + (int)(seed % 14);
        enum oc_unit unit = (enum oc_unit)(i % 4);
        char text[OC_BYTES_TEXT];
        assert_true((int)strlen(oc_format_amount(bytes, unit, width, text, sizeof text)) <= width);
        assert_true((int)strlen(text) >= 1);
        assert_true((int)strlen(oc_format_change(bytes, seed >> 9, unit, width, text, sizeof text)) <= width);
    }
}

static void a_small_buffer_is_not_overrun(void **state)
{
    (void)state;
    char text[6] = "xxxxx";
    oc_format_bytes(UINT64_MAX, OC_UNIT_BYTES, text, 4);
    assert_string_equal(text, "18,");
    assert_int_equal(text[4], 'x');
}

static void finds_units_by_their_option(void **state)
{
    (void)state;
    enum oc_unit unit;
    assert_true(oc_unit_find("gib", &unit) && unit == OC_UNIT_GIB);
    assert_true(oc_unit_find("GB", &unit) && unit == OC_UNIT_GB);
    assert_true(oc_unit_find("bytes", &unit) && unit == OC_UNIT_BYTES);
    assert_false(oc_unit_find("furlongs", &unit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_with_the_unit),         cmocka_unit_test(changes_have_a_sign),
        cmocka_unit_test(loses_decimals_before_columns), cmocka_unit_test(never_wider_than_its_field),
        cmocka_unit_test(a_small_buffer_is_not_overrun), cmocka_unit_test(finds_units_by_their_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
