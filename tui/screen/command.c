#include "tui/screen/command.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "oomcast/export.h"
#include "oomcast/import.h"
#include "tui/screen/change.h"
#include "tui/screen/find.h"
#include "tui/screen/output.h"
#include "tui/views/lessons.h"
#include "tui/views/views.h"

static bool complain(struct oc_app *app, const struct oc_error *error)
{
    oc_app_say(app, true, "%s%s%s", error->message, error->hint[0] ? "; " : "", error->hint);
    return false;
}

/* The next word of a line, which is cut out of it; "" at the end. */
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, " ");
    char *end = word + strcspn(word, " ");
    *line = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static bool need(struct oc_app *app, const char *what)
{
    oc_app_say(app, true, "this needs %s", what);
    return false;
}

/* ---- the configuration ---- */

/* All are applied before anything is validated, as on the command line. */
static bool run_set(struct oc_app *app, char *arguments, bool force)
{
    struct oc_config config = oc_app_case(app)->config;
    struct oc_error error = {0};
    char what[120];
    enum oc_option_id id = OC_OPTIONS;
    (void)force;
    snprintf(what, sizeof what, "%.100s", arguments + strspn(arguments, " "));
    for (char *word; *(word = next_word(&arguments));)
        if (!oc_config_assign(&config, word, &id, &error)) return complain(app, &error);
    if (id == OC_OPTIONS) return need(app, "KEY=VALUE");
    oc_panel_show(&app->panel, id);
    oc_app_take(app, &config, what);
    return true;
}

static bool run_reset(struct oc_app *app, char *arguments, bool force)
{
    struct oc_error error = {0};
    enum oc_option_id id;
    const char *word = next_word(&arguments);
    (void)force;
    if (!*word) {
        oc_change_reset_all(app);
        return true;
    }
    if (!oc_option_find(word, &id, &error)) return complain(app, &error);
    oc_panel_show(&app->panel, id);
    oc_change_reset(app);
    return true;
}

static bool run_find(struct oc_app *app, char *arguments, bool force)
{
    enum oc_option_id found[OC_OPTIONS];
    const char *text = arguments + strspn(arguments, " -");
    (void)force;
    snprintf(app->searched, sizeof app->searched, "%.*s", (int)sizeof app->searched - 1, text);
    if (oc_find_options(text, found, NULL, 0) == 0) {
        oc_app_say(app, true, "no option is called %s, here or in a launch file", text);
        return false;
    }
    oc_panel_show(&app->panel, found[0]);
    app->in_panel = true;
    return true;
}

/* ---- files ---- */

static bool run_open(struct oc_app *app, char *arguments, bool force)
{
    struct oc_error error = {0};
    const char *path = next_word(&arguments);
    if (!*path) return need(app, "the name of a file");
    if (!force && oc_app_unsaved(app)) {
        oc_app_confirm(app, "Changes were not saved. Open another file anyway?");
        return true;
    }
    return oc_app_open(app, path, &error) || complain(app, &error);
}

/* Writes a file, after asking when one of that name is there. */
static bool write_file(struct oc_app *app, const char *path, const char *text, size_t size, bool force)
{
    struct oc_error error = {0};
    char question[OC_HOST_NAME + 40];
    if (!app->host) return need(app, "files, which this session has none of");
    if (!force && app->host->exists(app->host->user, path)) {
        snprintf(question, sizeof question, "%.*s is there already. Replace it?", OC_HOST_NAME - 1, path);
        oc_app_confirm(app, question);
        return false;
    }
    if (!app->host->write(app->host->user, path, text, size, &error)) return complain(app, &error);
    oc_app_say(app, false, "%s is written", path);
    return true;
}

static bool run_save(struct oc_app *app, char *arguments, bool force)
{
    const char *path = next_word(&arguments);
    if (!*path) return need(app, "the name of a file");
    char *text = oc_export_session(oc_app_case(app));
    if (!text) return need(app, "more memory");
    bool written = write_file(app, path, text, strlen(text), force);
    if (written) {
        app->saved = oc_app_case(app)->config;
        snprintf(app->session, sizeof app->session, "%.*s", (int)sizeof app->session - 1, path);
    }
    free(text);
    return written || app->mode == OC_MODE_CONFIRM;
}

/* Without a file what is exported is shown. */
static bool run_export(struct oc_app *app, char *arguments, bool force)
{
    const char *name = next_word(&arguments), *path = next_word(&arguments);
    struct oc_buffer text = {0};
    char title[80];
    if (app->stale) {
        oc_app_say(app, true, "this configuration does not work: %s", app->error.message);
        return false;
    }
    if (!*name) return need(app, "a form: megatron, deepspeed, set, session, text, markdown, svg or json");
    if (!oc_output_write(app, name, title, sizeof title, &text)) {
        oc_buffer_free(&text);
        return false;
    }
    bool done = true;
    if (*path)
        done = write_file(app, path, text.data, text.size, force) || app->mode == OC_MODE_CONFIRM;
    else
        oc_app_show(app, title, text.data);
    oc_buffer_free(&text);
    return done;
}

/* The cells with their styles, as golden screens are. */
static bool run_save_screen(struct oc_app *app, char *arguments, bool force)
{
    char copy[OC_PROMPT_MAX];
    snprintf(copy, sizeof copy, "screen %s", next_word(&arguments));
    return run_export(app, copy, force);
}

/* ---- looking ---- */

static bool run_view(struct oc_app *app, char *arguments, bool force)
{
    const char *word = next_word(&arguments);
    (void)force;
    for (int i = 0; i < oc_n_views; i++) {
        char number[12];
        snprintf(number, sizeof number, "%d", i + 1);
        if (strcasecmp(oc_views[i]->title, word) != 0 && strcmp(number, word) != 0) continue;
        oc_app_view(app, i);
        return true;
    }
    return need(app, "the name or the number of a view");
}

static bool run_theme(struct oc_app *app, char *arguments, bool force)
{
    struct oc_error error = {0};
    const char *name = next_word(&arguments);
    (void)force;
    if (!*name || !app->host) return need(app, "the name of a theme, or the path of a theme file");
    if (!app->host->theme(app->host->user, name, &error)) return complain(app, &error);
    app->repaint = true;
    return true;
}

static bool run_lesson(struct oc_app *app, char *arguments, bool force)
{
    struct oc_error error = {0};
    const char *name = next_word(&arguments);
    int index = oc_lesson_find(name);
    (void)force;
    if (!*name) {
        oc_app_view(app, oc_view_index(&oc_view_lessons));
        return true;
    }
    if (index < 0) return need(app, "the name of a lesson; Tab lists them");
    return oc_lessons_start(app, index, &error) || complain(app, &error);
}

static bool run_quit(struct oc_app *app, char *arguments, bool force)
{
    (void)arguments;
    if (!force && oc_app_unsaved(app))
        oc_app_confirm(app, "Changes were not saved. Leave anyway?");
    else
        app->quit = true;
    return true;
}

/* Commands that are what a key does. */
#define REQUEST(name, request)                                                                                         \
    static bool run_##name(struct oc_app *app, char *arguments, bool force)                                            \
    {                                                                                                                  \
        (void)arguments, (void)force;                                                                                  \
        oc_app_request(app, request);                                                                                  \
        return true;                                                                                                   \
    }
REQUEST(probe, OC_REQ_PROBE)
REQUEST(base, OC_REQ_BASE)
REQUEST(swap, OC_REQ_SWAP)
REQUEST(undo, OC_REQ_UNDO)
REQUEST(redo, OC_REQ_REDO)
REQUEST(zoom, OC_REQ_ZOOM)
REQUEST(why, OC_REQ_WHY)
REQUEST(help, OC_REQ_HELP)

/* clang-format off */
const struct oc_command_row oc_command_rows[] = {
    {"set", "KEY=VALUE...", "set options, as --set does", OC_ARG_SET, run_set},
    {"reset", "[KEY]", "give an option, or all, its first value back", OC_ARG_OPTION, run_reset},
    {"find", "NAME", "go to an option, by any of its names", OC_ARG_OPTION, run_find},
    {"open", "FILE", "open a launch script or a session", OC_ARG_FILE, run_open},
    {"save", "FILE", "save what is given as a session", OC_ARG_FILE, run_save},
    {"export", "FORM [FILE]", "the configuration as flags or JSON, the view as text, markdown, svg or json; without FILE it is shown", OC_ARG_EXPORT, run_export},
    {"save-screen", "FILE", "the cells of the screen with their styles, as tests compare them", OC_ARG_FILE, run_save_screen},
    {"view", "NAME", "another view", OC_ARG_VIEW, run_view},
    {"theme", "NAME", "other colours", OC_ARG_THEME, run_theme},
    {"lesson", "[NAME]", "begin a lesson", OC_ARG_LESSON, run_lesson},
    {"probe", "", "measure a larger training step", OC_ARG_NONE, run_probe},
    {"base", "", "keep this to compare with", OC_ARG_NONE, run_base},
    {"swap", "", "swap this with the base", OC_ARG_NONE, run_swap},
    {"undo", "", "take the last change back", OC_ARG_NONE, run_undo},
    {"redo", "", "make it again", OC_ARG_NONE, run_redo},
    {"zoom", "", "the axis as long as the bars need", OC_ARG_NONE, run_zoom},
    {"why", "", "the whole reason", OC_ARG_NONE, run_why},
    {"help", "", "all keys and commands", OC_ARG_NONE, run_help},
    {"quit", "", "leave", OC_ARG_NONE, run_quit},
    {0}};
/* clang-format on */

bool oc_command_run(struct oc_app *app, const char *line, bool force)
{
    char copy[OC_PROMPT_MAX], *rest = copy;
    snprintf(copy, sizeof copy, "%s", line);
    snprintf(app->asked, sizeof app->asked, "%s", line); /* runs again when a question about it is answered */
    const char *name = next_word(&rest);
    if (!*name) return true;
    for (const struct oc_command_row *row = oc_command_rows; row->name; row++)
        if (strcmp(row->name, name) == 0) return row->run(app, rest, force);
    oc_app_say(app, true, "there is no command %s; Tab lists them", name);
    return false;
}

/* ---- the prompt ---- */

static void remember(struct oc_app *app, const char *line)
{
    struct oc_history *history = &app->history;
    if (!*line || (history->n && strcmp(history->lines[history->n - 1], line) == 0)) return;
    if (history->n == OC_HISTORY_MAX) {
        memmove(history->lines, history->lines + 1, sizeof history->lines - sizeof history->lines[0]);
        history->n--;
    }
    snprintf(history->lines[history->n++], OC_PROMPT_MAX, "%s", line);
}

static bool done(struct oc_app *app, const char *text)
{
    char line[OC_PROMPT_MAX];
    snprintf(line, sizeof line, "%s", text);
    remember(app, line);
    return oc_command_run(app, line, false);
}

/* Up and Down go through what was typed before; Tab completes. */
static bool key(struct oc_app *app, int pressed)
{
    struct oc_history *history = &app->history;
    char offers[sizeof app->message], line[OC_PROMPT_MAX];
    if (pressed == OC_KEY_UP || pressed == OC_KEY_DOWN) {
        int to = history->at + (pressed == OC_KEY_UP ? -1 : 1);
        if (to < 0 || to > history->n) return true;
        history->at = to;
        oc_prompt_start(&app->prompt, to < history->n ? history->lines[to] : "");
        return true;
    }
    if (pressed != OC_KEY_TAB) return false;
    snprintf(line, sizeof line, "%s", app->prompt.text);
    oc_command_complete(app, line, sizeof line, offers, sizeof offers);
    oc_prompt_start(&app->prompt, line);
    oc_app_say(app, false, "%s", offers);
    return true;
}

static const struct oc_question question = {
    .label = "",
    .hint = "Tab completes, Up and Down go through what was typed before, Esc leaves",
    .done = done,
    .key = key};

void oc_command_start(struct oc_app *app, const char *text)
{
    app->history.at = app->history.n;
    oc_app_ask(app, &question, text);
}

void oc_command_offer(struct oc_app *app, const char *text)
{
    char offers[sizeof app->message], line[OC_PROMPT_MAX];
    oc_command_start(app, text);
    snprintf(line, sizeof line, "%s", text);
    oc_command_complete(app, line, sizeof line, offers, sizeof offers);
    oc_app_say(app, false, "%s", offers);
}
