#include "tui/screen/overlay.h"

#include <stdio.h>
#include <string.h>

#include "tui/screen/command.h"
#include "tui/screen/mouse.h"
#include "tui/views/views.h"

/* A text that is longer than its rectangle: rows before `scroll` are skipped, rows beyond the end are only counted. */
struct pager {
    struct oc_canvas *canvas;
    struct oc_rect rect;
    int scroll, row;
};

static void page_text(struct pager *pager, int indent, enum oc_role role, const char *text)
{
    struct oc_rect line = {pager->rect.x + indent, 0, pager->rect.w - indent, 0};
    int rows = oc_canvas_wrap(NULL, line, 0, role, text), shown = pager->row - pager->scroll;
    int skip = shown < 0 ? -shown : 0;
    if (rows == 0) rows = 1;
    line.y = pager->rect.y + (shown > 0 ? shown : 0);
    line.h = pager->rect.y + pager->rect.h - line.y;
    if (rows > skip && line.h > 0) oc_canvas_wrap(pager->canvas, line, skip, role, text);
    pager->row += rows;
}

/* A name in a column of `width`, and what it does. */
static void page_pair(struct pager *pager, int width, const char *name, const char *help)
{
    int shown = pager->row - pager->scroll;
    if (shown >= 0 && shown < pager->rect.h)
        oc_canvas_text(pager->canvas, pager->rect.x + 1, pager->rect.y + shown, width, OC_ROLE_HINT_KEY, name);
    page_text(pager, width + 2, OC_ROLE_TEXT, help);
}

static void page_keys(struct pager *pager, enum oc_request request, const char *help)
{
    char keys[64];
    oc_request_keys(request, keys, sizeof keys);
    page_pair(pager, 12, keys, help);
}

/* What keys mean in views that have keys of their own. */
static void page_views(struct pager *pager)
{
    for (int i = 0; i < oc_n_views; i++) {
        if (!oc_views[i]->keys) continue;
        page_text(pager, 0, OC_ROLE_TEXT, "");
        char title[48];
        snprintf(title, sizeof title, "In the view %d, %s", i + 1, oc_views[i]->title);
        page_text(pager, 0, OC_ROLE_TITLE, title);
        for (const struct oc_view_key *key = oc_views[i]->keys; key->request != OC_REQUESTS; key++)
            page_keys(pager, key->request, key->help);
    }
}

static void page_commands(struct pager *pager)
{
    page_text(pager, 0, OC_ROLE_TEXT, "");
    page_text(pager, 0, OC_ROLE_TITLE, "Commands, after :");
    for (const struct oc_command_row *row = oc_command_rows; row->name; row++) {
        char text[64];
        snprintf(text, sizeof text, "%s %s", row->name, row->arguments);
        page_pair(pager, 19, text, row->help);
    }
}

static void page_mouse(struct pager *pager)
{
    page_text(pager, 0, OC_ROLE_TEXT, "");
    page_text(pager, 0, OC_ROLE_TITLE, "Mouse");
    for (int i = 0; i < oc_n_mouse_rows; i++) page_pair(pager, 19, oc_mouse_rows[i].what, oc_mouse_rows[i].help);
}

/* A view's number is explained by its name. */
static const char *help_of(enum oc_request request)
{
    int view = (int)request - OC_REQ_VIEW_1;
    bool named = request >= OC_REQ_VIEW_1 && request <= OC_REQ_VIEW_6 && view < oc_n_views;
    return named ? oc_views[view]->about : oc_request_row(request)->help;
}

static void page_help(struct pager *pager, const struct oc_canvas *canvas)
{
    const char *group = "";
    for (int i = 0; i < OC_REQUESTS; i++) {
        const struct oc_request_row *row = oc_request_row((enum oc_request)i);
        if (strcmp(group, row->group) != 0) {
            if (group[0]) page_text(pager, 0, OC_ROLE_TEXT, "");
            page_text(pager, 0, OC_ROLE_TITLE, row->group);
            group = row->group;
        }
        page_keys(pager, (enum oc_request)i, help_of((enum oc_request)i));
    }
    page_views(pager);
    page_commands(pager);
    page_mouse(pager);
    page_text(pager, 0, OC_ROLE_TEXT, "");
    page_text(pager, 0, OC_ROLE_TITLE, "Signs");
    page_text(pager, 1, OC_ROLE_TEXT,
              "Beside a value: f from a file, s from --set, ? assumed, * changed here. Grey: it follows from other "
              "options, or "
              "has no effect now.");
    page_text(
        pager, 1, OC_ROLE_TEXT,
        "In a bar: W weights, M master copies, G gradients, O optimizer, A activations, B buffers; then dots for what "
        "the allocator reserves beyond them, the CUDA context and NCCL. Past the line of the capacity, ! stands "
        "between "
        "the letters.");
    page_text(pager, 1, OC_ROLE_TEXT,
              canvas->ascii && !canvas->colour ? "This terminal: no colour, ASCII only."
              : canvas->ascii   ? "This terminal: colour, ASCII only (the locale is not UTF-8, or --ascii)."
              : !canvas->colour ? "This terminal: no colour, UTF-8."
                                : "This terminal: colour and UTF-8.");
}

static void page_note(struct pager *pager, const struct oc_input *input, const struct oc_note *note)
{
    char text[640], place[256] = "";
    const char *key =
        note->option >= 0 && note->option < OC_OPTIONS ? oc_option((enum oc_option_id)note->option)->key : "";
    if (note->file < input->n_files && note->line > 0)
        snprintf(place, sizeof place, " (%s:%d)", input->files[note->file], (int)note->line);
    snprintf(text, sizeof text, "%s%s%s%s", note->name[0] ? note->name : key, note->name[0] || key[0] ? ": " : "",
             note->text, place);
    page_text(pager, 1, OC_ROLE_TEXT, text);
}

static void page_notes(struct pager *pager, const struct oc_input *input, enum oc_note_kind kind, const char *title)
{
    bool first = true;
    for (int i = 0; i < input->n_notes; i++) {
        if (input->notes[i].kind != kind) continue;
        if (first) {
            page_text(pager, 0, OC_ROLE_TEXT, "");
            page_text(pager, 0, OC_ROLE_TITLE, title);
            first = false;
        }
        page_note(pager, input, &input->notes[i]);
    }
}

static void page_why(struct pager *pager, const struct oc_app *app)
{
    page_text(pager, 0, OC_ROLE_TITLE, "Why it is so");
    for (int i = 0; i < app->reason.n; i++) {
        page_text(pager, 1, OC_ROLE_TEXT, app->reason.sentence[i]);
        page_text(pager, 0, OC_ROLE_TEXT, "");
    }
    for (int i = 0; i < app->answer->warnings.n; i++) {
        if (i == 0) page_text(pager, 0, OC_ROLE_TITLE, "What the framework would change or ignore");
        page_text(pager, 1, OC_ROLE_TEXT, app->answer->warnings.text[i]);
    }
    page_notes(pager, app->input, OC_NOTE_ASSUMED, "Assumed, because the input leaves it open");
    page_notes(pager, app->input, OC_NOTE_WARNING, "Warnings");
    page_notes(pager, app->input, OC_NOTE_UNMODELLED, "In the input, changes memory, and is not modelled");
}

static void page_shown(struct pager *pager, const struct oc_app *app)
{
    page_text(pager, 0, OC_ROLE_TITLE, app->shown_title);
    page_text(pager, 0, OC_ROLE_TEXT, "");
    for (const char *line = app->shown; *line;) {
        char text[1000];
        size_t length = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), line);
        page_text(pager, 0, OC_ROLE_TEXT, text);
        line += length + (line[length] == '\n');
    }
}

static void page(struct pager *pager, const struct oc_app *app)
{
    pager->row = 0;
    if (app->mode == OC_MODE_HELP)
        page_help(pager, pager->canvas);
    else if (app->mode == OC_MODE_TEXT)
        page_shown(pager, app);
    else
        page_why(pager, app);
}

void oc_overlay_draw(struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    struct pager pager = {canvas, {rect.x + 2, rect.y + 1, rect.w - 4, rect.h - 2}, 0, 0};
    if (pager.rect.w < 20 || pager.rect.h < 1) return;
    pager.scroll = OC_OVERLAY_LINES; /* counts rows and draws nothing */
    page(&pager, app);
    int most = pager.row - pager.rect.h > 0 ? pager.row - pager.rect.h : 0;
    if (app->scroll > most) app->scroll = most;
    pager.scroll = app->scroll;
    oc_canvas_fill(canvas, rect, OC_ROLE_TEXT);
    page(&pager, app);
    const char *hint = most > 0 ? "j k scroll   Esc closes" : "Esc closes";
    oc_canvas_right(canvas, rect.x, rect.y, rect.w - 2, OC_ROLE_HINT, hint);
    oc_canvas_hline(canvas, rect.x, rect.y + rect.h - 1, rect.w);
    if (app->scroll < most) oc_canvas_text(canvas, rect.x + 2, rect.y + rect.h - 1, 8, OC_ROLE_HINT, " more ");
}
