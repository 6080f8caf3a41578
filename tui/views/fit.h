/* The parts of the fit view. Each says how many rows it wants and draws in what it gets. */
#ifndef OOMCAST_FIT_H
#define OOMCAST_FIT_H

#include "tui/screen/app.h"

/* What the view remembers: the lengths of its axes, so that they stay while values change a little. */
struct oc_fit_state {
    uint64_t peaks, added;
};

/* The bars at full size: a title, an axis, and per distinct group of stages model, simulated and base; a legend below
 * them where no table says what the colours mean. */
int oc_fit_bars_rows(const struct oc_app *app);
void oc_fit_bars_draw(const struct oc_app *app, struct oc_fit_state *state, struct oc_canvas *canvas,
                      struct oc_rect rect, bool legend);

/* A bar for each moment of the steady step: what it holds beyond what is always there, on an axis of its own. */
int oc_fit_moments_rows(const struct oc_app *app);
void oc_fit_moments_draw(const struct oc_app *app, struct oc_fit_state *state, struct oc_canvas *canvas,
                         struct oc_rect rect);

/* The probe at its own shape beside the model at that shape; 0 rows while nothing was measured. */
int oc_fit_probe_rows(const struct oc_app *app);
void oc_fit_probe_draw(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect);

/* The table per class, 8 rows; totals and a note take more. */
enum { OC_FIT_TABLE_LEAST = 8 };
int oc_fit_table_rows(const struct oc_app *app);
void oc_fit_table_draw(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect);

/* The worst stage's rank. */
const struct oc_rank *oc_fit_worst(const struct oc_answer *answer);

#endif
