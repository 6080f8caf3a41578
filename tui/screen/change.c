/* What keys do to the configuration. */
#include "tui/screen/change.h"

#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/edit.h"

static const struct oc_rank *worst(const struct oc_answer *answer)
{
    return &answer->ranks[answer->verdict.worst_stage];
}

/* What a change did to the worst rank's peak, in one line. */
static void say_change(struct oc_app *app, const char *what, uint64_t peak_before)
{
    char change[OC_BYTES_TEXT];
    if (app->stale) {
        oc_app_say(app, true, "%s: %s", what, app->error.message);
        return;
    }
    oc_format_change(peak_before, worst(app->answer)->peak.allocated, OC_UNIT_GIB, 0, change, sizeof change);
    if (strcmp(change, "0") == 0)
        oc_app_say(app, false, "%s: the peak stays", what);
    else
        oc_app_say(app, false, "%s: peak %s GiB", what, change);
}

/* Makes a case the current one. */
static void take_case(struct oc_app *app, const struct oc_case *next)
{
    oc_undo_push(&app->undo, next);
    oc_app_recompute(app);
}

static bool same_value(const struct oc_config *a, const struct oc_config *b, enum oc_option_id id)
{
    char one[OC_NAME_MAX], other[OC_NAME_MAX];
    if (oc_given(a, id) != oc_given(b, id)) return false;
    return !oc_given(a, id) ||
           strcmp(oc_option_text(a, id, one, sizeof one), oc_option_text(b, id, other, sizeof other)) == 0;
}

bool oc_config_same(const struct oc_config *a, const struct oc_config *b)
{
    for (int id = 0; id < OC_OPTIONS; id++)
        if (!same_value(a, b, (enum oc_option_id)id)) return false;
    return true;
}

void oc_app_take(struct oc_app *app, const struct oc_config *config, const char *what)
{
    uint64_t peak = worst(app->answer)->peak.allocated;
    struct oc_case next = *oc_app_case(app);
    for (int i = 0; i < OC_OPTIONS; i++) {
        enum oc_option_id id = (enum oc_option_id)i;
        if (same_value(&next.config, config, id)) continue;
        next.origin[id] =
            (struct oc_origin){.from = oc_given(config, id) ? OC_FROM_EDITED : OC_FROM_DEFAULT, .file = 255};
    }
    next.config = *config;
    take_case(app, &next);
    say_change(app, what, peak);
}

/* Makes `config` the current one, after a change of option `id`. */
static void take(struct oc_app *app, const struct oc_config *config, enum oc_option_id id)
{
    char before[OC_NAME_MAX + 16], after[OC_NAME_MAX + 16], what[256];
    uint64_t peak = worst(app->answer)->peak.allocated;
    oc_edit_text(&app->answer->plan.c, id, oc_given(&oc_app_case(app)->config, id), before, sizeof before);
    oc_app_take(app, config, "");
    oc_edit_text(app->stale ? config : &app->answer->plan.c, id, oc_given(config, id), after, sizeof after);
    snprintf(what, sizeof what, "%s %s -> %s", oc_option(id)->key, before, after);
    say_change(app, what, peak);
}

static const struct oc_config *resolves(const struct oc_config *config, struct oc_error *error, void *user)
{
    const struct oc_app *app = user;
    return app->model->resolve(config, &app->spare->plan, NULL, error) ? &app->spare->plan.c : NULL;
}

void oc_change_step(struct oc_app *app, enum oc_step step)
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
        oc_app_say(app, true, "%s%s%s", error.message, error.hint[0] ? "; " : "", error.hint);
}

void oc_change_toggle(struct oc_app *app)
{
    enum oc_option_id id = oc_app_option(app);
    if (id == OC_OPTIONS)
        oc_panel_fold(&app->panel, !app->panel.folded[app->panel.focus.section]);
    else if (oc_option(id)->type == OC_T_BOOL)
        oc_change_step(app, OC_STEP_NEXT);
    else
        oc_app_say(app, false, "%s is not a switch: h and l change it, Enter types a value", oc_option(id)->key);
}

/* What was typed becomes the value even where the whole does not resolve with it: the reason is then on the screen, and
 * the last bars stay, marked. What is not a value of the option at all leaves the prompt open. */
static bool finish_edit(struct oc_app *app, const char *text)
{
    enum oc_option_id id = oc_app_option(app);
    struct oc_config config = oc_app_case(app)->config;
    struct oc_error error = {0};
    if (!text[0]) {
        oc_option_reset(&config, id);
    } else if (!oc_option_set(&config, id, text, &error)) {
        oc_app_say(app, true, "%s%s%s", error.message, error.hint[0] ? "; " : "", error.hint);
        return false;
    }
    take(app, &config, id);
    return true;
}

static const struct oc_question value_question = {
    .hint = "Enter sets it, Esc leaves it; empty: it follows from the others", .done = finish_edit};

void oc_change_edit(struct oc_app *app)
{
    char text[OC_NAME_MAX + 16] = "";
    enum oc_option_id id = oc_app_option(app);
    if (id == OC_OPTIONS) {
        oc_change_toggle(app);
        return;
    }
    const struct oc_config *config = &oc_app_case(app)->config;
    oc_option_text(oc_given(config, id) ? config : &app->answer->plan.c, id, text, sizeof text);
    oc_app_ask(app, &value_question, text);
}

void oc_change_undo(struct oc_app *app, int direction)
{
    uint64_t peak = worst(app->answer)->peak.allocated;
    if (!oc_undo_move(&app->undo, direction)) {
        oc_app_say(app, false, direction < 0 ? "nothing to take back" : "nothing to make again");
        return;
    }
    oc_app_recompute(app);
    say_change(app, direction < 0 ? "taken back" : "made again", peak);
}

void oc_change_reset(struct oc_app *app)
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

void oc_change_reset_all(struct oc_app *app)
{
    uint64_t peak = worst(app->answer)->peak.allocated;
    take_case(app, &app->first);
    say_change(app, "as it was opened; u takes that back", peak);
}

void oc_change_base(struct oc_app *app)
{
    app->has_base = !app->has_base;
    if (app->has_base) {
        oc_app_settle_all(app);
        *app->base = *app->answer;
        app->base_case = app->answered;
    }
    oc_app_say(app, false,
               app->has_base ? "this is the base now: changes are shown against it; b again lets it go" : "no base");
}

void oc_change_swap(struct oc_app *app)
{
    if (!app->has_base) {
        oc_app_say(app, false, "there is no base to swap with: b makes this one the base");
        return;
    }
    struct oc_case base = app->base_case;
    oc_app_settle_all(app);
    uint64_t peak = worst(app->answer)->peak.allocated;
    *app->base = *app->answer;
    app->base_case = app->answered;
    take_case(app, &base);
    say_change(app, "swapped with the base", peak);
}
