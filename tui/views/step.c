/* The step view: what a rank holds over one step, instant by instant, and what lies behind the highest one. */
#include "tui/views/views.h"

#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/layout.h"
#include "tui/views/step.h"

enum { CLASSES_WIDTH = 52 }; /* of the table of classes */

/* Makes the timeline of the stage that is looked at, when it is not of it already. The cursor stays at its place in the
 * step, or on the peak until it is moved. */
static bool refresh(const struct oc_app *app, struct oc_step_state *state)
{
    int64_t stage = oc_app_stage(app);
    if (state->plan == app->answer->plan.hash && state->stage == stage) return true;
    const struct oc_ledger *ledger = oc_app_ledger(app, app->answer, stage);
    if (!ledger) return false;
    struct oc_place place = state->plan ? oc_step_cursor(state)->place : (struct oc_place){0};
    oc_timeline_make(ledger, &app->answer->ranks[stage], &state->timeline);
    state->plan = app->answer->plan.hash;
    state->stage = stage;
    if (!state->moved) {
        state->iteration = OC_STEADY;
        state->at = oc_timeline_peak(&state->timeline, OC_STEADY);
    } else {
        oc_step_go_to(state, &place);
    }
    return state->timeline.n[OC_STEADY] > 0;
}

const struct oc_sample *oc_step_cursor(const struct oc_step_state *state)
{
    return &state->timeline.samples[state->iteration][state->at];
}

/* How far an instant is from a place: another moment counts most, then the micro-batch, then the layer. */
static int distance(const struct oc_place *a, const struct oc_place *b)
{
    int moment = a->moment > b->moment ? (int)(a->moment - b->moment) : (int)(b->moment - a->moment);
    int micro_batch =
        a->micro_batch > b->micro_batch ? a->micro_batch - b->micro_batch : b->micro_batch - a->micro_batch;
    int layer = a->layer > b->layer ? a->layer - b->layer : b->layer - a->layer;
    int sub = a->tick.sub > b->tick.sub ? a->tick.sub - b->tick.sub : b->tick.sub - a->tick.sub;
    return ((moment * 1024 + (micro_batch < 1023 ? micro_batch : 1023)) * 1024 + (layer < 1023 ? layer : 1023)) * 64 +
           sub;
}

void oc_step_go_to(struct oc_step_state *state, const struct oc_place *place)
{
    int best = 0;
    state->iteration = place->iteration;
    if (state->timeline.n[state->iteration] == 0) state->iteration = OC_STEADY;
    const struct oc_sample *samples = state->timeline.samples[state->iteration];
    for (int i = 1; i < state->timeline.n[state->iteration]; i++)
        if (distance(&samples[i].place, place) < distance(&samples[best].place, place)) best = i;
    state->at = best;
}

/* "recomputing layer 17, micro-batch 1 in backward" is "backward of layer 17, micro-batch 1, recomputing it" */
static void write_instant(const struct oc_place *place, char *text, size_t size)
{
    char where[96];
    oc_place_text(place, where, sizeof where);
    snprintf(text, size, "%s iteration, %s%s%s%s", oc_iteration_name(place->iteration),
             place->moment == OC_M_AFTER_STEP ? "after the step" : oc_moment_name(place->moment),
             where[0] ? " of " : "", where, place->tick.phase == OC_PH_RECOMPUTE ? ", computed again" : "");
}

static void draw_title(const struct oc_app *app, const struct oc_step_state *state, struct oc_canvas *canvas,
                       struct oc_rect rect)
{
    char peak[OC_BYTES_TEXT], right[64], stage[40] = "";
    const struct oc_timeline *timeline = &state->timeline;
    const struct oc_sample *top = &timeline->samples[OC_STEADY][oc_timeline_peak(timeline, OC_STEADY)];
    oc_format_bytes(top->allocated, OC_UNIT_GIB, peak, sizeof peak);
    snprintf(right, sizeof right, "peak %s", peak);
    int start = oc_canvas_right(canvas, rect.x, rect.y, rect.w - 1, OC_ROLE_CAPACITY, right);
    if (app->answer->n_ranks > 1) snprintf(stage, sizeof stage, " of stage %d", (int)state->stage);
    oc_canvas_print(canvas, rect.x + 1, rect.y, start - rect.x - 2, OC_ROLE_TITLE, "Allocated over a step%s%s", stage,
                    app->zoom ? ", what changes" : "");
}

/* The classes at the cursor in one or two rows, for narrow and low screens. */
static void draw_brief(const struct oc_step_state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    int x = rect.x + 1, y = rect.y;
    for (int class = 0; class < OC_CLASSES && y < rect.y + rect.h; class ++) {
        char amount[OC_BYTES_TEXT];
        oc_format_amount(oc_step_cursor(state)->classes[class], OC_UNIT_GIB, 0, amount, sizeof amount);
        int width = 5 + (int)strlen(amount);
        if (x + width > rect.x + rect.w) x = rect.x + 1, y++;
        if (y == rect.y + rect.h) return;
        oc_class_box(canvas, x, y, 1, class);
        oc_canvas_text(canvas, x + 2, y, width - 3, OC_ROLE_TEXT, amount);
        x += width;
    }
}

/* One row of the table: a class, or the sum (OC_CLASSES). */
static void draw_class(const struct oc_step_state *state, struct oc_canvas *canvas, struct oc_rect rect, int y,
                       int class)
{
    const struct oc_timeline *timeline = &state->timeline;
    const struct oc_sample *now = oc_step_cursor(state),
                           *top = &timeline->samples[OC_STEADY][oc_timeline_peak(timeline, OC_STEADY)];
    bool sum = class == OC_CLASSES;
    const uint64_t amounts[3] = {sum ? now->allocated : now->classes[class], sum ? top->allocated : top->classes[class],
                                 sum ? timeline->static_bytes : timeline->least[class]};
    enum oc_role role = sum ? OC_ROLE_TITLE : OC_ROLE_TEXT;
    if (!sum) oc_class_box(canvas, rect.x + 1, y, 3, class);
    oc_canvas_text(canvas, rect.x + (sum ? 1 : 5), y, 16, role,
                   sum ? "= allocated" : oc_class_name((enum oc_class) class));
    for (int i = 0; i < 3; i++) {
        char text[OC_BYTES_TEXT];
        oc_format_amount(amounts[i], OC_UNIT_GIB, 9, text, sizeof text);
        oc_canvas_right(canvas, rect.x + 18 + 11 * i, y, 10, amounts[i] ? role : OC_ROLE_DIM, text);
    }
}

static void draw_table(const struct oc_step_state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    static const char *const heads[] = {"at cursor", "at peak", "always"};
    if (rect.h <= OC_CLASSES + 1 || rect.w < CLASSES_WIDTH) {
        draw_brief(state, canvas, rect);
        return;
    }
    oc_canvas_text(canvas, rect.x + 1, rect.y, 16, OC_ROLE_DIM, "GiB");
    for (int i = 0; i < 3; i++) oc_canvas_right(canvas, rect.x + 18 + 11 * i, rect.y, 10, OC_ROLE_DIM, heads[i]);
    for (int class = 0; class <= OC_CLASSES; class ++) draw_class(state, canvas, rect, rect.y + 1 + class, class);
}

static void draw(const struct oc_app *app, void *memory, struct oc_canvas *canvas, struct oc_rect rect)
{
    enum { TITLE, CHART, PLACE, TABLE, BLOCKS };
    struct oc_step_state *state = memory;
    struct oc_rect row = {rect.x, rect.y, rect.w, 1};
    if (!refresh(app, state)) {
        oc_canvas_text(canvas, rect.x + 1, rect.y, rect.w - 2, OC_ROLE_DIM, "the ledger of this stage is not known");
        return;
    }
    const bool tall = rect.h >= 26 && rect.w >= CLASSES_WIDTH;
    const bool beside = tall && app->live && rect.w >= CLASSES_WIDTH + 48; /* the probe has room */
    const int table = beside ? OC_MOMENTS + 1 : tall ? OC_CLASSES + 2 : 2;
    const struct oc_block blocks[BLOCKS] = {{1, 1, 0}, {6, rect.h, 3}, {1, 1, 1}, {table, table, 2}};
    int heights[BLOCKS];
    oc_layout_stack(rect.h, blocks, BLOCKS, heights);
    draw_title(app, state, canvas, row);
    row.y += heights[TITLE];
    oc_step_chart(app, state, canvas, (struct oc_rect){rect.x, row.y, rect.w, heights[CHART]});
    row.y += heights[CHART];
    if (heights[PLACE]) {
        char text[200], amount[OC_BYTES_TEXT], place[160];
        oc_format_bytes(oc_step_cursor(state)->allocated, OC_UNIT_GIB, amount, sizeof amount);
        write_instant(&oc_step_cursor(state)->place, place, sizeof place);
        snprintf(text, sizeof text, "^ %s: %s", amount, place);
        oc_canvas_text(canvas, rect.x + 1, row.y, rect.w - 2, OC_ROLE_TITLE, text);
    }
    row.y += heights[PLACE];
    if (heights[TABLE]) draw_table(state, canvas, (struct oc_rect){rect.x, row.y, rect.w, heights[TABLE]});
    if (beside && heights[TABLE] == table)
        oc_step_probe(app, state, canvas,
                      (struct oc_rect){rect.x + CLASSES_WIDTH + 3, row.y, rect.w - CLASSES_WIDTH - 4, table});
}

/* ---- keys ---- */

/* The column that holds the cursor, or -1 before anything was drawn. */
static int column_of(const struct oc_step_state *state)
{
    for (int i = 0; i < state->n_columns; i++)
        if (state->columns[i].iteration == state->iteration && state->at >= state->columns[i].c.first &&
            state->at <= state->columns[i].c.last)
            return i;
    return -1;
}

static void go_to_column(struct oc_step_state *state, int column)
{
    if (column < 0 || column >= state->n_columns) return;
    state->iteration = state->columns[column].iteration;
    state->at = state->columns[column].c.top;
}

/* Where several columns show one sample, a move leaves all of them. Past the end of what is shown lies the other
 * iteration. */
static void move_column(struct oc_step_state *state, int by)
{
    int from = column_of(state), to = from + by;
    while (to >= 0 && to < state->n_columns && state->columns[to].iteration == state->iteration &&
           state->columns[to].c.first <= state->at && state->columns[to].c.last >= state->at)
        to += by;
    if (to >= 0 && to < state->n_columns) {
        go_to_column(state, to);
    } else if (by < 0 && state->iteration == OC_STEADY && state->timeline.n[OC_FIRST]) {
        state->iteration = OC_FIRST;
        state->at = state->timeline.n[OC_FIRST] - 1;
    } else if (by > 0 && state->iteration == OC_FIRST && state->timeline.n[OC_STEADY]) {
        state->iteration = OC_STEADY;
        state->at = 0;
    }
}

static void move_stretch(struct oc_step_state *state, int by)
{
    const struct oc_sample *samples = state->timeline.samples[state->iteration];
    int at = state->at, n = state->timeline.n[state->iteration];
    if (by < 0 && at > 0) at--;
    while (at > 0 && by < 0 && !oc_sample_begins(samples, at)) at--;
    if (by > 0 && at < n) at++;
    while (at < n && by > 0 && !oc_sample_begins(samples, at)) at++;
    if (at < n) state->at = at;
}

static uint64_t height(const struct oc_step_state *state, int column)
{
    const struct oc_step_column *c = &state->columns[column];
    return state->timeline.samples[c->iteration][c->c.top].allocated;
}

/* A column higher than those beside it, plateaus counted as one. */
static bool is_peak(const struct oc_step_state *state, int column)
{
    int left = column - 1, right = column + 1;
    uint64_t here = height(state, column);
    if (left >= 0 && height(state, left) == here) return false; /* the first column of a plateau stands for it */
    while (right < state->n_columns && height(state, right) == here) right++;
    return (left < 0 || height(state, left) < here) && (right == state->n_columns || height(state, right) < here);
}

static bool move_peak(struct oc_step_state *state, int by)
{
    for (int i = column_of(state) + by; i >= 0 && i < state->n_columns; i += by) {
        if (!is_peak(state, i)) continue;
        go_to_column(state, i);
        return true;
    }
    return false;
}

static bool request(struct oc_app *app, void *memory, enum oc_request what)
{
    struct oc_step_state *state = memory;
    if (!refresh(app, state)) return false;
    switch (what) {
    case OC_REQ_PREVIOUS: move_column(state, -1); break;
    case OC_REQ_NEXT: move_column(state, 1); break;
    case OC_REQ_HALVE: move_stretch(state, -1); break;
    case OC_REQ_DOUBLE: move_stretch(state, 1); break;
    case OC_REQ_FIRST: state->iteration = state->timeline.n[OC_FIRST] ? OC_FIRST : OC_STEADY, state->at = 0; break;
    case OC_REQ_LAST: state->iteration = OC_STEADY, state->at = state->timeline.n[OC_STEADY] - 1; break;
    case OC_REQ_FIND_NEXT:
        if (!move_peak(state, 1)) oc_app_say(app, false, "no further peak to the right");
        break;
    case OC_REQ_FIND_PREVIOUS:
        if (!move_peak(state, -1)) oc_app_say(app, false, "no further peak to the left");
        break;
    case OC_REQ_DOWN: oc_app_move_stage(app, 1); return true;
    case OC_REQ_UP: oc_app_move_stage(app, -1); return true;
    case OC_REQ_EDIT:
        state->iteration = OC_STEADY, state->at = oc_timeline_peak(&state->timeline, OC_STEADY);
        state->moved = false;
        return true;
    default: return false;
    }
    state->moved = true;
    return true;
}

static void help(const struct oc_app *app, const void *memory, char *text, size_t size)
{
    (void)memory;
    snprintf(
        text, size,
        "Left to right is the order of births and deaths, not seconds; a column shows the highest instant of those it "
        "stands for.%s%s",
        app->zoom ? "  z shows what is always there again." : "  z leaves out what is always there.",
        oc_app_measured(app) || oc_app_simulated(app)
            ? "  Beside it: the dry run in each moment, and what the probe differs by from the model at its own size."
            : "");
}

static const struct oc_view_key keys[] = {
    {OC_REQ_PREVIOUS, "cursor", "one column to the left; past the left end, the first iteration"},
    {OC_REQ_NEXT, "cursor", "one column to the right"},
    {OC_REQ_HALVE, "moment", "the moment before"},
    {OC_REQ_DOUBLE, "moment", "the next moment"},
    {OC_REQ_FIND_NEXT, "peaks", "the next peak to the right"},
    {OC_REQ_FIND_PREVIOUS, "peaks", "the next peak to the left"},
    {OC_REQ_EDIT, "highest", "the highest instant of the steady iteration"},
    {OC_REQ_FIRST, "", "the first instant of the first iteration"},
    {OC_REQ_LAST, "", "the last instant"},
    {OC_REQ_DOWN, "", "the next pipeline stage"},
    {OC_REQ_UP, "", "the pipeline stage before"},
    {OC_REQUESTS, NULL, NULL}};

const struct oc_view_ops oc_view_step = {.title = "Step",
                                         .brief = "Step",
                                         .about = "Step: what a rank holds, instant by instant",
                                         .state_size = sizeof(struct oc_step_state),
                                         .draw = draw,
                                         .request = request,
                                         .help = help,
                                         .keys = keys};
