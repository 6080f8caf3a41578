/* Stacked bars: values to edges (pure arithmetic), and edges to cells.
 *
 * Cumulative edges are rounded, never segments, so that rounding does not add up and equal values end at equal columns.
 * Full cells are blanks on the class's colour; only a boundary cell uses an eighth block. Without colours cells hold
 * the class's letter. */
#ifndef OOMCAST_BARS_H
#define OOMCAST_BARS_H

#include "tui/report/units.h"
#include "tui/screen/canvas.h"

enum { OC_BAR_PARTS = 16 };

/* edges[i] = where part i ends, in 1/units of a bar that is `scale` long. Every part that is not zero gets at least one
 * unit, taken from the largest part, while units last; the last edge is at most `units`. `n` is at most OC_BAR_PARTS.
 */
void oc_bar_edges(const uint64_t *values, int n, uint64_t scale, int units, int *edges);

struct oc_bar {
    const uint64_t *classes; /* OC_CLASSES byte counts */
    uint64_t scale;          /* bytes of the whole width; not 0 */
    uint64_t capacity;       /* bytes where the line is drawn and '!' begins; 0 = none */
    enum oc_unit unit;       /* of the amounts inside long segments */
    bool ghost;              /* a bar for comparison: letters without amounts */
    bool coarse;             /* whole cells and letters only: half the bytes to a terminal, for rows of many */
};

void oc_bar_draw(struct oc_canvas *canvas, int x, int y, int width, const struct oc_bar *bar);

/* The length of the axis for bars up to `largest`, a round number: the capacity is on it when it is not far beyond
 * them, and it then ends just after it. Never 0. */
uint64_t oc_axis_scale(uint64_t largest, uint64_t capacity);

/* The same, but an axis that was kept stays as it is while the longest bar fills half of it: what is drawn on it can
 * then be compared from one change to the next. `*kept` is 0 at first. */
uint64_t oc_axis_keep(uint64_t *kept, uint64_t largest, uint64_t capacity);

/* MiB for short axes, otherwise GiB. */
enum oc_unit oc_axis_unit(uint64_t scale);

/* Bytes between the numbers on an axis `width` columns long: 1, 2 or 5 times a power of ten of the unit. */
uint64_t oc_axis_step(uint64_t scale, enum oc_unit unit, int width);

/* The numbers over the bars. */
void oc_axis_draw(struct oc_canvas *canvas, int x, int y, int width, uint64_t scale, enum oc_unit unit);

/* The letter of a class on its colour, in the middle of `width` cells. */
void oc_class_box(struct oc_canvas *canvas, int x, int y, int width, int class);

/* "W weights  M master ..." in their colours, in at most `limit` columns; only the letters' boxes where names do not
 * fit. */
void oc_legend_draw(struct oc_canvas *canvas, int x, int y, int limit);

#endif
