/* The pipeline view: every stage with its layers, what it holds at its peak, and what it keeps in flight. */
#include "tui/views/views.h"

#include <stdlib.h>
#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/bars.h"
#include "tui/screen/layout.h"

enum { LAYERS = 160, ORDER = 256 };

struct state {
    uint64_t plan; /* hash of the plan that the following is of; 0 = none yet */
    struct {
        int flight;          /* chunk forwards without their backward, at most */
        char layers[LAYERS]; /* "emb 0-3 16-19 head" */
        int8_t order[ORDER]; /* of its first slots: micro-batch + 1, negative for a backward; 0 = the end */
    } stages[OC_MAX_STAGES];
    int top, shown; /* first stage on the screen, and how many are */
};

/* ---- what is said of a stage ---- */

static int most_in_flight(const struct oc_ledger *ledger)
{
    int open = 0, most = 0;
    for (int i = 0; i < ledger->n_slots; i++) {
        open += ledger->slots[i].backward ? -1 : 1;
        if (open > most) most = open;
    }
    return most;
}

/* Chunks in the order in which the stage runs them. */
static void write_layers(const struct oc_ledger *ledger, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < ledger->n_chunks && used < size; i++) {
        const struct oc_chunk *chunk = &ledger->chunks[i];
        int first = (int)chunk->first_layer, n = 0;
        char layers[48] = "none";
        for (int run = 0; run < chunk->n_runs; run++) n += chunk->runs[run].layers;
        if (n == 1)
            snprintf(layers, sizeof layers, "%d", first);
        else if (n > 1)
            snprintf(layers, sizeof layers, "%d-%d", first, first + n - 1);
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", used ? " " : "", chunk->embedding ? "emb " : "",
                                 layers, chunk->head ? " head" : "");
    }
}

/* Micro-batches are told apart by their last digit, which is all that is drawn. */
static void write_order(const struct oc_ledger *ledger, int8_t *order)
{
    memset(order, 0, ORDER);
    for (int i = 0; i < ledger->n_slots && i < ORDER; i++) {
        int8_t number = (int8_t)(ledger->slots[i].micro_batch % 10 + 1);
        order[i] = ledger->slots[i].backward ? (int8_t)-number : number;
    }
}

static void refresh(const struct oc_app *app, struct state *state)
{
    if (state->plan == app->answer->plan.hash) return;
    state->plan = app->answer->plan.hash;
    for (int i = 0; i < app->answer->n_ranks; i++) {
        const struct oc_ledger *ledger = oc_app_ledger(app, app->answer, i);
        state->stages[i].flight = ledger ? most_in_flight(ledger) : 0;
        state->stages[i].layers[0] = '\0';
        state->stages[i].order[0] = 0;
        if (!ledger) continue;
        write_layers(ledger, state->stages[i].layers, LAYERS);
        write_order(ledger, state->stages[i].order);
    }
}

static uint64_t mean_peak(const struct oc_answer *answer)
{
    double sum = 0;
    for (int i = 0; i < answer->n_ranks; i++) sum += (double)answer->ranks[i].peak.allocated;
    return (uint64_t)(sum / answer->n_ranks + 0.5);
}

/* "A +2.10, W +0.49": by how much a stage differs from the mean, the largest differences first. */
static void write_difference(const struct oc_answer *answer, int64_t stage, char *text, size_t size)
{
    double by[OC_CLASSES];
    size_t used = 0;
    text[0] = '\0';
    for (int class = 0; class < OC_CLASSES; class ++) {
        double sum = 0;
        for (int i = 0; i < answer->n_ranks; i++) sum += (double)answer->ranks[i].peak.classes[class];
        by[class] = (double)answer->ranks[stage].peak.classes[class] - sum / answer->n_ranks;
    }
    for (int n = 0; n < 3; n++) {
        int best = 0;
        for (int class = 1; class < OC_CLASSES; class ++)
            if ((by[class] < 0 ? -by[class] : by[class]) > (by[best] < 0 ? -by[best] : by[best])) best = class;
        double gib = by[best] / (double)(1u << 30);
        if (gib > -0.005 && gib < 0.005) break;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s %+.2f", used ? ", " : "",
                                     oc_class_name((enum oc_class)best), gib);
        by[best] = 0;
    }
}

/* ---- drawing ---- */

struct table {
    int layers, bar, amount, flight; /* widths of the columns; 0 = left out */
    uint64_t scale;
    enum oc_unit unit;
};

enum { LABEL = 10 };

static struct table make_table(const struct oc_app *app, int width)
{
    struct table table = {.layers = width >= 90   ? 26
                                    : width >= 70 ? 16
                                                  : 10,
                          .amount = 10,
                          .flight = width >= 60 ? 11 : 5};
    uint64_t largest = 0;
    for (int i = 0; i < app->answer->n_ranks; i++)
        if (app->answer->ranks[i].peak.allocated > largest) largest = app->answer->ranks[i].peak.allocated;
    table.scale = oc_axis_scale(largest, app->zoom ? 0 : app->answer->plan.capacity);
    table.unit = oc_axis_unit(table.scale);
    table.bar = width - LABEL - table.layers - table.amount - table.flight - 1;
    if (table.bar < 12) table.bar += table.layers, table.layers = 0;
    return table;
}

static void draw_head(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect,
                      const struct table *table)
{
    int x = rect.x + LABEL;
    if (table->layers) oc_canvas_text(canvas, x, rect.y, table->layers, OC_ROLE_DIM, "layers");
    x += table->layers;
    oc_axis_draw(canvas, x, rect.y, table->bar, table->scale, table->unit);
    x += table->bar;
    oc_canvas_right(canvas, x, rect.y, table->amount, OC_ROLE_DIM, oc_unit_name(table->unit));
    x += table->amount;
    oc_canvas_right(canvas, x, rect.y, table->flight, OC_ROLE_DIM,
                    table->flight < 11                     ? "mb"
                    : app->answer->plan.c.parallel_vpp > 1 ? "chunks"
                                                           : "in flight");
}

static void draw_stage(const struct oc_app *app, const struct state *state, struct oc_canvas *canvas,
                       struct oc_rect rect, const struct table *table, int stage)
{
    const struct oc_rank *rank = &app->answer->ranks[stage];
    const struct oc_plan *plan = &app->answer->plan;
    char text[400];
    bool worst = stage == (int)app->answer->verdict.worst_stage;
    int x = rect.x + LABEL;
    oc_canvas_print(canvas, rect.x + 1, rect.y, LABEL - 1, OC_ROLE_TEXT, "stage %d%s", stage, worst ? " *" : "");
    if (table->layers) oc_canvas_text(canvas, x, rect.y, table->layers - 1, OC_ROLE_DIM, state->stages[stage].layers);
    x += table->layers;
    struct oc_bar bar = {rank->peak.classes, table->scale, plan->capacity, table->unit, false, true};
    oc_bar_draw(canvas, x, rect.y, table->bar, &bar);
    x += table->bar;
    oc_format_amount(rank->peak.allocated, table->unit, table->amount - 2, text, sizeof text);
    oc_canvas_right(canvas, x, rect.y, table->amount, worst ? OC_ROLE_TITLE : OC_ROLE_TEXT, text);
    x += table->amount;
    snprintf(text, sizeof text, "%d", state->stages[stage].flight);
    oc_canvas_right(canvas, x, rect.y, table->flight, OC_ROLE_TEXT, text);
    if (stage != (int)oc_app_stage(app)) return;
    struct oc_rect label = {rect.x, rect.y, LABEL + table->layers, 1};
    oc_canvas_mark(canvas, label, oc_app_in_view(app) ? OC_ROLE_FOCUS : OC_ROLE_FOCUS_OUT);
    oc_canvas_put(canvas, rect.x, rect.y, oc_canvas_at(canvas, rect.x, rect.y)->style, '>');
}

/* The stages that fit, with the chosen one among them. */
static void draw_stages(const struct oc_app *app, struct state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    struct table table = make_table(app, rect.w);
    int chosen = (int)oc_app_stage(app), n = app->answer->n_ranks, rows = rect.h - 1;
    if (rows < 1) return;
    if (rows < n) rows--; /* one row says that there are more */
    if (rows < 1) rows = 1;
    state->top = oc_layout_top(state->top, chosen, n, rows);
    state->shown = rows;
    draw_head(app, canvas, rect, &table);
    for (int i = 0; i < rows && state->top + i < n; i++) {
        const struct oc_rect row = {rect.x, rect.y + 1 + i, rect.w, 1};
        draw_stage(app, state, canvas, row, &table, state->top + i);
        oc_canvas_target(canvas, row, OC_TARGET_ROW, state->top + i);
    }
    if (rows < n && rect.h > 2)
        oc_canvas_print(canvas, rect.x + 1, rect.y + rect.h - 1, rect.w - 2, OC_ROLE_DIM, "stages %d to %d of %d",
                        state->top, state->top + rows - 1, n);
}

/* What each stage runs, one column a slot: a filled cell is a forward, whose activations stay until the backward of the
 * same number. */
static void draw_order(const struct oc_app *app, const struct state *state, struct oc_canvas *canvas,
                       struct oc_rect rect)
{
    struct oc_style forward = {0, 0, 0}, backward = oc_canvas_style(canvas, OC_ROLE_DIM);
    const struct oc_class_look *look = &canvas->theme->classes[OC_ACTIVATIONS];
    if (canvas->colour) forward = (struct oc_style){look->text, look->colour, 0};
    if (!canvas->colour) forward.attr = OC_ATTR_REVERSE;
    int x =
        rect.x + 1 + oc_canvas_text(canvas, rect.x + 1, rect.y, rect.w - 2, OC_ROLE_TITLE, "Order on each stage") + 2;
    for (int i = 0; i < 2 && x + 14 < rect.x + rect.w; i++) {
        oc_canvas_put(canvas, x, rect.y, i ? backward : forward, '1');
        x += 2 + oc_canvas_text(canvas, x + 2, rect.y, 10, OC_ROLE_DIM, i ? "backward" : "forward") + 2;
    }
    if (app->answer->plan.accum > 9)
        oc_canvas_text(canvas, x, rect.y, rect.x + rect.w - 1 - x, OC_ROLE_DIM,
                       "the first and the last; between them it repeats");
    for (int row = 0; row + 1 < rect.h && state->top + row < app->answer->n_ranks; row++) {
        int stage = state->top + row, y = rect.y + 1 + row, room = rect.w - LABEL - 1;
        const int8_t *order = state->stages[stage].order;
        oc_canvas_print(canvas, rect.x + 1, y, LABEL - 1, OC_ROLE_TEXT, "stage %d", stage);
        for (int i = 0; i < ORDER && order[i] && i < room; i++) {
            bool last = i == room - 1 && i + 1 < ORDER && order[i + 1];
            int number = order[i] < 0 ? -order[i] : order[i];
            oc_canvas_put(canvas, rect.x + LABEL + i, y, order[i] > 0 && !last ? forward : backward,
                          last ? '~' : (uint32_t)('0' + number % 10));
        }
    }
}

static void draw_balance(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    const struct oc_answer *answer = app->answer;
    int64_t worst = answer->verdict.worst_stage;
    char peak[OC_BYTES_TEXT], mean[OC_BYTES_TEXT], why[96], text[400];
    if (answer->n_ranks == 1) {
        oc_canvas_wrap(canvas, rect, 0, OC_ROLE_TEXT,
                       "One stage holds the whole model. parallel.pp deals the layers out over more.");
        return;
    }
    uint64_t average = mean_peak(answer);
    oc_format_bytes(answer->ranks[worst].peak.allocated, OC_UNIT_GIB, peak, sizeof peak);
    oc_format_bytes(average, OC_UNIT_GIB, mean, sizeof mean);
    write_difference(answer, worst, why, sizeof why);
    snprintf(text, sizeof text, "* Stage %d is the worst: %s, %.2f times the mean of %s.%s%s%s", (int)worst, peak,
             average ? (double)answer->ranks[worst].peak.allocated / (double)average : 0, mean,
             why[0] ? " Against the mean: " : "", why, why[0] ? " GiB." : "");
    oc_canvas_wrap(canvas, rect, 0, OC_ROLE_TEXT, text);
}

/* Everything about the chosen stage. */
static void draw_chosen(const struct oc_app *app, const struct state *state, struct oc_canvas *canvas,
                        struct oc_rect rect)
{
    const struct oc_answer *answer = app->answer;
    int64_t stage = oc_app_stage(app), vpp = answer->plan.c.parallel_vpp;
    const struct oc_rank *rank = &answer->ranks[stage];
    char place[96], count[OC_BYTES_TEXT], low[OC_BYTES_TEXT], high[OC_BYTES_TEXT], text[800];
    oc_place_text(&rank->peak.place, place, sizeof place);
    struct oc_range device = app->model->device(&answer->plan, rank);
    oc_format_amount(device.low, OC_UNIT_GIB, 0, low, sizeof low);
    oc_format_bytes(device.high, OC_UNIT_GIB, high, sizeof high);
    snprintf(
        text, sizeof text,
        "Stage %d: %s parameters on each of %d ranks; layers %s. Peak in %s%s%s. On the device %s to %s. In flight at "
        "most: %d %s%s.",
        (int)stage, oc_format_count(rank->params, count, sizeof count), (int)rank->ranks, state->stages[stage].layers,
        oc_moment_name(rank->peak.place.moment), place[0] ? " of " : "", place, low, high, state->stages[stage].flight,
        vpp > 1 ? "chunks of micro-batches" : "micro-batch", state->stages[stage].flight == 1 || vpp > 1 ? "" : "es");
    oc_canvas_wrap(canvas, rect, 0, OC_ROLE_TEXT, text);
}

static void draw_title(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    const struct oc_plan *plan = &app->answer->plan;
    char text[128], capacity[OC_BYTES_TEXT];
    int start = rect.x + rect.w;
    if (plan->capacity) {
        oc_format_bytes(plan->capacity, OC_UNIT_GIB, capacity, sizeof capacity);
        snprintf(text, sizeof text, "capacity %s", capacity);
        start = oc_canvas_right(canvas, rect.x, rect.y, rect.w - 1, OC_ROLE_CAPACITY, text);
    }
    snprintf(text, sizeof text, "Pipeline of %d stage%s%s, %d micro-batch%s", (int)plan->c.parallel_pp,
             plan->c.parallel_pp == 1 ? "" : "s", plan->c.parallel_vpp > 1 ? ", interleaved" : "", (int)plan->accum,
             plan->accum == 1 ? "" : "es");
    oc_canvas_text(canvas, rect.x + 1, rect.y, start - rect.x - 3, OC_ROLE_TITLE, text);
}

static void draw(const struct oc_app *app, void *memory, struct oc_canvas *canvas, struct oc_rect rect)
{
    enum { TITLE, STAGES, BALANCE, CHOSEN, LEGEND, ORDERS, BLOCKS };
    struct state *state = memory;
    int stages = app->answer->n_ranks + 1, heights[BLOCKS], y = rect.y, gap = rect.h >= 24 ? 1 : 0;
    int words = rect.w < 70 ? 4 : rect.w < 100 ? 3 : 2;
    const struct oc_block blocks[BLOCKS] = {{1, 1, 0},           {stages < 4 ? stages : 4, stages + gap, 1},
                                            {2, words + gap, 2}, {words, words + gap, 3},
                                            {1, 1 + gap, 4},     {stages < 5 ? stages : 5, stages, 5}};
    refresh(app, state);
    oc_layout_stack(rect.h, blocks, BLOCKS, heights);
    for (int i = 0; i < BLOCKS; y += heights[i++]) {
        struct oc_rect part = {rect.x, y, rect.w, heights[i]}, text = {rect.x + 1, y, rect.w - 2, heights[i]};
        if (part.h <= 0) continue;
        if (i == TITLE) draw_title(app, canvas, part);
        if (i == STAGES) draw_stages(app, state, canvas, part);
        if (i == BALANCE) draw_balance(app, canvas, text);
        if (i == CHOSEN) draw_chosen(app, state, canvas, text);
        if (i == ORDERS && app->answer->n_ranks > 1) draw_order(app, state, canvas, part);
        if (i == LEGEND) oc_legend_draw(canvas, text.x, y, text.w);
    }
}

/* ---- keys ---- */

static void choose(struct oc_app *app, int64_t stage)
{
    int64_t last = app->answer->n_ranks - 1;
    app->stage = stage < 0 ? 0 : stage > last ? last : stage;
}

static bool request(struct oc_app *app, void *memory, enum oc_request what)
{
    const struct state *state = memory;
    int64_t stage = oc_app_stage(app);
    switch (what) {
    case OC_REQ_DOWN: choose(app, stage + 1); return true;
    case OC_REQ_UP: choose(app, stage - 1); return true;
    case OC_REQ_PAGE_DOWN: choose(app, stage + state->shown); return true;
    case OC_REQ_PAGE_UP: choose(app, stage - state->shown); return true;
    case OC_REQ_FIRST: choose(app, 0); return true;
    case OC_REQ_LAST: choose(app, app->answer->n_ranks); return true;
    case OC_REQ_EDIT: oc_app_view(app, oc_view_index(&oc_view_step)); return true;
    case OC_REQ_CANCEL: app->stage = -1; return true;
    default: return false;
    }
}

static bool pick(struct oc_app *app, void *memory, int row)
{
    (void)memory;
    if (oc_app_stage(app) == row) return false;
    choose(app, row);
    return true;
}

static void help(const struct oc_app *app, const void *memory, char *text, size_t size)
{
    (void)memory;
    snprintf(text, size,
             "The stage under the cursor is the one that the views of the step and of the layers look at. In flight: "
             "forwards "
             "whose backward has not run yet; each keeps its activations.%s",
             app->stage >= 0 ? "  Esc goes back to the worst." : "");
}

static const struct oc_view_key keys[] = {{OC_REQ_DOWN, "stage", "the next stage; the other views look at it too"},
                                          {OC_REQ_UP, "stage", "the stage before"},
                                          {OC_REQ_EDIT, "its step", "the step of this stage"},
                                          {OC_REQ_CANCEL, "worst", "back to the worst stage, whichever it is"},
                                          {OC_REQUESTS, NULL, NULL}};

const struct oc_view_ops oc_view_pipeline = {.title = "Pipeline",
                                             .brief = "Pipe",
                                             .about = "Pipeline: every stage, and what it keeps in flight",
                                             .state_size = sizeof(struct state),
                                             .draw = draw,
                                             .request = request,
                                             .pick = pick,
                                             .help = help,
                                             .keys = keys};
