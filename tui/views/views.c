#include "tui/views/views.h"

const struct oc_view_ops *const oc_views[] = {&oc_view_fit};
const int oc_n_views = sizeof oc_views / sizeof oc_views[0];
