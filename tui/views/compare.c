/* The compare view: A, the configuration as it is, against B, the base: which options differ, and what that changes,
 * class by class and entry by entry. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/bars.h"
#include "tui/screen/layout.h"
#include "tui/views/compare.h"
#include "tui/views/views.h"

/* The stage of the base that belongs to the one that is looked at. */
static int64_t base_stage(const struct oc_app *app)
{
    const int64_t stage = oc_app_stage(app);
    if (app->stage < 0) return app->base->verdict.worst_stage;
    return stage < app->base->n_ranks ? stage : app->base->n_ranks - 1;
}

static uint64_t bytes_at(const struct oc_rank *rank, int moment)
{
    return moment == OC_AT_PEAK ? rank->peak.allocated : rank->moments[OC_STEADY][moment].allocated;
}

/* The comparison is of what is looked at: a replay that comes later adds to the bytes. */
static bool is_fresh(const struct oc_app *app, const struct oc_compare_state *state)
{
    const struct oc_rank *a = &app->answer->ranks[oc_app_stage(app)], *b = &app->base->ranks[base_stage(app)];
    return bytes_at(a, state->moment) == state->comparison.at_a.allocated &&
           bytes_at(b, state->moment) == state->comparison.at_b.allocated && state->plan_a == app->answer->plan.hash &&
           state->plan_b == app->base->plan.hash && state->stage_a == oc_app_stage(app) &&
           state->stage_b == base_stage(app) && state->of_moment == state->moment;
}

/* Joins the two ledgers when they are not joined already. False when there is nothing to compare with. */
static bool refresh(const struct oc_app *app, struct oc_compare_state *state)
{
    if (!state->started) state->moment = OC_AT_PEAK;
    state->started = true;
    if (!app->has_base) return false;
    if (is_fresh(app, state)) return true;
    const int64_t ours = oc_app_stage(app), theirs = base_stage(app);
    const struct oc_ledger *a = oc_app_ledger(app, app->answer, ours), *b = oc_app_ledger(app, app->base, theirs);
    if (!a || !b) return false;
    const struct oc_side sides[2] = {{&app->answer->plan, a, &app->answer->ranks[ours]},
                                     {&app->base->plan, b, &app->base->ranks[theirs]}};
    app->model->compare(&sides[0], &sides[1], state->moment, &state->comparison);
    state->plan_a = app->answer->plan.hash;
    state->plan_b = app->base->plan.hash;
    state->stage_a = ours;
    state->stage_b = theirs;
    state->of_moment = state->moment;
    for (state->n_given = 0; state->n_given < state->comparison.n_options; state->n_given++)
        if (!state->comparison.options[state->n_given].given) break;
    return true;
}

static void draw_title(const struct oc_app *app, const struct oc_compare_state *state, struct oc_canvas *canvas,
                       struct oc_rect rect)
{
    const struct oc_comparison *c = &state->comparison;
    char text[160], when[80], stages[48] = "";
    if (state->moment != OC_AT_PEAK)
        snprintf(when, sizeof when, "the highest of %s", oc_moment_name((enum oc_moment)state->moment));
    else if (c->at_a.place.moment == c->at_b.place.moment)
        snprintf(when, sizeof when, "peaks in %s", oc_moment_name(c->at_a.place.moment));
    else
        snprintf(when, sizeof when, "peaks in %s and %s", oc_moment_name(c->at_a.place.moment),
                 oc_moment_name(c->at_b.place.moment));
    if (app->answer->n_ranks > 1 || app->base->n_ranks > 1)
        snprintf(stages, sizeof stages, ", stages %d and %d", (int)state->stage_a, (int)state->stage_b);
    snprintf(text, sizeof text, "A against base B%s: %s", stages, when);
    oc_canvas_text(canvas, rect.x + 1, rect.y, rect.w - 2, OC_ROLE_TITLE, text);
}

/* ---- the list ---- */

enum { WIDE = 66 }; /* columns from which both sides stand beside the difference */

static void draw_option(const struct oc_compare_state *state, struct oc_canvas *canvas, struct oc_rect row,
                        const struct oc_option_difference *d)
{
    char a[OC_NAME_MAX + 16], b[OC_NAME_MAX + 16], text[200], alone[OC_BYTES_TEXT] = "";
    const struct oc_comparison *c = &state->comparison;
    oc_option_text(&c->a.plan->c, d->option, a, sizeof a);
    oc_option_text(&c->b.plan->c, d->option, b, sizeof b);
    snprintf(text, sizeof text, "%s  %s, B: %s", oc_option(d->option)->key, a[0] ? a : "-", b[0] ? b : "-");
    if (d->alone)
        oc_format_change(0, d->change < 0 ? (uint64_t)-d->change : (uint64_t)d->change, OC_UNIT_GIB, 9, alone,
                         sizeof alone);
    if (d->alone && alone[0] == '+') alone[0] = d->change < 0 ? '+' : '-'; /* what A has more by it */
    oc_canvas_text(canvas, row.x + 1, row.y, row.w - 12, OC_ROLE_CHANGED, text);
    oc_canvas_right(canvas, row.x + row.w - 11, row.y, 10,
                    !d->alone || !d->change ? OC_ROLE_DIM
                    : d->change < 0         ? OC_ROLE_DELTA_UP
                                            : OC_ROLE_DELTA_DOWN,
                    d->alone ? alone : "not alone");
}

static void draw_entry(struct oc_canvas *canvas, struct oc_rect row, const struct oc_entry_difference *d)
{
    char text[200];
    const struct oc_entry *entry = d->a ? d->a : d->b;
    const bool wide = row.w >= WIDE;
    const int amounts = wide ? 3 * OC_COMPARE_AMOUNT : OC_COMPARE_AMOUNT, name = row.w - amounts - 5;
    oc_class_box(canvas, row.x + 1, row.y, 1, entry->class);
    snprintf(text, sizeof text, "%s%s%s", d->name, entry->copy ? ", " : "", entry->copy ? entry->copy : "");
    oc_canvas_text(canvas, row.x + 3, row.y, name, OC_ROLE_TEXT, text);
    if (wide) {
        oc_compare_amounts_draw(canvas, row.x + row.w - 1 - amounts, row.y, 3, d->bytes_a, d->bytes_b, OC_UNIT_GIB,
                                false);
        return;
    }
    oc_canvas_right(canvas, row.x + row.w - 1 - amounts, row.y, OC_COMPARE_AMOUNT,
                    oc_compare_role(d->bytes_a, d->bytes_b),
                    oc_format_change(d->bytes_b, d->bytes_a, OC_UNIT_GIB, OC_COMPARE_AMOUNT - 1, text, sizeof text));
}

static void draw_list(const struct oc_app *app, struct oc_compare_state *state, struct oc_canvas *canvas,
                      struct oc_rect rect)
{
    const int n = oc_compare_rows(state), rows = rect.h - 1;
    char head[160];
    snprintf(head, sizeof head, "%d option%s and %d entr%s differ", state->n_given, state->n_given == 1 ? "" : "s",
             state->comparison.n_entries, state->comparison.n_entries == 1 ? "y" : "ies");
    oc_canvas_text(canvas, rect.x + 1, rect.y, rect.w - (rect.w >= WIDE ? 4 : 1) * OC_COMPARE_AMOUNT - 6, OC_ROLE_DIM,
                   head);
    if (rect.w >= WIDE) {
        oc_canvas_right(canvas, rect.x + rect.w - 1 - 3 * OC_COMPARE_AMOUNT, rect.y, OC_COMPARE_AMOUNT, OC_ROLE_DIM,
                        "A");
        oc_canvas_right(canvas, rect.x + rect.w - 1 - 2 * OC_COMPARE_AMOUNT, rect.y, OC_COMPARE_AMOUNT, OC_ROLE_DIM,
                        "B");
    }
    oc_canvas_right(canvas, rect.x + rect.w - 1 - OC_COMPARE_AMOUNT - 4, rect.y, OC_COMPARE_AMOUNT + 4, OC_ROLE_DIM,
                    "A - B, GiB");
    state->shown = rows;
    if (rows < 1) return;
    if (state->focus >= n) state->focus = n - 1;
    if (state->focus < 0) state->focus = 0;
    state->top = oc_layout_top(state->top, state->focus, n, rows);
    for (int i = 0; i < rows && state->top + i < n; i++) {
        const int index = state->top + i;
        const struct oc_rect row = {rect.x, rect.y + 1 + i, rect.w, 1};
        if (oc_compare_option(state, index))
            draw_option(state, canvas, row, oc_compare_option(state, index));
        else
            draw_entry(canvas, row, oc_compare_entry(state, index));
        oc_canvas_target(canvas, row, OC_TARGET_ROW, index);
        if (index != state->focus) continue;
        oc_canvas_mark(canvas, (struct oc_rect){row.x + 2, row.y, row.w - 2, 1},
                       oc_app_in_view(app) ? OC_ROLE_FOCUS : OC_ROLE_FOCUS_OUT);
        oc_canvas_put(canvas, row.x, row.y, oc_canvas_style(canvas, OC_ROLE_TITLE), '>');
    }
}

/* ---- the reason ---- */

static void draw_reason(const struct oc_compare_state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    char text[1200];
    const struct oc_rect inner = {rect.x + 1, rect.y + 1, rect.w - 2, rect.h - 1};
    oc_canvas_hline(canvas, rect.x, rect.y, rect.w);
    oc_compare_tell(state, text, sizeof text);
    oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, text);
}

/* ---- the view ---- */

static void draw_nothing(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    const struct oc_rect inner = {rect.x + 1, rect.y, rect.w - 2, rect.h};
    oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT,
                   app->has_base
                       ? "These two cannot be compared: one of them has no ledger."
                       : "Nothing to compare with yet.\n\nb keeps the configuration as it is now as the base, B. "
                         "What you change after that stands here against it: the options that differ, what each "
                         "of them does by itself, and every block of memory that is larger or smaller, with the "
                         "reason. x swaps the two.");
}

static void draw(const struct oc_app *app, void *memory, struct oc_canvas *canvas, struct oc_rect rect)
{
    enum { TITLE, BARS, CLASSES, LIST, REASON, BLOCKS };
    struct oc_compare_state *state = memory;
    char text[1200];
    int heights[BLOCKS], y = rect.y;
    if (!refresh(app, state)) {
        draw_nothing(app, canvas, rect);
        return;
    }
    oc_compare_tell(state, text, sizeof text);
    const int full = 1 + oc_canvas_wrap(NULL, (struct oc_rect){0, 0, rect.w - 2, 0}, 0, OC_ROLE_TEXT, text);
    const int brief = full < 3 ? full : 3, gap = rect.h >= 26 ? 1 : 0;
    const struct oc_block blocks[BLOCKS] = {{1, 1, 0},
                                            {3, 3 + gap, 5},
                                            {OC_CLASSES + 2, OC_CLASSES + 2 + gap, state->open ? 4 : 2},
                                            {2, rect.h, 3},
                                            {brief, state->open || gap ? full : brief, 1}};
    oc_layout_stack(rect.h, blocks, BLOCKS, heights);
    for (int i = 0; i < BLOCKS; y += heights[i++]) {
        const struct oc_rect part = {rect.x, y, rect.w, heights[i]};
        if (part.h <= 0) continue;
        if (i == TITLE) draw_title(app, state, canvas, part);
        if (i == BARS) oc_compare_bars_draw(app, state, canvas, part);
        if (i == CLASSES) oc_compare_classes_draw(state, canvas, part);
        if (i == LIST) draw_list(app, state, canvas, part);
        if (i == REASON) draw_reason(state, canvas, part);
    }
}

/* ---- keys ---- */

static void move(struct oc_compare_state *state, int by)
{
    state->focus = oc_layout_move(state->focus, by, oc_compare_rows(state));
}

/* The next moment that one of the two runs has; the peak lies between the last and the first. */
static void move_moment(const struct oc_app *app, struct oc_compare_state *state, int by)
{
    const struct oc_rank *a = &app->answer->ranks[oc_app_stage(app)], *b = &app->base->ranks[base_stage(app)];
    do {
        state->moment += by;
        if (state->moment < OC_AT_PEAK) state->moment = OC_MOMENTS - 1;
        if (state->moment == OC_MOMENTS) state->moment = OC_AT_PEAK;
    } while (state->moment != OC_AT_PEAK && !a->moments[OC_STEADY][state->moment].exists &&
             !b->moments[OC_STEADY][state->moment].exists);
}

/* An option is gone to in the panel; an entry is told in full. */
static void enter(struct oc_app *app, struct oc_compare_state *state)
{
    const struct oc_option_difference *option =
        state->focus < oc_compare_rows(state) ? oc_compare_option(state, state->focus) : NULL;
    if (!option) {
        state->open = !state->open;
        return;
    }
    oc_panel_show(&app->panel, option->option);
    app->in_panel = true;
}

static bool request(struct oc_app *app, void *memory, enum oc_request what)
{
    struct oc_compare_state *state = memory;
    if (!refresh(app, state)) return false;
    switch (what) {
    case OC_REQ_DOWN: move(state, 1); break;
    case OC_REQ_UP: move(state, -1); break;
    case OC_REQ_PAGE_DOWN: move(state, state->shown); break;
    case OC_REQ_PAGE_UP: move(state, -state->shown); break;
    case OC_REQ_FIRST: move(state, -OC_MAX_DIFFERENCES); break;
    case OC_REQ_LAST: move(state, OC_MAX_DIFFERENCES); break;
    case OC_REQ_EDIT: enter(app, state); break;
    case OC_REQ_FIND_NEXT: move_moment(app, state, 1); break;
    case OC_REQ_FIND_PREVIOUS: move_moment(app, state, -1); break;
    case OC_REQ_UNFOLD: oc_app_move_stage(app, 1); break;
    case OC_REQ_FOLD: oc_app_move_stage(app, -1); break;
    case OC_REQ_CANCEL:
        if (!state->open) return false;
        state->open = false;
        break;
    default: return false;
    }
    return true;
}

static bool pick(struct oc_app *app, void *memory, int row)
{
    struct oc_compare_state *state = memory;
    (void)app;
    if (state->focus == row) return false;
    state->focus = row;
    return true;
}

static void help(const struct oc_app *app, const void *memory, char *text, size_t size)
{
    const struct oc_compare_state *state = memory;
    const struct oc_comparison *c = &state->comparison;
    if (!app->has_base) {
        snprintf(text, size, "b sets the base that this view compares with.");
        return;
    }
    char follow[300] = "";
    for (int i = state->n_given; i < c->n_options && strlen(follow) < 200; i++)
        snprintf(follow + strlen(follow), sizeof follow - strlen(follow), "%s%s",
                 i > state->n_given ? ", " : " Follows: ", oc_option(c->options[i].option)->key);
    snprintf(text, size, "What A takes more than B, largest first; Enter goes to an option or tells all of an entry.%s",
             follow);
}

static const struct oc_view_key keys[] = {{OC_REQ_DOWN, "", "one difference down"},
                                          {OC_REQ_UP, "", "one difference up"},
                                          {OC_REQ_EDIT, "open", "go to the option; all about the entry"},
                                          {OC_REQ_FIND_NEXT, "moment", "compare the next moment of a step"},
                                          {OC_REQ_FIND_PREVIOUS, "moment", "compare the moment before"},
                                          {OC_REQ_SWAP, "swap", "swap A and B"},
                                          {OC_REQ_BASE, "base", "let the base go; again: keep this as the base"},
                                          {OC_REQ_UNFOLD, "", "the next pipeline stage"},
                                          {OC_REQ_FOLD, "", "the pipeline stage before"},
                                          {OC_REQUESTS, NULL, NULL}};

const struct oc_view_ops oc_view_compare = {.title = "Compare",
                                            .brief = "A/B",
                                            .about = "Compare: this against the base, entry by entry",
                                            .state_size = sizeof(struct oc_compare_state),
                                            .draw = draw,
                                            .request = request,
                                            .pick = pick,
                                            .help = help,
                                            .keys = keys};
