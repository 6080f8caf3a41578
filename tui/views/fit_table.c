#include "tui/views/fit.h"

#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/bars.h"

/* Columns of the class names; wide where the letters get a box as in the bars. */
static int name_width(int width)
{
    return width < 60 ? 14 : 17;
}

/* What one line of the table is about: a class, or the sum over them. */
struct line {
    const struct oc_app *app;
    int class; /* OC_CLASSES: the sum */
};

static uint64_t amount_of(const struct oc_instant *peak, int class)
{
    return class < OC_CLASSES ? peak->classes[class] : peak->allocated;
}

static const struct oc_instant *simulated_peak(const struct oc_app *app)
{
    const struct oc_result *result = oc_app_simulated(app);
    return result && result->status == OC_PROBE_DONE ? &result->rank.peak : NULL;
}

static const struct oc_instant *measured_peak(const struct oc_app *app)
{
    const struct oc_result *result = oc_app_measured(app);
    return result && result->status == OC_PROBE_DONE ? &result->rank.peak : NULL;
}

static void model_cell(const struct line *line, int width, char *text, size_t size)
{
    oc_format_amount(amount_of(&oc_fit_worst(line->app->answer)->peak, line->class), OC_UNIT_GIB, width, text, size);
}

/* Bytes of each parameter on the rank: what "16 bytes a parameter" is about. */
static void per_param_cell(const struct line *line, int width, char *text, size_t size)
{
    const struct oc_rank *rank = oc_fit_worst(line->app->answer);
    if (rank->params == 0) return;
    snprintf(text, size, "%.2f", (double)amount_of(&rank->peak, line->class) / (double)rank->params);
    if ((int)strlen(text) > width)
        snprintf(text, size, "%.0e", (double)amount_of(&rank->peak, line->class) / (double)rank->params);
}

static void simulated_cell(const struct line *line, int width, char *text, size_t size)
{
    const struct oc_instant *peak = simulated_peak(line->app);
    if (peak) oc_format_amount(amount_of(peak, line->class), OC_UNIT_GIB, width, text, size);
}

static void simulated_difference_cell(const struct line *line, int width, char *text, size_t size)
{
    const struct oc_instant *peak = simulated_peak(line->app);
    if (!peak) return;
    const struct oc_rank *rank = &line->app->shape.whole->ranks[line->app->answer->verdict.worst_stage];
    uint64_t model = amount_of(&rank->peak, line->class);
    oc_format_change(model, amount_of(peak, line->class), OC_UNIT_BYTES, width, text, size);
}

static void base_cell(const struct line *line, int width, char *text, size_t size)
{
    if (line->app->has_base)
        oc_format_amount(amount_of(&oc_fit_worst(line->app->base)->peak, line->class), OC_UNIT_GIB, width, text, size);
}

static void change_cell(const struct line *line, int width, char *text, size_t size)
{
    if (!line->app->has_base) return;
    oc_format_change(amount_of(&oc_fit_worst(line->app->base)->peak, line->class),
                     amount_of(&oc_fit_worst(line->app->answer)->peak, line->class), OC_UNIT_GIB, width, text, size);
}

static void shape_cell(const struct line *line, int width, char *text, size_t size)
{
    if (!measured_peak(line->app)) return;
    oc_format_amount(amount_of(&oc_fit_worst(line->app->shape.answer)->peak, line->class), OC_UNIT_MIB, width, text,
                     size);
}

static void measured_cell(const struct line *line, int width, char *text, size_t size)
{
    const struct oc_instant *peak = measured_peak(line->app);
    if (peak) oc_format_amount(amount_of(peak, line->class), OC_UNIT_MIB, width, text, size);
}

static void measured_difference_cell(const struct line *line, int width, char *text, size_t size)
{
    const struct oc_instant *peak = measured_peak(line->app);
    if (!peak) return;
    uint64_t model = amount_of(&oc_fit_worst(line->app->shape.answer)->peak, line->class);
    oc_format_change(model, amount_of(peak, line->class), OC_UNIT_BYTES, width, text, size);
}

/* Columns in the order in which they stand. The highest rank is left out first where there is no room. */
static const struct column {
    const char *head;
    int width, rank;
    void (*write)(const struct line *line, int width, char *text, size_t size);
} columns[] = {
    {"model", 9, 0, model_cell},
    {"B/param", 9, 4, per_param_cell},
    {"simulated", 10, 1, simulated_cell},
    {"differs, B", 12, 5, simulated_difference_cell},
    {"base", 8, 2, base_cell},
    {"change", 8, 2, change_cell},
    {"probe: model", 14, 6, shape_cell},
    {"measured MiB", 13, 6, measured_cell},
    {"differs, B", 12, 6, measured_difference_cell},
};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* The rank up to which all columns fit. Base and change give their place to nothing else: a column that comes and goes
 * would move its neighbours. */
static int columns_that_fit(int width)
{
    for (int most = 9; most > 0; most--) {
        int used = name_width(width);
        for (int i = 0; i < COLUMNS; i++)
            if (columns[i].rank <= most) used += columns[i].width;
        if (used <= width) return most;
    }
    return 0;
}

static void draw_cells(struct oc_canvas *canvas, struct oc_rect rect, int y, int most, const struct line *line)
{
    int x = rect.x + name_width(rect.w);
    for (int i = 0; i < COLUMNS; i++) {
        char text[OC_BYTES_TEXT] = "-";
        if (columns[i].rank > most) continue;
        enum oc_role role = line->class == OC_CLASSES ? OC_ROLE_TITLE : OC_ROLE_TEXT;
        columns[i].write(line, columns[i].width - 1, text, sizeof text);
        if (strcmp(text, "-") == 0 || strcmp(text, "0") == 0 || strcmp(text, "0.00") == 0) role = OC_ROLE_DIM;
        if (columns[i].write == change_cell && text[0] == '+') role = OC_ROLE_DELTA_UP;
        if (columns[i].write == change_cell && text[0] == '-' && text[1]) role = OC_ROLE_DELTA_DOWN;
        oc_canvas_right(canvas, x, y, columns[i].width, role, text);
        x += columns[i].width;
    }
}

static void draw_head(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect, int most)
{
    int x = rect.x + name_width(rect.w);
    char where[24] = "GiB";
    if (app->answer->n_ranks > 1) snprintf(where, sizeof where, "stage %d, GiB", (int)app->answer->verdict.worst_stage);
    oc_canvas_text(canvas, rect.x + 1, rect.y, name_width(rect.w) - 1, OC_ROLE_DIM, where);
    for (int i = 0; i < COLUMNS; i++) {
        if (columns[i].rank > most) continue;
        oc_canvas_right(canvas, x, rect.y, columns[i].width, OC_ROLE_DIM, columns[i].head);
        x += columns[i].width;
    }
}

static void draw_class(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect, int y, int most,
                       int class)
{
    struct line line = {app, class};
    int name = name_width(rect.w), box = name > 14 ? 3 : 1;
    if (class == OC_CLASSES) {
        oc_canvas_text(canvas, rect.x + 1, y, name - 1, OC_ROLE_TITLE, "= allocated");
    } else {
        oc_class_box(canvas, rect.x + 1, y, box, class);
        oc_canvas_text(canvas, rect.x + 2 + box, y, name - 2 - box, OC_ROLE_TEXT, oc_class_name((enum oc_class) class));
    }
    draw_cells(canvas, rect, y, most, &line);
}

int oc_fit_table_rows(const struct oc_app *app)
{
    return OC_FIT_TABLE_LEAST + (oc_fit_worst(app->answer)->reserved ? 2 : 1);
}

/* What "reserved" is, and what the allocator keeps of blocks that it does not split: that counts as allocated, and is
 * in the model's figure alone, because a probe counts blocks as they were rounded. */
static void write_reserved(const struct oc_app *app, char *text, size_t size)
{
    const int64_t worst = app->answer->verdict.worst_stage;
    uint64_t rest = 0;
    char amount[OC_BYTES_TEXT];
    if (simulated_peak(app)) {
        const uint64_t model = app->answer->ranks[worst].peak.allocated,
                       counted = app->shape.whole->ranks[worst].peak.allocated;
        rest = model > counted ? model - counted : 0;
    }
    oc_format_bytes(rest, OC_UNIT_MIB, amount, sizeof amount);
    snprintf(text, size, "%s%s%s%s", rest ? "allocator's segments" : "segments of the caching allocator",
             rest ? "; the model adds " : "", rest ? amount : "", rest ? " of unsplit blocks" : "");
}

/* Totals that are never mixed with the classes: each says what it is. */
static void draw_totals(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect, int y)
{
    const struct oc_plan *plan = &app->answer->plan;
    const struct oc_rank *rank = oc_fit_worst(app->answer);
    char low[OC_BYTES_TEXT], high[OC_BYTES_TEXT], text[160];
    int end = rect.y + rect.h, name = name_width(rect.w);
    if (y < end && rank->reserved) {
        oc_canvas_text(canvas, rect.x + 1, y, name - 1, OC_ROLE_TEXT, "reserved");
        oc_format_amount(rank->reserved, OC_UNIT_GIB, 8, text, sizeof text);
        oc_canvas_right(canvas, rect.x + name, y, 9, OC_ROLE_TEXT, text);
        write_reserved(app, text, sizeof text);
        oc_canvas_text(canvas, rect.x + name + 11, y++, rect.w - name - 12, OC_ROLE_DIM, text);
    }
    if (y < end) {
        struct oc_range device = app->answer->verdict.device;
        oc_format_amount(device.low, OC_UNIT_GIB, 8, low, sizeof low);
        oc_format_amount(device.high, OC_UNIT_GIB, 8, high, sizeof high);
        oc_canvas_text(canvas, rect.x + 1, y, name - 1, OC_ROLE_TEXT, "on the device");
        oc_canvas_right(canvas, rect.x + name, y, 9, OC_ROLE_TEXT, high);
        snprintf(text, sizeof text,
                 plan->c.parallel_world > 1 ? "from %s: with the CUDA context and NCCL"
                                            : "from %s: with the CUDA context",
                 low);
        oc_canvas_text(canvas, rect.x + name + 11, y++, rect.w - name - 12, OC_ROLE_DIM, text);
    }
}

void oc_fit_table_draw(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    int most = columns_that_fit(rect.w);
    draw_head(app, canvas, rect, most);
    for (int class = 0; class <= OC_CLASSES && class + 1 < rect.h; class ++)
        draw_class(app, canvas, rect, rect.y + 1 + class, most, class);
    if (rect.h > OC_FIT_TABLE_LEAST) draw_totals(app, canvas, rect, rect.y + OC_FIT_TABLE_LEAST);
}
