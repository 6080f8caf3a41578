/* Lessons: each is done from end to end on the real model and the real probe, and every number in them can be computed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"
#include "tui/report/buffer.h"
#include "tui/views/lessons.h"
#include "tui/views/views.h"

static int open_app(void **state)
{
    static struct oc_input input;
    enum oc_option_id id;
    input = (struct oc_input){.c.config = oc_config_default()};
    if (!oc_config_assign(&input.c.config, "model.name=gpt2", &id, NULL)) return -1;
    return oc_fake_open(state, &oc_real_model, &input, 160, 48);
}

static void keys(struct oc_fake_app *f, const char *text)
{
    for (; *text; text++) oc_app_key(&f->app, *text == '\n' ? OC_KEY_ENTER : *text == '\033' ? OC_KEY_ESCAPE : *text);
}

/* Replaying fails where a step holds before it is done, does not hold after it, or a placeholder cannot be computed. */
static void every_lesson_can_be_done(void **state)
{
    struct oc_fake_app *f = *state;
    assert_true(oc_lesson_count() >= 5);
    bool probed = false;
    for (int i = 0; i < oc_lesson_count(); i++) {
        struct oc_buffer out = {0};
        struct oc_error error = {0};
        if (!oc_lessons_replay(&f->app, i, &out, &error)) fail_msg("%s", error.message);
        assert_null(strchr(out.data, '{'));
        assert_null(strchr(out.data, '?') && strstr(out.data, " ? ") ? out.data
                                                                     : NULL); /* a number that is not known */
        probed |= strstr(out.data, "percent of the gradients") != NULL;
        oc_buffer_free(&out);
        assert_true(
            oc_config_same(&oc_app_case(&f->app)->config, &f->input.c.config)); /* what was open is open again */
    }
    assert_true(probed);
}

static void numbers_are_computed_and_never_typed(void **state)
{
    (void)state;
    for (int i = 0; i < oc_lesson_count(); i++) {
        struct oc_lesson lesson;
        assert_true(oc_lesson_open(i, &lesson, NULL));
        for (int n = 0; n < lesson.n_steps; n++) {
            if (strstr(lesson.steps[n].text, " GiB") || strstr(lesson.steps[n].then, " GiB"))
                fail_msg("%s, step %d: bytes are written down", lesson.name, n + 1);
        }
        oc_lesson_close(&lesson);
    }
}

static void a_lesson_looks_at_the_state_and_not_at_the_keys(void **state)
{
    struct oc_fake_app *f = *state;
    keys(f, "6");
    oc_fake_assert_drawn(f, "1  Half precision, more memory", true);
    keys(f, "j");
    assert_int_equal(oc_lessons_state(&f->app)->focus, 1);
    keys(f, "k\n");
    assert_true(oc_lessons_state(&f->app)->active);
    oc_fake_assert_drawn(f, "step 1 of", true);
    oc_fake_assert_drawn(f, "To do: ", true);
    keys(f, "l"); /* the panel has its keys; what Megatron does not have is skipped */
    assert_true(oc_lessons_state(&f->app)->done);
    oc_fake_assert_drawn(f, "Done. n goes on.", true);
    keys(f, "h"); /* seen once is enough */
    assert_true(oc_lessons_state(&f->app)->done);
    keys(f, "n");
    oc_fake_assert_drawn(f, "step 2 of", true);
    keys(f, "n"); /* not done: it says how, and then does it */
    oc_fake_assert_drawn(f, "not yet", true);
    assert_false(oc_lessons_state(&f->app)->done);
    keys(f, "n");
    assert_true(oc_lessons_state(&f->app)->done);
    assert_int_equal(f->app.answer->plan.c.precision, OC_PREC_BF16);
    keys(f, "N");
    oc_fake_assert_drawn(f, "step 1 of", true);
    keys(f, ":set precision=fp16\n"); /* a command does as well as a key */
    assert_true(oc_lessons_state(&f->app)->done);
    keys(f, "\033");
    assert_false(oc_lessons_state(&f->app)->active);
    assert_true(oc_config_same(&oc_app_case(&f->app)->config, &f->input.c.config));
    keys(f, ":lesson which-rank\n");
    oc_fake_assert_drawn(f, "Which rank dies?: step 1", true);
}

static struct oc_scene scene(struct oc_fake_app *f)
{
    return (struct oc_scene){.model = &oc_real_model,
                             .config = &oc_app_case(&f->app)->config,
                             .now = f->app.answer,
                             .before = f->app.answer,
                             .start = f->app.answer,
                             .view = "Fit"};
}

static void assert_text(struct oc_fake_app *f, const char *text, const char *expected)
{
    struct oc_scene s = scene(f);
    struct oc_error error = {0};
    char out[256];
    if (!oc_scene_text(&s, text, out, sizeof out, &error)) fail_msg("%s: %s", text, error.message);
    assert_string_equal(out, expected);
}

static void expressions_are_what_they_say(void **state)
{
    struct oc_fake_app *f = *state;
    assert_text(f, "{model.layers} layers of {model.hidden}", "12 layers of 768");
    assert_text(f, "{precision}", "bf16");
    assert_text(f, "{params.total}", "124,439,808");
    assert_text(f, "{2 + 3 * 4}", "20"); /* from left to right */
    assert_text(f, "{7 / 2}", "3.5");
    assert_text(f, "{1 - 3}", "-2");
    assert_text(f, "{abs 1 - 3}", "2");
    assert_text(f, "{2GiB}", "2.00 GiB");
    assert_text(f, "{2GiB - 3GiB}", "-1.00 GiB");
    assert_text(f, "{W / params}", "2");
    assert_text(f, "{W@precision=fp32 / params}", "4");
    assert_text(f, "{W - before.W}", "+0.00 GiB");
    assert_text(f, "{probe.lost}", "?");
    assert_text(f, "{view} {base}", "Fit 0");
}

static void conditions_compare(void **state)
{
    struct oc_fake_app *f = *state;
    static const struct {
        const char *condition;
        bool holds;
    } cases[] = {
        {"precision = bf16", true},    {"precision != bf16", false}, {"model.layers = 12", true},
        {"model.layers > 12", false},  {"model.layers >= 12", true}, {"model.layers < 13", true},
        {"model.layers <= 11", false}, {"peak > 1", true},           {"peak < peak@precision=fp32", true},
        {"W + G > peak", false},       {"view = Fit", true},         {"probe.lost > 0", false},
        {"stages = 1", true},          {"stage0 = last", true},      {"peak@batch.micro=2;batch.seq=64 > 0", true}};
    struct oc_scene s = scene(f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct oc_error error = {0};
        bool holds = oc_scene_holds(&s, cases[i].condition, &error);
        if (error.code != OC_OK || holds != cases[i].holds) fail_msg("%s: %s", cases[i].condition, error.message);
    }
    static const char *const wrong[] = {"",
                                        "peak",
                                        "nosuch = 1",
                                        "peak = ",
                                        "precision > bf16",
                                        "1 = 1 2",
                                        "1 + bf16x = 2",
                                        "precision + 1 = 2",
                                        "1 = precision",
                                        "peak@nosuch=1 > 0",
                                        "peak@model.layers=zwei > 0",
                                        "probe.nosuch > 0",
                                        "stage7 > 0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct oc_error error = {0};
        assert_false(oc_scene_holds(&s, wrong[i], &error));
        if (error.code == OC_OK) fail_msg("\"%s\" is no error", wrong[i]);
    }
    char out[64];
    struct oc_error error = {0};
    assert_false(oc_scene_text(&s, "{peak", out, sizeof out, &error));
    assert_false(oc_scene_text(&s, "{peak)}", out, sizeof out, &error));
    assert_false(oc_scene_text(&s, "a text that is longer than there is room for: sixty-four bytes, that is", out,
                               sizeof out, &error));
}

static void wrong_lessons_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"lesson\":2,\"title\":\"t\",\"about\":\"a\",\"start\":\"s\",\"steps\":[{\"text\":\"x\"}]}",
        "{\"lesson\":1,\"title\":\"t\",\"about\":\"a\",\"start\":\"s\",\"steps\":[]}",
        "{\"lesson\":1,\"title\":\"t\",\"about\":\"a\",\"start\":\"s\",\"steps\":[{\"then\":\"x\"}]}",
        "{\"lesson\":1,\"title\":\"t\",\"about\":\"a\",\"start\":\"s\",\"steps\":[{\"text\":\"x\",\"color\":1}]}",
        "{\"lesson\":1,\"title\":\"t\",\"about\":\"a\",\"start\":\"s\",\"steps\":[{\"text\":\"x\",\"expect\":[\"a = "
        "1\"]}]}",
        "{\"lesson\":1,\"title\":\"t\",\"about\":\"a\",\"start\":\"s\",\"steps\":[{\"text\":\"x\",\"do\":\"a\","
        "\"hint\":"
        "\"h\",\"expect\":[1]}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct oc_lesson lesson;
        struct oc_error error = {0};
        assert_false(oc_lesson_parse(&lesson, "mine", wrong[i], strlen(wrong[i]), &error));
        assert_int_equal(error.code, OC_E_PARSE);
        assert_null(lesson.root);
    }
    assert_int_equal(oc_lesson_find("nosuch"), -1);
    assert_int_equal(oc_lesson_find("half-precision"), 0);
}

int main(void)
{
#define APP_TEST(test) cmocka_unit_test_setup_teardown(test, open_app, oc_fake_close)
    const struct CMUnitTest tests[] = {
        APP_TEST(every_lesson_can_be_done),
        APP_TEST(a_lesson_looks_at_the_state_and_not_at_the_keys),
        APP_TEST(expressions_are_what_they_say),
        APP_TEST(conditions_compare),
        cmocka_unit_test(numbers_are_computed_and_never_typed),
        cmocka_unit_test(wrong_lessons_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
