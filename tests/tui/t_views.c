/* The views beside the fit view: their keys, what they say, and that none draws outside its rectangle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"
#include "help_screen.h"
#include "tui/views/step.h"
#include "tui/views/views.h"

static int open_app(void **state)
{
    const struct oc_input input = oc_fake_input();
    return oc_fake_open(state, &oc_fake_model, &input, 160, 48);
}

/* Draws after each key, as the program does: moves go by what was drawn. */
static void keys(struct oc_fake_app *f, const char *text)
{
    oc_app_draw(&f->app, &f->canvas);
    for (; *text; text++) {
        oc_app_key(&f->app, *text == '\n' ? OC_KEY_ENTER : *text == '\033' ? OC_KEY_ESCAPE : *text);
        oc_app_draw(&f->app, &f->canvas);
    }
}

static void set(struct oc_fake_app *f, const char *assignment)
{
    struct oc_config config = oc_app_case(&f->app)->config;
    enum oc_option_id id;
    assert_true(oc_config_assign(&config, assignment, &id, NULL));
    oc_app_take(&f->app, &config, assignment);
}

/* ---- the step ---- */

static const struct oc_sample *cursor(struct oc_fake_app *f)
{
    return oc_step_cursor(oc_view_state(&f->app, &oc_view_step));
}

static void the_cursor_starts_on_the_peak_and_walks(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "2");
    const struct oc_timeline *timeline = &((struct oc_step_state *)oc_view_state(&f->app, &oc_view_step))->timeline;
    const struct oc_sample *top = &timeline->samples[OC_STEADY][oc_timeline_peak(timeline, OC_STEADY)];
    assert_ptr_equal(cursor(f), top);
    oc_fake_assert_drawn(f, "steady iteration, forward of output layer, micro-batch 2", true);
    keys(f, "h");
    assert_true(cursor(f) < top);
    keys(f, "l");
    assert_ptr_equal(cursor(f), top);
    keys(f, "g");
    assert_int_equal(cursor(f)->place.iteration, OC_FIRST);
    assert_int_equal(cursor(f)->place.moment, OC_M_INIT);
    keys(f, "L");
    assert_int_equal(cursor(f)->place.moment, OC_M_FORWARD);
    keys(f, "L");
    assert_int_equal(cursor(f)->place.moment, OC_M_BACKWARD);
    keys(f, "H");
    assert_int_equal(cursor(f)->place.moment, OC_M_FORWARD);
    keys(f, "G");
    assert_int_equal(cursor(f)->place.moment, OC_M_IDLE);
    keys(f, "\n");
    assert_ptr_equal(cursor(f), top);
}

/* From the left end of the steady iteration lies the first one, also where only one of them is drawn. */
static void the_left_end_leads_to_the_first_iteration(void **state)
{
    struct oc_fake_app *f = *state;
    for (int width = 80; width <= 160; width += 80) {
        assert_true(oc_canvas_resize(&f->canvas, width, 24));
        keys(f, "2G");
        for (int i = 0; i < 300 && cursor(f)->place.iteration == OC_STEADY; i++) keys(f, "h");
        assert_int_equal(cursor(f)->place.iteration, OC_FIRST);
        for (int i = 0; i < 300 && cursor(f)->place.iteration == OC_FIRST; i++) keys(f, "l");
        assert_int_equal(cursor(f)->place.iteration, OC_STEADY);
    }
}

static void peaks_are_found_both_ways(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "2g");
    uint64_t before = cursor(f)->allocated;
    keys(f, "n");
    assert_true(cursor(f)->allocated > before);
    const struct oc_sample *first = cursor(f);
    keys(f, "n");
    assert_ptr_not_equal(cursor(f), first);
    keys(f, "N");
    assert_ptr_equal(cursor(f), first);
    for (int i = 0; i < 40; i++) keys(f, "n");
    oc_fake_assert_drawn(f, "no further peak to the right", true);
    for (int i = 0; i < 40; i++) keys(f, "N");
    oc_fake_assert_drawn(f, "no further peak to the left", true);
}

static void the_cursor_keeps_its_place_when_the_plan_changes(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "2");
    set(f, "precision=bf16");
    keys(f, "");
    oc_fake_assert_drawn(f, "forward of output layer, micro-batch 2", true); /* never moved: still on the peak */
    keys(f, "gLLlll");
    struct oc_place place = cursor(f)->place;
    set(f, "precision=fp32");
    keys(f, "");
    assert_int_equal(cursor(f)->place.moment, place.moment);
    assert_int_equal(cursor(f)->place.layer, place.layer);
    set(f, "model.layers=2"); /* that layer is gone: the nearest of the same moment */
    keys(f, "");
    assert_int_equal(cursor(f)->place.moment, place.moment);
}

static void zoom_leaves_out_what_is_always_there(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "2z");
    oc_fake_assert_drawn(f, "what changes", true);
    oc_fake_assert_drawn(f, "W 1.50", true); /* the row of the static part */
    keys(f, "z");
    oc_fake_assert_drawn(f, "what changes", false);
}

/* Lower blocks on a class's colour: where one class ends in the middle of a cell under another one; and on no colour:
 * the tops of columns. */
static void count_blocks(struct oc_fake_app *f, int *inside, int *tops)
{
    *inside = *tops = 0;
    for (int i = 0; i < f->canvas.width * f->canvas.height; i++) {
        const struct oc_cell *cell = &f->canvas.cells[i];
        if (cell->code < 0x2581 || cell->code > 0x2587) continue;
        *(cell->style.bg ? inside : tops) += 1;
    }
}

static void classes_meet_at_whole_cells_in_a_tall_chart(void **state)
{
    struct oc_fake_app *f = *state;
    int inside, tops;
    keys(f, "2");
    count_blocks(f, &inside, &tops);
    assert_int_equal(inside, 0);
    assert_true(tops > 20);
    assert_true(oc_canvas_resize(&f->canvas, 80, 24));
    oc_app_draw(&f->app, &f->canvas);
    count_blocks(f, &inside, &tops);
    assert_true(inside > 20 && tops > 5);
}

/* The last stage holds most before any is replayed, and the first one when all are. The second one peaks like the
 * first, but reserves less. */
static bool answer_unreplayed(const struct oc_config *config, struct oc_answer *answer, struct oc_ledger *ledgers,
                              struct oc_alloc *alloc, struct oc_error *error)
{
    if (!oc_real_model.answer(config, answer, ledgers, alloc, error)) return false;
    answer->ranks[1].peak = answer->ranks[0].peak;
    answer->ranks[answer->n_ranks - 1].peak.allocated = (uint64_t)1 << 40;
    oc_real_model.judge(&answer->plan, answer->ranks, answer->n_ranks, &answer->verdict);
    return true;
}

static bool reserve_most_in_the_first(const struct oc_plan *plan, const struct oc_ledger *ledger,
                                      struct oc_alloc *alloc, struct oc_rank *rank)
{
    (void)plan, (void)ledger, (void)alloc;
    rank->reserved = (uint64_t)(rank->stage ? 1 : 2) << 40;
    return true;
}

static void the_fullest_stage_stays_while_others_are_replayed(void **state)
{
    (void)state;
    struct oc_app_model model = oc_real_model;
    model.answer = answer_unreplayed;
    model.reserve = reserve_most_in_the_first;
    struct help_screen *screen = HELP_SCREEN(160, 48, "framework=megatron", "model.name=llama-3-8b", "parallel.world=4",
                                             "parallel.pp=4", "batch.global=8");
    struct oc_config config = oc_app_case(&screen->app)->config;
    screen->app.model = &model;
    for (int i = 0; i < 2; i++) {
        oc_option_put(&config, OC_OPT_batch_seq, 1024 << i);
        oc_set_given(&config, OC_OPT_batch_seq, true);
        oc_app_take(&screen->app, &config, "length");
        const struct oc_rank *ranks = screen->app.answer->ranks;
        assert_int_equal(screen->app.unsettled, 2);
        assert_int_equal(oc_app_stage(&screen->app), 0);
        assert_int_equal(ranks[1].reserved, ranks[0].reserved); /* for now */
        oc_app_settle_all(&screen->app);
        assert_int_equal(oc_app_stage(&screen->app), 0);
        assert_int_equal(ranks[1].reserved, ranks[0].reserved / 2);
    }
    help_screen_free(screen);
}

static void keys_of_the_panel_still_work(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "2\tl");
    assert_int_equal(oc_option_get(&f->app.answer->plan.c, OC_OPT_precision), OC_PREC_BF16);
    keys(f, "u");
    assert_int_equal(oc_option_get(&f->app.answer->plan.c, OC_OPT_precision), OC_PREC_FP16);
    keys(f, "\tl"); /* back in the view: the cursor moves, nothing else */
    assert_int_equal(oc_option_get(&f->app.answer->plan.c, OC_OPT_precision), OC_PREC_FP16);
}

/* ---- the pipeline ---- */

static void stages_are_listed_and_chosen(void **state)
{
    struct oc_fake_app *f = *state;
    set(f, "parallel.pp=4");
    keys(f, "3");
    oc_fake_assert_drawn(f, "emb 0-7", true);
    oc_fake_assert_drawn(f, "24-31 head", true);
    oc_fake_assert_drawn(f, "* Stage 0 is the worst", true);
    oc_fake_assert_drawn(f, "In flight at most: 4 micro-batches.", true);
    keys(f, "jjj");
    assert_int_equal(f->app.stage, 3);
    oc_fake_assert_drawn(f, "In flight at most: 1 micro-batch.", true);
    keys(f, "j");
    assert_int_equal(f->app.stage, 3);
    keys(f, "\n"); /* its step */
    oc_fake_assert_drawn(f, "Allocated over a step of stage 3", true);
    keys(f, "k");
    oc_fake_assert_drawn(f, "Allocated over a step of stage 2", true);
    keys(f, "3\033");
    assert_int_equal(f->app.stage, -1);
    set(f, "parallel.pp=1");
    oc_fake_assert_drawn(f, "One stage holds the whole model", true);
}

static void a_long_pipeline_scrolls(void **state)
{
    struct oc_fake_app *f = *state;
    assert_true(oc_canvas_resize(&f->canvas, 80, 24));
    set(f, "parallel.pp=32");
    keys(f, "3G");
    oc_fake_assert_drawn(f, ">stage 31", true);
    oc_fake_assert_drawn(f, "of 32", true);
    keys(f, "g");
    oc_fake_assert_drawn(f, ">stage 0", true);
}

/* ---- finding options ---- */

static void options_are_found_by_any_name(void **state)
{
    struct oc_fake_app *f = *state;
    static const struct {
        const char *text, *key;
    } cases[] = {{"tp", "parallel.tp"},
                 {"--tensor-model-parallel-size", "parallel.tp"},
                 {"zero_optimization.stage", "parallel.zero"},
                 {"stage3_max_live", "zero.live_params"},
                 {"num_hidden_layers", "model.layers"},
                 {"gradient_accumulation_steps", "batch.accum"},
                 {"LORA_R", "lora.rank"},
                 {"per_device_train", "batch.micro"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        keys(f, "/");
        keys(f, cases[i].text);
        assert_string_equal(oc_option(oc_app_option(&f->app))->key, cases[i].key);
        keys(f, "\n");
        assert_int_equal(f->app.mode, OC_MODE_NORMAL);
    }
    keys(f, "/parallel");
    enum oc_option_id first = oc_app_option(&f->app);
    keys(f, "\nn");
    assert_int_not_equal(oc_app_option(&f->app), first);
    keys(f, "N");
    assert_int_equal(oc_app_option(&f->app), first);
    keys(f, "/nosuchoption");
    oc_fake_assert_drawn(f, "no option is called nosuchoption", true);
    assert_int_equal(oc_app_option(&f->app), first);
    keys(f, "\n"); /* nothing found: the prompt stays */
    assert_int_equal(f->app.mode, OC_MODE_PROMPT);
    keys(f, "\033");
    assert_int_equal(oc_app_option(&f->app), first);
}

/* ---- all views ---- */

/* Fills the canvas with a sign that no view draws, lets a view draw in a part of it, and looks at the rest. */
static void assert_stays_inside(struct oc_fake_app *f, int view, struct oc_rect rect)
{
    struct oc_canvas *canvas = &f->canvas;
    for (int i = 0; i < canvas->width * canvas->height; i++) canvas->cells[i] = (struct oc_cell){0x2603, {0, 0, 0}};
    oc_canvas_fill(canvas, rect, OC_ROLE_TEXT);
    oc_views[view]->draw(&f->app, f->app.view_states[view], canvas, rect);
    for (int y = 0; y < canvas->height; y++)
        for (int x = 0; x < canvas->width; x++) {
            bool inside = x >= rect.x && x < rect.x + rect.w && y >= rect.y && y < rect.y + rect.h;
            if (!inside && oc_canvas_at(canvas, x, y)->code != 0x2603)
                fail_msg("view %d of %dx%d draws at %d,%d", view + 1, rect.w, rect.h, x - rect.x, y - rect.y);
        }
}

static void no_view_draws_outside(void **state)
{
    struct oc_fake_app *f = *state;
    static const char *const stages[] = {"parallel.pp=1", "parallel.pp=2", "parallel.pp=16", "model.layers=64",
                                         "parallel.pp=64"};
    bool thorough = getenv("OOMCAST_LONG") != NULL;
    assert_true(oc_canvas_resize(&f->canvas, 310, 90));
    for (size_t s = 0; s < sizeof stages / sizeof stages[0]; s++) {
        set(f, stages[s]);
        oc_app_request(&f->app, OC_REQ_BASE);
        for (int view = 0; view < oc_n_views; view++)
            for (int height = 4; height <= 74; height += thorough ? 1 : 7)
                for (int width = 33; width <= 254; width += thorough ? 3 : 31) {
                    f->canvas.ascii = width % 2, f->canvas.colour = height % 2, f->canvas.letters = width % 3 == 0;
                    f->app.zoom = width % 4 == 0;
                    assert_stays_inside(f, view, (struct oc_rect){5, 4, width, height});
                }
    }
}

int main(void)
{
#define APP_TEST(test) cmocka_unit_test_setup_teardown(test, open_app, oc_fake_close)
    const struct CMUnitTest tests[] = {
        APP_TEST(the_cursor_starts_on_the_peak_and_walks),
        APP_TEST(the_left_end_leads_to_the_first_iteration),
        APP_TEST(peaks_are_found_both_ways),
        APP_TEST(the_cursor_keeps_its_place_when_the_plan_changes),
        APP_TEST(zoom_leaves_out_what_is_always_there),
        APP_TEST(classes_meet_at_whole_cells_in_a_tall_chart),
        cmocka_unit_test(the_fullest_stage_stays_while_others_are_replayed),
        APP_TEST(keys_of_the_panel_still_work),
        APP_TEST(stages_are_listed_and_chosen),
        APP_TEST(a_long_pipeline_scrolls),
        APP_TEST(options_are_found_by_any_name),
        APP_TEST(no_view_draws_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
