/* Where things stand on a screen of a given size: pure geometry. Nothing overlaps and nothing lies outside, at any
 * size. */
#ifndef OOMCAST_LAYOUT_H
#define OOMCAST_LAYOUT_H

#include "tui/screen/canvas.h"

enum oc_layout_kind {
    OC_LAYOUT_TINY, /* one sentence */
    OC_LAYOUT_TABS, /* the panel or the view; Tab switches */
    OC_LAYOUT_SPLIT /* both, side by side */
};

enum { OC_MIN_WIDTH = 40, OC_MIN_HEIGHT = 10, OC_SPLIT_WIDTH = 80, OC_SPLIT_HEIGHT = 16 };

/* A rectangle with w or h 0 is not shown. */
struct oc_layout {
    enum oc_layout_kind kind;
    struct oc_rect header, panel, divider, view, rule, help, status, hint;
};

/* `panel` says which of the two is shown where there is room for one. */
void oc_layout_make(int width, int height, bool panel, struct oc_layout *layout);

/* One block of a column: it wants `most` rows, is useless with fewer than `least`; blocks of a lower rank are served
 * first. */
struct oc_block {
    int least, most, rank;
};

/* Shares `rows` among `n` blocks: `least` by rank, then up to `most` by rank. A block that cannot have its least gets
 * 0. */
void oc_layout_stack(int rows, const struct oc_block *blocks, int n, int *heights);

/* The first of `n` rows to show in `rows` lines, as near to `top` as it can be: the one with the focus is in sight and
 * no line stays empty that need not. */
int oc_layout_top(int top, int focus, int n, int rows);

/* The focus `by` rows further in a list of `n`; it stops at the ends, and is 0 in an empty list. */
int oc_layout_move(int focus, int by, int n);

#endif
