/* The compare view, and the list of fixes, on the real model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_screen.h"
#include "tui/views/fixes.h"

static void set(struct help_screen *screen, const char *assignment)
{
    struct oc_config config = oc_app_case(&screen->app)->config;
    enum oc_option_id id;
    assert_true(oc_config_assign(&config, assignment, &id, NULL));
    oc_app_take(&screen->app, &config, assignment);
}

#define RUN                                                                                                            \
    "framework=megatron", "model.name=llama-3-8b", "precision=fp16", "tp=8", "sp=true", "batch.seq=4096",              \
        "batch.accum=4", "optimizer=sgd", "recompute=full"

static const struct oc_verdict *verdict(struct help_screen *screen)
{
    return &screen->app.answer->verdict;
}

/* ---- compare ---- */

static void without_a_base_it_says_how(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(80, 24, RUN);
    help_keys(screen, "5");
    help_drawn(screen, "Nothing to compare with yet.", true);
    help_keys(screen, "jkGg\nnN");
    help_keys(screen, "b");
    help_drawn(screen, "0 options and 0 entries differ", true);
    help_drawn(screen, "Nothing differs.", true);
    help_screen_free(screen);
}

static void a_change_is_told(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(160, 48, RUN);
    help_keys(screen, "b");
    set(screen, "precision=fp32");
    help_keys(screen, "5");
    help_drawn(screen, "A against base B: peaks in backward and step", true);
    help_drawn(screen, "precision  fp32, B: fp16", true);
    help_drawn(screen, "With this one option as in B, A would peak +", true);
    help_drawn(screen, "-3.74", true); /* the master copy that only the base has */
    help_keys(screen, "jj");
    help_drawn(screen, "only in B: ", true);
    help_keys(screen, "x");
    help_drawn(screen, "precision  fp16, B: fp32", true);
    help_drawn(screen, "+3.74", true);
    help_screen_free(screen);
}

static void an_option_is_gone_to(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(160, 48, RUN);
    help_keys(screen, "b");
    set(screen, "kernels.loss=fused");
    help_keys(screen, "5g\n");
    assert_true(screen->app.in_panel);
    assert_int_equal(oc_app_option(&screen->app), OC_OPT_kernels_loss);
    help_screen_free(screen);
}

static void moments_are_compared(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(80, 24, RUN);
    help_keys(screen, "b");
    set(screen, "precision=bf16");
    help_keys(screen, "5n");
    help_drawn(screen, "the highest of forward", true);
    help_keys(screen, "N");
    help_drawn(screen, "peaks in ", true);
    help_keys(screen, "N");
    help_drawn(screen, "the highest of idle", true);
    help_screen_free(screen);
}

static void stages_are_compared(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(80, 24, "framework=megatron", "model.name=llama-3-8b", "pp=4", "tp=2");
    help_keys(screen, "b");
    set(screen, "batch.accum=8");
    help_keys(screen, "5");
    help_keys(screen, "3g5");
    help_drawn(screen, "stages 0 and 0", true);
    help_keys(screen, "]]");
    help_drawn(screen, "stages 2 and 2", true);
    set(screen, "pp=2");
    help_drawn(screen, "stages ", true);
    help_screen_free(screen);
}

/* Where no stage was chosen, each side shows its own worst. */
static void the_worst_of_each(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(80, 24, "framework=megatron", "model.name=llama-3-8b", "pp=2",
                                             "batch.accum=1", "batch.seq=8192", "batch.micro=4", "recompute=full");
    assert_int_equal(verdict(screen)->worst_stage, 1);
    help_keys(screen, "b");
    set(screen, "batch.micro=1");
    set(screen, "recompute=none");
    set(screen, "batch.accum=16");
    assert_int_equal(verdict(screen)->worst_stage, 0);
    help_keys(screen, "5");
    help_drawn(screen, "stages 0 and 1", true);
    help_screen_free(screen);
}

/* ---- fixes ---- */

static void a_fix_is_one_step(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(80, 24, RUN, "gpu=h100-80g", "batch.micro=512");
    assert_false(verdict(screen)->fits);
    help_keys(screen, "f");
    assert_int_equal(screen->app.mode, OC_MODE_FIXES);
    help_drawn(screen, "Single changes that make it fit", true);
    help_drawn(screen, "DOES NOT FIT", true);
    const int before = screen->app.undo.at;
    const struct oc_config second = screen->app.fixes->advices.list[1].config;
    help_keys(screen, "j\n");
    assert_memory_equal(&oc_app_case(&screen->app)->config, &second, sizeof second);
    assert_int_equal(screen->app.mode, OC_MODE_NORMAL);
    assert_int_equal(screen->app.undo.at, before + 1);
    assert_true(verdict(screen)->fits);
    help_keys(screen, "u");
    assert_false(verdict(screen)->fits);
    help_screen_free(screen);
}

static void closing_changes_nothing(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(80, 24, RUN, "gpu=h100-80g", "batch.micro=512");
    const uint64_t plan = screen->app.answer->plan.hash;
    help_keys(screen, "fjjGgk\033");
    assert_int_equal(screen->app.mode, OC_MODE_NORMAL);
    assert_int_equal(screen->app.answer->plan.hash, plan);
    assert_int_equal(screen->app.undo.at, 0);
    help_keys(screen, "fq"); /* nothing leaves the program from a list */
    assert_false(screen->app.quit);
    help_screen_free(screen);
}

static void where_it_fits_something_is_taken_back(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(160, 48, RUN, "gpu=h100-80g");
    help_keys(screen, "f");
    help_drawn(screen, "What could be taken back", true);
    help_drawn(screen, "recompute full -> none", true);
    help_screen_free(screen);
}

static void why_there_is_no_list(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(80, 24, RUN, "gpu=none");
    help_keys(screen, "f");
    assert_int_equal(screen->app.mode, OC_MODE_NORMAL);
    help_drawn(screen, "no GPU is named", true);
    help_screen_free(screen);
    screen = HELP_SCREEN(80, 24, "framework=pytorch", "model.name=llama-3-70b", "gpu=t4");
    help_keys(screen, "f");
    help_drawn(screen, "The nearest to it:", true);
    help_keys(screen, "\n"); /* there is nothing to apply */
    assert_int_equal(screen->app.undo.at, 0);
    help_screen_free(screen);
}

/* Every row of a long list comes into sight, at any height. */
static void the_list_scrolls(void **state)
{
    (void)state;
    struct help_screen *screen = HELP_SCREEN(100, 48, "framework=megatron", "model.name=llama-3-8b", "tp=2",
                                             "batch.micro=4", "batch.seq=8192", "gpu=h100-80g");
    help_keys(screen, "f");
    const struct oc_advices *advices = &screen->app.fixes->advices;
    assert_true(advices->n >= 8);
    for (int height = 12; height < 40; height += 3) {
        assert_true(oc_canvas_resize(&screen->canvas, 100, height));
        for (help_keys(screen, "g"); screen->app.fixes->focus < advices->n - 1; help_keys(screen, "j"))
            help_drawn(screen, ">", true);
        help_drawn(screen, ">", true);
    }
    help_screen_free(screen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_base_it_says_how),
        cmocka_unit_test(a_change_is_told),
        cmocka_unit_test(an_option_is_gone_to),
        cmocka_unit_test(moments_are_compared),
        cmocka_unit_test(stages_are_compared),
        cmocka_unit_test(the_worst_of_each),
        cmocka_unit_test(a_fix_is_one_step),
        cmocka_unit_test(closing_changes_nothing),
        cmocka_unit_test(where_it_fits_something_is_taken_back),
        cmocka_unit_test(why_there_is_no_list),
        cmocka_unit_test(the_list_scrolls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
