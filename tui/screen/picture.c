/* A canvas as SVG: one rectangle per run of background, one text element per run of a style. Needs no terminal and no
 * X. */
#include "tui/screen/canvas.h"

#include <string.h>

enum { CELL_W = 8, CELL_H = 17, BASELINE = 13, MARGIN = 10 };

struct paint {
    char fg[8], bg[8];
    bool bold, underline;
};

static const char *ground_of(const struct oc_canvas *canvas)
{
    return canvas->theme->light ? "#ffffff" : "#121212";
}

static struct paint paint_of(const struct oc_canvas *canvas, struct oc_style style)
{
    struct paint paint;
    char text[8];
    const char *fg = oc_theme_rgb(canvas->theme, style.fg, text);
    snprintf(paint.fg, sizeof paint.fg, "%s", fg ? fg : canvas->theme->light ? "#1c1c1c" : "#d0d0d0");
    const char *bg = oc_theme_rgb(canvas->theme, style.bg, text);
    snprintf(paint.bg, sizeof paint.bg, "%s", bg ? bg : ground_of(canvas));
    if (style.attr & OC_ATTR_REVERSE) {
        memcpy(text, paint.fg, sizeof text);
        memcpy(paint.fg, paint.bg, sizeof text);
        memcpy(paint.bg, text, sizeof text);
    }
    paint.bold = style.attr & OC_ATTR_BOLD;
    paint.underline = style.attr & OC_ATTR_UNDERLINE;
    return paint;
}

static bool same_style(const struct oc_cell *a, const struct oc_cell *b)
{
    return memcmp(&a->style, &b->style, sizeof a->style) == 0;
}

/* Left blocks of 1 to 7 eighths, 0x258f to 0x2589, and lower ones, 0x2581 to 0x2587. */
static bool is_left_block(uint32_t code)
{
    return code >= 0x2589 && code <= 0x258f;
}

static bool is_block(uint32_t code)
{
    return is_left_block(code) || (code >= 0x2581 && code <= 0x2587);
}

static void write_character(uint32_t code, FILE *out)
{
    char text[5];
    oc_utf8_write(code, text);
    fputs(code == '&' ? "&amp;" : code == '<' ? "&lt;" : code == '>' ? "&gt;" : text, out);
}

/* Text of the run from `x` to `end`; blanks at its ends are left out. */
static void write_text(const struct oc_canvas *canvas, int x, int end, int y, FILE *out)
{
    while (x < end && oc_canvas_at(canvas, x, y)->code == ' ') x++;
    while (end > x && oc_canvas_at(canvas, end - 1, y)->code == ' ') end--;
    if (x >= end) return;
    struct paint paint = paint_of(canvas, oc_canvas_at(canvas, x, y)->style);
    fprintf(out, "<text x=\"%d\" y=\"%d\" fill=\"%s\" textLength=\"%d\"%s%s>", MARGIN + x * CELL_W,
            MARGIN + y * CELL_H + BASELINE, paint.fg, (end - x) * CELL_W, paint.bold ? " font-weight=\"bold\"" : "",
            paint.underline ? " text-decoration=\"underline\"" : "");
    for (; x < end; x++) {
        uint32_t code = oc_canvas_at(canvas, x, y)->code;
        if (code) write_character(is_block(code) ? ' ' : code, out);
    }
    fputs("</text>\n", out);
}

/* Blocks are rectangles: a font's glyph rarely meets the edges of its cell. */
static void write_blocks(const struct oc_canvas *canvas, int x, int end, int y, FILE *out)
{
    for (; x < end; x++) {
        const struct oc_cell *cell = oc_canvas_at(canvas, x, y);
        if (!is_block(cell->code)) continue;
        struct paint paint = paint_of(canvas, cell->style);
        int width = CELL_W, height = CELL_H, top = 0;
        if (is_left_block(cell->code)) {
            width = (int)(0x2590 - cell->code) * CELL_W / 8;
        } else {
            height = (int)(cell->code - 0x2580) * CELL_H / 8;
            top = CELL_H - height;
        }
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", MARGIN + x * CELL_W,
                MARGIN + y * CELL_H + top, width, height, paint.fg);
    }
}

static void write_run(const struct oc_canvas *canvas, int x, int end, int y, FILE *out)
{
    struct oc_style style = oc_canvas_at(canvas, x, y)->style;
    struct paint paint = paint_of(canvas, style);
    if (style.bg || style.attr & OC_ATTR_REVERSE)
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", MARGIN + x * CELL_W,
                MARGIN + y * CELL_H, (end - x) * CELL_W, CELL_H, paint.bg);
    write_blocks(canvas, x, end, y, out);
    write_text(canvas, x, end, y, out);
}

void oc_canvas_picture(const struct oc_canvas *canvas, FILE *out)
{
    int width = canvas->width * CELL_W + 2 * MARGIN, height = canvas->height * CELL_H + 2 * MARGIN;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"'DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"13.29\" xml:space=\"preserve\" "
            "shape-rendering=\"crispEdges\">\n<rect width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\"/>\n",
            width, height, width, height, width, height, ground_of(canvas));
    for (int y = 0; y < canvas->height; y++) {
        for (int x = 0, end; x < canvas->width; x = end) {
            end = x + 1;
            while (end < canvas->width && same_style(oc_canvas_at(canvas, x, y), oc_canvas_at(canvas, end, y))) end++;
            write_run(canvas, x, end, y, out);
        }
    }
    fputs("</svg>\n", out);
}
