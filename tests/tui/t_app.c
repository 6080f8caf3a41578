/* What keys do to the state: scripts of keys against a model of simple arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"
#include "tui/views/views.h"

static int open_app(void **state)
{
    const struct oc_input input = oc_fake_input();
    return oc_fake_open(state, &oc_fake_model, &input, 80, 24);
}

static void keys(struct oc_fake_app *f, const char *text)
{
    for (; *text; text++) oc_app_key(&f->app, *text == '\n' ? OC_KEY_ENTER : *text == '\033' ? OC_KEY_ESCAPE : *text);
}

static void focus(struct oc_fake_app *f, enum oc_option_id id)
{
    oc_panel_show(&f->app.panel, id);
}

static int64_t value(const struct oc_fake_app *f, enum oc_option_id id)
{
    return oc_option_get(&f->app.answer->plan.c, id);
}

static uint64_t peak(const struct oc_fake_app *f)
{
    return f->app.answer->ranks[0].peak.allocated;
}

static void changing_precision_changes_everything_at_once(void **state)
{
    struct oc_fake_app *f = *state;
    uint64_t before = peak(f);
    assert_int_equal(oc_app_option(&f->app), OC_OPT_precision);
    keys(f, "l");
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_BF16);
    assert_true(peak(f) < before);
    assert_int_equal(oc_app_case(&f->app)->origin[OC_OPT_precision].from, OC_FROM_EDITED);
    oc_fake_assert_drawn(f, "precision fp16 -> bf16: peak -1.50 GiB", true);
    oc_fake_assert_drawn(f, "bf16     *", true);
    keys(f, "u");
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_FP16);
    assert_true(peak(f) == before);
    assert_int_equal(oc_app_case(&f->app)->origin[OC_OPT_precision].from, OC_FROM_FILE);
    oc_app_key(&f->app, OC_KEY_CTRL('R'));
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_BF16);
    keys(f, "uu");
    oc_fake_assert_drawn(f, "nothing to take back", true);
}

static void next_value_skips_what_does_not_resolve(void **state)
{
    struct oc_fake_app *f = *state;
    focus(f, OC_OPT_parallel_tp);
    keys(f, "lll"); /* 16, 32; 64 does not divide 32 heads */
    assert_int_equal(value(f, OC_OPT_parallel_tp), 32);
    assert_false(f->app.stale);
    oc_fake_assert_drawn(f, "parallel.tp = 64 does not divide model.heads = 32", true);
    keys(f, "H");
    assert_int_equal(value(f, OC_OPT_parallel_tp), 16);
    focus(f, OC_OPT_parallel_cp); /* world follows, but is not made larger by cp here */
    keys(f, "h");
    oc_fake_assert_drawn(f, "parallel.cp has no further value", true);
}

static void choices_have_ends(void **state)
{
    struct oc_fake_app *f = *state;
    const struct oc_choice *last = oc_option(OC_OPT_precision)->choices;
    while (last[1].name) last++;
    keys(f, "L");
    assert_int_equal(value(f, OC_OPT_precision), last->value);
    keys(f, "l");
    assert_int_equal(value(f, OC_OPT_precision), last->value);
    keys(f, "H");
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_FP32);
}

static void an_invalid_typed_value_keeps_the_last_bars(void **state)
{
    struct oc_fake_app *f = *state;
    uint64_t before = peak(f);
    focus(f, OC_OPT_parallel_tp);
    keys(f, "\n\b"); /* the prompt opens on "8" */
    oc_app_key(&f->app, OC_KEY_BACKSPACE);
    keys(f, "3\n");
    assert_true(f->app.stale);
    assert_true(peak(f) == before);
    oc_fake_assert_drawn(f, "STALE", true);
    oc_fake_assert_drawn(f, "parallel.tp = 3 does not divide", true);
    keys(f, "u");
    assert_false(f->app.stale);
    oc_fake_assert_drawn(f, "STALE", false);
    keys(f, "\n");
    oc_app_key(&f->app, OC_KEY_CTRL('U'));
    keys(f, "many\n"); /* not a value at all: the prompt stays open and says why */
    assert_int_equal(f->app.mode, OC_MODE_PROMPT);
    assert_true(f->app.message_bad);
    keys(f, "\033");
    assert_int_equal(f->app.mode, OC_MODE_NORMAL);
    assert_int_equal(value(f, OC_OPT_parallel_tp), 8);
}

static void an_empty_value_follows_again_and_reset_gives_back_the_first(void **state)
{
    struct oc_fake_app *f = *state;
    focus(f, OC_OPT_batch_seq);
    keys(f, "l");
    assert_int_equal(value(f, OC_OPT_batch_seq), 8192);
    keys(f, "\n");
    oc_app_key(&f->app, OC_KEY_CTRL('U'));
    keys(f, "\n");
    assert_false(oc_given(&oc_app_case(&f->app)->config, OC_OPT_batch_seq));
    assert_int_equal(value(f, OC_OPT_batch_seq), 2048);
    keys(f, "r");
    assert_int_equal(value(f, OC_OPT_batch_seq), 4096);
    assert_int_equal(oc_app_case(&f->app)->origin[OC_OPT_batch_seq].line, 15);
    oc_fake_assert_drawn(f, "4096", true);
}

static void space_switches_and_says_when_it_cannot(void **state)
{
    struct oc_fake_app *f = *state;
    focus(f, OC_OPT_parallel_sp);
    keys(f, " ");
    assert_int_equal(value(f, OC_OPT_parallel_sp), 0);
    focus(f, OC_OPT_parallel_tp);
    keys(f, " ");
    assert_int_equal(value(f, OC_OPT_parallel_tp), 8);
    oc_fake_assert_drawn(f, "parallel.tp is not a switch", true);
}

static void the_base_stays_while_the_rest_changes(void **state)
{
    struct oc_fake_app *f = *state;
    uint64_t base = peak(f);
    oc_fake_assert_drawn(f, "\xe2\x94\x82 base ", false);
    keys(f, "bl");
    assert_true(f->app.base->ranks[0].peak.allocated == base);
    oc_fake_assert_drawn(f, "\xe2\x94\x82 base ", true);
    oc_fake_assert_drawn(f, "-1.50", true);
    keys(f, "b");
    oc_fake_assert_drawn(f, "\xe2\x94\x82 base ", false);
}

static void sections_fold(void **state)
{
    struct oc_fake_app *f = *state;
    struct oc_panel_row rows[OC_PANEL_ROWS];
    int before = oc_panel_rows(&f->app.panel, rows);
    keys(f, "[");
    assert_int_equal(oc_app_option(&f->app), OC_OPTIONS);
    assert_true(oc_panel_rows(&f->app.panel, rows) < before);
    oc_fake_assert_drawn(f, "autocast", false);
    keys(f, "\n");
    oc_fake_assert_drawn(f, "autocast", true);
    keys(f, " ");
    oc_fake_assert_drawn(f, "autocast", false);
    keys(f, "]");
    oc_fake_assert_drawn(f, "autocast", true);
    keys(f, "h");
    oc_fake_assert_drawn(f, "autocast", false);
    keys(f, "l");
    oc_fake_assert_drawn(f, "autocast", true);
    for (int section = 0; oc_panel_section(section); section++) { /* every option is somewhere */
        f->app.panel.focus.section = section;
        oc_panel_fold(&f->app.panel, false);
    }
    int n = oc_panel_rows(&f->app.panel, rows), options = 0;
    for (int i = 0; i < n; i++) options += rows[i].option != OC_OPTIONS;
    assert_int_equal(options, OC_OPTIONS);
}

static void moving_stops_at_the_ends_and_stays_in_sight(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "g");
    assert_int_equal(oc_app_option(&f->app), OC_OPTIONS);
    keys(f, "k");
    assert_int_equal(f->app.panel.focus.section, 0);
    keys(f, "G");
    struct oc_panel_row last = f->app.panel.focus;
    keys(f, "j");
    assert_memory_equal(&last, &f->app.panel.focus, sizeof last);
    for (int i = 0; i < 120; i++) { /* up to the top and down again */
        keys(f, i < 60 ? "k" : "j");
        oc_app_draw(&f->app, &f->canvas);
        int marks = 0;
        for (int y = 0; y < 24; y++) marks += oc_canvas_at(&f->canvas, 0, y)->code == '>';
        assert_int_equal(marks, 1);
    }
}

static void help_and_why_open_scroll_and_close(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "?");
    oc_fake_assert_drawn(f, "one row down", true);
    oc_fake_assert_drawn(f, "Ctrl-L", false);
    keys(f, "GG");
    oc_fake_assert_drawn(f, "This terminal: colour and UTF-8.", true);
    oc_fake_assert_drawn(f, "one row down", false);
    keys(f, "kkg");
    oc_fake_assert_drawn(f, "one row down", true);
    keys(f, "q"); /* closes, and does not leave */
    assert_false(f->app.quit);
    assert_int_equal(f->app.mode, OC_MODE_NORMAL);
    keys(f, "w");
    oc_fake_assert_drawn(f, "micro-batch would give half of them back", true);
    oc_fake_assert_drawn(f, "$MICRO_BATCH_SIZE is not set in run.sh (examples/run.sh:38)", true);
    oc_fake_assert_drawn(f, "--empty-unused-memory-level", true);
    keys(f, "\033\033");
    assert_false(f->app.quit);
    keys(f, "q");
    assert_true(f->app.quit);
}

/* Every request of the help overlay is on it, under its group. */
static void help_lists_every_key(void **state)
{
    struct oc_fake_app *f = *state;
    oc_canvas_resize(&f->canvas, 160, 60);
    keys(f, "?");
    for (int i = 0; i < OC_REQUESTS; i++) {
        char line[160], text[64];
        bool view = i >= OC_REQ_VIEW_1 && i <= OC_REQ_VIEW_6; /* explained by what it shows */
        snprintf(line, sizeof line, "%-13s%s", oc_request_keys((enum oc_request)i, text, sizeof text),
                 view ? oc_views[i - OC_REQ_VIEW_1]->about : oc_request_row((enum oc_request)i)->help);
        oc_fake_assert_drawn(f, line, true);
    }
}

static void origins_are_said(void **state)
{
    struct oc_fake_app *f = *state;
    oc_fake_assert_drawn(f, "from run.sh:41", true);
    focus(f, OC_OPT_batch_micro);
    oc_fake_assert_drawn(f, "assumed: $MICRO_BATCH_SIZE is not set in run.sh", true);
    focus(f, OC_OPT_gpu);
    oc_fake_assert_drawn(f, "from --set", true);
    focus(f, OC_OPT_parallel_vpp);
    oc_fake_assert_drawn(f, "needs pp > 1", true);
}

static void a_case_that_does_not_resolve_does_not_open(void **state)
{
    struct oc_fake_app *f = *state;
    struct oc_input bad = f->input;
    struct oc_app app;
    struct oc_error error = {0};
    bad.c.config.parallel_tp = 3;
    assert_false(oc_app_start(&app, &oc_fake_model, &bad, &error));
    assert_non_null(strstr(error.message, "does not divide"));
}

static void any_size_can_be_drawn(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "bl");
    for (int height = 0; height <= 80; height += 3) {
        for (int width = 0; width <= 300; width += 13) {
            assert_true(oc_canvas_resize(&f->canvas, width, height));
            f->canvas.ascii = width % 2, f->canvas.colour = height % 2, f->canvas.letters = width % 3 == 0;
            oc_app_request(&f->app, width % 4 == 1 ? OC_REQ_EDIT : OC_REQ_CANCEL);
            if (width % 4 > 1) f->app.mode = (enum oc_mode)(width % 4);
            f->app.in_panel = width % 5 == 0;
            oc_app_draw(&f->app, &f->canvas);
        }
    }
}

/* Whatever is pressed, the state stays whole: a plan is on the screen, and undo leads back to the beginning. */
static void random_keys_do_no_harm(void **state)
{
    struct oc_fake_app *f = *state;
    static const int extra[] = {OC_KEY_UP,        OC_KEY_DOWN, OC_KEY_ENTER,  OC_KEY_ESCAPE,   OC_KEY_TAB,
                                OC_KEY_CTRL('R'), OC_KEY_HOME, OC_KEY_DELETE, OC_KEY_BACKSPACE};
    uint32_t seed = 11;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t draw = seed >> 16;
        oc_app_key(&f->app, draw % 4 == 0 ? extra[draw / 4 % 9] : (int)(32 + draw / 4 % 95));
        f->app.quit = false;
        if (i % 50 == 0) oc_app_draw(&f->app, &f->canvas);
        assert_true(f->app.answer->n_ranks >= 1);
    }
    oc_app_key(&f->app, OC_KEY_ESCAPE);
    if (f->app.mode != OC_MODE_NORMAL) oc_app_key(&f->app, OC_KEY_ESCAPE);
    for (int i = 0; i < OC_UNDO_MAX; i++) keys(f, "u");
    if (f->app.undo.n < OC_UNDO_MAX)
        assert_memory_equal(&oc_app_case(&f->app)->config, &f->input.c.config, sizeof f->input.c.config);
}

int main(void)
{
#define APP_TEST(test) cmocka_unit_test_setup_teardown(test, open_app, oc_fake_close)
    const struct CMUnitTest tests[] = {
        APP_TEST(changing_precision_changes_everything_at_once),
        APP_TEST(next_value_skips_what_does_not_resolve),
        APP_TEST(choices_have_ends),
        APP_TEST(an_invalid_typed_value_keeps_the_last_bars),
        APP_TEST(an_empty_value_follows_again_and_reset_gives_back_the_first),
        APP_TEST(space_switches_and_says_when_it_cannot),
        APP_TEST(the_base_stays_while_the_rest_changes),
        APP_TEST(sections_fold),
        APP_TEST(moving_stops_at_the_ends_and_stays_in_sight),
        APP_TEST(help_and_why_open_scroll_and_close),
        APP_TEST(help_lists_every_key),
        APP_TEST(origins_are_said),
        APP_TEST(a_case_that_does_not_resolve_does_not_open),
        APP_TEST(any_size_can_be_drawn),
        APP_TEST(random_keys_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
