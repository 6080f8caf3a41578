/* The compare view's bars of both sides, and their classes side by side. */
#include "tui/views/compare.h"

#include "tui/report/units.h"
#include "tui/screen/bars.h"

enum { BAR_LABEL = 4, BAR_AMOUNT = 10 };

void oc_compare_bars_draw(const struct oc_app *app, const struct oc_compare_state *state, struct oc_canvas *canvas,
                          struct oc_rect rect)
{
    const struct oc_comparison *c = &state->comparison;
    const uint64_t a = c->at_a.allocated, b = c->at_b.allocated, capacity = app->answer->plan.capacity;
    const uint64_t scale = oc_axis_scale(a > b ? a : b, app->zoom ? 0 : capacity);
    const enum oc_unit unit = oc_axis_unit(scale);
    const int x = rect.x + BAR_LABEL, width = rect.w - BAR_LABEL - BAR_AMOUNT - 1;
    oc_axis_draw(canvas, x, rect.y, width, scale, unit);
    for (int i = 0; i < 2 && i + 1 < rect.h; i++) {
        const struct oc_instant *at = i ? &c->at_b : &c->at_a;
        const struct oc_bar bar = {at->classes, scale, capacity, unit, i == 1, false};
        char amount[OC_BYTES_TEXT];
        oc_canvas_text(canvas, rect.x + 1, rect.y + 1 + i, 2, OC_ROLE_TITLE, i ? "B" : "A");
        oc_bar_draw(canvas, x, rect.y + 1 + i, width, &bar);
        oc_format_amount(at->allocated, unit, BAR_AMOUNT - 2, amount, sizeof amount);
        oc_canvas_right(canvas, x + width, rect.y + 1 + i, BAR_AMOUNT, OC_ROLE_TEXT, amount);
    }
}

enum { NAME = 15 };

enum oc_role oc_compare_role(uint64_t a, uint64_t b)
{
    return a > b ? OC_ROLE_DELTA_UP : a < b ? OC_ROLE_DELTA_DOWN : OC_ROLE_DIM;
}

/* Columns of amounts that fit: the difference alone, A and the difference, or both sides too. */
static int amounts_that_fit(int width)
{
    const int n = width / OC_COMPARE_AMOUNT;
    return n < 1 ? 1 : n < 3 ? n : 3;
}

/* A, B and A - B, or the last of them that fit; returns the column behind them. */
int oc_compare_amounts_draw(struct oc_canvas *canvas, int x, int y, int columns, uint64_t a, uint64_t b,
                            enum oc_unit unit, bool title)
{
    char text[OC_BYTES_TEXT];
    const enum oc_role role = title ? OC_ROLE_TITLE : OC_ROLE_TEXT;
    if (columns > 1) {
        oc_canvas_right(canvas, x, y, OC_COMPARE_AMOUNT, a ? role : OC_ROLE_DIM,
                        oc_format_amount(a, unit, OC_COMPARE_AMOUNT - 1, text, sizeof text));
        x += OC_COMPARE_AMOUNT;
    }
    if (columns > 2) {
        oc_canvas_right(canvas, x, y, OC_COMPARE_AMOUNT, b ? role : OC_ROLE_DIM,
                        oc_format_amount(b, unit, OC_COMPARE_AMOUNT - 1, text, sizeof text));
        x += OC_COMPARE_AMOUNT;
    }
    oc_canvas_right(canvas, x, y, OC_COMPARE_AMOUNT, oc_compare_role(a, b),
                    oc_format_change(b, a, unit, OC_COMPARE_AMOUNT - 1, text, sizeof text));
    return x + OC_COMPARE_AMOUNT;
}

static void draw_heads(struct oc_canvas *canvas, int x, int y, int columns)
{
    static const char *const heads[] = {"A", "B", "A - B"};
    for (int i = 0; i < 3; i++) {
        if ((i == 0 && columns < 2) || (i == 1 && columns < 3)) continue;
        oc_canvas_right(canvas, x, y, OC_COMPARE_AMOUNT, OC_ROLE_DIM, heads[i]);
        x += OC_COMPARE_AMOUNT;
    }
}

/* From the middle: to the right what A has more, to the left what B has. */
static void draw_difference(struct oc_canvas *canvas, int x, int y, int width, int class, uint64_t a, uint64_t b,
                            uint64_t largest)
{
    const int half = (width - 1) / 2, middle = x + half;
    const uint64_t size = a > b ? a - b : b - a;
    if (half < 3) return;
    oc_canvas_put(canvas, middle, y, oc_canvas_style(canvas, OC_ROLE_BORDER), 0x2502);
    int cells = largest ? (int)((double)size / (double)largest * half + 0.5) : 0;
    if (size && !cells) cells = 1;
    const int begin = a > b ? middle + 1 : middle - cells;
    if (!canvas->letters && cells) oc_class_box(canvas, begin, y, cells, class);
    for (int i = 0; canvas->letters && i < cells; i++) oc_class_box(canvas, begin + i, y, 1, class);
}

/* Every class, and the sum. */
void oc_compare_classes_draw(const struct oc_compare_state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    const struct oc_comparison *c = &state->comparison;
    const enum oc_unit unit =
        oc_axis_unit(c->at_a.allocated > c->at_b.allocated ? c->at_a.allocated : c->at_b.allocated);
    uint64_t largest = 0;
    for (int i = 0; i < OC_CLASSES; i++) {
        const uint64_t a = c->at_a.classes[i], b = c->at_b.classes[i], size = a > b ? a - b : b - a;
        if (size > largest) largest = size;
    }
    const int columns = amounts_that_fit(rect.w - NAME);
    oc_canvas_text(canvas, rect.x + 1, rect.y, NAME - 1, OC_ROLE_DIM, oc_unit_name(unit));
    draw_heads(canvas, rect.x + NAME, rect.y, columns);
    for (int i = 0; i <= OC_CLASSES && i + 1 < rect.h; i++) {
        const int y = rect.y + 1 + i;
        if (i == OC_CLASSES) {
            oc_canvas_text(canvas, rect.x + 1, y, NAME - 1, OC_ROLE_TITLE, "= allocated");
            oc_compare_amounts_draw(canvas, rect.x + NAME, y, columns, c->at_a.allocated, c->at_b.allocated, unit,
                                    true);
            return;
        }
        oc_class_box(canvas, rect.x + 1, y, 1, i);
        oc_canvas_text(canvas, rect.x + 3, y, NAME - 3, OC_ROLE_TEXT, oc_class_name((enum oc_class)i));
        const int x = oc_compare_amounts_draw(canvas, rect.x + NAME, y, columns, c->at_a.classes[i], c->at_b.classes[i],
                                              unit, false) +
                      2;
        draw_difference(canvas, x, y, rect.x + rect.w - 1 - x, i, c->at_a.classes[i], c->at_b.classes[i], largest);
    }
}
