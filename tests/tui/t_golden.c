/* Golden screens of the fit view, drawn from the fake model, so that only the screen can change them. After a change
 * that is meant, look at the difference and run
 *
 *     OOMCAST_UPDATE=1 build/.../tests/t_golden
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"

#define VIEW(name, keys)                                                                                               \
    {name "-80x24-colour", 80, 24, keys, COLOUR}, {name "-80x24-mono", 80, 24, keys, MONO},                            \
        {name "-80x24-ascii", 80, 24, keys, ASCII}, {name "-160x48-colour", 160, 48, keys, COLOUR},                    \
        {name "-160x48-mono", 160, 48, keys, MONO},                                                                    \
    {                                                                                                                  \
        name "-160x48-ascii", 160, 48, keys, ASCII                                                                     \
    }

static const struct golden {
    const char *name;
    int width, height;
    const char *keys; /* a 'p' stands for a pipeline of four stages */
    enum { COLOUR, EIGHT, MONO, ASCII } kind;
} goldens[] = {
    {"fit-80x24-colour", 80, 24, "", COLOUR},
    {"fit-80x24-eight", 80, 24, "", EIGHT},
    {"fit-80x24-mono", 80, 24, "", MONO},
    {"fit-80x24-ascii", 80, 24, "bh", ASCII},
    {"fit-160x48-colour", 160, 48, "bl", COLOUR},
    {"fit-160x48-mono", 160, 48, "bl", MONO},
    {"fit-160x48-ascii", 160, 48, "", ASCII},
    {"fit-60x20-colour", 60, 20, "", COLOUR},
    {"panel-60x20-colour", 60, 20, "\t", COLOUR},
    {"fit-40x10-ascii", 40, 10, "", ASCII},
    {"help-80x24-colour", 80, 24, "?", COLOUR},
    {"why-80x24-colour", 80, 24, "w", COLOUR},
    VIEW("step", "2"),
    VIEW("pipeline", "p3jj"),
    VIEW("layers", "4LLjj"),
    VIEW("compare", "bl5j"),
    VIEW("fixes", "fj"),
    VIEW("lessons", "6"),
    VIEW("lesson", "6\rl"),
};

enum { N_GOLDENS = sizeof goldens / sizeof goldens[0] };

/* Only one section stays open, so that a row that is added to another changes no screen here. */
static void fold_all_but(struct oc_panel *panel, const char *open)
{
    const char *name;
    for (int section = 0; (name = oc_panel_section(section)); section++)
        panel->folded[section] = strcmp(name, open) != 0;
}

static char *draw(const struct golden *golden)
{
    struct oc_input input = oc_fake_input();
    struct oc_theme theme = oc_fake_theme();
    struct oc_canvas canvas = {.theme = &theme,
                               .colour = golden->kind <= EIGHT,
                               .letters = golden->kind != COLOUR,
                               .ascii = golden->kind == ASCII};
    struct oc_app *app = calloc(1, sizeof *app);
    struct oc_error error;
    char *text = NULL;
    size_t size;
    assert_non_null(app);
    assert_true(oc_app_start(app, &oc_fake_model, &input, &error));
    fold_all_but(&app->panel, "Precision");
    assert_true(oc_canvas_resize(&canvas, golden->width, golden->height));
    oc_app_draw(app, &canvas);
    for (const char *key = golden->keys; *key; key++) {
        if (*key == 'p') {
            struct oc_config config = oc_app_case(app)->config;
            oc_option_put(&config, OC_OPT_parallel_pp, 4);
            oc_set_given(&config, OC_OPT_parallel_pp, true);
            oc_app_take(app, &config, "pipeline");
        } else {
            oc_app_key(app, *key);
        }
    }
    oc_app_draw(app, &canvas);
    FILE *out = open_memstream(&text, &size);
    oc_canvas_write(&canvas, out);
    fclose(out);
    oc_canvas_free(&canvas);
    oc_app_end(app);
    free(app);
    return text;
}

static void golden_screen(void **state)
{
    const struct golden *golden = *state;
    char path[256], *text = draw(golden), *expected = calloc(1, 1 << 18);
    snprintf(path, sizeof path, "%s/tests/tui/golden/%s.screen", OOMCAST_SOURCE, golden->name);
    if (getenv("OOMCAST_UPDATE")) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(text, out);
        fclose(out);
    }
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s is missing", path);
    assert_true(fread(expected, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    if (strcmp(text, expected) != 0)
        fail_msg("%s differs. It is now:\n%s\nIf that is meant: OOMCAST_UPDATE=1 and run this test again", path, text);
    free(expected);
    free(text);
}

int main(void)
{
    struct CMUnitTest tests[N_GOLDENS];
    for (int i = 0; i < N_GOLDENS; i++)
        tests[i] = (struct CMUnitTest){goldens[i].name, golden_screen, NULL, NULL, (void *)(uintptr_t)&goldens[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
