/* The frame around the views: header, panel, help, status and hint rows. */
#include "tui/screen/app.h"

#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/edit.h"
#include "tui/screen/layout.h"
#include "tui/screen/overlay.h"
#include "tui/views/fixes.h"
#include "tui/views/views.h"

/* "7.50B" */
static const char *short_count(uint64_t count, char *text, size_t size)
{
    static const struct {
        double one;
        char letter;
    } scales[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}, {1e3, 'k'}};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        if ((double)count < scales[i].one) continue;
        snprintf(text, size, "%.2f%c", (double)count / scales[i].one, scales[i].letter);
        return text;
    }
    snprintf(text, size, "%d", (int)count);
    return text;
}

static const char *file_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The run in a few words, long or short. */
static void write_run(const struct oc_app *app, bool whole, char *text, size_t size)
{
    const struct oc_plan *plan = &app->answer->plan;
    char params[24];
    short_count(app->answer->params_total, params, sizeof params);
    snprintf(text, size, "%s  %s%s  %lld GPU%s%s%s", oc_plan_framework(plan), params, whole ? " parameters" : "",
             (long long)plan->c.parallel_world, plan->c.parallel_world == 1 ? "" : "s",
             whole && plan->c.gpu[0] ? "  " : "", whole ? plan->c.gpu : "");
}

/* The views' names with their numbers, the current one set apart; where there is no room, its name alone. */
static int draw_names(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect, bool brief)
{
    int x = rect.x;
    for (int i = 0; i < oc_n_views; i++) {
        char name[24];
        snprintf(name, sizeof name, "%d%s", i + 1, brief ? oc_views[i]->brief : oc_views[i]->title);
        int start = x + (i && !brief ? 1 : 0);
        x = start + oc_canvas_print(canvas, start, rect.y, rect.x + rect.w - start, OC_ROLE_HEADER, " %s ", name);
        for (int at = start; i == app->view && at < x; at++)
            oc_canvas_at(canvas, at, rect.y)->style.attr ^= OC_ATTR_REVERSE | OC_ATTR_BOLD;
        oc_canvas_target(canvas, (struct oc_rect){start, rect.y, x - start, 1}, OC_TARGET_VIEW, i);
        if (brief) x--;
    }
    return x - rect.x + 1;
}

static int names_width(bool brief)
{
    int width = 1;
    for (int i = 0; i < oc_n_views; i++)
        width += brief ? 2 + oc_text_width(oc_views[i]->brief) : 3 + oc_text_width(oc_views[i]->title) + (i ? 1 : 0);
    return width;
}

static void draw_header(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    enum { FILE_LEAST = 12 }; /* columns of a file name that are worth having */
    char left[256], right[256];
    oc_canvas_fill(canvas, rect, OC_ROLE_HEADER);
    struct oc_rect names = {rect.x, rect.y, rect.w, 1};
    bool brief = names_width(false) > rect.w * 2 / 5;
    int used = names_width(brief) + FILE_LEAST <= rect.w ? draw_names(app, canvas, names, brief) : 0;
    int x = rect.x + (used ? used : 1), room = rect.x + rect.w - 1 - x;
    snprintf(left, sizeof left, "%s%s%s%s", used ? "" : oc_views[app->view]->title, used ? "" : "  ",
             app->input->n_files ? file_part(app->input->files[0]) : "no file", app->undo.at > 0 ? " *" : "");
    int wanted = oc_text_width(left) < 22 ? oc_text_width(left) : 22;
    write_run(app, true, right, sizeof right);
    if (oc_text_width(right) + 2 + wanted > room) write_run(app, false, right, sizeof right);
    if (oc_text_width(right) + 2 + FILE_LEAST > room) right[0] = '\0';
    oc_canvas_right(canvas, x, rect.y, room, OC_ROLE_HEADER, right);
    oc_canvas_text(canvas, x, rect.y, right[0] ? room - oc_text_width(right) - 2 : room, OC_ROLE_HEADER, left);
}

/* "from run.sh:41", "assumed: $MICRO_BATCH_SIZE is not set in run.sh", or "" */
static void origin_text(const struct oc_app *app, enum oc_option_id id, char *text, size_t size)
{
    const struct oc_origin *origin = &oc_app_case(app)->origin[id];
    const struct oc_input *input = app->input;
    text[0] = '\0';
    if (origin->from == OC_FROM_ASSUMED) {
        for (int i = 0; i < input->n_notes; i++)
            if (input->notes[i].kind == OC_NOTE_ASSUMED && input->notes[i].option == (int)id)
                snprintf(text, size, "assumed: %s", input->notes[i].text);
        if (!text[0]) snprintf(text, size, "assumed");
    } else if (origin->from == OC_FROM_FILE && origin->file < input->n_files) {
        if (origin->line > 0)
            snprintf(text, size, "from %s:%d", file_part(input->files[origin->file]), (int)origin->line);
        else
            snprintf(text, size, "from %s", file_part(input->files[origin->file]));
    } else if (origin->from == OC_FROM_SET) {
        snprintf(text, size, "from --set");
    } else if (origin->from == OC_FROM_EDITED) {
        snprintf(text, size, "changed here; r gives back the first value");
    }
}

static void draw_help(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    char text[900], choices[400];
    enum oc_option_id id = oc_app_option(app);
    if (rect.h <= 0) return;
    struct oc_rect inner = {rect.x + 1, rect.y, rect.w - 2, rect.h};
    const struct oc_view_ops *ops = oc_views[app->view];
    if (!oc_app_in_panel(app) && ops->help && app->mode != OC_MODE_PROMPT) {
        text[0] = '\0';
        ops->help(app, app->view_states[app->view], text, sizeof text);
        oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, text);
        return;
    }
    if (id == OC_OPTIONS) {
        oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, "Enter or Space folds and unfolds this section");
        return;
    }
    const struct oc_option *option = oc_option(id);
    const char *off = option->inapplicable ? option->inapplicable(&app->answer->plan.c) : NULL;
    oc_edit_choices(&app->answer->plan.c, id, choices, sizeof choices);
    snprintf(text, sizeof text, "%s: %s%s%s%s%s", option->key, option->help, off ? "; no effect now, " : "",
             off ? off : "", choices[0] ? ".  " : "", choices);
    oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, text);
    for (int i = 0; option->key[i] && i < inner.w; i++)
        oc_canvas_at(canvas, inner.x + i, inner.y)->style.attr |= OC_ATTR_BOLD;
}

/* What the probe is doing or has found, in one line of at most `room` columns: without the reason for host memory where
 * there is none for it. */
static void probe_text(const struct oc_app *app, int room, char *text, size_t size)
{
    const struct oc_result *measured = oc_app_measured(app);
    text[0] = '\0';
    if (!app->live) return;
    if (app->shape.of == app->answer->plan.hash && app->shape.reason) {
        snprintf(text, size, "no probe: %s", app->shape.reason);
    } else if (oc_live_busy(app->live, OC_LANE_REAL)) {
        enum { CELLS = 10 };
        char bar[CELLS + 1];
        const char *phase = oc_live_phase(app->live, OC_LANE_REAL);
        double fraction = oc_live_fraction(app->live, OC_LANE_REAL);
        for (int i = 0; i < CELLS; i++) bar[i] = fraction * CELLS >= i + 1 ? '#' : '.';
        bar[CELLS] = '\0';
        snprintf(text, size, "probe [%s] %s", bar, phase[0] ? phase : "starts");
    } else if (measured && measured->status == OC_PROBE_DONE) {
        char where[96];
        oc_result_where(measured, where, sizeof where);
        snprintf(text, size, "probe: %s, %.1f s; %.120s", where, measured->seconds, measured->fallback);
        if (!measured->fallback[0] || oc_text_width(text) > room)
            snprintf(text, size, "probe: %s, %.1f s", where, measured->seconds);
    } else if (measured) {
        snprintf(text, size, "probe: %s", measured->why);
    } else if (!app->probe_auto) {
        snprintf(text, size, "p runs the probe");
    }
}

static void draw_status(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    char probe[300];
    int room = rect.w - 2, used = 0;
    if (app->mode == OC_MODE_PROMPT) {
        const char *label = app->question->label ? app->question->label : oc_option(oc_app_option(app))->key;
        oc_prompt_draw(&app->prompt, canvas, rect.x + 1, rect.y, room, label);
        return;
    }
    if (app->mode == OC_MODE_CONFIRM) {
        oc_canvas_text(canvas, rect.x + 1, rect.y, room, OC_ROLE_WARN, app->confirm);
        return;
    }
    char origin[300] = "";
    if (oc_app_option(app) != OC_OPTIONS) origin_text(app, oc_app_option(app), origin, sizeof origin);
    const char *message = app->message[0] ? app->message : app->stale ? app->error.message : origin;
    used = oc_canvas_text(canvas, rect.x + 1, rect.y, room,
                          app->message_bad || app->stale ? OC_ROLE_WARN : OC_ROLE_TEXT, message);
    probe_text(app, used ? room - used - 2 : room, probe, sizeof probe);
    if (used + 2 + oc_text_width(probe) <= room)
        oc_canvas_right(canvas, rect.x + 1, rect.y, room, OC_ROLE_DIM, probe);
    else if (used == 0)
        oc_canvas_text(canvas, rect.x + 1, rect.y, room, OC_ROLE_DIM, probe);
}

static void draw_hint(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect, bool tabs)
{
    struct oc_hint_item items[OC_HINTS_MAX];
    if (app->mode == OC_MODE_PROMPT) {
        const char *text = app->message[0] ? app->message : app->question->hint;
        oc_canvas_text(canvas, rect.x + 1, rect.y, rect.w - 2,
                       app->message[0] && app->message_bad ? OC_ROLE_WARN : OC_ROLE_HINT, text);
        return;
    }
    int x = rect.x + 1;
    if (app->mode == OC_MODE_CONFIRM) {
        x += oc_canvas_text(canvas, x, rect.y, 2, OC_ROLE_HINT_KEY, "y") + 1;
        oc_canvas_text(canvas, x, rect.y, rect.w - 3, OC_ROLE_HINT, "yes   any other key: no");
        return;
    }
    if (tabs || oc_views[app->view]->request) { /* the way to the other half of the screen comes first */
        x += oc_canvas_text(canvas, x, rect.y, 3, OC_ROLE_HINT_KEY, "Tab") + 1;
        x += oc_canvas_text(canvas, x, rect.y, 7, OC_ROLE_HINT, app->in_panel ? "view" : "panel") + 2;
    }
    const struct oc_view_ops *ops = oc_views[app->view];
    const struct oc_view_key *keys = !oc_app_in_view(app) ? NULL : oc_app_in_panel(app) ? ops->shared_keys : ops->keys;
    int n = oc_hint_row(rect.x + rect.w - 1 - x, keys, items);
    for (int i = 0; i < n; i++) {
        x += oc_canvas_text(canvas, x, rect.y, rect.x + rect.w - x, OC_ROLE_HINT_KEY, items[i].keys) + 1;
        x += oc_canvas_text(canvas, x, rect.y, rect.x + rect.w - x, OC_ROLE_HINT, items[i].word) + 2;
    }
}

/* Where nothing else fits: the answer in a sentence. */
static void draw_tiny(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    char text[256], device[OC_BYTES_TEXT];
    const struct oc_verdict *verdict = &app->answer->verdict;
    oc_format_bytes(verdict->device.high, OC_UNIT_GIB, device, sizeof device);
    snprintf(text, sizeof text, "%s, %s. The screen needs %dx%d; this is %dx%d.",
             !verdict->known ? "No GPU named"
             : verdict->fits ? "Fits"
                             : "DOES NOT FIT",
             device, OC_MIN_WIDTH, OC_MIN_HEIGHT, canvas->width, canvas->height);
    oc_canvas_wrap(canvas, rect, 0, OC_ROLE_TEXT, text);
}

/* A value is typed beside the panel; other questions are about what is on the screen. */
static bool asks_for_value(const struct oc_app *app)
{
    return app->mode == OC_MODE_PROMPT && !app->question->label;
}

void oc_app_draw(struct oc_app *app, struct oc_canvas *canvas)
{
    struct oc_layout layout;
    oc_canvas_clear(canvas);
    oc_layout_make(canvas->width, canvas->height, app->in_panel || asks_for_value(app), &layout);
    if (layout.kind == OC_LAYOUT_TINY) {
        draw_tiny(app, canvas, layout.view);
        return;
    }
    draw_header(app, canvas, layout.header);
    if (app->mode == OC_MODE_HELP || app->mode == OC_MODE_WHY || app->mode == OC_MODE_TEXT) {
        oc_overlay_draw(app, canvas, (struct oc_rect){0, 1, canvas->width, canvas->height - 1});
        return;
    }
    if (app->mode == OC_MODE_FIXES) {
        oc_fixes_draw(app, canvas, (struct oc_rect){0, 1, canvas->width, canvas->height - 1});
        return;
    }
    struct oc_panel_view view = {oc_app_case(app), &app->first, &app->answer->plan,
                                 app->mode == OC_MODE_NORMAL && oc_app_in_panel(app)};
    if (layout.panel.w > 0) oc_panel_draw(&app->panel, canvas, layout.panel, &view);
    oc_canvas_vline(canvas, layout.divider.x, layout.divider.y, layout.divider.h);
    if (layout.view.w > 0) oc_views[app->view]->draw(app, app->view_states[app->view], canvas, layout.view);
    if (layout.rule.h > 0) {
        oc_canvas_hline(canvas, layout.rule.x, layout.rule.y, layout.rule.w);
        if (layout.divider.h > 0)
            oc_canvas_put(canvas, layout.divider.x, layout.rule.y, oc_canvas_style(canvas, OC_ROLE_BORDER), 0x2534);
    }
    draw_help(app, canvas, layout.help);
    draw_status(app, canvas, layout.status);
    draw_hint(app, canvas, layout.hint, layout.kind == OC_LAYOUT_TABS);
}
