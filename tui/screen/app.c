#include "tui/screen/app.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/edit.h"
#include "tui/screen/overlay.h"

static void say(struct oc_app *app, bool bad, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(struct oc_app *app, bool bad, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(app->message, sizeof app->message, format, args);
    va_end(args);
    app->message_bad = bad;
}

const struct oc_case *oc_app_case(const struct oc_app *app)
{
    return &app->undo.cases[app->undo.at];
}

enum oc_option_id oc_app_option(const struct oc_app *app)
{
    return app->panel.focus.option;
}

/* A configuration's answer, reserved bytes included: replayed through the allocator that the plan asks for. */
static bool answer_to(struct oc_app *app, const struct oc_config *config, struct oc_answer *answer,
                      struct oc_error *error)
{
    if (!app->model->resolve(config, &answer->plan, NULL, error)) return false;
    struct oc_alloc *alloc = app->alloc[answer->plan.c.allocator_expandable_segments ? 1 : 0];
    return app->model->answer(config, answer, NULL, alloc, error);
}

/* Answers the current case. On failure the last answer stays and is marked stale. */
static void recompute(struct oc_app *app)
{
    if (!answer_to(app, &oc_app_case(app)->config, app->spare, &app->error)) {
        app->stale = true;
        return;
    }
    struct oc_answer *answer = app->spare;
    app->spare = app->answer;
    app->answer = answer;
    app->stale = false;
    app->live_dirty = true;
    app->model->explain(app->answer, &app->reason);
}

bool oc_app_start(struct oc_app *app, const struct oc_app_model *model, const struct oc_input *input,
                  struct oc_error *error)
{
    memset(app, 0, sizeof *app);
    app->model = model;
    app->input = input;
    for (int i = 0; i < 2; i++)
        app->alloc[i] = oc_alloc_create(&(struct oc_alloc_provider){.expandable_segments = i == 1});
    app->first = input->c;
    app->answer = calloc(1, sizeof *app->answer);
    app->spare = calloc(1, sizeof *app->spare);
    app->base = calloc(1, sizeof *app->base);
    app->shape.whole = calloc(1, sizeof *app->shape.whole);
    app->shape.answer = calloc(1, sizeof *app->shape.answer);
    app->probe_bytes = OC_PROBE_AUTO_BYTES;
    app->probe_seconds = OC_PROBE_AUTO_SECONDS;
    if (!app->alloc[0] || !app->alloc[1] || !app->answer || !app->spare || !app->base || !app->shape.whole ||
        !app->shape.answer || !oc_undo_start(&app->undo, &input->c)) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        oc_app_end(app);
        return false;
    }
    recompute(app);
    if (app->stale) {
        if (error) *error = app->error;
        oc_app_end(app);
        return false;
    }
    oc_panel_start(&app->panel, OC_OPT_precision);
    return true;
}

void oc_app_end(struct oc_app *app)
{
    oc_live_end(app->live);
    oc_undo_free(&app->undo);
    for (int i = 0; i < 2; i++) oc_alloc_destroy(app->alloc[i]);
    free(app->answer);
    free(app->spare);
    free(app->base);
    free(app->shape.whole);
    free(app->shape.answer);
    memset(app, 0, sizeof *app);
}

static const struct oc_rank *worst(const struct oc_answer *answer)
{
    return &answer->ranks[answer->verdict.worst_stage];
}

/* What a change did to the worst rank's peak, in one line. */
static void say_change(struct oc_app *app, const char *what, uint64_t peak_before)
{
    char change[OC_BYTES_TEXT];
    if (app->stale) {
        say(app, true, "%s: %s", what, app->error.message);
        return;
    }
    oc_format_change(peak_before, worst(app->answer)->peak.allocated, OC_UNIT_GIB, 0, change, sizeof change);
    if (strcmp(change, "0") == 0)
        say(app, false, "%s: the peak stays", what);
    else
        say(app, false, "%s: peak %s GiB", what, change);
}

/* Makes `config` the current one, after a change of option `id`. */
static void take(struct oc_app *app, const struct oc_config *config, enum oc_option_id id)
{
    char before[OC_NAME_MAX + 16], after[OC_NAME_MAX + 16], what[256];
    uint64_t peak = worst(app->answer)->peak.allocated;
    struct oc_case next = *oc_app_case(app);
    oc_edit_text(&app->answer->plan.c, id, oc_given(&next.config, id), before, sizeof before);
    next.config = *config;
    next.origin[id] = (struct oc_origin){.from = OC_FROM_EDITED, .file = 255};
    if (!oc_given(config, id)) next.origin[id] = (struct oc_origin){.from = OC_FROM_DEFAULT, .file = 255};
    oc_undo_push(&app->undo, &next);
    recompute(app);
    oc_edit_text(app->stale ? config : &app->answer->plan.c, id, oc_given(config, id), after, sizeof after);
    snprintf(what, sizeof what, "%s %s -> %s", oc_option(id)->key, before, after);
    say_change(app, what, peak);
}

static const struct oc_config *resolves(const struct oc_config *config, struct oc_error *error, void *user)
{
    const struct oc_app *app = user;
    return app->model->resolve(config, &app->spare->plan, NULL, error) ? &app->spare->plan.c : NULL;
}

static void step(struct oc_app *app, enum oc_step step)
{
    enum oc_option_id id = oc_app_option(app);
    struct oc_config next;
    struct oc_error error = {0};
    if (id == OC_OPTIONS) {
        oc_panel_fold(&app->panel, step == OC_STEP_PREVIOUS || step == OC_STEP_HALVE);
        return;
    }
    const struct oc_config *config = &oc_app_case(app)->config;
    if (oc_edit_step(config, app->stale ? config : &app->answer->plan.c, id, step, resolves, app, &next, &error))
        take(app, &next, id);
    else
        say(app, true, "%s%s%s", error.message, error.hint[0] ? "; " : "", error.hint);
}

static void toggle(struct oc_app *app)
{
    enum oc_option_id id = oc_app_option(app);
    if (id == OC_OPTIONS)
        oc_panel_fold(&app->panel, !app->panel.folded[app->panel.focus.section]);
    else if (oc_option(id)->type == OC_T_BOOL)
        step(app, OC_STEP_NEXT);
    else
        say(app, false, "%s is not a switch: h and l change it, Enter types a value", oc_option(id)->key);
}

static void edit(struct oc_app *app)
{
    char text[OC_NAME_MAX + 16] = "";
    enum oc_option_id id = oc_app_option(app);
    if (id == OC_OPTIONS) {
        toggle(app);
        return;
    }
    const struct oc_config *config = &oc_app_case(app)->config;
    oc_option_text(oc_given(config, id) ? config : &app->answer->plan.c, id, text, sizeof text);
    oc_prompt_start(&app->prompt, text);
    app->mode = OC_MODE_PROMPT;
    app->message[0] = '\0';
}

/* What was typed becomes the value even where the whole does not resolve with it: the reason is then on the screen, and
 * the last bars stay, marked. What is not a value of the option at all leaves the prompt open. */
static void finish_edit(struct oc_app *app)
{
    enum oc_option_id id = oc_app_option(app);
    struct oc_config config = oc_app_case(app)->config;
    struct oc_error error = {0};
    if (!app->prompt.text[0]) {
        oc_option_reset(&config, id);
    } else if (!oc_option_set(&config, id, app->prompt.text, &error)) {
        say(app, true, "%s%s%s", error.message, error.hint[0] ? "; " : "", error.hint);
        return;
    }
    app->mode = OC_MODE_NORMAL;
    take(app, &config, id);
}

static void go(struct oc_app *app, int direction)
{
    uint64_t peak = worst(app->answer)->peak.allocated;
    if (!oc_undo_move(&app->undo, direction)) {
        say(app, false, direction < 0 ? "nothing to take back" : "nothing to make again");
        return;
    }
    recompute(app);
    say_change(app, direction < 0 ? "taken back" : "made again", peak);
}

static void reset(struct oc_app *app)
{
    enum oc_option_id id = oc_app_option(app);
    if (id == OC_OPTIONS) return;
    struct oc_config config = oc_app_case(app)->config;
    char text[OC_NAME_MAX + 16];
    oc_option_reset(&config, id);
    if (oc_given(&app->first.config, id)) {
        oc_option_text(&app->first.config, id, text, sizeof text);
        if (!oc_option_set(&config, id, text, NULL)) return;
    }
    take(app, &config, id);
    app->undo.cases[app->undo.at].origin[id] = app->first.origin[id];
}

static void base(struct oc_app *app)
{
    app->has_base = !app->has_base;
    if (app->has_base) *app->base = *app->answer;
    say(app, false,
        app->has_base ? "this is the base now: changes are shown against it; b again lets it go" : "no base");
}

static void probe(struct oc_app *app)
{
    if (!app->live)
        say(app, false, "there is no probe in this session");
    else
        app->probe_now = true;
}

static void normal(struct oc_app *app, enum oc_request request)
{
    if (request <= OC_REQ_PANE) app->message[0] = '\0'; /* what the last change did is about another option now */
    switch (request) {
    case OC_REQ_DOWN: oc_panel_move(&app->panel, 1); break;
    case OC_REQ_UP: oc_panel_move(&app->panel, -1); break;
    case OC_REQ_PAGE_DOWN: oc_panel_move(&app->panel, 10); break;
    case OC_REQ_PAGE_UP: oc_panel_move(&app->panel, -10); break;
    case OC_REQ_FIRST: oc_panel_move(&app->panel, -OC_PANEL_ROWS); break;
    case OC_REQ_LAST: oc_panel_move(&app->panel, OC_PANEL_ROWS); break;
    case OC_REQ_FOLD: oc_panel_fold(&app->panel, true); break;
    case OC_REQ_UNFOLD: oc_panel_fold(&app->panel, false); break;
    case OC_REQ_PANE: app->panel_shown = !app->panel_shown; break;
    case OC_REQ_PREVIOUS: step(app, OC_STEP_PREVIOUS); break;
    case OC_REQ_NEXT: step(app, OC_STEP_NEXT); break;
    case OC_REQ_HALVE: step(app, OC_STEP_HALVE); break;
    case OC_REQ_DOUBLE: step(app, OC_STEP_DOUBLE); break;
    case OC_REQ_EDIT: edit(app); break;
    case OC_REQ_TOGGLE: toggle(app); break;
    case OC_REQ_RESET: reset(app); break;
    case OC_REQ_UNDO: go(app, -1); break;
    case OC_REQ_REDO: go(app, 1); break;
    case OC_REQ_BASE: base(app); break;
    case OC_REQ_PROBE: probe(app); break;
    case OC_REQ_WHY: app->mode = OC_MODE_WHY; break;
    case OC_REQ_HELP: app->mode = OC_MODE_HELP; break;
    case OC_REQ_CANCEL: app->message[0] = '\0'; break;
    case OC_REQ_REDRAW: app->repaint = true; break;
    case OC_REQ_QUIT: app->quit = true; break;
    case OC_REQUESTS: break;
    }
}

/* In an overlay the same keys scroll; anything that closes, closes it, and nothing leaves the program. */
static void overlay(struct oc_app *app, enum oc_request request)
{
    switch (request) {
    case OC_REQ_DOWN: app->scroll++; break;
    case OC_REQ_UP: app->scroll--; break;
    case OC_REQ_PAGE_DOWN: app->scroll += 10; break;
    case OC_REQ_PAGE_UP: app->scroll -= 10; break;
    case OC_REQ_FIRST: app->scroll = 0; break;
    case OC_REQ_LAST: app->scroll = OC_OVERLAY_LINES; break;
    case OC_REQ_REDRAW: app->repaint = true; break;
    case OC_REQUESTS: break;
    default: app->mode = OC_MODE_NORMAL; app->scroll = 0;
    }
    if (app->scroll < 0) app->scroll = 0;
}

void oc_app_request(struct oc_app *app, enum oc_request request)
{
    if (app->mode == OC_MODE_HELP || app->mode == OC_MODE_WHY)
        overlay(app, request);
    else
        normal(app, request);
}

void oc_app_key(struct oc_app *app, int key)
{
    if (app->mode != OC_MODE_PROMPT) {
        oc_app_request(app, oc_request_of(key));
        return;
    }
    switch (oc_prompt_key(&app->prompt, key)) {
    case OC_PROMPT_DONE: finish_edit(app); break;
    case OC_PROMPT_CANCELLED:
        app->mode = OC_MODE_NORMAL;
        app->message[0] = '\0';
        break;
    case OC_PROMPT_OPEN: break;
    }
}

/* Cuts the current plan to the probe's size, and answers the model for that shape and for the whole. */
static void make_shape(struct oc_app *app)
{
    struct oc_probe_shape *shape = &app->shape;
    struct oc_error error;
    struct oc_plan cut = app->answer->plan;
    shape->of = app->answer->plan.hash;
    shape->uncovered = app->model->covers(&cut);
    shape->reason = NULL;
    if (!shape->uncovered && !answer_to(app, &oc_app_case(app)->config, shape->whole, &error))
        shape->uncovered = "the model has no answer";
    app->model->fit(&cut, app->probe_bytes, app->probe_seconds, NULL, 0);
    shape->config = cut.c; /* what was cut is marked as given: a child that resolves it arrives at the same plan */
    if (!answer_to(app, &shape->config, shape->answer, &error))
        shape->reason = shape->uncovered ? shape->uncovered : "the smaller shape does not resolve";
    else
        shape->reason = app->model->covers(&shape->answer->plan);
}

void oc_app_live(struct oc_app *app, int64_t now)
{
    bool force = app->probe_now, due = force || (app->live_dirty && app->probe_auto);
    app->live_dirty = app->probe_now = false;
    if (!app->live || app->stale || !due) return;
    app->probe_bytes = force ? OC_PROBE_LARGE_BYTES : OC_PROBE_AUTO_BYTES;
    app->probe_seconds = force ? OC_PROBE_LARGE_SECONDS : OC_PROBE_AUTO_SECONDS;
    make_shape(app);
    if (app->shape.uncovered)
        oc_live_forget(app->live, OC_LANE_DRY);
    else
        oc_live_want(app->live, OC_LANE_DRY, &oc_app_case(app)->config, app->answer->plan.hash, 0, now, force);
    if (app->shape.reason)
        oc_live_forget(app->live, OC_LANE_HOST);
    else
        oc_live_want(app->live, OC_LANE_HOST, &app->shape.config, app->shape.answer->plan.hash, app->probe_bytes, now,
                     force);
}

const struct oc_result *oc_app_simulated(const struct oc_app *app)
{
    return app->live ? oc_live_result(app->live, OC_LANE_DRY, app->answer->plan.hash) : NULL;
}

const struct oc_result *oc_app_measured(const struct oc_app *app)
{
    if (!app->live || app->shape.of != app->answer->plan.hash || app->shape.reason) return NULL;
    return oc_live_result(app->live, OC_LANE_HOST, app->shape.answer->plan.hash);
}
