#include "tui/screen/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* A byte count; cJSON's numbers are doubles, exact up to 2^53. */
static uint64_t bytes_of(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 9007199254740992.0) return 0;
    return (uint64_t)item->valuedouble;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static enum oc_moment moment_named(const char *name)
{
    int moment = 0;
    while (moment < OC_MOMENTS && strcmp(oc_moment_name((enum oc_moment)moment), name) != 0) moment++;
    return (enum oc_moment)moment;
}

static void read_instant(const cJSON *object, struct oc_instant *instant)
{
    const cJSON *classes = member(object, "classes");
    instant->exists = true;
    instant->requested = bytes_of(object, "requested");
    instant->allocated = bytes_of(object, "allocated");
    for (int i = 0; i < OC_CLASSES; i++) instant->classes[i] = bytes_of(classes, oc_class_name((enum oc_class)i));
    instant->place = (struct oc_place){.iteration = OC_STEADY, .micro_batch = -1, .layer = -1};
    enum oc_moment moment = moment_named(text_of(object, "moment"));
    if (moment < OC_MOMENTS) instant->place.moment = moment;
}

static bool read_rank(const cJSON *object, struct oc_rank *rank)
{
    const cJSON *peak = member(object, "peak"), *first = member(object, "first_iteration_peak"), *item;
    if (!cJSON_IsObject(peak) || !cJSON_IsObject(member(peak, "classes"))) return false;
    rank->ranks = 1;
    rank->params = bytes_of(object, "params");
    read_instant(peak, &rank->peak);
    rank->reserved = bytes_of(peak, "reserved");
    if (cJSON_IsObject(first)) read_instant(first, &rank->first_peak);
    cJSON_ArrayForEach(item, member(object, "moments"))
    {
        enum oc_moment moment = moment_named(text_of(item, "name"));
        bool steady = strcmp(text_of(item, "iteration"), "steady") == 0;
        if (moment < OC_MOMENTS) read_instant(item, &rank->moments[steady ? OC_STEADY : OC_FIRST][moment]);
    }
    return true;
}

static bool fail(struct oc_result *result, const char *why)
{
    result->status = OC_PROBE_FAILED;
    snprintf(result->why, sizeof result->why, "%s", why);
    return false;
}

bool oc_result_read(const char *line, struct oc_result *result)
{
    static const struct {
        const char *event;
        enum oc_probe_status status;
    } events[] = {
        {"done", OC_PROBE_DONE}, {"oom", OC_PROBE_OOM}, {"cancelled", OC_PROBE_CANCELLED}, {"failed", OC_PROBE_FAILED}};
    memset(result, 0, sizeof *result);
    cJSON *root = cJSON_Parse(line);
    size_t i = 0, n = sizeof events / sizeof events[0];
    while (root && i < n && strcmp(events[i].event, text_of(root, "event")) != 0) i++;
    bool good = true;
    if (!root || i == n) {
        good = fail(result, "the probe ended without a result");
    } else {
        result->status = events[i].status;
        result->plan = strtoull(text_of(root, "plan"), NULL, 16);
        snprintf(result->why, sizeof result->why, "%s", text_of(root, "why"));
        if (result->status == OC_PROBE_DONE && !read_rank(member(root, "rank"), &result->rank))
            good = fail(result, "the probe's result has no peak");
    }
    cJSON_Delete(root);
    return good;
}
