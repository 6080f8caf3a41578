/* What keys do to the configuration: each is one step of the history, and says on the status row what it did. */
#ifndef OOMCAST_CHANGE_H
#define OOMCAST_CHANGE_H

#include "tui/screen/app.h"
#include "tui/screen/edit.h"

/* On the option that has the focus; on a section's head they fold. */
void oc_change_step(struct oc_app *app, enum oc_step step);
void oc_change_toggle(struct oc_app *app);
void oc_change_edit(struct oc_app *app); /* opens the prompt */
void oc_change_reset(struct oc_app *app);

/* On the whole configuration. */
void oc_change_reset_all(struct oc_app *app);
void oc_change_undo(struct oc_app *app, int direction); /* -1 takes back, 1 makes again */
void oc_change_base(struct oc_app *app);
void oc_change_swap(struct oc_app *app);

#endif
