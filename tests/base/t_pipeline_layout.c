/* Pipeline stages written out as text. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "model/base/layout.h"

static void repeats_are_written_out(void **state)
{
    (void)state;
    struct oc_layout layout;
    assert_null(oc_layout_read("Et*3|(tt|)*6tL", &layout));
    const uint32_t layers[] = {3, 2, 2, 2, 2, 2, 2, 1};
    assert_int_equal(layout.stages, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(layout.layers[i], layers[i]);
    assert_null(oc_layout_read("E,t|t*2|mL", &layout));
    assert_int_equal(layout.stages, 3);
    assert_int_equal(layout.layers[1], 2);
    assert_int_equal(layout.layers[2], 0);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    const char *const wrong[] = {
        "",         "tL",        "Et",       "t|EL", "EtL|t", "Ett|x|L",   "E(t|L",
        "Et*0|L",   "Et*|L",     "Et*-3|L",  "EEtL", "EtLL",  "Et*99999L", "E(t*16384|)*16384L",
        "E|*300tL", "E(t|)*(2L", "Et*3|tt|)"};
    struct oc_layout layout;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (!oc_layout_read(wrong[i], &layout)) fail_msg("'%s' was taken", wrong[i]);
}

/* Whatever the letters are, it ends, and what it takes holds what it says. */
static void any_text_is_read_or_refused(void **state)
{
    (void)state;
    const char letters[] = "EtmL|()*0123459,";
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        char text[24];
        const size_t length = 1 + i % 22;
        for (size_t k = 0; k < length; k++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            text[k] = letters[random % (sizeof letters - 1)];
        }
        text[length] = 0;
        struct oc_layout layout;
        if (oc_layout_read(text, &layout)) continue;
        assert_in_range(layout.stages, 1, OC_MAX_LAYOUT_STAGES);
        assert_int_equal(layout.loss_stage, layout.stages - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(repeats_are_written_out),
                                       cmocka_unit_test(what_is_wrong_is_said),
                                       cmocka_unit_test(any_text_is_read_or_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
