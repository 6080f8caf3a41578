/* What the mouse does: rows of a table, each a place and its meaning. Nothing needs one. What can be clicked is what
 * was drawn: drawing leaves targets on the canvas (canvas.h). */
#ifndef OOMCAST_MOUSE_H
#define OOMCAST_MOUSE_H

#include "tui/screen/canvas.h"

enum oc_mouse_kind { OC_MOUSE_CLICK, OC_MOUSE_WHEEL_UP, OC_MOUSE_WHEEL_DOWN };

struct oc_mouse {
    enum oc_mouse_kind kind;
    int x, y; /* the cell */
};

/* A row of the help overlay. */
struct oc_mouse_row {
    const char *what, *help;
};
extern const struct oc_mouse_row oc_mouse_rows[];
extern const int oc_n_mouse_rows;

/* Does what a click or the wheel means on what was drawn on this canvas last. While something is asked it means
 * nothing. */
struct oc_app;
void oc_app_mouse(struct oc_app *app, const struct oc_canvas *canvas, const struct oc_mouse *mouse);

#endif
