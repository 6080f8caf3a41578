/* The one-line editor never splits a character and never overruns; history keeps what it says it keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"

static void type(struct oc_prompt *prompt, const int *keys)
{
    for (; *keys; keys++) assert_int_equal(oc_prompt_key(prompt, *keys), OC_PROMPT_OPEN);
}

static void edits_in_the_middle(void **state)
{
    (void)state;
    struct oc_prompt prompt;
    oc_prompt_start(&prompt, "8");
    type(&prompt, (const int[]){OC_KEY_LEFT, '1', OC_KEY_RIGHT, OC_KEY_RIGHT, '0', OC_KEY_HOME, OC_KEY_DELETE,
                                OC_KEY_END, OC_KEY_BACKSPACE, 0});
    assert_string_equal(prompt.text, "8");
    type(&prompt, (const int[]){' ', 'a', 'b', OC_KEY_CTRL('W'), 0});
    assert_string_equal(prompt.text, "8 ");
    type(&prompt, (const int[]){OC_KEY_CTRL('U'), OC_KEY_BACKSPACE, OC_KEY_DELETE, OC_KEY_LEFT, 0});
    assert_string_equal(prompt.text, "");
    assert_int_equal(oc_prompt_key(&prompt, OC_KEY_ENTER), OC_PROMPT_DONE);
    assert_int_equal(oc_prompt_key(&prompt, OC_KEY_ESCAPE), OC_PROMPT_CANCELLED);
}

static void characters_are_whole(void **state)
{
    (void)state;
    struct oc_prompt prompt;
    oc_prompt_start(&prompt, "a");
    type(&prompt, (const int[]){0xe9, 0x6a21, OC_KEY_LEFT, OC_KEY_BACKSPACE, 0});
    assert_string_equal(prompt.text, "a\xe6\xa8\xa1");
    type(&prompt, (const int[]){OC_KEY_DELETE, 0});
    assert_string_equal(prompt.text, "a");
    type(&prompt,
         (const int[]){0xd800, 0x1b + 0x70000000, 0x80, 1 << 30, OC_KEY_UP, 0}); /* none of them is a character */
    assert_string_equal(prompt.text, "a");
}

static void a_full_line_takes_no_more(void **state)
{
    (void)state;
    struct oc_prompt prompt;
    oc_prompt_start(&prompt, "");
    for (int i = 0; i < 1000; i++) oc_prompt_key(&prompt, i % 3 ? 0x6a21 : 'x');
    assert_true(strlen(prompt.text) < OC_PROMPT_MAX);
    assert_true(strlen(prompt.text) >= OC_PROMPT_MAX - 4);
    for (int i = 0; i < 1000; i++) oc_prompt_key(&prompt, OC_KEY_BACKSPACE);
    assert_string_equal(prompt.text, "");
}

static void random_keys_keep_it_whole(void **state)
{
    (void)state;
    static const int keys[] = {OC_KEY_LEFT,      OC_KEY_RIGHT, OC_KEY_HOME, OC_KEY_END, OC_KEY_BACKSPACE, OC_KEY_DELETE,
                               OC_KEY_CTRL('W'), 'a',          ' ',         0xe9,       0x6a21,           0x1f600};
    struct oc_theme theme = oc_fake_theme();
    struct oc_canvas canvas = {.theme = &theme};
    struct oc_prompt prompt;
    uint32_t seed = 3;
    assert_true(oc_canvas_resize(&canvas, 20, 1));
    oc_prompt_start(&prompt, "");
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        oc_prompt_key(&prompt, keys[(seed >> 16) % 12]);
        assert_true(prompt.at >= 0 && prompt.at <= (int)strlen(prompt.text));
        assert_true(((unsigned char)prompt.text[prompt.at] & 0xc0) != 0x80);
        oc_canvas_clear(&canvas);
        oc_prompt_draw(&prompt, &canvas, 0, 0, 20, "tp");
        assert_true(canvas.cursor_x >= 4 && canvas.cursor_x < 20);
    }
    oc_canvas_free(&canvas);
}

static void undo_goes_back_and_forward(void **state)
{
    (void)state;
    struct oc_undo undo;
    struct oc_case c = {0};
    assert_true(oc_undo_start(&undo, &c));
    for (int i = 1; i <= 5; i++) {
        c.config.parallel_tp = i;
        oc_undo_push(&undo, &c);
    }
    assert_int_equal(oc_undo_move(&undo, -1)->config.parallel_tp, 4);
    assert_int_equal(oc_undo_move(&undo, -1)->config.parallel_tp, 3);
    assert_int_equal(oc_undo_move(&undo, 1)->config.parallel_tp, 4);
    c.config.parallel_tp = 9; /* a new change forgets what was taken back */
    oc_undo_push(&undo, &c);
    assert_null(oc_undo_move(&undo, 1));
    assert_int_equal(oc_undo_move(&undo, -1)->config.parallel_tp, 4);
    for (int i = 0; i < 4; i++) assert_non_null(oc_undo_move(&undo, -1));
    assert_null(oc_undo_move(&undo, -1));
    oc_undo_free(&undo);
}

static void undo_is_bounded(void **state)
{
    (void)state;
    struct oc_undo undo;
    struct oc_case c = {0};
    assert_true(oc_undo_start(&undo, &c));
    for (int i = 1; i <= OC_UNDO_MAX + 500; i++) {
        c.config.parallel_tp = i;
        oc_undo_push(&undo, &c);
    }
    assert_int_equal(undo.n, OC_UNDO_MAX);
    int steps = 0;
    while (oc_undo_move(&undo, -1)) steps++;
    assert_int_equal(steps, OC_UNDO_MAX - 1);
    assert_int_equal(undo.cases[0].config.parallel_tp, 501);
    oc_undo_free(&undo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_in_the_middle),        cmocka_unit_test(characters_are_whole),
        cmocka_unit_test(a_full_line_takes_no_more),  cmocka_unit_test(random_keys_keep_it_whole),
        cmocka_unit_test(undo_goes_back_and_forward), cmocka_unit_test(undo_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
