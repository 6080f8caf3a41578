/* Views: what the large part of the screen can show. A view is one file with one const table; adding one is adding its
 * row to oc_views. Drawing changes nothing but the view's own state, which it may bring back inside its limits.
 *
 * Keys: where a view has `request` and the panel was not chosen with Tab, requests go to it first; what it does not
 * take means what it means everywhere. */
#ifndef OOMCAST_VIEWS_H
#define OOMCAST_VIEWS_H

#include "tui/screen/app.h"

struct oc_view_ops {
    const char *title, *brief; /* in the header; `brief` where room is short */
    const char *about;         /* what it shows, for the help overlay */
    size_t state_size;         /* bytes of what it remembers, zeroed at the start; 0 = nothing */
    void (*draw)(const struct oc_app *app, void *state, struct oc_canvas *canvas, struct oc_rect rect);
    bool (*request)(struct oc_app *app, void *state, enum oc_request request); /* true: taken; NULL: it has no keys */
    bool (*pick)(struct oc_app *app, void *state,
                 int row); /* puts the cursor on a row of its list; false: it is there already; NULL = it has no list */
    void (*help)(const struct oc_app *app, const void *state, char *text, size_t size); /* the help rows; NULL = none */
    const struct oc_view_key *keys; /* ended by a row of OC_REQUESTS; NULL = none */
    bool (*shares)(const struct oc_app *app,
                   const void *state);     /* the panel has its keys beside it; NULL = it has not */
    const struct oc_view_key *shared_keys; /* of the hint row, while it does */
    void (*changed)(
        struct oc_app *app);      /* whenever something may be different: after keys, after the probe; NULL = none */
    void (*release)(void *state); /* frees what the state holds, not the state; NULL = nothing */
};

extern const struct oc_view_ops oc_view_fit, oc_view_step, oc_view_pipeline, oc_view_layers, oc_view_compare,
    oc_view_lessons;

/* All views in the order of their numbers; at most OC_VIEWS_MAX. */
extern const struct oc_view_ops *const oc_views[];
extern const int oc_n_views;

/* The number of a view, from 0. */
int oc_view_index(const struct oc_view_ops *view);

/* What a view remembers. */
void *oc_view_state(const struct oc_app *app, const struct oc_view_ops *view);

#endif
