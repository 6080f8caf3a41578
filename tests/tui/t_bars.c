/* Bars: edges add up, nothing that exists is invisible, and colour is never alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"
#include "tui/screen/bars.h"

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    return *seed;
}

static void edges_round_the_sum_and_not_the_parts(void **state)
{
    (void)state;
    int edges[6];
    const uint64_t thirds[6] = {1, 1, 1, 0, 0, 0};
    oc_bar_edges(thirds, 6, 3, 10, edges); /* 3.33 6.67 10: rounding each part would give 9 */
    assert_int_equal(edges[0], 3);
    assert_int_equal(edges[1], 7);
    assert_int_equal(edges[2], 10);
    assert_int_equal(edges[5], 10);
    const uint64_t half[6] = {5, 0, 0, 0, 0, 0};
    oc_bar_edges(half, 6, 10, 8, edges);
    assert_int_equal(edges[0], 4);
}

static void edges_of_nothing_are_zero(void **state)
{
    (void)state;
    int edges[6];
    const uint64_t none[6] = {0};
    oc_bar_edges(none, 6, 0, 80, edges);
    assert_int_equal(edges[5], 0);
    oc_bar_edges(none, 6, 1000, 80, edges);
    assert_int_equal(edges[5], 0);
    const uint64_t some[6] = {1, 2, 3, 4, 5, 6};
    oc_bar_edges(some, 6, 21, 0, edges);
    assert_int_equal(edges[5], 0);
}

/* Whatever the values: edges do not go back or beyond the end, equal sums end at equal edges within what small parts
 * borrow, and every part that is not zero is at least one unit wide while there are units. */
static void edges_hold_their_promises(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 200000; round++) {
        uint64_t values[6], scale;
        int edges[6], units = (int)(next_random(&seed) % 400), present = 0, before = 0;
        double sum = 0;
        for (int i = 0; i < 6; i++) {
            values[i] = next_random(&seed) % 3 == 0 ? 0 : next_random(&seed) >> (next_random(&seed) % 64);
            sum += (double)values[i];
            present += values[i] > 0;
        }
        scale = round % 2 ? next_random(&seed) >> (seed % 60) : (uint64_t)(sum < 1.8e19 ? sum : 1.8e19);
        oc_bar_edges(values, 6, scale ? scale : 1, units, edges);
        for (int i = 0; i < 6; i++) {
            assert_true(edges[i] >= before && edges[i] <= units);
            if (values[i] == 0) assert_int_equal(edges[i], before);
            if (values[i] > 0 && units >= present) assert_true(edges[i] > before);
            before = edges[i];
        }
        if (units < present || sum > (double)scale) continue;
        double exact = sum / (double)(scale ? scale : 1) * units;
        assert_true((double)edges[5] >= exact - 0.51);
        assert_true((double)edges[5] <= exact + 0.51 || edges[5] <= present);
    }
}

struct fixture {
    struct oc_theme theme;
    struct oc_canvas canvas;
};

static void open_canvas(struct fixture *f, int width, bool colour, bool letters, bool ascii)
{
    memset(&f->canvas, 0, sizeof f->canvas);
    f->theme = oc_fake_theme();
    f->canvas.theme = &f->theme;
    f->canvas.colour = colour, f->canvas.letters = letters, f->canvas.ascii = ascii;
    assert_true(oc_canvas_resize(&f->canvas, width, 1));
}

static void assert_row(struct fixture *f, const char *expected)
{
    char *text = oc_fake_text(&f->canvas);
    text[strcspn(text, "\n")] = '\0';
    assert_string_equal(text, expected);
    free(text);
    oc_canvas_free(&f->canvas);
}

static void letters_fill_the_bar_without_colour(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t classes[6] = {4, 0, 4, 0, 2, 0};
    open_canvas(&f, 12, false, true, true);
    oc_bar_draw(&f.canvas, 0, 0, 12, &(struct oc_bar){.classes = classes, .scale = 12});
    assert_row(&f, "WWWWGGGGAA  ");
}

static void past_capacity_the_letter_stays_and_marks_stand_between(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t classes[6] = {4, 0, 0, 8, 0, 0};
    open_canvas(&f, 12, false, true, true);
    oc_bar_draw(&f.canvas, 0, 0, 12, &(struct oc_bar){.classes = classes, .scale = 12, .capacity = 6});
    assert_int_equal(oc_canvas_at(&f.canvas, 7, 0)->style.attr, OC_ATTR_REVERSE);
    assert_int_equal(oc_canvas_at(&f.canvas, 5, 0)->style.attr, 0);
    assert_row(&f, "WWWWOO|!O!O!");
}

static void only_a_boundary_is_a_block(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t classes[6] = {12, 0, 12, 0, 0, 0}; /* of 32 eighths: 1.5 cells each */
    open_canvas(&f, 4, true, false, false);
    oc_bar_draw(&f.canvas, 0, 0, 4, &(struct oc_bar){.classes = classes, .scale = 32});
    assert_int_equal(oc_canvas_at(&f.canvas, 0, 0)->code, ' ');
    assert_int_equal(oc_canvas_at(&f.canvas, 0, 0)->style.bg, f.theme.classes[OC_WEIGHTS].colour);
    assert_int_equal(oc_canvas_at(&f.canvas, 1, 0)->code, 0x258c); /* left half */
    assert_int_equal(oc_canvas_at(&f.canvas, 1, 0)->style.fg, f.theme.classes[OC_WEIGHTS].colour);
    assert_int_equal(oc_canvas_at(&f.canvas, 1, 0)->style.bg, f.theme.classes[OC_GRADIENTS].colour);
    assert_int_equal(oc_canvas_at(&f.canvas, 2, 0)->code, ' ');
    assert_int_equal(oc_canvas_at(&f.canvas, 3, 0)->style.bg, 0);
    oc_canvas_free(&f.canvas);
}

static void long_segments_say_their_letter_and_amount(void **state)
{
    (void)state;
    struct fixture f;
    const uint64_t classes[6] = {(uint64_t)3 << 30, 0, (uint64_t)1 << 30, 0, 0, 0};
    open_canvas(&f, 16, true, false, false);
    oc_bar_draw(&f.canvas, 0, 0, 16, &(struct oc_bar){.classes = classes, .scale = (uint64_t)4 << 30});
    assert_row(&f, "   W 3.00    G  ");
}

static void a_bar_of_any_width_stays_inside(void **state)
{
    (void)state;
    uint64_t seed = 2463534242u;
    for (int round = 0; round < 3000; round++) {
        struct fixture f;
        uint64_t classes[6];
        for (int i = 0; i < 6; i++) classes[i] = next_random(&seed) >> (next_random(&seed) % 64);
        int width = (int)(next_random(&seed) % 30);
        open_canvas(&f, 40, round % 2, round % 3 == 0, round % 5 == 0);
        const struct oc_bar bar = {classes, next_random(&seed) | 1, next_random(&seed) >> (seed % 64), OC_UNIT_GIB,
                                   round % 7 == 0};
        oc_bar_draw(&f.canvas, 5, 0, width, &bar);
        for (int x = 0; x < 40; x++)
            if (x < 5 || x >= 5 + width) assert_int_equal(oc_canvas_at(&f.canvas, x, 0)->code, ' ');
        oc_canvas_free(&f.canvas);
    }
}

static void the_axis_has_the_capacity_when_it_is_near(void **state)
{
    (void)state;
    assert_true(oc_axis_scale(50, 80) >= 80);
    assert_true(oc_axis_scale(10, (uint64_t)80 << 30) < (uint64_t)80 << 30);
    assert_true(oc_axis_scale(100, 80) >= 100);
    assert_int_equal(oc_axis_scale(0, 0), 1);
    const uint64_t gib = 1u << 30;
    assert_true(oc_axis_scale(13 * gib, 0) == oc_axis_scale(14 * gib, 0)); /* a small change leaves it where it is */
    uint64_t kept = 0, first = oc_axis_keep(&kept, 14 * gib, 0);
    assert_true(oc_axis_keep(&kept, 9 * gib, 0) == first && oc_axis_keep(&kept, first / 51 * 50, 0) == first);
    assert_true(oc_axis_keep(&kept, 5 * gib, 0) < first); /* less than half: it shrinks */
    assert_true(oc_axis_keep(&kept, 40 * gib, 0) > first);
    assert_true(oc_axis_keep(&kept, 40 * gib, 80 * gib) > 80 * gib); /* the capacity has come near */
    for (uint64_t largest = 1; largest < UINT64_MAX / 4; largest += largest / 3 + 1) {
        uint64_t scale = oc_axis_scale(largest, 0);
        assert_true(scale >= largest && scale / 2 <= largest + (1u << 20)); /* long enough, and not half empty */
    }
    assert_true(oc_axis_scale(UINT64_MAX, 1) == UINT64_MAX);
}

static void axis_steps_are_round_and_few(void **state)
{
    (void)state;
    uint64_t gib = 1u << 30;
    assert_true(oc_axis_step(16 * gib, OC_UNIT_GIB, 40) == 5 * gib);
    assert_true(oc_axis_step(100 * gib, OC_UNIT_GIB, 80) == 20 * gib);
    for (int width = 1; width < 200; width++)
        for (uint64_t scale = 1; scale < UINT64_MAX / 3; scale *= 3) {
            uint64_t step = oc_axis_step(scale, oc_axis_unit(scale), width);
            assert_true(step > 0 && scale / step <= (uint64_t)(width / 9 > 0 ? width / 9 : 1));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_round_the_sum_and_not_the_parts),
        cmocka_unit_test(edges_of_nothing_are_zero),
        cmocka_unit_test(edges_hold_their_promises),
        cmocka_unit_test(letters_fill_the_bar_without_colour),
        cmocka_unit_test(past_capacity_the_letter_stays_and_marks_stand_between),
        cmocka_unit_test(only_a_boundary_is_a_block),
        cmocka_unit_test(long_segments_say_their_letter_and_amount),
        cmocka_unit_test(a_bar_of_any_width_stays_inside),
        cmocka_unit_test(the_axis_has_the_capacity_when_it_is_near),
        cmocka_unit_test(axis_steps_are_round_and_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
