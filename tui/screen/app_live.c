/* The state and the live probe: what is asked of the lanes, and which results are believed. */
#include "tui/screen/app.h"

/* The model without a replay: the books of a probe count blocks as they were rounded, without what large blocks hold
 * beyond that. */
static bool answer_as_counted(struct oc_app *app, const struct oc_config *config, struct oc_answer *answer)
{
    struct oc_error error;
    return app->model->answer(config, answer, NULL, NULL, &error);
}

/* Cuts the current plan to the probe's size, and answers the model for that shape and for the whole. */
static void make_shape(struct oc_app *app)
{
    struct oc_probe_shape *shape = &app->shape;
    struct oc_plan cut = app->answer->plan;
    shape->of = app->answer->plan.hash;
    shape->uncovered = app->model->covers(&cut);
    shape->reason = NULL;
    if (!shape->uncovered && !answer_as_counted(app, &oc_app_case(app)->config, shape->whole))
        shape->uncovered = "the model has no answer";
    app->model->fit(&cut, app->probe_bytes, app->probe_seconds, NULL, 0);
    shape->config = cut.c; /* what was cut is marked as given: a child that resolves it arrives at the same plan */
    if (!answer_as_counted(app, &shape->config, shape->answer))
        shape->reason = shape->uncovered ? shape->uncovered : "the smaller shape does not resolve";
    else
        shape->reason = app->model->covers(&shape->answer->plan);
}

/* Both lanes run the fullest stage, which is what the screen shows beside them. */
bool oc_app_live(struct oc_app *app, int64_t now)
{
    bool force = app->probe_now, due = force || (app->live_dirty && app->probe_auto);
    const struct oc_probe_shape *shape = &app->shape;
    app->live_dirty = app->probe_now = false;
    if (!app->live || app->stale || !due) return false;
    app->probe_bytes = force ? OC_PROBE_LARGE_BYTES : OC_PROBE_AUTO_BYTES;
    app->probe_seconds = force ? OC_PROBE_LARGE_SECONDS : OC_PROBE_AUTO_SECONDS;
    make_shape(app);
    if (shape->uncovered)
        oc_live_forget(app->live, OC_LANE_DRY);
    else
        oc_live_want(app->live, OC_LANE_DRY, &oc_app_case(app)->config, app->answer->plan.hash,
                     app->answer->verdict.worst_stage, 0, now, force);
    if (shape->reason)
        oc_live_forget(app->live, OC_LANE_REAL);
    else
        oc_live_want(app->live, OC_LANE_REAL, &shape->config, shape->answer->plan.hash,
                     shape->answer->verdict.worst_stage, app->probe_bytes, now, force);
    return oc_app_simulated(app) || oc_app_measured(app);
}

const struct oc_result *oc_app_simulated(const struct oc_app *app)
{
    if (!app->live || app->shape.of != app->answer->plan.hash || app->shape.uncovered) return NULL;
    const struct oc_result *result = oc_live_result(app->live, OC_LANE_DRY, app->answer->plan.hash);
    bool other = result && result->status == OC_PROBE_DONE && result->rank.stage != app->answer->verdict.worst_stage;
    return other ? NULL : result; /* while not all stages are replayed another one may seem the fullest */
}

const struct oc_result *oc_app_measured(const struct oc_app *app)
{
    if (!app->live || app->shape.of != app->answer->plan.hash || app->shape.reason) return NULL;
    return oc_live_result(app->live, OC_LANE_REAL, app->shape.answer->plan.hash);
}
