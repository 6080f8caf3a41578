#include "tui/screen/screen.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tui/screen/app.h"
#include "tui/screen/command.h"
#include "tui/screen/script.h"
#include "tui/views/lessons.h"

struct screen {
    struct oc_app app;
    struct oc_theme theme;
    struct oc_canvas canvas;
    struct oc_term *term; /* NULL without a display */
    bool colour, letters; /* without a display: what is drawn with */
};

bool oc_depth_find(const char *name, enum oc_depth *depth)
{
    static const struct {
        const char *name;
        enum oc_depth depth;
    } depths[] = {{"auto", OC_DEPTH_AUTO}, {"never", OC_DEPTH_NONE}, {"8", OC_DEPTH_8},
                  {"16", OC_DEPTH_16},     {"256", OC_DEPTH_256},    {"rgb", OC_DEPTH_RGB}};
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        if (strcmp(depths[i].name, name) != 0) continue;
        *depth = depths[i].depth;
        return true;
    }
    return false;
}

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* What the canvas may use: what there is, and what the theme takes of it. */
static void describe(struct screen *screen)
{
    struct oc_canvas *canvas = &screen->canvas;
    canvas->colour = screen->colour, canvas->letters = screen->letters;
    if (screen->term) oc_term_describe(screen->term, canvas);
    canvas->letters |= screen->theme.mono;
    canvas->colour &= !screen->theme.mono;
}

static void draw(struct screen *screen)
{
    describe(screen);
    oc_app_draw(&screen->app, &screen->canvas);
    if (!screen->term) return;
    if (screen->app.repaint) oc_term_repaint(screen->term);
    screen->app.repaint = false;
    oc_term_show(screen->term, &screen->canvas);
}

static void take_mouse(struct screen *screen)
{
    const struct oc_mouse mouse = oc_term_mouse(screen->term);
    oc_app_draw(&screen->app, &screen->canvas); /* keys that came before it may have changed what is there */
    oc_app_mouse(&screen->app, &screen->canvas, &mouse);
}

static void take_key(struct screen *screen, int key)
{
    if (key == OC_KEY_RESIZE)
        oc_canvas_resize(&screen->canvas, oc_term_width(screen->term), oc_term_height(screen->term));
    else if (key == OC_KEY_MOUSE)
        take_mouse(screen);
    else if (key != OC_KEY_OTHER)
        oc_app_key(&screen->app, key);
}

static void wait_for_something(struct screen *screen)
{
    int fds[OC_LANES], timeout = -1;
    for (int i = 0; i < OC_LANES; i++) fds[i] = screen->app.live ? oc_live_fd(screen->app.live, (enum oc_lane)i) : -1;
    if (screen->app.live) timeout = oc_live_wait(screen->app.live, now_ms());
    oc_term_wait(screen->term, fds, OC_LANES, timeout);
}

static int loop(struct screen *screen)
{
    bool changed = true;
    while (!screen->app.quit) {
        int key, number = oc_term_signal(screen->term);
        if (number) return 128 + number;
        while (!screen->app.quit && (key = oc_term_key(screen->term)) != OC_KEY_NONE) {
            take_key(screen, key);
            changed = true;
        }
        if (screen->app.live && oc_live_tick(screen->app.live, now_ms())) changed = true;
        if (screen->app.quit) break;
        if (changed) oc_app_changed(&screen->app);
        if (changed) draw(screen);
        changed = false;
        if (screen->app.unsettled) { /* a stage at a time, so that a key does not wait for all of them */
            changed = oc_app_settle(&screen->app);
            continue;
        }
        changed = oc_app_live(&screen->app, now_ms()); /* after the frame, so that the frame does not wait for it */
        if (changed) continue;
        wait_for_something(screen);
    }
    return 0;
}

/* ---- what the state asks of its surroundings ---- */

static int host_themes(void *user, char (*names)[OC_HOST_NAME], int most)
{
    (void)user;
    return oc_theme_names(names, most);
}

static bool host_theme(void *user, const char *name, struct oc_error *error)
{
    struct screen *screen = user;
    return oc_theme_open(&screen->theme, name, error);
}

static const struct oc_canvas *host_canvas(void *user)
{
    struct screen *screen = user;
    oc_app_draw(&screen->app, &screen->canvas);
    return &screen->canvas;
}

/* ---- scripts ---- */

static void script_key(void *user, int key)
{
    struct screen *screen = user;
    oc_app_key(&screen->app, key);
    oc_app_settle_all(&screen->app);
    draw(screen);
    oc_app_live(&screen->app, now_ms());
}

static bool script_save(void *user, const char *path, bool picture, struct oc_error *error)
{
    struct screen *screen = user;
    oc_app_settle_all(&screen->app);
    draw(screen);
    FILE *file = fopen(path, "w");
    if (!file) return oc_fail(error, OC_E_IO, "%s cannot be written", path);
    (picture ? oc_canvas_picture : oc_canvas_write)(&screen->canvas, file);
    bool written = !ferror(file);
    written &= fclose(file) == 0;
    return written || oc_fail(error, OC_E_IO, "%s cannot be written", path);
}

static bool script_size(void *user, int width, int height, struct oc_error *error)
{
    struct screen *screen = user;
    if (screen->term) return oc_fail(error, OC_E_USAGE, ":size works without a display only");
    return oc_canvas_resize(&screen->canvas, width, height) || oc_fail(error, OC_E_INTERNAL, "out of memory");
}

static void script_wait(void *user)
{
    struct screen *screen = user;
    const struct timespec pause = {0, 5000000};
    if (!screen->app.live) return;
    oc_app_live(&screen->app, now_ms());
    for (int64_t end = now_ms() + 30000; now_ms() < end; nanosleep(&pause, NULL)) {
        oc_live_tick(screen->app.live, now_ms());
        if (!oc_live_busy(screen->app.live, OC_LANE_DRY) && !oc_live_busy(screen->app.live, OC_LANE_REAL)) break;
    }
}

static void script_quit(void *user)
{
    ((struct screen *)user)->app.quit = true;
}

static bool script_command(void *user, const char *line, struct oc_error *error)
{
    struct screen *screen = user;
    bool done = oc_command_run(&screen->app, line, false);
    oc_app_settle_all(&screen->app);
    draw(screen);
    oc_app_live(&screen->app, now_ms());
    if (done) return true;
    oc_fail(error, OC_E_PARSE, "%s", screen->app.message);
    return oc_hint(error,
                   "a script has :save-screen FILE, :save-picture FILE, :size WIDTH HEIGHT, :wait and :quit, and the "
                   "screen's own commands");
}

/* ---- starting ---- */

static int variable(const char *name, int otherwise)
{
    const char *text = getenv(name);
    int value = text ? atoi(text) : 0;
    return value > 0 ? value : otherwise;
}

static bool open_display(struct screen *screen, const struct oc_screen_options *options, struct oc_error *error)
{
    int width, height;
    screen->canvas.theme = &screen->theme;
    if (options->no_display) {
        const char *no_color = getenv("NO_COLOR");
        enum oc_depth depth = options->depth != OC_DEPTH_AUTO ? options->depth
                              : no_color && no_color[0]       ? OC_DEPTH_NONE
                                                              : OC_DEPTH_256;
        screen->colour = depth != OC_DEPTH_NONE;
        screen->letters = depth < OC_DEPTH_256;
        screen->canvas.ascii = options->ascii;
        width = variable("COLUMNS", 80), height = variable("LINES", 24);
    } else {
        screen->term = oc_term_open(options->depth, options->ascii, !options->no_mouse, error);
        if (!screen->term) return false;
        width = oc_term_width(screen->term), height = oc_term_height(screen->term);
    }
    return oc_canvas_resize(&screen->canvas, width, height) || oc_fail(error, OC_E_INTERNAL, "out of memory");
}

static bool run_script(struct screen *screen, const char *path, struct oc_error *error)
{
    const struct oc_script_target target = {script_key,  script_save,    script_size, script_wait,
                                            script_quit, script_command, screen};
    return !path || oc_script_run(path, &target, error);
}

static int run(struct screen *screen, const struct oc_input *input, const struct oc_screen_options *options,
               struct oc_error *error)
{
    if (!oc_theme_open(&screen->theme, options->theme, error)) return 2;
    if (!oc_app_start(&screen->app, &oc_real_model, input, error)) return 2;
    screen->app.live = oc_live_start(options->executable ? options->executable : "/proc/self/exe");
    screen->app.probe_auto = !options->no_live;
    const struct oc_app_host host = {oc_host_open, oc_host_exists, oc_host_write, oc_host_files,
                                     host_themes,  host_theme,     host_canvas,   screen};
    screen->app.host = &host;
    int status = 2;
    bool begun = !options->lesson || oc_lessons_start(&screen->app, options->lesson - 1, error);
    if (begun && open_display(screen, options, error) && run_script(screen, options->script, error))
        status = options->no_display || screen->app.quit ? 0 : loop(screen);
    oc_term_close(screen->term);
    oc_canvas_free(&screen->canvas);
    oc_app_end(&screen->app);
    return status;
}

int oc_screen_run(const struct oc_input *input, const struct oc_screen_options *options, struct oc_error *error)
{
    struct screen *screen = calloc(1, sizeof *screen);
    if (!screen) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        return 2;
    }
    int status = run(screen, input, options, error);
    free(screen);
    return status;
}
