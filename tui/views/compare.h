/* What the parts of the compare view share.
 *
 * Ownership: a plain value, the view's state; it points to ledgers that the app keeps. */
#ifndef OOMCAST_COMPARE_H
#define OOMCAST_COMPARE_H

#include "tui/report/units.h"
#include "tui/screen/app.h"

struct oc_compare_state {
    uint64_t plan_a, plan_b; /* hashes that the comparison is of; 0 = none */
    int64_t stage_a, stage_b;
    int moment, of_moment; /* enum oc_moment, or OC_AT_PEAK; chosen, and compared */
    bool started, open;    /* the focused row is told in full */
    struct oc_comparison comparison;
    int n_given;           /* options that were given on a side: they have rows */
    int focus, top, shown; /* rows of the list: options, then entries */
};

enum { OC_COMPARE_AMOUNT = 9 }; /* columns of an amount */

/* Rows of the list: options that were given, then entries. */
int oc_compare_rows(const struct oc_compare_state *state);

/* The option or the entry of a row; NULL when it is the other. */
const struct oc_option_difference *oc_compare_option(const struct oc_compare_state *state, int row);
const struct oc_entry_difference *oc_compare_entry(const struct oc_compare_state *state, int row);

/* Everything about the row that has the focus. */
void oc_compare_tell(const struct oc_compare_state *state, char *text, size_t size);

/* An axis and a bar for each side. */
void oc_compare_bars_draw(const struct oc_app *app, const struct oc_compare_state *state, struct oc_canvas *canvas,
                          struct oc_rect rect);

/* Every class and the sum: both sides, the difference, and a bar of it. */
void oc_compare_classes_draw(const struct oc_compare_state *state, struct oc_canvas *canvas, struct oc_rect rect);

/* A, B and A - B, or the last of them that fit; returns the column behind them. */
int oc_compare_amounts_draw(struct oc_canvas *canvas, int x, int y, int columns, uint64_t a, uint64_t b,
                            enum oc_unit unit, bool title);

/* The colour of a difference. */
enum oc_role oc_compare_role(uint64_t a, uint64_t b);

#endif
