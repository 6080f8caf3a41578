#include "tui/screen/bars.h"

#include <string.h>

static int round_edge(double sum, double scale, int units)
{
    double edge = sum / scale * (double)units + 0.5;
    return edge >= (double)units ? units : (int)edge;
}

static int largest_part(const int *sizes, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (sizes[i] > sizes[best]) best = i;
    return best;
}

void oc_bar_edges(const uint64_t *values, int n, uint64_t scale, int units, int *edges)
{
    int sizes[OC_BAR_PARTS], before = 0, used = 0;
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)values[i];
        int edge = scale ? round_edge(sum, (double)scale, units) : 0;
        sizes[i] = edge - before;
        before = edge;
        used += sizes[i];
    }
    for (int i = 0; i < n; i++) {
        if (values[i] == 0 || sizes[i] > 0) continue;
        int donor = largest_part(sizes, n);
        if (sizes[donor] > 1)
            sizes[donor]--;
        else if (used < units)
            used++;
        else
            continue;
        sizes[i] = 1;
    }
    for (int i = 0, edge = 0; i < n; i++) edges[i] = edge += sizes[i];
}

/* What a bar looks like once its edges are known. Cells are counted from the bar's start. */
struct shape {
    int edges[OC_CLASSES];
    int units;    /* per cell: 8 where eighth blocks can be drawn, else 1 */
    int capacity; /* cell of the line; -1 = beyond the axis or unknown */
};

/* The class at a unit, or -1 where the bar has ended. */
static int class_at(const struct shape *shape, int unit)
{
    for (int i = 0; i < OC_CLASSES; i++)
        if (unit < shape->edges[i]) return i;
    return -1;
}

static struct oc_style fill_style(const struct oc_canvas *canvas, int class)
{
    if (class < 0 || !canvas->colour) return (struct oc_style){0, 0, 0};
    const struct oc_class_look *look = &canvas->theme->classes[class];
    return (struct oc_style){look->text, look->colour, 0};
}

static void draw_cell(struct oc_canvas *canvas, int x, int y, const struct shape *shape, int cell)
{
    int first = cell * shape->units, last = first + shape->units - 1;
    int left = class_at(shape, first), right = class_at(shape, last);
    struct oc_style style = fill_style(canvas, left);
    if (left < 0) return;
    if (shape->capacity >= 0 && cell > shape->capacity) { /* past capacity: the letter stays, '!' between, reversed */
        style.attr |= OC_ATTR_REVERSE;
        oc_canvas_put(canvas, x + cell, y, style,
                      (cell - shape->capacity) % 2 ? '!' : (uint32_t)canvas->theme->classes[left].letter);
    } else if (left == right) {
        oc_canvas_put(canvas, x + cell, y, style,
                      canvas->letters ? (uint32_t)canvas->theme->classes[left].letter : ' ');
    } else {
        int eighths = 1;
        while (class_at(shape, first + eighths) == left) eighths++;
        style.fg = fill_style(canvas, left).bg;
        style.bg = fill_style(canvas, right).bg;
        oc_canvas_put(canvas, x + cell, y, style, 0x2590u - (uint32_t)eighths);
    }
}

/* The class's letter, with its amount where there is room, in the middle of the full cells of its segment; in a coarse
 * bar the letter alone, at its beginning. */
static void draw_label(struct oc_canvas *canvas, int x, int y, const struct oc_bar *bar, const struct shape *shape,
                       int class)
{
    int begin = class > 0 ? shape->edges[class - 1] : 0;
    int first = (begin + shape->units - 1) / shape->units, end = shape->edges[class] / shape->units;
    if (shape->capacity >= 0 && end > shape->capacity) end = shape->capacity;
    char amount[OC_BYTES_TEXT], text[OC_BYTES_TEXT + 4];
    oc_format_amount(bar->classes[class], bar->unit, 0, amount, sizeof amount);
    snprintf(text, sizeof text, "%c %s", canvas->theme->classes[class].letter, amount);
    int length = (int)strlen(text);
    if (bar->ghost || bar->coarse || end - first < length + 2) length = 1;
    if (end - first < 3) return;
    struct oc_style style = fill_style(canvas, class);
    int at = first + (bar->coarse ? 1 : (end - first - length) / 2); /* where it stays while the end moves */
    for (int i = 0; i < length; i++) oc_canvas_put(canvas, x + at + i, y, style, (unsigned char)text[i]);
}

void oc_bar_draw(struct oc_canvas *canvas, int x, int y, int width, const struct oc_bar *bar)
{
    if (width <= 0) return;
    struct shape shape = {.units = canvas->colour && !canvas->ascii && !bar->coarse ? 8 : 1, .capacity = -1};
    oc_bar_edges(bar->classes, OC_CLASSES, bar->scale, width * shape.units, shape.edges);
    if (bar->capacity && bar->capacity <= bar->scale) {
        shape.capacity = round_edge((double)bar->capacity, (double)bar->scale, width);
        if (shape.capacity >= width) shape.capacity = width - 1;
    }
    for (int cell = 0; cell < width; cell++) draw_cell(canvas, x, y, &shape, cell);
    if (!canvas->letters)
        for (int class = 0; class < OC_CLASSES; class ++) draw_label(canvas, x, y, bar, &shape, class);
    if (shape.capacity >= 0) {
        struct oc_style style = oc_canvas_style(canvas, OC_ROLE_CAPACITY);
        style.bg = fill_style(canvas, class_at(&shape, shape.capacity * shape.units)).bg;
        if (style.bg) style.fg = canvas->theme->classes[class_at(&shape, shape.capacity * shape.units)].text;
        oc_canvas_put(canvas, x + shape.capacity, y, style, 0x2502);
    }
}

/* The next of a few round lengths, so that the axis stays where it is while values change a little. */
static uint64_t round_length(uint64_t bytes)
{
    static const int tenths[] = {10, 12, 15, 20, 25, 30, 40, 50, 60, 80};
    uint64_t one = oc_axis_unit(bytes) == OC_UNIT_MIB ? 1u << 20 : 1u << 30;
    for (uint64_t power = one / 1024; power < UINT64_MAX / 80; power *= 10)
        for (size_t i = 0; i < sizeof tenths / sizeof tenths[0]; i++)
            if (power / 10 * (uint64_t)tenths[i] >= bytes) return power / 10 * (uint64_t)tenths[i];
    return bytes;
}

uint64_t oc_axis_scale(uint64_t largest, uint64_t capacity)
{
    bool with_capacity = capacity && capacity / 3 <= largest;
    uint64_t air = oc_add(largest, largest / 50); /* a little after the longest bar */
    if (with_capacity && air <= capacity) return oc_add(capacity, capacity / 25);
    return air ? round_length(air) : 1;
}

uint64_t oc_axis_keep(uint64_t *kept, uint64_t largest, uint64_t capacity)
{
    uint64_t scale = oc_axis_scale(largest, capacity);
    bool with_capacity = capacity && capacity / 3 <= largest && scale / 2 < capacity;
    if (with_capacity || *kept < oc_add(largest, largest / 50) || *kept / 2 > largest) *kept = scale;
    return *kept;
}

enum oc_unit oc_axis_unit(uint64_t scale)
{
    return scale < (uint64_t)2 << 30 ? OC_UNIT_MIB : OC_UNIT_GIB;
}

uint64_t oc_axis_step(uint64_t scale, enum oc_unit unit, int width)
{
    uint64_t one = unit == OC_UNIT_MIB ? 1u << 20 : 1u << 30;
    int most = width / 9 > 0 ? width / 9 : 1;
    static const int leads[] = {1, 2, 5};
    for (uint64_t power = 1; power < UINT64_MAX / 50; power *= 10) {
        for (int i = 0; i < 3; i++) {
            uint64_t step = oc_mul(one, (uint64_t)leads[i] * power);
            if (scale / step <= (uint64_t)most) return step;
        }
    }
    return UINT64_MAX;
}

void oc_axis_draw(struct oc_canvas *canvas, int x, int y, int width, uint64_t scale, enum oc_unit unit)
{
    uint64_t step = oc_axis_step(scale, unit, width), one = unit == OC_UNIT_MIB ? 1u << 20 : 1u << 30;
    for (uint64_t at = 0; at <= scale && step != UINT64_MAX; at += step) {
        int column = round_edge((double)at, (double)scale, width);
        char text[OC_BYTES_TEXT];
        oc_format_count(at / one, text, sizeof text);
        if (column + (int)strlen(text) <= width)
            oc_canvas_text(canvas, x + column, y, width - column, OC_ROLE_DIM, text);
        if (at > UINT64_MAX - step) break;
    }
}

void oc_class_box(struct oc_canvas *canvas, int x, int y, int width, int class)
{
    struct oc_style style = fill_style(canvas, class);
    for (int i = 0; i < width; i++)
        oc_canvas_put(canvas, x + i, y, style, i == width / 2 ? (uint32_t)canvas->theme->classes[class].letter : ' ');
}

void oc_legend_draw(struct oc_canvas *canvas, int x, int y, int limit)
{
    int names = 0;
    for (int i = 0; i < OC_CLASSES; i++) names += 4 + (int)strlen(oc_class_name((enum oc_class)i)) + 2;
    for (int i = 0, at = 0; i < OC_CLASSES; i++) {
        if (at + 3 > limit) return;
        oc_class_box(canvas, x + at, y, 3, i);
        at += 4;
        if (names - 2 > limit) continue;
        at += oc_canvas_text(canvas, x + at, y, limit - at, OC_ROLE_TEXT, oc_class_name((enum oc_class)i)) + 2;
    }
}
