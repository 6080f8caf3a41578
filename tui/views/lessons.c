/* The lessons view: a list, or one lesson beside the bars that it is about. */
#include "tui/views/lessons.h"

#include <stdlib.h>
#include <string.h>

#include "tui/screen/layout.h"
#include "tui/views/views.h"

static int list_rows(int width)
{
    return width < 60 ? 4 : 3;
}

/* Each lesson with a sentence about it. */
static void draw_list(struct oc_lessons_state *state, struct oc_canvas *canvas, struct oc_rect rect)
{
    int y = rect.y, n = oc_lesson_count(), each = list_rows(rect.w), fit = (rect.h - 2) / each;
    oc_canvas_text(canvas, rect.x + 1, y, rect.w - 2, OC_ROLE_TITLE, "Lessons: j k to one, Enter begins it");
    y += 2;
    if (fit < 1) fit = 1;
    int top = state->focus >= fit ? state->focus - fit + 1 : 0;
    for (int i = top; i < n && y + 1 < rect.y + rect.h; i++, y += each) {
        struct oc_lesson lesson;
        if (!oc_lesson_open(i, &lesson, NULL)) continue;
        oc_canvas_print(canvas, rect.x + 1, y, rect.w - 2, OC_ROLE_SECTION, "%d  %s", i + 1, lesson.title);
        struct oc_rect about = {rect.x + 4, y + 1, rect.w - 6, each - 1};
        if (about.y + about.h > rect.y + rect.h) about.h = rect.y + rect.h - about.y;
        oc_canvas_wrap(canvas, about, 0, OC_ROLE_TEXT, lesson.about);
        oc_canvas_target(canvas, (struct oc_rect){rect.x, y, rect.w, each}, OC_TARGET_ROW, i);
        if (i == state->focus) oc_canvas_mark(canvas, (struct oc_rect){rect.x, y, rect.w, 1}, OC_ROLE_FOCUS);
        oc_lesson_close(&lesson);
    }
}

static int text_rows(const char *text, int width)
{
    return text[0] ? oc_canvas_wrap(NULL, (struct oc_rect){0, 0, width, 0}, 0, OC_ROLE_TEXT, text) : 0;
}

/* What to do now: the hint, or how to go on. */
static const char *what_next(const struct oc_lessons_state *state, char *text, size_t size)
{
    const struct oc_lesson_step *step = &state->lesson.steps[state->step];
    const char *end = state->step + 1 == state->lesson.n_steps ? "n ends the lesson" : "n goes on";
    if (!step->expect[0] || state->done)
        snprintf(text, size, "%s%s.", state->done ? "Done. " : "", end);
    else
        snprintf(text, size, "To do: %s", step->hint);
    return text;
}

static void draw_lesson(const struct oc_app *app, struct oc_lessons_state *state, struct oc_canvas *canvas,
                        struct oc_rect rect)
{
    enum { TITLE, TEXT, NEXT, THEN, BARS, TABLE, BLOCKS };
    char title[160], next[400];
    int inner = rect.w - 2, heights[BLOCKS], y = rect.y, bars = oc_fit_bars_rows(app), gap = rect.h >= 24 ? 1 : 0;
    what_next(state, next, sizeof next);
    int text = text_rows(state->text, inner), then = text_rows(state->then, inner), todo = text_rows(next, inner);
    const struct oc_block blocks[BLOCKS] = {{1, 1 + gap, 0},
                                            {then || text < 6 ? text : 6, text + gap, then ? 3 : 1},
                                            {todo < 3 ? todo : 3, todo + gap, 1},
                                            {then < rect.h - 5 ? then : 5, then ? then + gap : 0, 1},
                                            {bars < 4 ? bars : 4, bars + gap, 2},
                                            {OC_FIT_TABLE_LEAST, OC_FIT_TABLE_LEAST + 2, 4}};
    oc_layout_stack(rect.h, blocks, BLOCKS, heights);
    for (int i = 0; i < BLOCKS; y += heights[i++]) {
        struct oc_rect part = {rect.x, y, rect.w, heights[i]}, words = {rect.x + 1, y, inner, heights[i]};
        if (part.h <= 0) continue;
        if (i == TITLE) {
            snprintf(title, sizeof title, "%s: step %d of %d", state->lesson.title, state->step + 1,
                     state->lesson.n_steps);
            oc_canvas_text(canvas, words.x, y, inner, OC_ROLE_TITLE, title);
        }
        if (i == TEXT) oc_canvas_wrap(canvas, words, 0, OC_ROLE_TEXT, state->text);
        if (i == NEXT) oc_canvas_wrap(canvas, words, 0, state->done ? OC_ROLE_OK : OC_ROLE_ASSUMED, next);
        if (i == THEN) oc_canvas_wrap(canvas, words, 0, OC_ROLE_TEXT, state->then);
        if (i == BARS) oc_fit_bars_draw(app, &state->axes, canvas, part, heights[TABLE] == 0);
        if (i == TABLE) oc_fit_table_draw(app, canvas, part);
    }
}

static void draw(const struct oc_app *app, void *memory, struct oc_canvas *canvas, struct oc_rect rect)
{
    struct oc_lessons_state *state = memory;
    if (state->active)
        draw_lesson(app, state, canvas, rect);
    else
        draw_list(state, canvas, rect);
}

/* ---- keys ---- */

static void begin(struct oc_app *app, int index)
{
    struct oc_error error = {0};
    if (!oc_lessons_start(app, index, &error)) oc_app_say(app, true, "%s", error.message);
}

static bool request_in_list(struct oc_app *app, struct oc_lessons_state *state, enum oc_request what)
{
    int last = oc_lesson_count() - 1;
    switch (what) {
    case OC_REQ_DOWN: state->focus += state->focus < last; return true;
    case OC_REQ_UP: state->focus -= state->focus > 0; return true;
    case OC_REQ_FIRST: state->focus = 0; return true;
    case OC_REQ_LAST: state->focus = last; return true;
    case OC_REQ_EDIT: begin(app, state->focus); return true;
    default: return false;
    }
}

/* Everything but these goes on to the panel: lessons are about the configuration. */
static bool request(struct oc_app *app, void *memory, enum oc_request what)
{
    struct oc_lessons_state *state = memory;
    if (!state->active) return request_in_list(app, state, what);
    switch (what) {
    case OC_REQ_FIND_NEXT: oc_lessons_go(app, 1); return true;
    case OC_REQ_FIND_PREVIOUS: oc_lessons_go(app, -1); return true;
    case OC_REQ_CANCEL: oc_lessons_leave(app); return true;
    default: return false;
    }
}

/* The rows are those of the list: in a lesson there are none. */
static bool pick(struct oc_app *app, void *memory, int row)
{
    struct oc_lessons_state *state = memory;
    (void)app;
    if (state->focus == row) return false;
    state->focus = row;
    return true;
}

static bool shares(const struct oc_app *app, const void *memory)
{
    (void)app;
    return ((const struct oc_lessons_state *)memory)->active;
}

static void help(const struct oc_app *app, const void *memory, char *text, size_t size)
{
    (void)app, (void)memory;
    snprintf(text, size,
             "A lesson opens a configuration of its own and asks for changes; what is open now comes back when you "
             "leave it.");
}

static void release(void *memory)
{
    struct oc_lessons_state *state = memory;
    oc_lesson_close(&state->lesson);
    free(state->start);
    free(state->before);
    free(state->own);
}

static const struct oc_view_key keys[] = {{OC_REQ_DOWN, "lesson", "the next lesson of the list"},
                                          {OC_REQ_UP, "lesson", "the lesson before"},
                                          {OC_REQ_EDIT, "begin", "begin it"},
                                          {OC_REQ_FIND_NEXT, "steps", "in a lesson: the next step"},
                                          {OC_REQ_FIND_PREVIOUS, "steps", "in a lesson: the step before"},
                                          {OC_REQ_CANCEL, "leave it", "in a lesson: back to what was open before"},
                                          {OC_REQUESTS, NULL, NULL}};

static const struct oc_view_key in_lesson[] = {{OC_REQ_FIND_NEXT, "step", ""},
                                               {OC_REQ_FIND_PREVIOUS, "step", ""},
                                               {OC_REQ_CANCEL, "leave", ""},
                                               {OC_REQUESTS, NULL, NULL}};

const struct oc_view_ops oc_view_lessons = {.title = "Lessons",
                                            .brief = "Lessons",
                                            .about = "Lessons: five walks through what mixed precision costs",
                                            .state_size = sizeof(struct oc_lessons_state),
                                            .draw = draw,
                                            .request = request,
                                            .pick = pick,
                                            .help = help,
                                            .keys = keys,
                                            .shares = shares,
                                            .shared_keys = in_lesson,
                                            .changed = oc_lessons_look,
                                            .release = release};
