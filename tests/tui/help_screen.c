#include "help_screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"

struct help_screen *help_screen(int width, int height, const char *const *words)
{
    struct help_screen *screen = calloc(1, sizeof *screen);
    struct oc_error error = {0};
    assert_non_null(screen);
    screen->input.c.config = oc_config_default();
    for (; *words; words++) {
        enum oc_option_id id;
        if (!oc_config_assign(&screen->input.c.config, *words, &id, &error)) fail_msg("%s: %s", *words, error.message);
    }
    screen->theme = oc_fake_theme();
    screen->canvas.theme = &screen->theme;
    screen->canvas.colour = true;
    if (!oc_app_start(&screen->app, &oc_real_model, &screen->input, &error)) fail_msg("%s", error.message);
    assert_true(oc_canvas_resize(&screen->canvas, width, height));
    oc_app_draw(&screen->app, &screen->canvas);
    return screen;
}

void help_screen_free(struct help_screen *screen)
{
    oc_app_end(&screen->app);
    oc_canvas_free(&screen->canvas);
    free(screen);
}

void help_keys(struct help_screen *screen, const char *keys)
{
    for (; *keys; keys++) {
        oc_app_key(&screen->app, *keys == '\n' ? OC_KEY_ENTER : *keys == '\033' ? OC_KEY_ESCAPE : *keys);
        oc_app_draw(&screen->app, &screen->canvas);
    }
}

void help_drawn(struct help_screen *screen, const char *text, bool there)
{
    oc_app_draw(&screen->app, &screen->canvas);
    char *drawn = oc_fake_text(&screen->canvas);
    if ((strstr(drawn, text) != NULL) != there)
        fail_msg("\"%s\" is%s on the screen:\n%s", text, there ? " not" : "", drawn);
    free(drawn);
}
