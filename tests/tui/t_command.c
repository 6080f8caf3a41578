/* Commands after ':': what they do, what they ask before, how they are completed. Files are those of a host that only
 * remembers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"
#include "oomcast/import.h"
#include "tui/screen/command.h"
#include "tui/views/views.h"

struct fixture {
    struct oc_input input;
    struct oc_app app;
    struct oc_theme theme;
    struct oc_canvas canvas;
    struct oc_app_host host;
    char path[64], *text; /* the last file that was written */
    int writes;
    char shown[32]; /* the theme that was asked for */
};

static bool fake_open(void *user, const char *path, struct oc_input *input, struct oc_error *error)
{
    struct fixture *f = user;
    if (strcmp(path, "broken.sh") == 0) return oc_fail(error, OC_E_PARSE, "broken.sh is no launch script");
    *input = f->input;
    snprintf(input->files[0], sizeof input->files[0], "%s", path);
    if (strcmp(path, "odd.sh") == 0) input->c.config.parallel_tp = 3;
    if (strcmp(path, "bf16.sh") == 0) input->c.config.precision = OC_PREC_BF16;
    return true;
}

static bool fake_exists(void *user, const char *path)
{
    struct fixture *f = user;
    return strcmp(path, "there.json") == 0 || strcmp(path, f->path) == 0;
}

static bool fake_write(void *user, const char *path, const char *text, size_t size, struct oc_error *error)
{
    struct fixture *f = user;
    if (strcmp(path, "/full") == 0) return oc_fail(error, OC_E_IO, "/full cannot be written");
    snprintf(f->path, sizeof f->path, "%s", path);
    free(f->text);
    f->text = calloc(1, size + 1);
    memcpy(f->text, text, size);
    f->writes++;
    return true;
}

static int fake_files(void *user, const char *prefix, char (*names)[OC_HOST_NAME], int most)
{
    static const char *const all[] = {"run.sh", "runs/", "there.json"};
    int n = 0;
    (void)user;
    for (int i = 0; i < 3 && n < most; i++)
        if (strncmp(all[i], prefix, strlen(prefix)) == 0) snprintf(names[n++], OC_HOST_NAME, "%s", all[i]);
    return n;
}

static int fake_themes(void *user, char (*names)[OC_HOST_NAME], int most)
{
    (void)user, (void)most;
    snprintf(names[0], OC_HOST_NAME, "default");
    snprintf(names[1], OC_HOST_NAME, "light");
    return 2;
}

static bool fake_theme(void *user, const char *name, struct oc_error *error)
{
    struct fixture *f = user;
    if (strcmp(name, "nosuch") == 0) return oc_fail(error, OC_E_IO, "there is no theme nosuch");
    snprintf(f->shown, sizeof f->shown, "%s", name);
    return true;
}

static const struct oc_canvas *fake_canvas(void *user)
{
    struct fixture *f = user;
    oc_app_draw(&f->app, &f->canvas);
    return &f->canvas;
}

static int open_app(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct oc_error error;
    if (!f) return -1;
    f->input = oc_fake_input();
    f->theme = oc_fake_theme();
    f->canvas.theme = &f->theme;
    f->host =
        (struct oc_app_host){fake_open, fake_exists, fake_write, fake_files, fake_themes, fake_theme, fake_canvas, f};
    *state = f;
    bool good = oc_app_start(&f->app, &oc_fake_model, &f->input, &error) && oc_canvas_resize(&f->canvas, 120, 30);
    f->app.host = &f->host;
    return good ? 0 : -1;
}

static int close_app(void **state)
{
    struct fixture *f = *state;
    oc_app_end(&f->app);
    oc_canvas_free(&f->canvas);
    free(f->text);
    free(f);
    return 0;
}

static void keys(struct fixture *f, const char *text)
{
    for (; *text; text++)
        oc_app_key(&f->app, *text == '\n'     ? OC_KEY_ENTER
                            : *text == '\033' ? OC_KEY_ESCAPE
                            : *text == '\f'   ? OC_KEY_UP
                            : *text == '\v'   ? OC_KEY_DOWN
                                              : *text);
}

static void assert_drawn(struct fixture *f, const char *text)
{
    oc_app_draw(&f->app, &f->canvas);
    char *screen = oc_fake_text(&f->canvas);
    if (!strstr(screen, text)) fail_msg("\"%s\" is not on the screen:\n%s", text, screen);
    free(screen);
}

static int64_t value(const struct fixture *f, enum oc_option_id id)
{
    return oc_option_get(&f->app.answer->plan.c, id);
}

static void set_sets_all_at_once(void **state)
{
    struct fixture *f = *state;
    keys(f, ":set parallel.tp=4 parallel.pp=2 world=8\n");
    assert_int_equal(value(f, OC_OPT_parallel_tp), 4);
    assert_int_equal(value(f, OC_OPT_parallel_pp), 2);
    assert_int_equal(oc_app_option(&f->app), OC_OPT_parallel_world);
    assert_int_equal(oc_app_case(&f->app)->origin[OC_OPT_parallel_tp].from, OC_FROM_EDITED);
    assert_int_equal(oc_app_case(&f->app)->origin[OC_OPT_precision].from, OC_FROM_FILE);
    keys(f, "u"); /* one step of the history */
    assert_int_equal(value(f, OC_OPT_parallel_tp), 8);
    keys(f, ":set parallel.tp=many\n"); /* wrong: it stays open, with the reason */
    assert_int_equal(f->app.mode, OC_MODE_PROMPT);
    assert_true(f->app.message_bad);
    keys(f, "\033:set\n");
    assert_drawn(f, "this needs KEY=VALUE");
    keys(f, "\033:dance\n");
    assert_drawn(f, "there is no command dance");
    keys(f, "\033:   \n"); /* nothing is nothing */
    assert_int_equal(f->app.mode, OC_MODE_NORMAL);
}

static void an_option_and_everything_can_be_reset(void **state)
{
    struct fixture *f = *state;
    keys(f, ":set precision=bf16 optimizer=adam\n:reset optimizer\n");
    assert_int_equal(value(f, OC_OPT_optimizer), OC_OPTIM_SGD);
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_BF16);
    keys(f, ":reset\n");
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_FP16);
    assert_int_equal(oc_app_case(&f->app)->origin[OC_OPT_precision].from, OC_FROM_FILE);
    assert_false(oc_app_unsaved(&f->app));
    keys(f, "lR");
    assert_false(oc_app_unsaved(&f->app));
}

static void base_and_current_swap(void **state)
{
    struct fixture *f = *state;
    keys(f, "x");
    assert_drawn(f, "there is no base to swap with");
    keys(f, "blx"); /* base fp16, current bf16, swapped */
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_FP16);
    assert_int_equal(f->app.base->plan.c.precision, OC_PREC_BF16);
    keys(f, ":swap\n");
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_BF16);
    assert_int_equal(f->app.base->plan.c.precision, OC_PREC_FP16);
}

static void a_session_is_saved_and_reads_back(void **state)
{
    struct fixture *f = *state;
    struct oc_error error = {0};
    keys(f, "ls");
    assert_string_equal(f->app.prompt.text, "save run.json"); /* after run.sh */
    keys(f, "\n");
    assert_string_equal(f->path, "run.json");
    assert_false(oc_app_unsaved(&f->app));
    struct oc_input *again = calloc(1, sizeof *again);
    again->c.config = oc_config_default();
    assert_true(oc_import_text(again, "run.json", f->text, strlen(f->text), &error));
    assert_true(oc_config_same(&again->c.config, &oc_app_case(&f->app)->config));
    free(again);
    keys(f, "ls\n"); /* the same file again: it asks */
    assert_drawn(f, "run.json is there already. Replace it?");
    keys(f, "n");
    assert_int_equal(f->writes, 1);
    assert_true(oc_app_unsaved(&f->app));
    keys(f, "s\ny");
    assert_int_equal(f->writes, 2);
    assert_false(oc_app_unsaved(&f->app));
    keys(f, "l:save /full\n");
    assert_drawn(f, "/full cannot be written");
    assert_true(oc_app_unsaved(&f->app));
}

static void leaving_asks_when_something_would_be_lost(void **state)
{
    struct fixture *f = *state;
    keys(f, "lq");
    assert_drawn(f, "Changes were not saved. Leave anyway?");
    keys(f, "q"); /* anything but y */
    assert_false(f->app.quit);
    keys(f, "q\033");
    assert_false(f->app.quit);
    keys(f, "qy");
    assert_true(f->app.quit);
    f->app.quit = false;
    keys(f, "uq"); /* nothing changed */
    assert_true(f->app.quit);
}

static void another_file_can_be_opened(void **state)
{
    struct fixture *f = *state;
    keys(f, "b:open bf16.sh\n");
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_BF16);
    assert_drawn(f, "bf16.sh");
    assert_int_equal(f->app.base->plan.c.precision, OC_PREC_FP16); /* the base stays: two files can be compared */
    keys(f, "u");
    assert_drawn(f, "nothing to take back");
    keys(f, ":open broken.sh\n");
    assert_drawn(f, "broken.sh is no launch script");
    keys(f, "\033:open odd.sh\n"); /* does not resolve */
    assert_drawn(f, "does not divide");
    assert_string_equal(f->app.input->files[0], "bf16.sh");
    keys(f, "\033ll:open run.sh\n");
    assert_drawn(f, "Open another file anyway?");
    keys(f, "n");
    assert_string_equal(f->app.input->files[0], "bf16.sh");
    keys(f, "o");
    assert_string_equal(f->app.prompt.text, "open ");
    keys(f, "run.sh\ny");
    assert_string_equal(f->app.input->files[0], "run.sh");
    assert_int_equal(value(f, OC_OPT_precision), OC_PREC_FP16);
}

static void everything_is_exported(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *form, *holds;
    } forms[] = {{"megatron", "--num-layers 32"},
                 {"deepspeed", "\"train_batch_size\""},
                 {"set", "--set precision=fp16"},
                 {"session", "\"precision\""},
                 {"text", "1Fit"},
                 {"markdown", "| stage | parameters |"},
                 {"svg", "<svg "},
                 {"json", "\"schema\""}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, ":export %s out%d\n", forms[i].form, (int)i);
        keys(f, line);
        if (!f->text || !strstr(f->text, forms[i].holds))
            fail_msg("%s: %s", forms[i].form, f->text ? f->text : "nothing");
    }
    keys(f, ":save-screen cells\n");
    assert_non_null(strstr(f->text, "screen 120x30\n"));
    keys(f, "e");
    assert_string_equal(f->app.prompt.text, "export ");
    keys(f, "megatron\n"); /* without a file it is shown */
    assert_int_equal(f->app.mode, OC_MODE_TEXT);
    assert_drawn(f, "--num-layers 32");
    keys(f, "\033y");
    assert_drawn(f, "--set framework=megatron");
    keys(f, "\033:export\n");
    assert_drawn(f, "this needs a form");
    keys(f, "\033:export csv\n");
    assert_drawn(f, "csv cannot be exported");
    keys(f, "\033:set parallel.tp=3\n:export set\n");
    assert_drawn(f, "this configuration does not work");
}

static void views_themes_and_options_are_reached(void **state)
{
    struct fixture *f = *state;
    keys(f, ":view pipeline\n");
    assert_int_equal(f->app.view, oc_view_index(&oc_view_pipeline));
    keys(f, ":view 2\n");
    assert_int_equal(f->app.view, oc_view_index(&oc_view_step));
    keys(f, ":view nosuch\n");
    assert_drawn(f, "this needs the name or the number of a view");
    keys(f, "\033:theme light\n");
    assert_string_equal(f->shown, "light");
    assert_true(f->app.repaint);
    keys(f, ":theme nosuch\n");
    assert_drawn(f, "there is no theme nosuch");
    keys(f, "\033:find zero_optimization.stage\n");
    assert_int_equal(oc_app_option(&f->app), OC_OPT_parallel_zero);
    keys(f, ":zoom\n");
    assert_true(f->app.zoom);
    keys(f, ":why\n");
    assert_int_equal(f->app.mode, OC_MODE_WHY);
    keys(f, "\033:help\n");
    assert_int_equal(f->app.mode, OC_MODE_HELP);
}

static void tab_completes(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *typed, *completed, *offers;
    } cases[] = {
        {"ope", "open ", ""},
        {"re", "re", "reset  redo"},
        {"set batch.mi", "set batch.micro=", ""},
        {"set precision=pure", "set precision=pure-", "precision=pure-fp16  precision=pure-bf16"},
        {"set parallel.sp=t", "set parallel.sp=true ", ""},
        {"set gpu=gb2", "set gpu=gb200 ", ""},
        {"set parallel.tp=2 parallel.s", "set parallel.tp=2 parallel.s", "parallel.sp=  parallel.shard_group="},
        {"open ru", "open run", "run.sh  runs/"},
        {"open runs", "open runs/", ""},
        {"open th", "open there.json ", ""},
        {"export meg", "export megatron ", ""},
        {"export svg th", "export svg there.json ", ""},
        {"view Pip", "view Pipeline ", ""},
        {"theme l", "theme light ", ""},
        {"quit x", "quit x", ""},
        {"nosuch", "nosuch", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        keys(f, ":");
        keys(f, cases[i].typed);
        oc_app_key(&f->app, OC_KEY_TAB);
        assert_string_equal(f->app.prompt.text, cases[i].completed);
        assert_string_equal(f->app.message, cases[i].offers);
        keys(f, "\033");
    }
}

static void what_was_typed_comes_back(void **state)
{
    struct fixture *f = *state;
    keys(f, ":set precision=bf16\n:base\n:base\n:\f");
    assert_string_equal(f->app.prompt.text, "base"); /* twice the same is once */
    keys(f, "\f");
    assert_string_equal(f->app.prompt.text, "set precision=bf16");
    keys(f, "\f");
    assert_string_equal(f->app.prompt.text, "set precision=bf16");
    keys(f, "\v\v");
    assert_string_equal(f->app.prompt.text, "");
    keys(f, "\033");
    for (int i = 0; i < OC_HISTORY_MAX + 5; i++) {
        char line[40];
        snprintf(line, sizeof line, ":find tp%d\n\033", i);
        keys(f, line);
    }
    assert_int_equal(f->app.history.n, OC_HISTORY_MAX);
}

static void the_help_lists_every_command(void **state)
{
    struct fixture *f = *state;
    assert_true(oc_canvas_resize(&f->canvas, 160, 200));
    keys(f, "?");
    for (const struct oc_command_row *row = oc_command_rows; row->name; row++) {
        char line[160];
        snprintf(line, sizeof line, "%s %s", row->name, row->arguments);
        assert_drawn(f, line);
    }
}

int main(void)
{
#define APP_TEST(test) cmocka_unit_test_setup_teardown(test, open_app, close_app)
    const struct CMUnitTest tests[] = {
        APP_TEST(set_sets_all_at_once),
        APP_TEST(an_option_and_everything_can_be_reset),
        APP_TEST(base_and_current_swap),
        APP_TEST(a_session_is_saved_and_reads_back),
        APP_TEST(leaving_asks_when_something_would_be_lost),
        APP_TEST(another_file_can_be_opened),
        APP_TEST(everything_is_exported),
        APP_TEST(views_themes_and_options_are_reached),
        APP_TEST(tab_completes),
        APP_TEST(what_was_typed_comes_back),
        APP_TEST(the_help_lists_every_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
