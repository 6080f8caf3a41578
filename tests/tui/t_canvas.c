/* The canvas: nothing is drawn outside, text is measured and cut in columns, and what comes from files cannot do harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"

static struct oc_theme theme;

static int open_theme(void **state)
{
    (void)state;
    theme = oc_fake_theme();
    return 0;
}

static struct oc_canvas make(int width, int height, bool ascii)
{
    struct oc_canvas canvas = {.theme = &theme, .colour = true, .ascii = ascii};
    assert_true(oc_canvas_resize(&canvas, width, height));
    return canvas;
}

static void assert_text(struct oc_canvas *canvas, const char *expected)
{
    char *text = oc_fake_text(canvas);
    assert_string_equal(text, expected);
    free(text);
    oc_canvas_free(canvas);
}

static void text_is_cut_with_a_sign(void **state)
{
    (void)state;
    struct oc_canvas canvas = make(8, 3, false);
    assert_int_equal(oc_canvas_text(&canvas, 1, 0, 5, OC_ROLE_TEXT, "short"), 5);
    assert_int_equal(oc_canvas_text(&canvas, 1, 1, 5, OC_ROLE_TEXT, "longer"), 5);
    assert_int_equal(oc_canvas_text(&canvas, 0, 2, 0, OC_ROLE_TEXT, "none"), 0);
    assert_text(&canvas, " short  \n long~  \n        \n");
}

static void control_characters_and_broken_bytes_are_harmless(void **state)
{
    (void)state;
    struct oc_canvas canvas = make(10, 2, true);
    oc_canvas_text(&canvas, 0, 0, 10, OC_ROLE_TEXT, "a\033[31mb");
    oc_canvas_text(&canvas, 0, 1, 10, OC_ROLE_TEXT, "\xff\xc3x\xe2\x82");
    assert_text(&canvas, "a?[31mb   \n??x??     \n");
}

static void wide_characters_take_two_columns(void **state)
{
    (void)state;
    struct oc_canvas canvas = make(6, 1, false);
    assert_int_equal(oc_text_width("\xe6\xa8\xa1x"), 3);
    assert_int_equal(oc_canvas_text(&canvas, 0, 0, 6, OC_ROLE_TEXT, "\xe6\xa8\xa1x"), 3);
    assert_int_equal(oc_canvas_at(&canvas, 1, 0)->code, 0);
    oc_canvas_put(&canvas, 1, 0, (struct oc_style){0, 0, 0}, 'y'); /* over its second half */
    assert_text(&canvas, " yx   \n");
    canvas = make(3, 1, false);
    oc_canvas_text(&canvas, 2, 0, 3, OC_ROLE_TEXT, "\xe6\xa8\xa1"); /* no room at the edge */
    assert_text(&canvas, "  ?\n");
}

static void ascii_has_a_sign_for_each_line(void **state)
{
    (void)state;
    struct oc_canvas canvas = make(4, 2, true);
    oc_canvas_hline(&canvas, 0, 0, 3);
    oc_canvas_vline(&canvas, 3, 0, 2);
    oc_canvas_text(&canvas, 0, 1, 3, OC_ROLE_TEXT, "\xc3\xa9\xc2\xb7");
    assert_text(&canvas, "---|\n?. |\n");
}

static void wrapping_keeps_words_whole(void **state)
{
    (void)state;
    const char *text = "one two  three fourteen";
    struct oc_canvas canvas = make(9, 3, false);
    struct oc_rect rect = {0, 0, 9, 3};
    assert_int_equal(oc_canvas_wrap(NULL, rect, 0, OC_ROLE_TEXT, text), 3);
    assert_int_equal(oc_canvas_wrap(&canvas, rect, 0, OC_ROLE_TEXT, text), 3);
    assert_text(&canvas, "one two  \nthree    \nfourteen \n");
    canvas = make(9, 3, false);
    rect.h = 2;
    assert_int_equal(oc_canvas_wrap(&canvas, rect, 0, OC_ROLE_TEXT, text), 2);
    assert_text(&canvas, "one two  \nthree ~  \n         \n");
    canvas = make(9, 3, false);
    rect.h = 3;
    assert_int_equal(oc_canvas_wrap(&canvas, rect, 2, OC_ROLE_TEXT, text), 1);
    assert_text(&canvas, "fourteen \n         \n         \n");
    canvas = make(4, 2, false);
    assert_int_equal(oc_canvas_wrap(&canvas, (struct oc_rect){0, 0, 4, 2}, 0, OC_ROLE_TEXT, "abcdefgh"), 2);
    assert_text(&canvas, "abcd\nefgh\n");
    canvas = make(5, 2, false);
    assert_int_equal(oc_canvas_wrap(&canvas, (struct oc_rect){0, 0, 5, 2}, 0, OC_ROLE_TEXT, "a b\nc"), 2);
    assert_text(&canvas, "a b  \nc    \n");
}

/* Wrapping ends for any bytes and any width, and takes no more rows than it says. */
static void wrapping_ends_for_any_bytes(void **state)
{
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 5000; round++) {
        char text[65];
        for (int i = 0; i < 64; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = (char)(seed % 5 == 0 ? ' ' : 1 + (seed >> 24) % 255);
        }
        text[64] = '\0';
        struct oc_canvas canvas = make(12, 4, round % 2);
        int width = 1 + (int)(seed >> 8) % 12,
            rows = oc_canvas_wrap(NULL, (struct oc_rect){0, 0, width, 0}, 0, OC_ROLE_TEXT, text);
        int drawn = oc_canvas_wrap(&canvas, (struct oc_rect){0, 0, width, 4}, 0, OC_ROLE_TEXT, text);
        assert_int_equal(drawn, rows < 4 ? rows : 4);
        for (int y = 0; y < 4; y++)
            for (int x = width; x < 12; x++) assert_int_equal(oc_canvas_at(&canvas, x, y)->code, ' ');
        oc_canvas_free(&canvas);
    }
}

static void drawing_outside_does_nothing(void **state)
{
    (void)state;
    struct oc_canvas canvas = make(3, 2, false);
    oc_canvas_put(&canvas, -1, 0, (struct oc_style){0, 0, 0}, 'x');
    oc_canvas_put(&canvas, 3, 0, (struct oc_style){0, 0, 0}, 'x');
    oc_canvas_put(&canvas, 0, 2, (struct oc_style){0, 0, 0}, 'x');
    oc_canvas_text(&canvas, -2, 1, 20, OC_ROLE_TEXT, "abcdefghijk");
    oc_canvas_fill(&canvas, (struct oc_rect){-5, -5, 3, 3}, OC_ROLE_TEXT);
    oc_canvas_mark(&canvas, (struct oc_rect){2, 1, 100, 100}, OC_ROLE_FOCUS);
    assert_text(&canvas, "   \ncde\n");
    canvas = make(0, 0, false);
    oc_canvas_text(&canvas, 0, 0, 5, OC_ROLE_TEXT, "x");
    oc_canvas_free(&canvas);
}

static void dumps_name_every_style(void **state)
{
    (void)state;
    struct oc_canvas canvas = make(4, 1, false);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    oc_canvas_text(&canvas, 0, 0, 2, OC_ROLE_TITLE, "ab");
    oc_canvas_at(&canvas, 3, 0)->style.bg = theme.classes[OC_WEIGHTS].colour;
    oc_canvas_write(&canvas, out);
    fclose(out);
    assert_string_equal(text, "screen 4x1\nab\nstyles\naa.b\na default on default bold\nb default on sky\n");
    free(text);
    out = open_memstream(&text, &size);
    oc_canvas_text(&canvas, 0, 0, 3, OC_ROLE_TEXT, "<&>");
    oc_canvas_picture(&canvas, out);
    fclose(out);
    assert_non_null(strstr(text, "&lt;&amp;&gt;"));
    assert_non_null(strstr(text, "fill=\"#56b4e9\""));
    assert_non_null(strstr(text, "</svg>"));
    free(text);
    oc_canvas_free(&canvas);
}

static void utf8_reads_what_it_writes(void **state)
{
    (void)state;
    for (uint32_t code = 1; code < 0x110000; code += code < 0x3000 ? 1 : 97) {
        char text[5];
        uint32_t back;
        if (code >= 0xd800 && code < 0xe000) continue;
        int length = oc_utf8_write(code, text);
        assert_int_equal(oc_utf8_read(text, (size_t)length, &back), length);
        assert_int_equal(back, code);
        if (length > 1) {
            assert_int_equal(oc_utf8_read(text, (size_t)length - 1, &back), 1); /* cut off */
            assert_int_equal(back, 0xfffd);
        }
    }
    uint32_t code;
    assert_int_equal(oc_utf8_read("\xc0\x80", 2, &code), 1); /* overlong */
    assert_int_equal(code, 0xfffd);
    assert_int_equal(oc_utf8_read("\xed\xa0\x80", 3, &code), 1); /* surrogate */
    assert_int_equal(oc_utf8_read("", 0, &code), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_with_a_sign),
        cmocka_unit_test(control_characters_and_broken_bytes_are_harmless),
        cmocka_unit_test(wide_characters_take_two_columns),
        cmocka_unit_test(ascii_has_a_sign_for_each_line),
        cmocka_unit_test(wrapping_keeps_words_whole),
        cmocka_unit_test(wrapping_ends_for_any_bytes),
        cmocka_unit_test(drawing_outside_does_nothing),
        cmocka_unit_test(dumps_name_every_style),
        cmocka_unit_test(utf8_reads_what_it_writes),
    };
    return cmocka_run_group_tests(tests, open_theme, NULL);
}
