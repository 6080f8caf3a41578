/* Keys in any order: each key of the help does something, and no sequence of them does harm. OOMCAST_LONG=1 presses
 * 100,000. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "help_fake.h"
#include "help_vterm.h"
#include "tui/views/views.h"

struct fixture {
    struct oc_input input;
    struct oc_app app;
    struct oc_theme theme;
    struct oc_canvas canvas;
    struct oc_app_host host;
    int writes;
};

/* Files that are only counted: a storm may type any name. */
static bool fake_open(void *user, const char *path, struct oc_input *input, struct oc_error *error)
{
    const struct fixture *f = user;
    *input = f->input;
    return path[0] % 2 ? true : oc_fail(error, OC_E_IO, "%.20s cannot be opened", path);
}

static bool fake_exists(void *user, const char *path)
{
    (void)user;
    return path[0] % 3 == 0;
}

static bool fake_write(void *user, const char *path, const char *text, size_t size, struct oc_error *error)
{
    struct fixture *f = user;
    f->writes++;
    assert_int_equal(strlen(text), size);
    return path[0] % 5 ? true : oc_fail(error, OC_E_IO, "%.20s cannot be written", path);
}

static int fake_files(void *user, const char *prefix, char (*names)[OC_HOST_NAME], int most)
{
    (void)user;
    return most > 0 ? snprintf(names[0], OC_HOST_NAME, "%.100sx", prefix) > 0 : 0;
}

static int fake_themes(void *user, char (*names)[OC_HOST_NAME], int most)
{
    (void)user;
    return most > 0 ? snprintf(names[0], OC_HOST_NAME, "light") > 0 : 0;
}

static bool fake_theme(void *user, const char *name, struct oc_error *error)
{
    struct fixture *f = user;
    return oc_theme_open(&f->theme, strcmp(name, "light") == 0 ? name : "nosuch", error);
}

static const struct oc_canvas *fake_canvas(void *user)
{
    return &((struct fixture *)user)->canvas;
}

static struct fixture *open_fixture(const struct oc_app_model *model)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct oc_error error;
    assert_non_null(f);
    f->input = oc_fake_input();
    f->theme = oc_fake_theme();
    f->canvas.theme = &f->theme;
    f->canvas.colour = true;
    f->host =
        (struct oc_app_host){fake_open, fake_exists, fake_write, fake_files, fake_themes, fake_theme, fake_canvas, f};
    assert_true(oc_app_start(&f->app, model, &f->input, &error));
    assert_true(oc_canvas_resize(&f->canvas, 120, 30));
    f->app.host = &f->host;
    return f;
}

static void close_fixture(struct fixture *f)
{
    oc_app_end(&f->app);
    oc_canvas_free(&f->canvas);
    free(f);
}

static void press(struct fixture *f, int key)
{
    oc_app_key(&f->app, key);
    oc_app_draw(&f->app, &f->canvas);
}

/* ---- each key ---- */

/* What a key is pressed after: somewhere it must do something. '~' makes a pipeline of four stages. */
/* clang-format off */
static const char *const contexts[] = {
    "", "j", "jj", "kkkk", "\t", "bl", "lu", "/tp\r", "?", "w", "f", "[", "]",
    "2", "2l", "2h", "2H", "~2n", "~2j", "~3", "~3j", "~3jj", "4j", "4jj", "~4", "~4]",
    "bl5", "bl5j", "bl5jj", "bl5G", "~bl5", "~bl5]", "6", "6j", "6\rl", "6\rln",
};
/* clang-format on */

static void prepare(struct fixture *f, const char *keys)
{
    for (; *keys; keys++) {
        if (*keys == '~') {
            struct oc_config config = oc_app_case(&f->app)->config;
            oc_option_put(&config, OC_OPT_parallel_pp, 4);
            oc_set_given(&config, OC_OPT_parallel_pp, true);
            oc_app_take(&f->app, &config, "pipeline");
        } else {
            press(f, *keys);
        }
    }
    oc_app_draw(&f->app, &f->canvas);
}

/* Whether the key, pressed in this context, can be noticed. */
static bool does_something(int key, const char *context)
{
    struct fixture *f = open_fixture(&oc_fake_model);
    prepare(f, context);
    char *before = oc_fake_text(&f->canvas);
    f->app.repaint = false;
    press(f, key);
    char *after = oc_fake_text(&f->canvas);
    bool noticed = strcmp(before, after) != 0 || f->app.quit || f->app.repaint;
    free(before);
    free(after);
    close_fixture(f);
    return noticed;
}

static void every_key_of_the_help_does_something(void **state)
{
    (void)state;
    for (int request = 0; request < OC_REQUESTS; request++)
        for (int k = 0; k < OC_REQUEST_KEYS && oc_request_row((enum oc_request)request)->keys[k]; k++) {
            bool noticed = false;
            for (size_t c = 0; c < sizeof contexts / sizeof contexts[0] && !noticed; c++)
                noticed = does_something(oc_request_row((enum oc_request)request)->keys[k], contexts[c]);
            if (!noticed) fail_msg("%s, key %d, does nothing", oc_request_row((enum oc_request)request)->name, k + 1);
        }
}

/* The keys that a view gives a meaning of its own, in that view. */
static void every_key_of_a_view_does_something(void **state)
{
    (void)state;
    for (int view = 0; view < oc_n_views; view++)
        for (const struct oc_view_key *row = oc_views[view]->keys; row && row->request != OC_REQUESTS; row++) {
            bool noticed = false;
            for (size_t c = 0; c < sizeof contexts / sizeof contexts[0] && !noticed; c++) {
                if (!strchr(contexts[c], '1' + view)) continue;
                noticed = does_something(oc_request_row(row->request)->keys[0], contexts[c]);
            }
            if (!noticed) fail_msg("view %d: %s does nothing", view + 1, oc_request_row(row->request)->name);
        }
}

/* ---- storms ---- */

static uint32_t random_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static int random_key(uint32_t *seed)
{
    static const int extra[] = {OC_KEY_UP,
                                OC_KEY_DOWN,
                                OC_KEY_LEFT,
                                OC_KEY_RIGHT,
                                OC_KEY_ENTER,
                                OC_KEY_ESCAPE,
                                OC_KEY_TAB,
                                OC_KEY_HOME,
                                OC_KEY_END,
                                OC_KEY_DELETE,
                                OC_KEY_BACKSPACE,
                                OC_KEY_CTRL('R'),
                                OC_KEY_CTRL('U'),
                                OC_KEY_OTHER,
                                0x4e2d,
                                OC_KEY_PAGE_UP,
                                OC_KEY_PAGE_DOWN,
                                0xe9,
                                ':',
                                '/'};
    uint32_t draw = random_number(seed);
    if (draw % 3 == 0) return extra[draw / 3 % (sizeof extra / sizeof extra[0])];
    return (int)(32 + draw / 3 % 95);
}

static void storm(const struct oc_app_model *model, int keys, int draw_every, uint32_t seed)
{
    struct fixture *f = open_fixture(model);
    for (int i = 0; i < keys; i++) {
        oc_app_key(&f->app, random_key(&seed));
        f->app.quit = false;
        if (random_number(&seed) % 97 == 0) {
            int width = (int)(random_number(&seed) % 320), height = (int)(random_number(&seed) % 90);
            assert_true(oc_canvas_resize(&f->canvas, width, height));
            f->canvas.ascii = width % 2, f->canvas.colour = height % 2, f->canvas.letters = width % 3 == 0;
        }
        if (random_number(&seed) % 3 == 0) oc_app_settle(&f->app);
        if (i % draw_every == 0) oc_app_draw(&f->app, &f->canvas);
        assert_true(f->app.answer->n_ranks >= 1 && f->app.undo.n <= OC_UNDO_MAX);
    }
    close_fixture(f);
}

static int how_many(int usually, int in_a_long_run)
{
    return getenv("OOMCAST_LONG") ? in_a_long_run : usually;
}

static void a_storm_of_keys_does_no_harm(void **state)
{
    (void)state;
    storm(&oc_fake_model, how_many(6000, 100000), 7, 11);
}

static void a_storm_on_the_real_model_does_no_harm(void **state)
{
    (void)state;
    storm(&oc_real_model, how_many(300, 20000), 5, 5);
}

/* The program itself, in a folder of its own, since a storm may save files. */
static void a_storm_on_a_terminal_leaves_it_restored(void **state)
{
    (void)state;
    struct oc_pty pty;
    uint32_t seed = 3;
    char folder[] = "/tmp/oomcast-storm-XXXXXX", command[256];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "cd %s && exec %s --no-live %s/examples/llama3-8b-sgd-fp16.sh", folder,
             OOMCAST_BIN, OOMCAST_SOURCE);
    oc_pty_start(&pty, 100, 30, NULL, (const char *const[]){"/bin/sh", "-c", command, NULL});
    oc_pty_settle(&pty, 200);
    for (int i = 0; i < how_many(40, 600); i++) {
        char keys[32];
        int n = 0;
        while (n < 24) { /* printable keys, Enter, Esc and broken sequences; not p, whose probe takes its time */
            uint32_t draw = random_number(&seed);
            char key = draw % 9 == 0 ? '\r' : draw % 11 == 0 ? '\033' : (char)(32 + draw % 95);
            if (key != 'p' && key != 'q') keys[n++] = key;
        }
        keys[n] = '\0';
        if (write(pty.master, keys, (size_t)n) < 0) fail_msg("the program ended after %d rounds", i);
        oc_pty_settle(&pty, 1);
        if (i % 3 == 0)
            oc_pty_resize(&pty, 20 + (int)(random_number(&seed) % 200), 5 + (int)(random_number(&seed) % 60));
    }
    for (int i = 0; i < 8 && !pty.ended; i++) { /* out of whatever is open, and away */
        oc_pty_keys(&pty, "\033");
        oc_pty_keys(&pty, "\033");
        oc_pty_keys(&pty, "q");
        oc_pty_keys(&pty, "y");
        pty.ended = waitpid(pty.pid, &pty.status, WNOHANG) == pty.pid;
    }
    assert_true(pty.ended || oc_pty_wait(&pty));
    assert_true(WIFEXITED(pty.status) && WEXITSTATUS(pty.status) == 0);
    oc_pty_settle(&pty, 50);
    assert_true(oc_pty_restored(&pty));
    oc_pty_end(&pty);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_the_help_does_something),
        cmocka_unit_test(every_key_of_a_view_does_something),
        cmocka_unit_test(a_storm_of_keys_does_no_harm),
        cmocka_unit_test(a_storm_on_the_real_model_does_no_harm),
        cmocka_unit_test(a_storm_on_a_terminal_leaves_it_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
