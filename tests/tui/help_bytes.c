#include "help_bytes.h"

#include <ctype.h>
#include <pthread.h>
#include <pty.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/screen/change.h"
#include "tui/screen/edit.h"
#include "tui/screen/layout.h"
#include "tui/screen/term.h"

/* A thread reads the terminal: one process cannot write a frame and read it at the same time. A NUL, which no frame
 * has, says that a frame is over. */
struct oc_reader {
    pthread_t thread;
    sem_t over;
    int master;
    long bytes;
    char *log;
    size_t room;
};

enum { LOG = 1 << 16 };

static void *read_frames(void *user)
{
    struct oc_reader *reader = user;
    char text[4096];
    ssize_t n;
    while ((n = read(reader->master, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] == '\0') {
                sem_post(&reader->over);
                continue;
            }
            if (reader->bytes < LOG - 1) reader->log[reader->bytes] = text[i];
            reader->bytes++;
        }
    return NULL;
}

bool help_bytes_open(struct help_bytes *bytes, int width, int height)
{
    struct winsize size = {.ws_row = (unsigned short)height, .ws_col = (unsigned short)width};
    struct oc_error error;
    int slave;
    memset(bytes, 0, sizeof *bytes);
    bytes->reader = calloc(1, sizeof *bytes->reader);
    if (!bytes->reader || !(bytes->reader->log = calloc(1, LOG))) return false;
    if (openpty(&bytes->master, &slave, NULL, NULL, &size) != 0) return false;
    fflush(stdout);
    bytes->out = dup(STDOUT_FILENO), bytes->in = dup(STDIN_FILENO);
    dup2(slave, STDOUT_FILENO);
    dup2(slave, STDIN_FILENO);
    close(slave);
    setenv("TERM", "xterm-256color", 1);
    bytes->reader->master = bytes->master;
    sem_init(&bytes->reader->over, 0, 0);
    if (pthread_create(&bytes->reader->thread, NULL, read_frames, bytes->reader) != 0) return false;
    bytes->term = oc_term_open(OC_DEPTH_256, false, false, &error);
    if (!bytes->term || !oc_theme_default(&bytes->theme, NULL)) return false;
    bytes->canvas.theme = &bytes->theme;
    oc_term_describe(bytes->term, &bytes->canvas);
    bytes->canvas.ascii = false;
    return oc_canvas_resize(&bytes->canvas, width, height);
}

void help_bytes_close(struct help_bytes *bytes)
{
    oc_term_close(bytes->term);
    fflush(stdout);
    dup2(bytes->out, STDOUT_FILENO);
    dup2(bytes->in, STDIN_FILENO);
    close(bytes->out);
    close(bytes->in);
    pthread_join(bytes->reader->thread, NULL); /* the last descriptor of the other side is closed */
    close(bytes->master);
    sem_destroy(&bytes->reader->over);
    oc_canvas_free(&bytes->canvas);
    free(bytes->reader->log);
    free(bytes->reader);
}

long help_bytes_show(struct help_bytes *bytes, struct oc_app *app)
{
    oc_app_draw(app, &bytes->canvas);
    oc_term_show(bytes->term, &bytes->canvas);
    if (write(STDOUT_FILENO, "", 1) != 1) return -1;
    sem_wait(&bytes->reader->over);
    long n = bytes->reader->bytes;
    bytes->reader->log[n < LOG ? n : LOG - 1] = '\0';
    bytes->log = bytes->reader->log;
    bytes->reader->bytes = 0;
    return n;
}

long help_bytes_key(struct help_bytes *bytes, struct oc_app *app, int key)
{
    oc_app_key(app, key);
    long n = help_bytes_show(bytes, app);
    if (!app->unsettled) return n;
    oc_app_settle_all(app);
    oc_app_changed(app);
    return n + help_bytes_show(bytes, app);
}

static void value_of(const struct oc_app *app, enum oc_option_id option, char text[OC_SENT_TEXT])
{
    oc_edit_text(&app->answer->plan.c, option, oc_given(&oc_app_case(app)->config, option), text, OC_SENT_TEXT);
}

/* The letters of each row of the view, as a hash: what stands in bars and boxes is left out, and so are numbers. */
struct words {
    uint32_t rows[OC_CANVAS_MAX];
};

static bool is_in_bar(const struct oc_canvas *canvas, const struct oc_cell *cell)
{
    for (int i = 0; i < OC_CLASSES; i++)
        if (cell->style.bg == canvas->theme->classes[i].colour) return true;
    return false;
}

static void read_words(const struct help_bytes *bytes, const struct oc_app *app, struct words *words)
{
    const struct oc_canvas *canvas = &bytes->canvas;
    struct oc_layout layout;
    memset(words, 0, sizeof *words);
    oc_layout_make(canvas->width, canvas->height, app->in_panel, &layout);
    for (int y = 0; y < layout.view.h; y++)
        for (int x = 0; x < layout.view.w; x++) {
            const struct oc_cell *cell = oc_canvas_at(canvas, layout.view.x + x, layout.view.y + y);
            if (cell->code > 'z' || !isalpha((int)cell->code) || is_in_bar(canvas, cell)) continue;
            words->rows[y] = words->rows[y] * 31 + cell->code;
        }
}

void help_bytes_walk(struct help_bytes *bytes, struct oc_app *app, enum oc_option_id option, int most,
                     void (*seen)(const struct help_change *change, void *user), void *user)
{
    static const char ways[] = "lh";
    struct help_change change = {.option = option};
    struct words words, after;
    int begin = app->undo.at;
    app->in_panel = true;
    oc_panel_show(&app->panel, option);
    help_bytes_show(bytes, app);
    for (const char *way = ways; *way; way++)
        for (int i = 0; i < most; i++) {
            int before = app->undo.at;
            value_of(app, option, change.from);
            read_words(bytes, app, &words);
            change.bytes = help_bytes_key(bytes, app, *way);
            if (app->undo.at == before) break; /* it has no further value */
            value_of(app, option, change.to);
            read_words(bytes, app, &after);
            change.reworded = memcmp(&words, &after, sizeof words) != 0;
            seen(&change, user);
            if (oc_option(option)->type == OC_T_BOOL) break; /* it has two, and either key takes the other */
        }
    while (app->undo.at > begin) oc_app_key(app, 'u');
    oc_app_settle_all(app);
    oc_app_changed(app);
    help_bytes_show(bytes, app);
}
