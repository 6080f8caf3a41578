/* Leading through a lesson: its steps, what they ask for, and what was open before. */
#include "tui/views/lessons.h"

#include <stdlib.h>
#include <string.h>

#include "tui/report/buffer.h"
#include "tui/screen/command.h"
#include "tui/views/views.h"

struct oc_lessons_state *oc_lessons_state(const struct oc_app *app)
{
    return oc_view_state(app, &oc_view_lessons);
}

static struct oc_scene scene_of(const struct oc_app *app, const struct oc_lessons_state *state)
{
    return (struct oc_scene){.model = app->model,
                             .config = &oc_app_case(app)->config,
                             .now = app->answer,
                             .before = state->before,
                             .start = state->start,
                             .probe = state->own ? state->own : oc_app_measured(app),
                             .view = oc_views[app->view]->title,
                             .base = app->has_base};
}

static void fill(const struct oc_scene *scene, const char *text, char *out, size_t size)
{
    struct oc_error error = {0};
    if (!oc_scene_text(scene, text, out, size, &error)) snprintf(out, size, "%s", error.message);
}

/* The step begins: its text is about what is there now. */
static void enter(struct oc_app *app, struct oc_lessons_state *state, int step)
{
    state->step = step;
    *state->before = *app->answer;
    state->done = state->told = false;
    state->seen = 0;
    state->then[0] = '\0';
    struct oc_scene scene = scene_of(app, state);
    fill(&scene, state->lesson.steps[step].text, state->text, sizeof state->text);
    oc_lessons_look(app);
}

/* What conditions depend on, as one number. */
static uint64_t key_of(const struct oc_app *app, const struct oc_scene *scene)
{
    uint64_t key = app->answer->plan.hash * 31 + (uint64_t)app->view * 7 + (app->has_base ? 3 : 1);
    return key * 31 + (scene->probe ? scene->probe->plan + (uint64_t)(scene->probe->seconds * 1e6) : 0);
}

void oc_lessons_look(struct oc_app *app)
{
    struct oc_lessons_state *state = oc_lessons_state(app);
    if (!state->active || state->done || app->stale) return;
    const struct oc_lesson_step *step = &state->lesson.steps[state->step];
    struct oc_scene scene = scene_of(app, state);
    struct oc_error error = {0};
    if (state->seen == key_of(app, &scene)) return;
    state->seen = key_of(app, &scene);
    if (!oc_scene_step_holds(&scene, step, &error)) return;
    state->done = true;
    fill(&scene, step->then, state->then, sizeof state->then);
}

bool oc_lessons_start(struct oc_app *app, int index, struct oc_error *error)
{
    struct oc_lessons_state *state = oc_lessons_state(app);
    struct oc_lesson lesson;
    struct oc_config config = oc_config_default();
    enum oc_option_id id;
    if (!oc_lesson_open(index, &lesson, error)) return false;
    char *settings = strdup(lesson.start), *rest = settings;
    bool good = settings != NULL;
    for (char *word; good && (word = strtok_r(rest, " ", &rest));) good = oc_config_assign(&config, word, &id, error);
    free(settings);
    if (!state->start) state->start = calloc(1, sizeof *state->start);
    if (!state->before) state->before = calloc(1, sizeof *state->before);
    if (!good || !state->start || !state->before) {
        oc_lesson_close(&lesson);
        return false;
    }
    if (!state->active) state->outside = *oc_app_case(app);
    oc_lesson_close(&state->lesson);
    state->lesson = lesson;
    state->active = true;
    app->has_base = false;
    oc_app_take(app, &config, lesson.title);
    *state->start = *app->answer;
    oc_app_view(app, oc_view_index(&oc_view_lessons));
    enter(app, state, 0);
    return !app->stale || oc_fail(error, OC_E_CONFLICT, "%.200s", app->error.message);
}

void oc_lessons_leave(struct oc_app *app)
{
    struct oc_lessons_state *state = oc_lessons_state(app);
    if (!state->active) return;
    state->active = false;
    app->has_base = false;
    oc_app_take(app, &state->outside.config, "what was open before");
    memcpy(app->undo.cases[app->undo.at].origin, state->outside.origin, sizeof state->outside.origin);
}

void oc_lessons_go(struct oc_app *app, int direction)
{
    struct oc_lessons_state *state = oc_lessons_state(app);
    const struct oc_lesson_step *step = &state->lesson.steps[state->step];
    struct oc_error error = {0};
    int to = state->step + direction;
    if (to < 0 || !state->active) return;
    if (direction > 0 && step->expect[0] && !state->done) {
        if (!state->told) {
            state->told = true;
            oc_app_say(app, false, "not yet: %s  (n again does it for you)", step->hint);
        } else if (!oc_lessons_act(app, &error)) {
            oc_app_say(app, true, "%s", error.message);
        }
        oc_lessons_look(app);
        return;
    }
    if (to == state->lesson.n_steps)
        oc_lessons_leave(app);
    else
        enter(app, state, to);
}

/* The probe in this process, at the size that it takes by itself. */
static bool run_probe(struct oc_app *app, struct oc_lessons_state *state, struct oc_error *error)
{
    if (app->live) { /* its child does it, and the screen goes on */
        oc_app_request(app, OC_REQ_PROBE);
        return true;
    }
    struct oc_plan plan = app->answer->plan;
    struct oc_probe_result *result = calloc(1, sizeof *result);
    if (!state->own) state->own = calloc(1, sizeof *state->own);
    if (!result || !state->own) {
        free(result);
        return oc_fail(error, OC_E_INTERNAL, "out of memory");
    }
    app->model->fit(&plan, OC_PROBE_AUTO_BYTES, OC_PROBE_AUTO_SECONDS, NULL, 0);
    const struct oc_probe_options options = {.device = OC_DEVICE_HOST, .steps = 8, .limit = OC_PROBE_AUTO_BYTES};
    bool good = oc_probe_run(&plan, &options, result);
    oc_result_take(result, state->own);
    if (!good) oc_fail(error, OC_E_INTERNAL, "%s", result->why);
    free(result);
    return good;
}

bool oc_lessons_act(struct oc_app *app, struct oc_error *error)
{
    struct oc_lessons_state *state = oc_lessons_state(app);
    const struct oc_lesson_step *step = &state->lesson.steps[state->step];
    char line[OC_PROMPT_MAX];
    if (strcmp(step->act, "probe") == 0) return run_probe(app, state, error);
    if (strncmp(step->act, "view ", 5) == 0 || strcmp(step->act, "base") == 0)
        snprintf(line, sizeof line, "%s", step->act);
    else
        snprintf(line, sizeof line, "set %s", step->act);
    return oc_command_run(app, line, true) || oc_fail(error, OC_E_INTERNAL, "%s: %s", step->act, app->message);
}

/* ---- without a screen ---- */

static void put(struct oc_buffer *out, const char *mark, const char *text)
{
    if (!text[0]) return;
    oc_put(out, mark);
    oc_put_wrapped(out, text, (int)strlen(mark), (int)strlen(mark), 79);
}

static bool check(const struct oc_app *app, const char *text, struct oc_error *error)
{
    const struct oc_lessons_state *state = oc_lessons_state(app);
    struct oc_scene scene = scene_of(app, state);
    char filled[OC_LESSON_TEXT];
    return oc_scene_text(&scene, text, filled, sizeof filled, error);
}

static bool replay_step(struct oc_app *app, struct oc_buffer *out, struct oc_error *error)
{
    struct oc_lessons_state *state = oc_lessons_state(app);
    const struct oc_lesson_step *step = &state->lesson.steps[state->step];
    struct oc_scene scene = scene_of(app, state);
    if (!check(app, step->text, error)) return false;
    oc_putf(out, "\n");
    put(out, "", state->text);
    if (!step->expect[0]) return true;
    for (int i = 0; step->expect[i]; i++) {
        oc_scene_holds(&scene, step->expect[i], error);
        if (error->code != OC_OK) return false;
    }
    if (state->done)
        return oc_fail(error, OC_E_INTERNAL, "lesson %s, step %d holds before it is done", state->lesson.name,
                       state->step + 1);
    if (!oc_lessons_act(app, error)) return false;
    oc_app_settle_all(app);
    oc_lessons_look(app);
    oc_putf(out, "  > %s\n", step->act);
    if (!state->done)
        return oc_fail(error, OC_E_INTERNAL, "lesson %s, step %d: \"%s\" does not bring about what it expects",
                       state->lesson.name, state->step + 1, step->act);
    if (!check(app, step->then, error)) return false;
    put(out, "    ", state->then);
    return true;
}

bool oc_lessons_replay(struct oc_app *app, int index, struct oc_buffer *out, struct oc_error *error)
{
    if (!oc_lessons_start(app, index, error)) return false;
    struct oc_lessons_state *state = oc_lessons_state(app);
    oc_putf(out, "%s\n", state->lesson.title);
    for (;;) {
        if (!replay_step(app, out, error)) return false;
        if (state->step + 1 == state->lesson.n_steps) break;
        oc_lessons_go(app, 1);
    }
    oc_lessons_leave(app);
    return true;
}
