/* Geometry: at every size everything is inside and nothing overlaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <string.h>

#include <cmocka.h>

#include "tui/screen/layout.h"

static void all_rects(const struct oc_layout *layout, struct oc_rect rects[8])
{
    const struct oc_rect all[8] = {layout->header, layout->panel, layout->divider, layout->view,
                                   layout->rule,   layout->help,  layout->status,  layout->hint};
    memcpy(rects, all, sizeof all);
}

static bool overlap(struct oc_rect a, struct oc_rect b)
{
    return a.w > 0 && a.h > 0 && b.w > 0 && b.h > 0 && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h &&
           b.y < a.y + a.h;
}

static void everything_is_inside_and_apart(void **state)
{
    (void)state;
    for (int width = -2; width <= 310; width++) {
        for (int height = -2; height <= 90; height++) {
            struct oc_layout layout;
            struct oc_rect rects[8];
            oc_layout_make(width, height, (width + height) % 2, &layout);
            all_rects(&layout, rects);
            for (int i = 0; i < 8; i++) {
                assert_true(rects[i].w >= 0 && rects[i].h >= 0);
                if (rects[i].w == 0 || rects[i].h == 0) continue;
                assert_true(rects[i].x >= 0 && rects[i].y >= 0);
                assert_true(rects[i].x + rects[i].w <= width && rects[i].y + rects[i].h <= height);
                for (int j = 0; j < i; j++) assert_false(overlap(rects[i], rects[j]));
            }
        }
    }
}

/* Where there is room for the whole, no row is lost between the parts. */
static void every_cell_belongs_to_a_part(void **state)
{
    (void)state;
    for (int width = OC_MIN_WIDTH; width <= 300; width += 7) {
        for (int height = OC_MIN_HEIGHT; height <= 80; height++) {
            struct oc_layout layout;
            struct oc_rect rects[8];
            int cells = 0;
            oc_layout_make(width, height, false, &layout);
            all_rects(&layout, rects);
            for (int i = 0; i < 8; i++) cells += rects[i].w * rects[i].h;
            assert_int_equal(cells, width * height);
        }
    }
}

static void known_sizes(void **state)
{
    (void)state;
    struct oc_layout layout;
    oc_layout_make(80, 24, false, &layout);
    assert_int_equal(layout.kind, OC_LAYOUT_SPLIT);
    assert_int_equal(layout.panel.w, 29);
    assert_int_equal(layout.view.w, 50);
    assert_int_equal(layout.view.h, 18);
    oc_layout_make(160, 48, false, &layout);
    assert_int_equal(layout.panel.w, 46);
    assert_int_equal(layout.view.h, 42);
    oc_layout_make(60, 20, true, &layout);
    assert_int_equal(layout.kind, OC_LAYOUT_TABS);
    assert_int_equal(layout.view.w, 0);
    assert_int_equal(layout.panel.w, 60);
    oc_layout_make(60, 20, false, &layout);
    assert_int_equal(layout.panel.w, 0);
    oc_layout_make(39, 24, false, &layout);
    assert_int_equal(layout.kind, OC_LAYOUT_TINY);
}

static void the_stack_serves_lower_ranks_first(void **state)
{
    (void)state;
    const struct oc_block blocks[3] = {{4, 6, 1}, {8, 8, 2}, {2, 3, 0}};
    int heights[3];
    oc_layout_stack(17, blocks, 3, heights);
    assert_int_equal(heights[0], 6);
    assert_int_equal(heights[1], 8);
    assert_int_equal(heights[2], 3);
    oc_layout_stack(13, blocks, 3, heights); /* no room for the table's eight: the others get what they would like */
    assert_int_equal(heights[1], 0);
    assert_int_equal(heights[0], 6);
    assert_int_equal(heights[2], 3);
    oc_layout_stack(14, blocks, 3, heights);
    assert_int_equal(heights[0], 4);
    assert_int_equal(heights[1], 8);
    assert_int_equal(heights[2], 2);
}

static void the_stack_never_gives_more_than_there_is(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 100000; round++) {
        struct oc_block blocks[6];
        int heights[6], rows, sum = 0;
        for (int i = 0; i < 6; i++) {
            seed = seed * 1664525u + 1013904223u;
            blocks[i].least = (int)(seed >> 28);
            blocks[i].most = blocks[i].least + (int)(seed >> 24 & 7);
            blocks[i].rank = (int)(seed >> 20 & 3);
        }
        rows = (int)(seed >> 10 & 63);
        oc_layout_stack(rows, blocks, 6, heights);
        for (int i = 0; i < 6; i++) {
            assert_true(heights[i] == 0 || (heights[i] >= blocks[i].least && heights[i] <= blocks[i].most));
            sum += heights[i];
        }
        assert_true(sum <= rows);
    }
}

/* The focus is in sight, no line stays empty that need not, and nothing moves that is right already. */
static void a_list_keeps_its_focus_in_sight(void **state)
{
    (void)state;
    for (int n = 1; n < 9; n++)
        for (int rows = 1; rows < 11; rows++)
            for (int focus = 0; focus < n; focus++)
                for (int top = -2; top < 12; top++) {
                    const int last = n > rows ? n - rows : 0, now = oc_layout_top(top, focus, n, rows);
                    assert_true(now >= 0 && now <= last);
                    assert_true(focus >= now && focus < now + rows);
                    if (top >= 0 && top <= last && focus >= top && focus < top + rows) assert_int_equal(now, top);
                    if (now != top && top >= 0 && top <= last)
                        assert_true(focus == now || focus == now + rows - 1); /* no further than it must */
                }
}

static void a_focus_stops_at_the_ends(void **state)
{
    (void)state;
    for (int n = 1; n < 9; n++)
        for (int focus = 0; focus < n; focus++)
            for (int by = -20; by <= 20; by++) {
                const int there = focus + by;
                assert_int_equal(oc_layout_move(focus, by, n), there < 0 ? 0 : there >= n ? n - 1 : there);
            }
    assert_int_equal(oc_layout_move(0, 3, 0), 0);
    assert_int_equal(oc_layout_move(3, INT_MAX, 7), 6);
    assert_int_equal(oc_layout_move(3, -INT_MAX, 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_inside_and_apart),
        cmocka_unit_test(every_cell_belongs_to_a_part),
        cmocka_unit_test(known_sizes),
        cmocka_unit_test(the_stack_serves_lower_ranks_first),
        cmocka_unit_test(the_stack_never_gives_more_than_there_is),
        cmocka_unit_test(a_list_keeps_its_focus_in_sight),
        cmocka_unit_test(a_focus_stops_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
