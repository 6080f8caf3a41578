/* Views: what the large part of the screen can show. A view is one file with one const table; adding one is adding its
 * row to oc_views. A view is a pure function of the state: it draws in its rectangle and changes nothing. */
#ifndef OOMCAST_VIEWS_H
#define OOMCAST_VIEWS_H

#include "tui/screen/app.h"

struct oc_view_ops {
    const char *title;
    void (*draw)(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect);
};

extern const struct oc_view_ops oc_view_fit;

/* All views in the order of their numbers. */
extern const struct oc_view_ops *const oc_views[];
extern const int oc_n_views;

#endif
