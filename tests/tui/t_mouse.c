/* Clicks and the wheel mean what was drawn under the pointer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"
#include "help_screen.h"
#include "tui/screen/mouse.h"
#include "tui/views/compare.h"
#include "tui/views/fixes.h"
#include "tui/views/layers.h"
#include "tui/views/lessons.h"

static struct help_screen *open_screen(int width, int height)
{
    return HELP_SCREEN(width, height, "framework=megatron", "model.layers=8", "model.hidden=512", "model.heads=8",
                       "model.vocab=1024", "batch.seq=512", "parallel.pp=4", "parallel.world=4", "batch.global=8",
                       "gpu=t4");
}

static void mouse(struct help_screen *screen, enum oc_mouse_kind kind, int x, int y)
{
    oc_app_mouse(&screen->app, &screen->canvas, &(struct oc_mouse){kind, x, y});
    oc_app_draw(&screen->app, &screen->canvas);
}

static void click(struct help_screen *screen, int x, int y)
{
    mouse(screen, OC_MOUSE_CLICK, x, y);
}

/* The middle of the first target of a kind and an index. */
static void click_target(struct help_screen *screen, enum oc_target_kind kind, int index)
{
    for (int i = 0; i < screen->canvas.n_targets; i++) {
        const struct oc_target *target = &screen->canvas.targets[i];
        if (target->kind != kind || target->index != index) continue;
        click(screen, target->rect.x + target->rect.w / 2, target->rect.y);
        return;
    }
    fail_msg("nothing of kind %d has the number %d", (int)kind, index);
}

static void names_show_views(void **state)
{
    (void)state;
    struct help_screen *screen = open_screen(160, 48);
    for (int view = oc_n_views - 1; view >= 0; view--) {
        click_target(screen, OC_TARGET_VIEW, view);
        assert_int_equal(screen->app.view, view);
    }
    help_keys(screen, "?");
    click_target(screen, OC_TARGET_VIEW, 3); /* out of the help, too */
    assert_int_equal(screen->app.mode, OC_MODE_NORMAL);
    assert_int_equal(screen->app.view, 3);
    help_screen_free(screen);
}

/* The row of the panel that an option stands in. */
static int row_of(const struct oc_app *app, enum oc_option_id option)
{
    struct oc_panel_row rows[OC_PANEL_ROWS];
    int n = oc_panel_rows(&app->panel, rows), i = 0;
    while (i < n && rows[i].option != option) i++;
    assert_true(i < n);
    return i;
}

static void options_are_chosen_and_changed(void **state)
{
    (void)state;
    struct help_screen *screen = open_screen(160, 48);
    struct oc_app *app = &screen->app;
    oc_app_view(app, 3); /* the view has the keys until the panel is clicked */
    click_target(screen, OC_TARGET_OPTION, row_of(app, OC_OPT_precision));
    assert_int_equal(oc_app_option(app), OC_OPT_precision);
    assert_true(oc_app_in_panel(app));
    assert_int_equal(app->mode, OC_MODE_NORMAL);
    click_target(screen, OC_TARGET_OPTION, row_of(app, OC_OPT_precision));
    assert_int_equal(app->mode, OC_MODE_PROMPT);
    click_target(screen, OC_TARGET_OPTION, row_of(app, OC_OPT_optimizer)); /* not while something is asked */
    assert_int_equal(oc_app_option(app), OC_OPT_precision);
    help_keys(screen, "\033");
    click_target(screen, OC_TARGET_OPTION, row_of(app, OC_OPT_parallel_overlap_grad_reduce));
    int64_t before = app->answer->plan.c.parallel_overlap_grad_reduce;
    click_target(screen, OC_TARGET_OPTION, row_of(app, OC_OPT_parallel_overlap_grad_reduce));
    assert_true(app->answer->plan.c.parallel_overlap_grad_reduce != before);
    struct oc_panel_row rows[OC_PANEL_ROWS];
    assert_int_equal(oc_panel_rows(&app->panel, rows) > 0 && rows[0].option == OC_OPTIONS, true);
    bool folded = app->panel.folded[rows[0].section];
    oc_panel_show(&app->panel, OC_OPT_precision);
    while (app->panel.top > 0) mouse(screen, OC_MOUSE_WHEEL_UP, 3, 5);
    click_target(screen, OC_TARGET_OPTION, 0); /* a section folds at once */
    assert_true(app->panel.folded[rows[0].section] != folded);
    help_screen_free(screen);
}

static void rows_of_lists_are_chosen_and_opened(void **state)
{
    (void)state;
    struct help_screen *screen = open_screen(160, 48);
    struct oc_app *app = &screen->app;
    struct oc_layers_state *layers = oc_view_state(app, &oc_view_layers);
    help_keys(screen, "b");
    help_keys(screen, "l4");
    click_target(screen, OC_TARGET_ROW, 5);
    assert_int_equal(layers->focus, 5);
    assert_false(layers->open);
    click_target(screen, OC_TARGET_ROW, 5);
    assert_true(layers->open);
    help_keys(screen, "5");
    click_target(screen, OC_TARGET_ROW, 1);
    assert_int_equal(((struct oc_compare_state *)oc_view_state(app, &oc_view_compare))->focus, 1);
    help_keys(screen, "3");
    click_target(screen, OC_TARGET_ROW, 2);
    assert_int_equal(app->stage, 2);
    click_target(screen, OC_TARGET_ROW, 2);
    assert_ptr_equal(oc_views[app->view], &oc_view_step);
    help_keys(screen, "6");
    click_target(screen, OC_TARGET_ROW, 1);
    struct oc_lessons_state *lessons = oc_view_state(app, &oc_view_lessons);
    assert_int_equal(lessons->focus, 1);
    assert_false(lessons->active);
    click_target(screen, OC_TARGET_ROW, 1);
    assert_true(lessons->active);
    help_screen_free(screen);
}

static void a_fix_is_chosen_and_applied(void **state)
{
    (void)state;
    struct help_screen *screen =
        HELP_SCREEN(120, 40, "framework=megatron", "model.name=llama-3-70b", "parallel.tp=8", "parallel.pp=4",
                    "parallel.world=64", "precision=bf16", "batch.seq=8192", "batch.accum=16");
    struct oc_app *app = &screen->app;
    help_keys(screen, "f");
    assert_int_equal(app->mode, OC_MODE_FIXES);
    assert_true(app->fixes->advices.n > 1);
    click_target(screen, OC_TARGET_ROW, 1);
    assert_int_equal(app->fixes->focus, 1);
    assert_int_equal(app->undo.at, 0);
    click_target(screen, OC_TARGET_ROW, 1);
    assert_int_equal(app->undo.at, 1);
    assert_true(app->answer->verdict.fits);
    help_screen_free(screen);
}

static void the_wheel_moves_what_is_under_it(void **state)
{
    (void)state;
    struct help_screen *screen = open_screen(160, 48);
    struct oc_app *app = &screen->app;
    struct oc_layers_state *layers = oc_view_state(app, &oc_view_layers);
    help_keys(screen, "4");
    const int before = row_of(app, oc_app_option(app));
    mouse(screen, OC_MOUSE_WHEEL_DOWN, 100, 10);
    assert_int_equal(layers->focus, 3);
    assert_int_equal(row_of(app, oc_app_option(app)), before);
    mouse(screen, OC_MOUSE_WHEEL_UP, 100, 10);
    assert_int_equal(layers->focus, 0);
    mouse(screen, OC_MOUSE_WHEEL_DOWN, 10, 10);
    assert_int_equal(row_of(app, oc_app_option(app)), before + 3);
    assert_true(oc_app_in_view(app)); /* the keys stay where they are */
    help_keys(screen, "?");
    mouse(screen, OC_MOUSE_WHEEL_DOWN, 10, 10);
    assert_int_equal(app->scroll, 3);
    help_drawn(screen, "the wheel", false);
    help_keys(screen, "G");
    help_drawn(screen, "the wheel", true); /* each row of the table is in the help */
    help_screen_free(screen);
}

/* Anything, anywhere, at any size, between keys: what is left is a state that draws. */
static void a_storm_of_clicks(void **state)
{
    (void)state;
    static const int sizes[][2] = {{160, 48}, {80, 24}, {60, 20}, {40, 10}, {20, 5}};
    static const char keys[] = "1234456bfwx?jkl\t\033\n";
    struct help_screen *screen = open_screen(160, 48);
    unsigned seed = 5;
    for (int i = 0; i < 1500; i++) {
        seed = seed * 1664525u + 1013904223u;
        const unsigned r = seed >> 8;
        if (i % 100 == 0) {
            const int *size = sizes[i / 100 % 5];
            assert_true(oc_canvas_resize(&screen->canvas, size[0], size[1]));
            oc_app_draw(&screen->app, &screen->canvas);
        }
        if (r % 4 == 0)
            help_keys(screen, (char[]){keys[r / 4 % (sizeof keys - 1)], '\0'});
        else
            mouse(screen, (enum oc_mouse_kind)(r / 8 % 3), (int)(r / 32 % 170) - 4, (int)(r / 8192 % 52) - 2);
        for (int t = 0; t < screen->canvas.n_targets; t++) {
            const struct oc_rect *rect = &screen->canvas.targets[t].rect;
            assert_true(rect->x >= 0 && rect->y >= 0 && rect->w > 0 && rect->h > 0);
            assert_true(rect->y < screen->canvas.height && rect->x < screen->canvas.width);
        }
    }
    help_screen_free(screen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_show_views),
        cmocka_unit_test(options_are_chosen_and_changed),
        cmocka_unit_test(rows_of_lists_are_chosen_and_opened),
        cmocka_unit_test(a_fix_is_chosen_and_applied),
        cmocka_unit_test(the_wheel_moves_what_is_under_it),
        cmocka_unit_test(a_storm_of_clicks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
