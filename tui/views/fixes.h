/* The list of changes that make a configuration fit, or that could be taken back; over any view, on f.
 *
 * Ownership: oc_fixes_open() allocates app->fixes, oc_fixes_free() releases it. */
#ifndef OOMCAST_FIXES_H
#define OOMCAST_FIXES_H

#include "tui/screen/app.h"

struct oc_fixes {
    struct oc_advices advices;
    int focus, top; /* in the list */
};

/* Looks for changes and opens the list; says why where there is none to be had. */
void oc_fixes_open(struct oc_app *app);
void oc_fixes_free(struct oc_app *app);

/* One request while the list is open: moves, applies, closes. */
void oc_fixes_request(struct oc_app *app, enum oc_request request);

/* Puts the cursor on a row of the list; false when it is there already. */
bool oc_fixes_pick(struct oc_app *app, int row);

void oc_fixes_draw(struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect);

#endif
