#include "tui/views/step.h"

#include <string.h>

#include "tui/report/units.h"

enum {
    AXIS = 8,    /* columns of the numbers */
    EIGHTHS = 8, /* units of a cell */
    TALL = 20,   /* rows from which a class may end at whole cells */
    BOTH = 90    /* width from which both iterations fit */
};

struct chart {
    const struct oc_app *app;
    struct oc_step_state *state;
    struct oc_canvas *canvas;
    struct oc_rect plot;        /* where the columns stand */
    uint64_t scale, capacity;   /* bytes of the whole height; capacity 0 = not on it */
    uint64_t below[OC_CLASSES]; /* of each class, left out at the bottom */
    enum oc_unit unit;
};

/* ---- columns ---- */

static int class_at(const int *edges, int unit)
{
    for (int i = 0; i < OC_CLASSES; i++)
        if (unit < edges[i]) return i;
    return -1;
}

static struct oc_style fill_of(const struct oc_canvas *canvas, int class)
{
    if (class < 0 || !canvas->colour) return (struct oc_style){0, 0, 0};
    const struct oc_class_look *look = &canvas->theme->classes[class];
    return (struct oc_style){look->text, look->colour, 0};
}

static int units_per_cell(const struct oc_canvas *canvas)
{
    return canvas->colour && !canvas->ascii ? EIGHTHS : 1;
}

/* A cell of a column, `from` the bottom; past the capacity the letters stay, '!' between, reversed. */
static void draw_cell(const struct chart *chart, int x, int from, const int *edges, int line)
{
    struct oc_canvas *canvas = chart->canvas;
    int per = units_per_cell(canvas), y = chart->plot.y + chart->plot.h - 1 - from;
    int low = class_at(edges, from * per), high = class_at(edges, from * per + per - 1);
    if (low < 0) return;
    struct oc_style style = fill_of(canvas, low);
    uint32_t letter = (uint32_t)canvas->theme->classes[low].letter;
    if (line >= 0 && from > line) {
        style.attr |= OC_ATTR_REVERSE;
        oc_canvas_put(canvas, x, y, style, x % 2 ? '!' : letter);
    } else if (low == high) {
        oc_canvas_put(canvas, x, y, style, canvas->letters ? letter : ' ');
    } else {
        int eighths = 1;
        while (class_at(edges, from * per + eighths) == low) eighths++;
        style.fg = style.bg;
        style.bg = fill_of(canvas, high).bg;
        oc_canvas_put(canvas, x, y, style, 0x2580u + (uint32_t)eighths);
    }
}

/* The height of the capacity in cells, or -1 when it is not on the axis. */
static int capacity_row(const struct chart *chart)
{
    if (!chart->capacity || chart->capacity > chart->scale) return -1;
    int row = (int)((double)chart->capacity / (double)chart->scale * chart->plot.h);
    return row < chart->plot.h ? row : chart->plot.h - 1;
}

/* Bytes in parts of the axis, of which there are so many. */
static int parts_of(const struct chart *chart, uint64_t bytes, int parts)
{
    const double part = (double)bytes / (double)chart->scale * parts + 0.5;
    return part < parts ? (int)part : parts;
}

/* Where each class ends, in units from the bottom. The top of a column is exact to a unit. In a tall chart one class
 * meets another at whole cells: those are blanks, which are erased in one go and stay when the amounts change a little.
 * What is less than half of such a step is left out: a whole one would say too much. */
static void edges_of(const struct chart *chart, const struct oc_sample *sample, int *edges)
{
    const int per = units_per_cell(chart->canvas), units = chart->plot.h * per;
    const int steps = chart->plot.h >= TALL ? chart->plot.h : units;
    uint64_t values[OC_CLASSES], sum = 0;
    int highest = 0;
    for (int i = 0; i < OC_CLASSES; i++) {
        values[i] = sample->classes[i] > chart->below[i] ? sample->classes[i] - chart->below[i] : 0;
        sum = oc_add(sum, values[i]);
        if (values[i] > values[highest]) highest = i; /* unless another one ends the column */
    }
    const int top = parts_of(chart, sum, units);
    sum = 0;
    for (int i = 0; i < OC_CLASSES; i++) {
        const int before = i ? edges[i - 1] : 0;
        sum = oc_add(sum, values[i]);
        edges[i] = parts_of(chart, values[i], steps) ? parts_of(chart, sum, steps) * (units / steps) : before;
        if (edges[i] > top) edges[i] = top;
        if (edges[i] > before) highest = i;
    }
    for (int i = highest; i < OC_CLASSES; i++) edges[i] = top;
}

static void draw_columns(const struct chart *chart)
{
    int line = capacity_row(chart);
    for (int i = 0; i < chart->state->n_columns; i++) {
        const struct oc_step_column *column = &chart->state->columns[i];
        int edges[OC_CLASSES];
        edges_of(chart, &chart->state->timeline.samples[column->iteration][column->c.top], edges);
        for (int from = 0; from < chart->plot.h; from++) draw_cell(chart, chart->plot.x + i, from, edges, line);
    }
}

/* Full cells of a class in a column: how many, and the lowest. */
static int thickness(const struct chart *chart, int column, int class, int *lowest)
{
    const struct oc_step_column *at = &chart->state->columns[column];
    int edges[OC_CLASSES], per = units_per_cell(chart->canvas);
    edges_of(chart, &chart->state->timeline.samples[at->iteration][at->c.top], edges);
    *lowest = ((class ? edges[class - 1] : 0) + per - 1) / per;
    return edges[class] / per - *lowest;
}

/* Each class's letter once, in the middle of the longest stretch where its band is thick: colour is never alone. */
static void draw_letters(const struct chart *chart)
{
    for (int class = 0; class < OC_CLASSES; class ++) {
        int most = 0, longest = 0, middle = 0, run = 0, lowest;
        for (int i = 0; i < chart->state->n_columns; i++) {
            int cells = thickness(chart, i, class, &lowest);
            if (cells > most) most = cells;
        }
        for (int i = 0; most && i < chart->state->n_columns; i++) {
            run = thickness(chart, i, class, &lowest) * 2 > most ? run + 1 : 0;
            if (run > longest) longest = run, middle = i - run / 2;
        }
        if (!longest) continue;
        int cells = thickness(chart, middle, class, &lowest);
        oc_canvas_put(chart->canvas, chart->plot.x + middle,
                      chart->plot.y + chart->plot.h - 1 - lowest - (cells - 1) / 2, fill_of(chart->canvas, class),
                      (uint32_t)chart->canvas->theme->classes[class].letter);
    }
}

/* ---- axes ---- */

static void draw_numbers(const struct chart *chart)
{
    uint64_t step = oc_axis_step(chart->scale, chart->unit, chart->plot.h * 4);
    for (uint64_t at = 0; step != UINT64_MAX && at <= chart->scale; at += step) {
        char text[OC_BYTES_TEXT];
        int from = (int)((double)at / (double)chart->scale * chart->plot.h);
        if (from >= chart->plot.h) break;
        oc_format_count(at / (chart->unit == OC_UNIT_MIB ? 1u << 20 : 1u << 30), text, sizeof text);
        oc_canvas_right(chart->canvas, chart->plot.x - AXIS, chart->plot.y + chart->plot.h - 1 - from, AXIS - 1,
                        OC_ROLE_DIM, text);
        if (at > UINT64_MAX - step) break;
    }
}

static void draw_capacity(const struct chart *chart)
{
    int row = capacity_row(chart), y = chart->plot.y + chart->plot.h - 1 - row;
    if (row < 0) return;
    for (int i = 0; i < chart->plot.w; i++) {
        const struct oc_cell *cell = oc_canvas_at(chart->canvas, chart->plot.x + i, y);
        if (cell && cell->code == ' ' && !cell->style.bg)
            oc_canvas_put(chart->canvas, chart->plot.x + i, y, oc_canvas_style(chart->canvas, OC_ROLE_DIM), 0x2500);
    }
    char amount[OC_BYTES_TEXT], text[48];
    oc_format_bytes(chart->capacity, OC_UNIT_GIB, amount, sizeof amount);
    snprintf(text, sizeof text, " capacity %s ", amount);
    int x = chart->plot.x + chart->plot.w - (int)strlen(text) - 1;
    const struct oc_cell *cell = oc_canvas_at(chart->canvas, x, y);
    if (x > chart->plot.x && cell && cell->code == 0x2500)
        oc_canvas_text(chart->canvas, x, y, (int)strlen(text), OC_ROLE_DIM, text);
    else if (x > chart->plot.x && cell && chart->canvas->ascii && cell->code == '-')
        oc_canvas_text(chart->canvas, x, y, (int)strlen(text), OC_ROLE_DIM, text);
}

/* The longest name of a stretch that fits in `room` columns, or "". */
static void stretch_name(const struct oc_place *place, int room, char *text, size_t size)
{
    static const char *const brief[OC_MOMENTS] = {"init", "fwd", "loss", "bwd", "red", "clip", "step", "after", "idle"};
    const char *name = place->moment == OC_M_AFTER_STEP ? "after" : oc_moment_name(place->moment);
    if (place->micro_batch >= 0) {
        snprintf(text, size, "%s %d", name, place->micro_batch + 1);
        if ((int)strlen(text) <= room) return;
        snprintf(text, size, "%s %d", brief[place->moment], place->micro_batch + 1);
        if ((int)strlen(text) <= room) return;
    }
    snprintf(text, size, "%s", name);
    if ((int)strlen(text) > room) snprintf(text, size, "%s", brief[place->moment]);
    if ((int)strlen(text) > room) text[0] = '\0';
}

/* Where each moment begins, its name below, and the cursor. */
static void draw_moments(const struct chart *chart, int y)
{
    const struct oc_step_state *state = chart->state;
    struct oc_style border = oc_canvas_style(chart->canvas, OC_ROLE_BORDER);
    oc_canvas_hline(chart->canvas, chart->plot.x, y, state->n_columns);
    for (int i = 0, end; i < state->n_columns; i = end) {
        char name[32];
        const struct oc_sample *samples = state->timeline.samples[state->columns[i].iteration];
        const struct oc_place *place = &samples[state->columns[i].c.top].place;
        for (end = i + 1; end < state->n_columns; end++) {
            const struct oc_sample *other =
                &state->timeline.samples[state->columns[end].iteration][state->columns[end].c.top];
            if (other->place.iteration != place->iteration || other->place.moment != place->moment ||
                other->place.micro_batch != place->micro_batch)
                break;
        }
        if (i) oc_canvas_put(chart->canvas, chart->plot.x + i, y, border, 0x252c);
        stretch_name(place, end - i - 1, name, sizeof name);
        oc_canvas_text(chart->canvas, chart->plot.x + i, y + 1, end - i, OC_ROLE_DIM, name);
    }
}

/* Which iteration the columns are of, where the columns leave room at the top. */
static void draw_iterations(const struct chart *chart)
{
    const struct oc_step_state *state = chart->state;
    for (int i = 0; i < state->n_columns; i++) {
        if (i && state->columns[i].iteration == state->columns[i - 1].iteration) continue;
        const char *name = state->columns[i].iteration == OC_FIRST ? "first iteration" : "steady iteration";
        int x = chart->plot.x + i, blanks = 0;
        while (blanks < (int)strlen(name)) {
            const struct oc_cell *cell = oc_canvas_at(chart->canvas, x + blanks, chart->plot.y);
            if (!cell || cell->code != ' ' || cell->style.bg || i + blanks >= state->n_columns) break;
            blanks++;
        }
        if (blanks == (int)strlen(name)) oc_canvas_text(chart->canvas, x, chart->plot.y, blanks, OC_ROLE_DIM, name);
    }
}

static void draw_cursor(const struct chart *chart, int y)
{
    const struct oc_step_state *state = chart->state;
    for (int i = 0; i < state->n_columns; i++) {
        const struct oc_step_column *column = &state->columns[i];
        if (column->iteration != state->iteration || state->at < column->c.first || state->at > column->c.last)
            continue;
        oc_canvas_put(chart->canvas, chart->plot.x + i, y, oc_canvas_style(chart->canvas, OC_ROLE_HINT_KEY), '^');
        for (int row = chart->plot.y; row < chart->plot.y + chart->plot.h; row++) {
            struct oc_cell *cell = oc_canvas_at(chart->canvas, chart->plot.x + i, row);
            if (cell->code != ' ' || cell->style.bg) break;
            oc_canvas_put(chart->canvas, chart->plot.x + i, row, oc_canvas_style(chart->canvas, OC_ROLE_DIM), 0x2502);
        }
        return; /* several columns may show the sample: one mark is enough */
    }
}

/* ---- all of it ---- */

static void add_columns(struct oc_step_state *state, enum oc_iteration iteration, int width)
{
    struct oc_column columns[OC_CANVAS_MAX];
    int n = oc_timeline_columns(&state->timeline, iteration, width, columns);
    for (int i = 0; i < n && state->n_columns < OC_CANVAS_MAX; i++)
        state->columns[state->n_columns++] = (struct oc_step_column){iteration, columns[i]};
}

static void choose_columns(struct oc_step_state *state, int width)
{
    if (width > OC_CANVAS_MAX) width = OC_CANVAS_MAX;
    state->n_columns = 0;
    if (width >= BOTH && state->timeline.n[OC_FIRST]) {
        add_columns(state, OC_FIRST, width / 2);
        add_columns(state, OC_STEADY, width - width / 2);
    } else {
        add_columns(state, state->iteration, width);
    }
}

/* The row that stands for what is left out. */
static void draw_static(const struct chart *chart, int y)
{
    char amount[OC_BYTES_TEXT];
    struct oc_bar bar = {chart->below, chart->state->timeline.static_bytes, 0, OC_UNIT_GIB, false, false};
    if (!bar.scale) bar.scale = 1;
    oc_format_amount(chart->state->timeline.static_bytes, OC_UNIT_GIB, AXIS - 2, amount, sizeof amount);
    oc_canvas_right(chart->canvas, chart->plot.x - AXIS, y, AXIS - 1, OC_ROLE_TEXT, amount);
    oc_bar_draw(chart->canvas, chart->plot.x, y, chart->state->n_columns, &bar);
}

static uint64_t largest(const struct oc_timeline *timeline)
{
    uint64_t most = 0;
    for (int i = 0; i < OC_ITERATIONS; i++)
        for (int n = 0; n < timeline->n[i]; n++)
            if (timeline->samples[i][n].allocated > most) most = timeline->samples[i][n].allocated;
    return most;
}

void oc_step_chart(const struct oc_app *app, struct oc_step_state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    struct chart chart = {.app = app, .state = state, .canvas = canvas, .capacity = app->answer->plan.capacity};
    int zoom = app->zoom ? 1 : 0;
    chart.plot = (struct oc_rect){rect.x + AXIS, rect.y, rect.w - AXIS - 1, rect.h - 2 - zoom};
    choose_columns(state, chart.plot.w);
    if (chart.plot.w < 1 || chart.plot.h < 1) return;
    uint64_t most = largest(&state->timeline);
    if (zoom) {
        memcpy(chart.below, state->timeline.least, sizeof chart.below);
        most = most > state->timeline.static_bytes ? most - state->timeline.static_bytes : 0;
        chart.capacity = 0;
    }
    chart.scale = oc_axis_keep(&state->axes[zoom], most, chart.capacity);
    chart.unit = oc_axis_unit(chart.scale);
    draw_numbers(&chart);
    draw_columns(&chart);
    if (!canvas->letters) draw_letters(&chart);
    draw_capacity(&chart);
    draw_iterations(&chart);
    if (zoom) draw_static(&chart, chart.plot.y + chart.plot.h);
    draw_moments(&chart, rect.y + rect.h - 2);
    draw_cursor(&chart, rect.y + rect.h - 2);
}
