#include "tui/screen/app.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tui/screen/change.h"
#include "tui/screen/command.h"
#include "tui/screen/find.h"
#include "tui/screen/overlay.h"
#include "tui/views/fixes.h"
#include "tui/views/views.h"

enum { KEPT = 3, REPLAYED = 2 }; /* ledgers: of the answer, of the base, and the one that is replayed */

void oc_app_say(struct oc_app *app, bool bad, const char *format, ...)
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

static struct oc_alloc *alloc_of(const struct oc_app *app, const struct oc_plan *plan)
{
    return app->alloc[plan->c.allocator_expandable_segments ? 1 : 0];
}

/* Every stage replayed through the allocator that the plan asks for. */
static bool answer_whole(struct oc_app *app, const struct oc_config *config, struct oc_answer *answer,
                         struct oc_error *error)
{
    if (!app->model->resolve(config, &answer->plan, NULL, error)) return false;
    return app->model->answer(config, answer, NULL, alloc_of(app, &answer->plan), error);
}

static bool is_lazy(const struct oc_app *app)
{
    return app->model->reserve && app->model->judge;
}

/* A stage's reserved bytes, and the verdict with them. Stages that peak alike stand at what it reserves until they are
 * replayed themselves: they nearly always reserve alike, and rows that are one do not come apart for a frame. */
static void replay(struct oc_app *app, struct oc_answer *answer, int stage)
{
    struct oc_kept_ledger *kept = &app->kept[REPLAYED];
    struct oc_rank *rank = &answer->ranks[stage];
    struct oc_error error;
    if (!kept->ledger) kept->ledger = malloc(sizeof *kept->ledger);
    if (kept->ledger && app->model->estimate(&answer->plan, stage, kept->ledger, &error))
        app->model->reserve(&answer->plan, kept->ledger, alloc_of(app, &answer->plan), rank);
    app->replayed[stage] = true;
    app->unsettled--;
    for (int i = 0; i < answer->n_ranks; i++)
        if (!app->replayed[i] &&
            memcmp(answer->ranks[i].peak.classes, rank->peak.classes, sizeof rank->peak.classes) == 0)
            answer->ranks[i].reserved = rank->reserved;
    app->model->judge(&answer->plan, answer->ranks, answer->n_ranks, &answer->verdict);
}

/* The answer, of which one stage is replayed: the fullest by what is allocated. And the one that was the fullest until
 * now, where that is another: else the views would go to the new one and, a frame later, back. */
static bool answer_current(struct oc_app *app, struct oc_answer *answer, struct oc_error *error)
{
    const struct oc_config *config = &oc_app_case(app)->config;
    if (!is_lazy(app)) return answer_whole(app, config, answer, error);
    if (!app->model->answer(config, answer, NULL, NULL, error)) return false;
    const int64_t stages[2] = {answer->verdict.worst_stage, app->answer->verdict.worst_stage};
    memset(app->replayed, 0, sizeof app->replayed);
    app->unsettled = answer->n_ranks;
    for (int i = 0; i < 2; i++)
        if (stages[i] < answer->n_ranks && !app->replayed[stages[i]]) replay(app, answer, (int)stages[i]);
    return true;
}

bool oc_app_settle(struct oc_app *app)
{
    int stage = 0;
    if (!app->unsettled) return false;
    while (stage < app->answer->n_ranks && app->replayed[stage]) stage++;
    replay(app, app->answer, stage);
    if (app->unsettled > 0) return false;
    app->model->explain(app->answer, &app->reason);
    return true;
}

void oc_app_settle_all(struct oc_app *app)
{
    while (app->unsettled) oc_app_settle(app);
}

/* On failure the last answer stays and is marked stale. */
void oc_app_recompute(struct oc_app *app)
{
    if (!answer_current(app, app->spare, &app->error)) {
        app->stale = true;
        return;
    }
    struct oc_answer *answer = app->spare;
    app->spare = app->answer;
    app->answer = answer;
    app->answered = *oc_app_case(app);
    app->stale = false;
    app->live_dirty = true;
    app->model->explain(app->answer, &app->reason);
}

static bool make_view_states(struct oc_app *app)
{
    for (int i = 0; i < oc_n_views; i++)
        if (oc_views[i]->state_size && !(app->view_states[i] = calloc(1, oc_views[i]->state_size))) return false;
    return true;
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
    app->saved = input->c.config;
    app->answer = calloc(1, sizeof *app->answer);
    app->spare = calloc(1, sizeof *app->spare);
    app->base = calloc(1, sizeof *app->base);
    app->kept = calloc(KEPT, sizeof *app->kept);
    app->stage = -1;
    app->shape.whole = calloc(1, sizeof *app->shape.whole);
    app->shape.answer = calloc(1, sizeof *app->shape.answer);
    app->probe_bytes = OC_PROBE_AUTO_BYTES;
    app->probe_seconds = OC_PROBE_AUTO_SECONDS;
    if (!app->alloc[0] || !app->alloc[1] || !app->answer || !app->spare || !app->base || !app->shape.whole ||
        !app->shape.answer || !app->kept || !make_view_states(app) || !oc_undo_start(&app->undo, &input->c)) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        oc_app_end(app);
        return false;
    }
    oc_app_recompute(app);
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
    free(app->opened);
    free(app->shown);
    for (int i = 0; app->kept && i < KEPT; i++) free(app->kept[i].ledger);
    free(app->kept);
    for (int i = 0; i < oc_n_views; i++) {
        if (app->view_states[i] && oc_views[i]->release) oc_views[i]->release(app->view_states[i]);
        free(app->view_states[i]);
    }
    oc_fixes_free(app);
    free(app->shape.whole);
    free(app->shape.answer);
    memset(app, 0, sizeof *app);
}

int64_t oc_app_stage(const struct oc_app *app)
{
    return app->stage >= 0 && app->stage < app->answer->n_ranks ? app->stage : app->answer->verdict.worst_stage;
}

void oc_app_move_stage(struct oc_app *app, int by)
{
    const int64_t stage = oc_app_stage(app) + by;
    if (stage >= 0 && stage < app->answer->n_ranks) app->stage = stage;
}

const struct oc_ledger *oc_app_ledger(const struct oc_app *app, const struct oc_answer *answer, int64_t stage)
{
    struct oc_error error;
    struct oc_kept_ledger *kept = &app->kept[answer == app->base ? 1 : 0];
    if (kept->ledger && kept->plan == answer->plan.hash && kept->stage == stage) return kept->ledger;
    if (!kept->ledger) kept->ledger = malloc(sizeof *kept->ledger);
    if (!kept->ledger) return NULL;
    kept->plan = 0;
    if (!app->model->estimate(&answer->plan, stage, kept->ledger, &error)) return NULL;
    kept->plan = answer->plan.hash;
    kept->stage = stage;
    return kept->ledger;
}

void oc_app_ask(struct oc_app *app, const struct oc_question *question, const char *text)
{
    app->question = question;
    oc_prompt_start(&app->prompt, text);
    app->mode = OC_MODE_PROMPT;
    app->message[0] = '\0';
}

void oc_app_show(struct oc_app *app, const char *title, const char *text)
{
    char *copy = strdup(text);
    if (!copy) return;
    free(app->shown);
    app->shown = copy;
    snprintf(app->shown_title, sizeof app->shown_title, "%s", title);
    app->mode = OC_MODE_TEXT;
    app->scroll = 0;
}

void oc_app_confirm(struct oc_app *app, const char *question)
{
    snprintf(app->confirm, sizeof app->confirm, "%s", question);
    app->mode = OC_MODE_CONFIRM;
    app->message[0] = '\0';
}

bool oc_app_unsaved(const struct oc_app *app)
{
    return !oc_config_same(&app->saved, &oc_app_case(app)->config);
}

bool oc_app_open(struct oc_app *app, const char *path, struct oc_error *error)
{
    struct oc_input *input = malloc(sizeof *input);
    struct oc_undo undo;
    if (!input || !app->host) {
        free(input);
        return oc_fail(error, OC_E_INTERNAL, input ? "this session opens no files" : "out of memory");
    }
    if (!app->host->open(app->host->user, path, input, error) ||
        !app->model->answer(&input->c.config, app->spare, NULL, NULL, error) || !oc_undo_start(&undo, &input->c)) {
        free(input);
        return false;
    }
    oc_undo_free(&app->undo);
    app->undo = undo;
    free(app->opened);
    app->input = app->opened = input;
    app->first = input->c;
    app->saved = input->c.config;
    app->stage = -1;
    oc_app_recompute(app);
    oc_app_say(app, false, "%s is open", path);
    return true;
}

bool oc_app_in_view(const struct oc_app *app)
{
    return !app->in_panel && oc_views[app->view]->request;
}

bool oc_app_in_panel(const struct oc_app *app)
{
    const struct oc_view_ops *ops = oc_views[app->view];
    return !oc_app_in_view(app) || (ops->shares && ops->shares(app, app->view_states[app->view]));
}

void oc_app_changed(struct oc_app *app)
{
    for (int i = 0; i < oc_n_views; i++)
        if (oc_views[i]->changed) oc_views[i]->changed(app);
}

void oc_app_view(struct oc_app *app, int view)
{
    if (view >= oc_n_views) return;
    app->view = view;
    app->in_panel = false;
    app->message[0] = '\0';
}

static void probe(struct oc_app *app)
{
    if (!app->live)
        oc_app_say(app, false, "there is no probe in this session");
    else
        app->probe_now = true;
}

/* Where it was saved before, or under the name of the file that was opened. */
static void start_save(struct oc_app *app)
{
    char line[OC_PROMPT_MAX], name[128] = "session";
    const char *file = app->input->n_files ? app->input->files[0] : "", *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file, *dot = strrchr(base, '.');
    if (base[0] && base[0] != '-') snprintf(name, sizeof name, "%.*s", dot ? (int)(dot - base) : 100, base);
    snprintf(line, sizeof line, "save %s%s", app->session[0] ? app->session : name, app->session[0] ? "" : ".json");
    oc_command_start(app, line);
}

static void zoom(struct oc_app *app)
{
    app->zoom = !app->zoom;
    oc_app_say(app, false, app->zoom ? "the axis ends where the bars do, and shows what changes" : "the whole axis");
}

static void normal(struct oc_app *app, enum oc_request request)
{
    if (request <= OC_REQ_VIEW_6) app->message[0] = '\0'; /* what the last change did is about another option now */
    switch (request) {
    case OC_REQ_DOWN: oc_panel_move(&app->panel, 1); break;
    case OC_REQ_UP: oc_panel_move(&app->panel, -1); break;
    case OC_REQ_PAGE_DOWN: oc_panel_move(&app->panel, 10); break;
    case OC_REQ_PAGE_UP: oc_panel_move(&app->panel, -10); break;
    case OC_REQ_FIRST: oc_panel_move(&app->panel, -OC_PANEL_ROWS); break;
    case OC_REQ_LAST: oc_panel_move(&app->panel, OC_PANEL_ROWS); break;
    case OC_REQ_FOLD: oc_panel_fold(&app->panel, true); break;
    case OC_REQ_UNFOLD: oc_panel_fold(&app->panel, false); break;
    case OC_REQ_PANE: app->in_panel = !app->in_panel; break;
    case OC_REQ_VIEW_1:
    case OC_REQ_VIEW_2:
    case OC_REQ_VIEW_3:
    case OC_REQ_VIEW_4:
    case OC_REQ_VIEW_5:
    case OC_REQ_VIEW_6: oc_app_view(app, (int)(request - OC_REQ_VIEW_1)); break;
    case OC_REQ_PREVIOUS: oc_change_step(app, OC_STEP_PREVIOUS); break;
    case OC_REQ_NEXT: oc_change_step(app, OC_STEP_NEXT); break;
    case OC_REQ_HALVE: oc_change_step(app, OC_STEP_HALVE); break;
    case OC_REQ_DOUBLE: oc_change_step(app, OC_STEP_DOUBLE); break;
    case OC_REQ_EDIT: oc_change_edit(app); break;
    case OC_REQ_TOGGLE: oc_change_toggle(app); break;
    case OC_REQ_RESET: oc_change_reset(app); break;
    case OC_REQ_RESET_ALL: oc_change_reset_all(app); break;
    case OC_REQ_UNDO: oc_change_undo(app, -1); break;
    case OC_REQ_REDO: oc_change_undo(app, 1); break;
    case OC_REQ_BASE: oc_change_base(app); break;
    case OC_REQ_SWAP: oc_change_swap(app); break;
    case OC_REQ_PROBE: probe(app); break;
    case OC_REQ_ZOOM: zoom(app); break;
    case OC_REQ_FIND: oc_find_start(app); break;
    case OC_REQ_FIND_NEXT: oc_find_again(app, 1); break;
    case OC_REQ_FIND_PREVIOUS: oc_find_again(app, -1); break;
    case OC_REQ_WHY: app->mode = OC_MODE_WHY; break;
    case OC_REQ_FIXES: oc_fixes_open(app); break;
    case OC_REQ_COMMAND: oc_command_start(app, ""); break;
    case OC_REQ_SAVE: start_save(app); break;
    case OC_REQ_OPEN: oc_command_offer(app, "open "); break;
    case OC_REQ_EXPORT: oc_command_offer(app, "export "); break;
    case OC_REQ_SHOW_SET: oc_command_run(app, "export set", false); break;
    case OC_REQ_HELP: app->mode = OC_MODE_HELP; break;
    case OC_REQ_CANCEL: app->message[0] = '\0'; break;
    case OC_REQ_REDRAW: app->repaint = true; break;
    case OC_REQ_QUIT: oc_command_run(app, "quit", false); break;
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
    if (app->mode == OC_MODE_HELP || app->mode == OC_MODE_WHY || app->mode == OC_MODE_TEXT)
        overlay(app, request);
    else if (app->mode == OC_MODE_FIXES)
        oc_fixes_request(app, request);
    else if (!oc_app_in_view(app) || !oc_views[app->view]->request(app, app->view_states[app->view], request))
        normal(app, request);
}

/* A key of the prompt. */
static void answer_question(struct oc_app *app, int key)
{
    const struct oc_question *question = app->question;
    if (question->key && question->key(app, key)) return;
    switch (oc_prompt_key(&app->prompt, key)) {
    case OC_PROMPT_DONE:
        app->mode = OC_MODE_NORMAL; /* before it, since an answer may be another question */
        if (!question->done(app, app->prompt.text)) app->mode = OC_MODE_PROMPT, app->question = question;
        break;
    case OC_PROMPT_CANCELLED:
        app->mode = OC_MODE_NORMAL;
        app->message[0] = '\0';
        if (question->left) question->left(app);
        break;
    case OC_PROMPT_OPEN:
        if (question->typed) question->typed(app, app->prompt.text);
        break;
    }
}

/* Only y is yes. */
static void answer_confirm(struct oc_app *app, int key)
{
    char line[OC_PROMPT_MAX];
    if (key == OC_KEY_OTHER || key == OC_KEY_RESIZE) return;
    app->mode = OC_MODE_NORMAL;
    app->message[0] = '\0';
    snprintf(line, sizeof line, "%s", app->asked);
    if (key == 'y')
        oc_command_run(app, line, true);
    else
        oc_app_say(app, false, "left as it was");
}

void oc_app_key(struct oc_app *app, int key)
{
    if (app->mode == OC_MODE_PROMPT)
        answer_question(app, key);
    else if (app->mode == OC_MODE_CONFIRM)
        answer_confirm(app, key);
    else
        oc_app_request(app, oc_request_of(key));
    oc_app_changed(app);
}
