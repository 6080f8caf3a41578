#include "tui/views/fit.h"

#include <ctype.h>
#include <string.h>

#include "tui/screen/bars.h"
#include "tui/screen/groups.h"

enum { LABEL = 12, AMOUNT = 10, MOST_GROUPS = 64 };

const struct oc_rank *oc_fit_worst(const struct oc_answer *answer)
{
    return &answer->ranks[answer->verdict.worst_stage];
}

/* A row of the chart: a label, a bar, an amount. */
struct row {
    const char *label;
    const struct oc_instant *peak;
    uint64_t device; /* upper end of the bytes on the device; 0 = not known for this row */
    bool ghost, coarse;
};

struct chart {
    struct oc_canvas *canvas;
    struct oc_rect rect;
    uint64_t scale, capacity;
    enum oc_unit unit;
    int y;
};

static int bar_width(const struct chart *chart)
{
    return chart->rect.w - LABEL - AMOUNT - 1;
}

/* The bar's continuation: what is reserved beyond the allocated, CUDA's context and NCCL. */
static void draw_tail(const struct chart *chart, int x, const struct row *row)
{
    int width = bar_width(chart), edges[2];
    const uint64_t parts[2] = {row->peak->allocated,
                               row->device > row->peak->allocated ? row->device - row->peak->allocated : 0};
    const uint64_t limit[1] = {chart->capacity < chart->scale ? chart->capacity : chart->scale};
    oc_bar_edges(parts, 2, chart->scale, width, edges);
    int line;
    oc_bar_edges(limit, 1, chart->scale, width, &line);
    for (int cell = edges[0] + 1; cell < edges[1]; cell++) {
        struct oc_cell *at = oc_canvas_at(chart->canvas, x + cell, chart->y);
        if (!at || at->code != ' ' || at->style.bg) continue;
        bool past = chart->capacity && cell > line;
        oc_canvas_put(chart->canvas, x + cell, chart->y,
                      oc_canvas_style(chart->canvas, past ? OC_ROLE_BAD : OC_ROLE_DIM), past ? '!' : 0xb7);
    }
}

static void draw_row(struct chart *chart, const struct row *row)
{
    char amount[OC_BYTES_TEXT];
    const struct oc_rect *rect = &chart->rect;
    if (chart->y >= rect->y + rect->h) return;
    int x = rect->x + LABEL, width = bar_width(chart);
    struct oc_bar bar = {row->peak->classes, chart->scale, chart->capacity, chart->unit, row->ghost, row->coarse};
    oc_canvas_text(chart->canvas, rect->x + 1, chart->y, LABEL - 2, row->ghost ? OC_ROLE_DIM : OC_ROLE_TEXT,
                   row->label);
    oc_bar_draw(chart->canvas, x, chart->y, width, &bar);
    draw_tail(chart, x, row);
    oc_format_amount(row->peak->allocated, chart->unit, AMOUNT - 2, amount, sizeof amount);
    if (row->peak->allocated == 0) amount[0] = '\0';
    oc_canvas_right(chart->canvas, x + width, chart->y, AMOUNT, row->ghost ? OC_ROLE_DIM : OC_ROLE_TEXT, amount);
    chart->y++;
}

static uint64_t device_of(const struct oc_app *app, const struct oc_answer *answer, const struct oc_rank *rank)
{
    return app->model->device(&answer->plan, rank).high;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The axis goes as far as the longest of all rows, so that they can be compared. */
static uint64_t largest_row(const struct oc_app *app)
{
    const struct oc_result *simulated = oc_app_simulated(app);
    uint64_t largest = 0;
    for (int i = 0; i < app->answer->n_ranks; i++)
        largest = larger(largest, device_of(app, app->answer, &app->answer->ranks[i]));
    if (app->has_base) largest = larger(largest, device_of(app, app->base, oc_fit_worst(app->base)));
    if (simulated && simulated->status == OC_PROBE_DONE) largest = larger(largest, simulated->rank.peak.allocated);
    return largest;
}

static uint64_t axis_of(const struct oc_app *app, struct oc_fit_state *state)
{
    return oc_axis_keep(&state->peaks, largest_row(app), app->zoom ? 0 : app->answer->plan.capacity);
}

static void stages_label(const struct oc_answer *answer, const struct oc_group *group, char *text, size_t size)
{
    if (answer->n_ranks == 1)
        snprintf(text, size, "model");
    else if (group->first == group->last)
        snprintf(text, size, "stage %d", group->first);
    else
        snprintf(text, size, "stage %d-%d", group->first, group->last);
}

static void draw_title(const struct oc_app *app, struct chart *chart)
{
    const struct oc_rect *rect = &chart->rect;
    char capacity[OC_BYTES_TEXT], text[96] = "";
    const char *unit = oc_unit_name(chart->unit);
    oc_format_bytes(chart->capacity, OC_UNIT_GIB, capacity, sizeof capacity);
    if (chart->capacity)
        snprintf(text, sizeof text, chart->capacity > chart->scale ? "capacity %s >>" : "capacity %s", capacity);
    int start = oc_canvas_right(chart->canvas, rect->x, chart->y, rect->w - 1, OC_ROLE_CAPACITY, text);
    static const char *const titles[2][3] = {{"Peak of each rank, steady step", "Peak of each rank", "Peak"},
                                             {"Peak per pipeline stage, steady step", "Peak per stage", "Peak"}};
    const char *const *title = titles[app->answer->n_ranks > 1];
    while (strcmp(*title, "Peak") != 0 && oc_text_width(*title) + 8 > start - rect->x) title++;
    oc_canvas_print(chart->canvas, rect->x + 1, chart->y, start - rect->x - 2, OC_ROLE_TITLE, "%s, %s", *title, unit);
    chart->y++;
}

int oc_fit_bars_rows(const struct oc_app *app)
{
    struct oc_group groups[MOST_GROUPS];
    int left_out, n = oc_groups(app->answer, groups, MOST_GROUPS, &left_out);
    const struct oc_result *simulated = oc_app_simulated(app);
    return 2 + n + (simulated ? 1 : 0) + (app->has_base ? 1 : 0) + (left_out ? 1 : 0);
}

/* What belongs under the worst group: the dry run of it, and the base. */
static void draw_companions(const struct oc_app *app, struct chart *chart)
{
    const struct oc_result *simulated = oc_app_simulated(app);
    if (simulated && simulated->status == OC_PROBE_DONE) {
        struct row row = {"simulated", &simulated->rank.peak, 0, false, false};
        draw_row(chart, &row);
    } else if (simulated && chart->y < chart->rect.y + chart->rect.h) {
        oc_canvas_text(chart->canvas, chart->rect.x + 1, chart->y, LABEL - 2, OC_ROLE_TEXT, "simulated");
        oc_canvas_text(chart->canvas, chart->rect.x + LABEL, chart->y++, chart->rect.w - LABEL - 1, OC_ROLE_DIM,
                       simulated->why);
    }
    if (app->has_base) {
        const struct oc_rank *rank = oc_fit_worst(app->base);
        struct row row = {"base", &rank->peak, device_of(app, app->base, rank), true, false};
        draw_row(chart, &row);
    }
}

void oc_fit_bars_draw(const struct oc_app *app, struct oc_fit_state *state, struct oc_canvas *canvas,
                      struct oc_rect rect, bool legend)
{
    struct chart chart = {canvas, rect, axis_of(app, state), app->answer->plan.capacity, OC_UNIT_GIB, rect.y};
    struct oc_group groups[MOST_GROUPS];
    int left_out;
    chart.unit = oc_axis_unit(chart.scale);
    int most = rect.h - 2 - (legend ? 1 : 0) - (oc_app_simulated(app) ? 1 : 0) - (app->has_base ? 1 : 0);
    int n = oc_groups(app->answer, groups, most < 1 ? 1 : most > MOST_GROUPS ? MOST_GROUPS : most, &left_out);
    if (left_out && n > 1) n = oc_groups(app->answer, groups, n - 1, &left_out);
    draw_title(app, &chart);
    if (rect.h > 1) oc_axis_draw(canvas, rect.x + LABEL, chart.y++, bar_width(&chart), chart.scale, chart.unit);
    for (int i = 0; i < n; i++) {
        char label[24];
        const struct oc_rank *rank =
            &app->answer->ranks[groups[i].worst ? app->answer->verdict.worst_stage : groups[i].first];
        stages_label(app->answer, &groups[i], label, sizeof label);
        struct row row = {label, &rank->peak, device_of(app, app->answer, rank), false, false};
        draw_row(&chart, &row);
        if (groups[i].worst) draw_companions(app, &chart);
    }
    if (left_out && chart.y < rect.y + rect.h)
        oc_canvas_print(canvas, rect.x + 1, chart.y++, rect.w - 2, OC_ROLE_DIM,
                        "and %d more stages, none of them larger", left_out);
    if (legend && chart.y < rect.y + rect.h) oc_legend_draw(canvas, rect.x + LABEL, chart.y, rect.w - LABEL - 1);
}

int oc_fit_moments_rows(const struct oc_app *app)
{
    const struct oc_rank *rank = oc_fit_worst(app->answer);
    for (int i = 0; i < OC_MOMENTS; i++)
        if (rank->moments[OC_STEADY][i].exists) return OC_MOMENTS; /* a heading, and all but init */
    return 0;
}

/* What is there in every moment of the steady step, per class; returns the sum. */
static uint64_t always_there(const struct oc_rank *rank, uint64_t always[OC_CLASSES])
{
    uint64_t sum = 0;
    for (int class = 0; class < OC_CLASSES; class ++) {
        always[class] = UINT64_MAX;
        for (int i = 0; i < OC_MOMENTS; i++) {
            const struct oc_instant *instant = &rank->moments[OC_STEADY][i];
            if (instant->exists && instant->classes[class] < always[class]) always[class] = instant->classes[class];
        }
        if (always[class] == UINT64_MAX) always[class] = 0;
        sum += always[class];
    }
    return sum;
}

void oc_fit_moments_draw(const struct oc_app *app, struct oc_fit_state *state, struct oc_canvas *canvas,
                         struct oc_rect rect)
{
    const struct oc_rank *rank = oc_fit_worst(app->answer);
    uint64_t always[OC_CLASSES], sum = always_there(rank, always), most = 0;
    char amount[OC_BYTES_TEXT];
    for (int i = 0; i < OC_MOMENTS; i++)
        if (rank->moments[OC_STEADY][i].exists) most = larger(most, rank->moments[OC_STEADY][i].allocated);
    struct chart chart = {canvas, rect,        oc_axis_keep(&state->added, most > sum ? most - sum : 0, 0),
                          0,      OC_UNIT_GIB, rect.y};
    oc_format_bytes(sum, OC_UNIT_GIB, amount, sizeof amount);
    oc_canvas_print(canvas, rect.x + 1, chart.y++, rect.w - 2, OC_ROLE_TITLE,
                    "What each moment of a step adds to the %s that are always there", amount);
    for (int i = OC_M_INIT + 1; i < OC_MOMENTS && chart.y < rect.y + rect.h; i++) {
        char name[24];
        const struct oc_instant *instant = &rank->moments[OC_STEADY][i];
        snprintf(name, sizeof name, "%s", oc_moment_name((enum oc_moment)i));
        for (char *at = name; *at; at++) /* "after_step" is a name for programs */
            if (*at == '_') *at = ' ';
        if (!instant->exists) { /* its row stays, so that nothing below moves when a value changes */
            oc_canvas_text(canvas, rect.x + 1, chart.y++, LABEL - 2, OC_ROLE_DIM, name);
            continue;
        }
        struct oc_instant added = *instant;
        for (int class = 0; class < OC_CLASSES; class ++) added.classes[class] -= always[class];
        added.allocated -= sum;
        draw_row(&chart, &(struct row){name, &added, 0, false, true});
    }
}

int oc_fit_probe_rows(const struct oc_app *app)
{
    const struct oc_result *measured = oc_app_measured(app);
    return measured && measured->status == OC_PROBE_DONE ? 3 : 0;
}

static void write_shape(const struct oc_app *app, char *text, size_t size)
{
    const struct oc_config *c = &app->shape.answer->plan.c;
    snprintf(text, size, "%s%lld layer%s, hidden %lld, vocab %lld, %lld x %lld tokens",
             app->shape.uncovered ? "PyTorch's rules, " : "", (long long)c->model_layers,
             c->model_layers == 1 ? "" : "s", (long long)c->model_hidden, (long long)c->model_vocab,
             (long long)c->batch_micro, (long long)c->batch_seq);
}

void oc_fit_probe_draw(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    const struct oc_result *result = oc_app_measured(app);
    const struct oc_instant *model = &oc_fit_worst(app->shape.answer)->peak, *measured = &result->rank.peak;
    char shape[160], difference[OC_BYTES_TEXT], amount[OC_BYTES_TEXT];
    struct chart chart = {canvas, rect,        oc_axis_scale(larger(model->allocated, measured->allocated), 0),
                          0,      OC_UNIT_MIB, rect.y};
    chart.unit = oc_axis_unit(chart.scale);
    write_shape(app, shape, sizeof shape);
    oc_format_change(model->allocated, measured->allocated, OC_UNIT_BYTES, 0, difference, sizeof difference);
    if (rect.h == 1) {
        char text[128];
        oc_format_bytes(measured->allocated, chart.unit, amount, sizeof amount);
        snprintf(text, sizeof text, "Probe: %s measured, %s B from the model", amount, difference);
        if (oc_text_width(text) > rect.w - 2) snprintf(text, sizeof text, "Probe: %s, %s B off", amount, difference);
        oc_canvas_text(canvas, rect.x + 1, rect.y, rect.w - 2, OC_ROLE_TEXT, text);
        return;
    }
    char apart[OC_BYTES_TEXT + 24], where[96];
    oc_result_where(result, where, sizeof where);
    where[0] = (char)toupper((unsigned char)where[0]);
    snprintf(apart, sizeof apart, "differs by %s B", difference);
    int end = oc_canvas_right(canvas, rect.x, chart.y, rect.w - 1, OC_ROLE_TEXT, apart) - 2;
    int used = 1 + oc_canvas_print(canvas, rect.x + 1, chart.y, end - rect.x - 1, OC_ROLE_TITLE, "%s, %s", where,
                                   oc_unit_name(chart.unit));
    oc_canvas_print(canvas, rect.x + used, chart.y++, end - rect.x - used, OC_ROLE_DIM, ": %s", shape);
    draw_row(&chart, &(struct row){"model", model, 0, false, false});
    draw_row(&chart, &(struct row){"measured", measured, 0, false, false});
}
