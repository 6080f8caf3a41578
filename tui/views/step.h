/* The parts of the step view. */
#ifndef OOMCAST_STEP_H
#define OOMCAST_STEP_H

#include "tui/screen/bars.h"
#include "tui/views/timeline.h"
#include "tui/screen/app.h"

struct oc_step_column {
    enum oc_iteration iteration;
    struct oc_column c;
};

/* What the view remembers: the timeline of a plan's stage, where its cursor is, and what was drawn last. */
struct oc_step_state {
    uint64_t plan; /* hash; 0 = none yet */
    int64_t stage;
    struct oc_timeline timeline;
    enum oc_iteration iteration; /* of the cursor */
    int at;                      /* sample under the cursor */
    bool moved;                  /* by hand: until then it stays on the peak */
    struct oc_step_column columns[OC_CANVAS_MAX];
    int n_columns;
    uint64_t axes[2]; /* kept from one change to the next; [1] when zoomed */
};

const struct oc_sample *oc_step_cursor(const struct oc_step_state *state);

/* Puts the cursor on the instant nearest to a place. */
void oc_step_go_to(struct oc_step_state *state, const struct oc_place *place);

/* Stacked columns over the step, with their axes; says in state->columns what each column shows. */
void oc_step_chart(const struct oc_app *app, struct oc_step_state *state, struct oc_canvas *canvas,
                   struct oc_rect rect);

/* What the dry run and the real run held in each moment of the cursor's iteration, beside the model; nothing while
 * neither is known, or when another stage is looked at than the one that runs. */
void oc_step_probe(const struct oc_app *app, const struct oc_step_state *state, struct oc_canvas *canvas,
                   struct oc_rect rect);

#endif
