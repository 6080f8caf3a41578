/* The report as a picture: a bar for each stage, cut into classes, on an axis with the GPU's capacity. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/report/report.h"
#include "tui/screen/bars.h"
#include "tui/screen/theme.h"

enum { WIDTH = 960, MARGIN = 24, LABEL = 90, AMOUNT = 110, ROW = 34, BAR = 22, TOP = 96, MOST_ROWS = 64 };

struct picture {
    struct oc_buffer *out;
    const struct oc_answer *answer;
    struct oc_theme theme;
    uint64_t scale; /* bytes of the axis */
    enum oc_unit unit;
    int rows;
};

static void put_text(struct oc_buffer *out, const char *text)
{
    for (; *text; text++) {
        const char *as = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : NULL;
        if (as)
            oc_put(out, as);
        else
            oc_put_bytes(out, text, 1);
    }
}

static double x_of(const struct picture *p, uint64_t bytes)
{
    const int width = WIDTH - 2 * MARGIN - LABEL - AMOUNT;
    return MARGIN + LABEL + (double)bytes / (double)p->scale * width;
}

static void put_segment(const struct picture *p, int class, uint64_t from, uint64_t bytes, int y)
{
    char fill[8], text[8], amount[OC_BYTES_TEXT];
    const double x = x_of(p, from), width = x_of(p, from + bytes) - x;
    const struct oc_class_look *look = &p->theme.classes[class];
    if (!bytes) return;
    oc_putf(p->out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x, y, width, BAR,
            oc_theme_rgb(&p->theme, look->colour, fill));
    if (width < 14) return;
    oc_putf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\">%c", x + width / 2, y + 16,
            oc_theme_rgb(&p->theme, look->text, text), look->letter);
    if (width > 70) oc_putf(p->out, " %s", oc_format_amount(bytes, p->unit, 0, amount, sizeof amount));
    oc_put(p->out, "</text>\n");
}

/* Stage i, and what lies beyond the allocated bytes on the device. */
static void put_bar(const struct picture *p, int i)
{
    const struct oc_rank *rank = &p->answer->ranks[i];
    const uint64_t device = oc_device(&p->answer->plan, rank).high;
    const int y = TOP + i * ROW;
    char amount[OC_BYTES_TEXT];
    uint64_t from = 0;
    oc_putf(p->out, "<text x=\"%d\" y=\"%d\">stage %d</text>\n", MARGIN, y + 16, i);
    for (int c = 0; c < OC_CLASSES; c++) {
        put_segment(p, c, from, rank->peak.classes[c], y);
        from += rank->peak.classes[c];
    }
    if (device > from)
        oc_putf(p->out,
                "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"none\" stroke=\"#808080\" "
                "stroke-dasharray=\"3 3\"/>\n",
                x_of(p, from), y, x_of(p, device) - x_of(p, from), BAR);
    oc_putf(p->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", WIDTH - MARGIN, y + 16,
            oc_format_bytes(rank->peak.allocated, p->unit, amount, sizeof amount));
}

static void put_axis(const struct picture *p)
{
    const int bottom = TOP + p->rows * ROW;
    const uint64_t step = oc_axis_step(p->scale, p->unit == OC_UNIT_BYTES ? OC_UNIT_GIB : p->unit, 80);
    char text[OC_BYTES_TEXT];
    for (uint64_t at = 0; at <= p->scale; at += step) {
        oc_putf(p->out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#d0d0d0\"/>\n", x_of(p, at),
                TOP - 6, x_of(p, at), bottom);
        oc_putf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#606060\">%s</text>\n", x_of(p, at),
                TOP - 12, oc_format_amount(at, p->unit, 0, text, sizeof text));
        if (at > p->scale - step) break; /* the next one would not fit in 64 bits, or on the axis */
    }
}

static void put_capacity(const struct picture *p)
{
    const uint64_t capacity = p->answer->plan.capacity;
    if (!capacity || capacity > p->scale) return;
    oc_putf(p->out,
            "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#c02020\" stroke-width=\"2\"/>\n"
            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#c02020\">capacity</text>\n",
            x_of(p, capacity), TOP - 6, x_of(p, capacity), TOP + p->rows * ROW, x_of(p, capacity),
            TOP + p->rows * ROW + 14);
}

static void put_legend(const struct picture *p, int y)
{
    int x = MARGIN + LABEL;
    for (int c = 0; c < OC_CLASSES; c++) {
        char fill[8];
        const char *name = oc_class_name((enum oc_class)c);
        oc_putf(p->out, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, y - 11,
                oc_theme_rgb(&p->theme, p->theme.classes[c].colour, fill));
        oc_putf(p->out, "<text x=\"%d\" y=\"%d\">%c %s</text>\n", x + 17, y, p->theme.classes[c].letter, name);
        x += 52 + 8 * (int)strlen(name);
    }
}

static void put_picture(const struct picture *p)
{
    const int height = TOP + p->rows * ROW + 60;
    struct oc_buffer verdict = {0};
    oc_putf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"13\" fill=\"#202020\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            WIDTH, height, WIDTH, height);
    oc_putf(p->out,
            "<text x=\"%d\" y=\"30\" font-size=\"16\" font-weight=\"bold\">Peak of each rank, steady step, %s</text>\n",
            MARGIN, oc_unit_name(p->unit));
    oc_verdict_text(p->answer, p->unit, &verdict);
    oc_putf(p->out, "<text x=\"%d\" y=\"54\" font-size=\"11\">", MARGIN);
    put_text(p->out, verdict.data ? verdict.data : "");
    oc_put(p->out, "</text>\n");
    p->out->failed |= verdict.failed;
    oc_buffer_free(&verdict);
    put_axis(p);
    for (int i = 0; i < p->rows; i++) put_bar(p, i);
    if (p->rows < p->answer->n_ranks)
        oc_putf(p->out, "<text x=\"%d\" y=\"%d\">and %d more stages</text>\n", MARGIN, TOP + p->rows * ROW + 14,
                p->answer->n_ranks - p->rows);
    put_capacity(p);
    put_legend(p, height - 20);
    oc_put(p->out, "</svg>\n");
}

void oc_report_svg(const struct oc_report *report, struct oc_buffer *out)
{
    struct picture p = {.out = out, .answer = report->answer, .unit = report->unit};
    uint64_t largest = 1;
    if (!oc_theme_default(&p.theme, NULL)) {
        out->failed = true;
        return;
    }
    p.rows = report->answer->n_ranks < MOST_ROWS ? report->answer->n_ranks : MOST_ROWS;
    for (int i = 0; i < p.rows; i++) {
        const uint64_t device = oc_device(&report->answer->plan, &report->answer->ranks[i]).high;
        if (device > largest) largest = device;
    }
    p.scale = oc_axis_scale(largest, report->answer->plan.capacity);
    put_picture(&p);
}
