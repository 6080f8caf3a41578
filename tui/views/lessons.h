/* The lessons view, and what leads through a lesson. Conditions are about the state, so it does not matter which keys
 * brought it about. */
#ifndef OOMCAST_LESSONS_H
#define OOMCAST_LESSONS_H

#include "tui/lesson/lesson.h"
#include "tui/views/fit.h"

struct oc_lessons_state {
    int focus; /* in the list */
    bool active;
    struct oc_lesson lesson;
    int step;
    bool done;                        /* what the step asks for has been seen */
    bool told;                        /* n was pressed before it was */
    uint64_t seen;                    /* what the conditions were looked at for */
    struct oc_answer *start, *before; /* when the lesson and the step began */
    struct oc_case outside;           /* what was open before the lesson */
    struct oc_fit_state axes;         /* of its bars */
    struct oc_result *own;            /* of a probe that ran in this process, for a replay; NULL = the live probe's */
    char text[OC_LESSON_TEXT], then[OC_LESSON_TEXT]; /* with their numbers */
};

/* Begins a lesson: its configuration takes the place of what is open. False when it cannot. */
bool oc_lessons_start(struct oc_app *app, int index, struct oc_error *error);

/* Leaves it; what was open before is open again. */
void oc_lessons_leave(struct oc_app *app);

/* Looks whether the step's conditions hold by now. */
void oc_lessons_look(struct oc_app *app);

/* To the next step (1) or the one before (-1). */
void oc_lessons_go(struct oc_app *app, int direction);

/* Does what the step asks for. False when it cannot. */
bool oc_lessons_act(struct oc_app *app, struct oc_error *error);

struct oc_lessons_state *oc_lessons_state(const struct oc_app *app);

/* A whole lesson without a screen: each step's text, what is done, what is said then. Every step must not hold before
 * it is done, and must hold after it. */
struct oc_buffer;
bool oc_lessons_replay(struct oc_app *app, int index, struct oc_buffer *out, struct oc_error *error);

#endif
