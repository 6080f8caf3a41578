#include "tui/views/views.h"

const struct oc_view_ops *const oc_views[] = {&oc_view_fit,    &oc_view_step,    &oc_view_pipeline,
                                              &oc_view_layers, &oc_view_compare, &oc_view_lessons};
const int oc_n_views = sizeof oc_views / sizeof oc_views[0];

void *oc_view_state(const struct oc_app *app, const struct oc_view_ops *view)
{
    for (int i = 0; i < oc_n_views; i++)
        if (oc_views[i] == view) return app->view_states[i];
    return NULL;
}

int oc_view_index(const struct oc_view_ops *view)
{
    for (int i = 0; i < oc_n_views; i++)
        if (oc_views[i] == view) return i;
    return 0;
}
