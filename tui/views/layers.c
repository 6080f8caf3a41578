/* The layers view: every entry of the ledger of one stage, down to its rule and source. */
#include "tui/views/layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/bars.h"
#include "tui/screen/layout.h"
#include "tui/views/views.h"

/* The instant that is looked at. */
static const struct oc_instant *instant_of(const struct oc_app *app, const struct oc_layers_state *state)
{
    const struct oc_rank *rank = &app->answer->ranks[oc_app_stage(app)];
    return state->moment == OC_AT_PEAK ? &rank->peak : &rank->moments[OC_STEADY][state->moment];
}

/* Lists what is alive, when it is not of this plan, stage and moment already. NULL when there is no ledger. */
static const struct oc_ledger *refresh(const struct oc_app *app, struct oc_layers_state *state)
{
    const int64_t stage = oc_app_stage(app);
    const struct oc_ledger *ledger = oc_app_ledger(app, app->answer, stage);
    if (!state->started) state->moment = OC_AT_PEAK;
    if (!ledger) return NULL;
    if (state->moment != OC_AT_PEAK && !instant_of(app, state)->exists) state->moment = OC_AT_PEAK;
    if (state->started && state->plan == app->answer->plan.hash && state->stage == stage &&
        state->of_moment == state->moment && state->of_bytes == instant_of(app, state)->allocated)
        return ledger;
    oc_alive_at(ledger, instant_of(app, state), &state->alive);
    state->added[0] = oc_rounding_entry(&state->alive);
    state->added[1] = oc_unsplit_entry(&state->alive);
    state->plan = app->answer->plan.hash;
    state->stage = stage;
    state->of_moment = state->moment;
    state->of_bytes = instant_of(app, state)->allocated;
    oc_layers_make(state, ledger);
    return ledger;
}

/* ---- the table ---- */

struct line {
    const struct oc_layers_state *state;
    const struct oc_entry *entry;
    int index; /* of the entry */
    uint64_t bytes;
    bool is_added; /* by the allocator */
    enum oc_unit unit;
};

static void share_cell(const struct line *line, int width, char *text, size_t size)
{
    const double share = line->state->alive.allocated ? (double)line->bytes / (double)line->state->alive.allocated : 0;
    (void)width;
    snprintf(text, size, "%.1f %%", share * 100);
}

static void alive_cell(const struct line *line, int width, char *text, size_t size)
{
    (void)width;
    if (!line->is_added) snprintf(text, size, "%" PRIu32, line->state->alive.instances[line->index]);
}

static void type_cell(const struct line *line, int width, char *text, size_t size)
{
    (void)width;
    if (line->entry->dtype != OC_NONE) snprintf(text, size, "%s", oc_dtype_name((enum oc_dtype)line->entry->dtype));
}

static void elements_cell(const struct line *line, int width, char *text, size_t size)
{
    (void)width;
    if (!line->is_added) oc_format_count(line->entry->elements, text, size);
}

static void life_cell(const struct line *line, int width, char *text, size_t size)
{
    (void)width;
    snprintf(text, size, "%s to %s", oc_phase_name((enum oc_phase)line->entry->birth.phase),
             oc_phase_name((enum oc_phase)line->entry->death.phase));
}

static void amount_cell(const struct line *line, int width, char *text, size_t size)
{
    oc_format_amount(line->bytes, line->unit, width - 1, text, size);
}

/* Columns behind the name; the highest rank is left out first where there is no room. */
static const struct column {
    const char *head;
    int width, rank;
    void (*write)(const struct line *line, int width, char *text, size_t size);
} columns[] = {{"life", 22, 4, life_cell},  {"elements", 14, 3, elements_cell}, {"type", 7, 2, type_cell},
               {"alive", 7, 1, alive_cell}, {"share", 8, 5, share_cell},        {"", 9, 0, amount_cell}};

enum { COLUMNS = sizeof columns / sizeof columns[0], LEAST_NAME = 32 };

static int columns_that_fit(int width, int *name)
{
    for (int most = 5;; most--) {
        *name = width - 1;
        for (int i = 0; i < COLUMNS; i++)
            if (columns[i].rank <= most) *name -= columns[i].width;
        if (*name >= LEAST_NAME || most == 0) return most;
    }
}

static void draw_cells(struct oc_canvas *canvas, struct oc_rect row, int most, int name, const struct line *line)
{
    int x = row.x + name;
    for (int i = 0; i < COLUMNS; i++) {
        char text[OC_BYTES_TEXT + 16] = "-";
        if (columns[i].rank > most) continue;
        columns[i].write(line, columns[i].width, text, sizeof text);
        oc_canvas_right(canvas, x, row.y, columns[i].width,
                        columns[i].write == amount_cell && line->bytes ? OC_ROLE_TEXT : OC_ROLE_DIM, text);
        x += columns[i].width;
    }
}

static void draw_head(struct oc_canvas *canvas, struct oc_rect row, int most, int name, enum oc_unit unit)
{
    int x = row.x + name;
    oc_canvas_text(canvas, row.x + 1, row.y, name - 1, OC_ROLE_DIM, "entry");
    for (int i = 0; i < COLUMNS; i++) {
        if (columns[i].rank > most) continue;
        oc_canvas_right(canvas, x, row.y, columns[i].width, OC_ROLE_DIM,
                        columns[i].head[0] ? columns[i].head : oc_unit_name(unit));
        x += columns[i].width;
    }
}

static void draw_heading(struct oc_canvas *canvas, struct oc_rect row, const struct oc_layers_row *heading,
                         enum oc_unit unit)
{
    char text[80], amount[OC_BYTES_TEXT];
    int x = row.x + 1;
    if (heading->class >= 0) {
        oc_class_box(canvas, x, row.y, 3, heading->class);
        x += 4;
    }
    snprintf(text, sizeof text, "%s, %d entr%s", heading->heading, heading->members,
             heading->members == 1 ? "y" : "ies");
    oc_format_amount(heading->bytes, unit, columns[COLUMNS - 1].width - 1, amount, sizeof amount);
    oc_canvas_text(canvas, x, row.y, row.x + row.w - 12 - x, OC_ROLE_TITLE, text);
    oc_canvas_right(canvas, row.x + row.w - 12, row.y, 11, OC_ROLE_TITLE, amount);
}

/* A row of the list, of which the first column is the cursor's. */
static void draw_row(const struct oc_app *app, const struct oc_layers_state *state, const struct oc_ledger *ledger,
                     struct oc_canvas *canvas, struct oc_rect row, int index, enum oc_unit unit)
{
    const struct oc_layers_row *of = &state->rows[index];
    int name, most = columns_that_fit(row.w, &name);
    if (of->entry < 0) {
        draw_heading(canvas, row, of, unit);
    } else {
        char text[160];
        const struct oc_entry *entry = oc_layers_entry(state, ledger, of->entry);
        const struct line line = {state, entry, of->entry, of->bytes, of->entry >= ledger->n_entries, unit};
        const int indent = state->group == OC_GROUP_NONE ? 1 : 2;
        oc_class_box(canvas, row.x + indent, row.y, 1, entry->class);
        oc_canvas_text(canvas, row.x + indent + 2, row.y, name - indent - 3, of->bytes ? OC_ROLE_TEXT : OC_ROLE_DIM,
                       oc_layers_name(entry, text, sizeof text));
        draw_cells(canvas, row, most, name, &line);
    }
    oc_canvas_target(canvas, row, OC_TARGET_ROW, index);
    if (index != state->focus) return;
    struct oc_rect marked = {row.x + 3, row.y, row.w - 3, 1}; /* the class keeps its colour */
    oc_canvas_mark(canvas, marked, oc_app_in_view(app) ? OC_ROLE_FOCUS : OC_ROLE_FOCUS_OUT);
    oc_canvas_put(canvas, row.x, row.y, oc_canvas_style(canvas, OC_ROLE_TITLE), '>');
}

static void draw_list(const struct oc_app *app, struct oc_layers_state *state, const struct oc_ledger *ledger,
                      struct oc_canvas *canvas, struct oc_rect rect)
{
    const enum oc_unit unit = oc_axis_unit(state->alive.allocated);
    int name, most = columns_that_fit(rect.w, &name), rows = rect.h - 1;
    draw_head(canvas, rect, most, name, unit);
    state->shown = rows;
    if (rows < 1) return;
    if (state->focus >= state->n_rows) state->focus = state->n_rows - 1;
    if (state->focus < 0) state->focus = 0;
    state->top = oc_layout_top(state->top, state->focus, state->n_rows, rows);
    /* A heading just above the first row comes into sight with it. */
    if (state->top == 1 && state->focus == 1 && rows > 1 && state->rows[0].entry < 0) state->top = 0;
    for (int i = 0; i < rows && state->top + i < state->n_rows; i++)
        draw_row(app, state, ledger, canvas, (struct oc_rect){rect.x, rect.y + 1 + i, rect.w, 1}, state->top + i, unit);
    if (!state->n_rows)
        oc_canvas_print(canvas, rect.x + 1, rect.y + 1, rect.w - 2, OC_ROLE_DIM,
                        "no entry has \"%s\" in it; Esc shows all", state->filter);
}

/* The sum, and what it leaves out. */
static void draw_total(const struct oc_layers_state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    const enum oc_unit unit = oc_axis_unit(state->alive.allocated);
    char text[OC_BYTES_TEXT];
    oc_format_amount(state->bytes, unit, 0, text, sizeof text);
    const int start = oc_canvas_right(canvas, rect.x, rect.y, rect.w - 1, OC_ROLE_TITLE, text);
    const int used = oc_canvas_print(canvas, rect.x + 1, rect.y, start - rect.x - 2, OC_ROLE_TITLE, "= %d entries",
                                     state->n_entries);
    if (state->bytes == state->alive.allocated && !state->n_hidden) return;
    oc_format_bytes(state->alive.allocated, unit, text, sizeof text);
    oc_canvas_print(canvas, rect.x + used + 2, rect.y, start - rect.x - used - 4, OC_ROLE_DIM,
                    state->bytes == state->alive.allocated ? "%d more are not alive then" : "%d more, all hold %s",
                    state->n_hidden, text);
}

/* ---- one entry, in full ---- */

static void draw_entry(const struct oc_layers_state *state, const struct oc_ledger *ledger, struct oc_canvas *canvas,
                       struct oc_rect rect)
{
    char text[1200];
    const struct oc_rect inner = {rect.x + 1, rect.y + 1, rect.w - 2, rect.h - 1};
    oc_canvas_hline(canvas, rect.x, rect.y, rect.w);
    if (!state->n_rows) return;
    if (state->rows[state->focus].entry < 0) {
        oc_canvas_print(canvas, inner.x, inner.y, inner.w, OC_ROLE_TEXT, "%s: %d entries",
                        state->rows[state->focus].heading, state->rows[state->focus].members);
        return;
    }
    oc_layers_tell(state, ledger, text, sizeof text);
    oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, text);
}

/* Rows that the focused entry takes in full. */
static int entry_rows(const struct oc_layers_state *state, const struct oc_ledger *ledger, int width)
{
    char text[1200];
    if (!state->n_rows || state->focus >= state->n_rows || state->rows[state->focus].entry < 0) return 2;
    oc_layers_tell(state, ledger, text, sizeof text);
    return 1 + oc_canvas_wrap(NULL, (struct oc_rect){0, 0, width - 2, 0}, 0, OC_ROLE_TEXT, text);
}

/* ---- the view ---- */

static void draw_title(const struct oc_app *app, const struct oc_layers_state *state, struct oc_canvas *canvas,
                       struct oc_rect rect)
{
    static const char *const sorts[] = {"size", "class", "name"}, *const groups[] = {NULL, "class", "part"};
    const struct oc_instant *instant = instant_of(app, state);
    char left[120], right[160], when[48], stage[24] = "";
    snprintf(when, sizeof when, state->moment == OC_AT_PEAK ? "the peak, in %s" : "the highest of %s",
             oc_moment_name(instant->place.moment));
    if (app->answer->n_ranks > 1) snprintf(stage, sizeof stage, "stage %d, ", (int)oc_app_stage(app));
    snprintf(left, sizeof left, "Entries, %s%s", stage, when);
    if (state->filter[0])
        snprintf(right, sizeof right, "with \"%s\"", state->filter);
    else
        snprintf(right, sizeof right, "by %s%s%s", sorts[state->sort], state->group ? ", in each " : "",
                 state->group ? groups[state->group] : "");
    int start = rect.x + rect.w;
    if (oc_text_width(left) + oc_text_width(right) + 4 <= rect.w || state->filter[0])
        start = oc_canvas_right(canvas, rect.x, rect.y, rect.w - 1, OC_ROLE_DIM, right);
    oc_canvas_text(canvas, rect.x + 1, rect.y, start - rect.x - 3, OC_ROLE_TITLE, left);
}

static void draw(const struct oc_app *app, void *memory, struct oc_canvas *canvas, struct oc_rect rect)
{
    enum { TITLE, LIST, TOTAL, ENTRY, BLOCKS };
    struct oc_layers_state *state = memory;
    const struct oc_ledger *ledger = refresh(app, state);
    int heights[BLOCKS], y = rect.y;
    if (!ledger) {
        oc_canvas_text(canvas, rect.x + 1, rect.y, rect.w - 2, OC_ROLE_DIM, "there is no ledger of this stage");
        return;
    }
    const int full = entry_rows(state, ledger, rect.w), brief = full < 4 ? full : 4; /* a rule and three rows */
    const int detail = state->open || rect.h >= 30 ? full : brief;
    const struct oc_block blocks[BLOCKS] = {{1, 1, 0}, {4, rect.h, 3}, {1, 1, 1}, {brief, detail, 2}};
    oc_layout_stack(rect.h, blocks, BLOCKS, heights);
    for (int i = 0; i < BLOCKS; y += heights[i++]) {
        const struct oc_rect part = {rect.x, y, rect.w, heights[i]};
        if (part.h <= 0) continue;
        if (i == TITLE) draw_title(app, state, canvas, part);
        if (i == LIST) draw_list(app, state, ledger, canvas, part);
        if (i == TOTAL) draw_total(state, canvas, part);
        if (i == ENTRY) draw_entry(state, ledger, canvas, part);
    }
}

/* ---- keys ---- */

static void filter(struct oc_app *app, const char *text)
{
    struct oc_layers_state *state = oc_view_state(app, &oc_view_layers);
    const struct oc_ledger *ledger = refresh(app, state);
    snprintf(state->filter, sizeof state->filter, "%s", text);
    if (ledger) oc_layers_make(state, ledger);
}

static bool filtered(struct oc_app *app, const char *text)
{
    filter(app, text);
    return true;
}

static void unfiltered(struct oc_app *app)
{
    filter(app, "");
}

/* The next moment that the run has, the peak between the last and the first. */
static void move_moment(const struct oc_app *app, struct oc_layers_state *state, int by)
{
    const struct oc_rank *rank = &app->answer->ranks[oc_app_stage(app)];
    do {
        state->moment += by;
        if (state->moment < OC_AT_PEAK) state->moment = OC_MOMENTS - 1;
        if (state->moment == OC_MOMENTS) state->moment = OC_AT_PEAK;
    } while (state->moment != OC_AT_PEAK && !rank->moments[OC_STEADY][state->moment].exists);
}

static void move(struct oc_layers_state *state, int by)
{
    state->focus = oc_layout_move(state->focus, by, state->n_rows);
}

/* What changes which rows there are. */
static bool rearrange(struct oc_layers_state *state, enum oc_request what)
{
    switch (what) {
    case OC_REQ_NEXT: state->sort = (state->sort + 1) % OC_SORTS; return true;
    case OC_REQ_PREVIOUS: state->sort = (state->sort + OC_SORTS - 1) % OC_SORTS; return true;
    case OC_REQ_DOUBLE: state->group = (state->group + 1) % OC_GROUPS; return true;
    case OC_REQ_HALVE: state->group = (state->group + OC_GROUPS - 1) % OC_GROUPS; return true;
    case OC_REQ_TOGGLE: state->everything = !state->everything; return true;
    default: return false;
    }
}

static bool request(struct oc_app *app, void *memory, enum oc_request what)
{
    static const struct oc_question question = {
        "filter", "Enter keeps it, Esc shows all; words of a name, a class, a type or a rule", filtered, filter,
        unfiltered};
    struct oc_layers_state *state = memory;
    const struct oc_ledger *ledger = refresh(app, state);
    if (!ledger) return false;
    if (rearrange(state, what)) {
        oc_layers_make(state, ledger);
        return true;
    }
    switch (what) {
    case OC_REQ_DOWN: move(state, 1); break;
    case OC_REQ_UP: move(state, -1); break;
    case OC_REQ_PAGE_DOWN: move(state, state->shown); break;
    case OC_REQ_PAGE_UP: move(state, -state->shown); break;
    case OC_REQ_FIRST: move(state, -OC_LAYERS_ROWS); break;
    case OC_REQ_LAST: move(state, OC_LAYERS_ROWS); break;
    case OC_REQ_EDIT: state->open = !state->open; break;
    case OC_REQ_FIND: oc_app_ask(app, &question, state->filter); break;
    case OC_REQ_FIND_NEXT: move_moment(app, state, 1); break;
    case OC_REQ_FIND_PREVIOUS: move_moment(app, state, -1); break;
    case OC_REQ_UNFOLD: oc_app_move_stage(app, 1); break;
    case OC_REQ_FOLD: oc_app_move_stage(app, -1); break;
    case OC_REQ_CANCEL:
        if (!state->open && !state->filter[0]) return false;
        if (!state->open) unfiltered(app);
        state->open = false;
        break;
    default: return false;
    }
    return true;
}

static bool pick(struct oc_app *app, void *memory, int row)
{
    struct oc_layers_state *state = memory;
    (void)app;
    if (state->focus == row) return false;
    state->focus = row;
    return true;
}

static void help(const struct oc_app *app, const void *memory, char *text, size_t size)
{
    const struct oc_layers_state *state = memory;
    (void)app;
    snprintf(
        text, size,
        "Every block of memory that one rank holds, with the rule behind it. Enter tells all of it; n and N look at "
        "another moment; Space %s.",
        state->everything ? "leaves out what is not alive" : "adds what is not alive");
}

static const struct oc_view_key keys[] = {
    {OC_REQ_DOWN, "", "one entry down"},
    {OC_REQ_UP, "", "one entry up"},
    {OC_REQ_PREVIOUS, "sort", "sort by size, class or name"},
    {OC_REQ_NEXT, "sort", "sort by size, class or name"},
    {OC_REQ_HALVE, "group", "group by nothing, class or part of the layer"},
    {OC_REQ_DOUBLE, "group", "group by nothing, class or part of the layer"},
    {OC_REQ_FIND, "filter", "show entries that have these words"},
    {OC_REQ_EDIT, "open", "the whole entry: its sum, its life, its rule and source"},
    {OC_REQ_FIND_NEXT, "moment", "what is alive at the next moment of a step"},
    {OC_REQ_FIND_PREVIOUS, "moment", "what is alive at the moment before"},
    {OC_REQ_TOGGLE, "", "entries that are not alive then, too"},
    {OC_REQ_UNFOLD, "", "the next pipeline stage"},
    {OC_REQ_FOLD, "", "the pipeline stage before"},
    {OC_REQUESTS, NULL, NULL}};

const struct oc_view_ops oc_view_layers = {.title = "Layers",
                                           .brief = "Layers",
                                           .about = "Layers: every entry of the ledger, with its rule and source",
                                           .state_size = sizeof(struct oc_layers_state),
                                           .draw = draw,
                                           .request = request,
                                           .pick = pick,
                                           .help = help,
                                           .keys = keys};
