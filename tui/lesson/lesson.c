/* Lessons, read from JSON. */
#include "tui/lesson/lesson.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "tui/screen/embedded.h"

int oc_lesson_count(void)
{
    int n = 0;
    while (oc_embedded_lessons[n].name) n++;
    return n;
}

/* Files are numbered so that they stand in order; the number is no part of a lesson's name. */
static const char *name_of(const struct oc_embedded *file)
{
    return file->name + strspn(file->name, "0123456789-");
}

const char *oc_lesson_name(int index)
{
    return name_of(&oc_embedded_lessons[index]);
}

int oc_lesson_find(const char *name)
{
    for (int i = 0; i < oc_lesson_count(); i++)
        if (strcmp(name_of(&oc_embedded_lessons[i]), name) == 0 || strcmp(oc_embedded_lessons[i].name, name) == 0)
            return i;
    return -1;
}

bool oc_lesson_open(int index, struct oc_lesson *lesson, struct oc_error *error)
{
    const struct oc_embedded *file = &oc_embedded_lessons[index];
    return oc_lesson_parse(lesson, name_of(file), (const char *)file->bytes, *file->size, error);
}

void oc_lesson_close(struct oc_lesson *lesson)
{
    cJSON_Delete(lesson->root);
    memset(lesson, 0, sizeof *lesson);
}

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static bool fail(const struct oc_lesson *lesson, int step, const char *what, struct oc_error *error)
{
    oc_fail(error, OC_E_PARSE, "lesson %s, step %d: %s", lesson->name, step + 1, what);
    return oc_hint(error, "a step has text, and may have expect, do, then and hint");
}

static bool read_step(struct oc_lesson *lesson, const cJSON *item, struct oc_error *error)
{
    static const char *const known[] = {"text", "expect", "do", "then", "hint"};
    struct oc_lesson_step *step = &lesson->steps[lesson->n_steps];
    const cJSON *expect = cJSON_GetObjectItemCaseSensitive(item, "expect"), *condition;
    int n = 0;
    for (const cJSON *key = item->child; key; key = key->next) {
        size_t i = 0;
        while (i < sizeof known / sizeof known[0] && strcmp(known[i], key->string) != 0) i++;
        if (i == sizeof known / sizeof known[0]) return fail(lesson, lesson->n_steps, key->string, error);
    }
    *step = (struct oc_lesson_step){.text = text_of(item, "text"),
                                    .then = text_of(item, "then"),
                                    .act = text_of(item, "do"),
                                    .hint = text_of(item, "hint")};
    if (!step->text[0]) return fail(lesson, lesson->n_steps, "it has no text", error);
    cJSON_ArrayForEach(condition, expect)
    {
        if (!cJSON_IsString(condition) || n == OC_LESSON_CONDITIONS - 1)
            return fail(lesson, lesson->n_steps, "expect is a list of at most three conditions", error);
        step->expect[n++] = condition->valuestring;
    }
    if (n && (!step->act[0] || !step->hint[0]))
        return fail(lesson, lesson->n_steps, "what is expected needs do and hint", error);
    lesson->n_steps++;
    return true;
}

bool oc_lesson_parse(struct oc_lesson *lesson, const char *name, const char *text, size_t size, struct oc_error *error)
{
    memset(lesson, 0, sizeof *lesson);
    snprintf(lesson->name, sizeof lesson->name, "%s", name);
    cJSON *root = cJSON_ParseWithLength(text, size);
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "lesson"),
                *steps = cJSON_GetObjectItemCaseSensitive(root, "steps"), *step;
    lesson->root = root;
    lesson->title = text_of(root, "title");
    lesson->about = text_of(root, "about");
    lesson->start = text_of(root, "start");
    bool good = cJSON_IsNumber(version) && version->valueint == 1 && lesson->title[0] && lesson->about[0] &&
                lesson->start[0] && cJSON_IsArray(steps) && cJSON_GetArraySize(steps) > 0 &&
                cJSON_GetArraySize(steps) <= OC_LESSON_STEPS;
    if (!good)
        oc_fail(error, OC_E_PARSE,
                "%.40s is no lesson: {\"lesson\": 1, \"title\", \"about\", \"start\", \"steps\": [...]}", name);
    if (good) {
        cJSON_ArrayForEach(step, steps)
        {
            good = read_step(lesson, step, error);
            if (!good) break;
        }
    }
    if (!good) oc_lesson_close(lesson);
    return good;
}
