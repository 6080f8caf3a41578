/* Lessons: data (lessons/NAME.json) that leads through a few changes of a configuration. A step is a text, a condition
 * on the state that ends it, and what would fulfil it. Numbers in texts are placeholders, computed when they are shown.
 *
 * In braces and in conditions stand expressions, read from left to right: names, numbers, + - * /. Names are
 *
 *     peak first device reserved headroom capacity    bytes of the fullest rank: `first` is the first iteration's peak
 *     W M G O A B                                     of a class at the peak
 *     forward loss backward reduce clip step after_step idle, and step.G     of a moment, of a class in it
 *     stage0 stage1 ... last, and last.A              peak of a pipeline stage
 *     params params.total stages                      counts; params of the fullest rank
 *     probe.peak probe.loss probe.first_loss probe.lost probe.lost_bf16 probe.lost_fp16 probe.underflow
 *     probe.underflow_scaled                          of the probe's last run; shares in percent
 *     fits base view                                  yes or no, and a view's name
 *     any key of an option                            its resolved value
 *
 * before.NAME and start.NAME are as they were when this step and the lesson began; NAME@KEY=VALUE;KEY=VALUE is what it
 * would be with these options. `abs` first drops the sign.
 *
 * Ownership: oc_lesson_open() allocates, oc_lesson_close() releases; texts belong to the lesson. */
#ifndef OOMCAST_LESSON_H
#define OOMCAST_LESSON_H

#include "tui/screen/app.h"

enum { OC_LESSON_STEPS = 16, OC_LESSON_CONDITIONS = 4, OC_LESSON_TEXT = 4096 };

struct oc_lesson_step {
    const char *text; /* what it is about, and what to do */
    const char
        *expect[OC_LESSON_CONDITIONS]; /* "precision = fp16": all must hold; NULL ends them; none: it is read only */
    const char *then;                  /* said when they hold; "" = nothing */
    const char *act;  /* what fulfils them: "precision=bf16 batch.micro=2", "probe", "base", "view=Step" */
    const char *hint; /* which keys do it */
};

struct oc_lesson {
    char name[32];     /* of its file, "half-precision" */
    const char *title; /* "Half precision, more memory" */
    const char *about; /* one sentence */
    const char *start; /* "framework=megatron model.name=llama-3-8b ..." */
    struct oc_lesson_step steps[OC_LESSON_STEPS];
    int n_steps;
    void *root; /* the parsed file */
};

/* The lessons of the program, in the order of their names. */
int oc_lesson_count(void);
bool oc_lesson_open(int index, struct oc_lesson *lesson, struct oc_error *error);
void oc_lesson_close(struct oc_lesson *lesson);

/* "half-precision" */
const char *oc_lesson_name(int index);

/* Index of a lesson by its name; -1 when there is none. */
int oc_lesson_find(const char *name);

/* Reads a lesson from text; `name` is what errors call it. */
bool oc_lesson_parse(struct oc_lesson *lesson, const char *name, const char *text, size_t size, struct oc_error *error);

/* What conditions and placeholders are about. */
struct oc_scene {
    const struct oc_app_model *model;
    struct oc_alloc *alloc;         /* for variants; may be NULL */
    const struct oc_config *config; /* the current one, of which variants are made */
    const struct oc_answer *now, *before, *start;
    const struct oc_result *probe; /* NULL: it has not run */
    const char *view;
    bool base;
};

/* Whether a condition holds. False with `error` filled when it cannot be read. */
bool oc_scene_holds(const struct oc_scene *scene, const char *condition, struct oc_error *error);

/* Whether all conditions of a step hold; a step without any never does by itself. */
bool oc_scene_step_holds(const struct oc_scene *scene, const struct oc_lesson_step *step, struct oc_error *error);

/* A text with its placeholders filled in. */
bool oc_scene_text(const struct oc_scene *scene, const char *text, char *out, size_t size, struct oc_error *error);

#endif
