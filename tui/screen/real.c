/* The model behind the screen. */
#include "tui/screen/app.h"

const struct oc_app_model oc_real_model = {.resolve = oc_resolve,
                                           .answer = oc_answer,
                                           .explain = oc_explain,
                                           .device = oc_device,
                                           .fit = oc_probe_fit,
                                           .covers = oc_probe_covers,
                                           .estimate = oc_estimate,
                                           .compare = oc_compare,
                                           .advise = oc_advise,
                                           .reserve = oc_reserve,
                                           .judge = oc_judge};
