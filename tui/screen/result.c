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

static enum oc_device device_named(const char *name)
{
    if (strcmp(name, "cuda") == 0) return OC_DEVICE_CUDA;
    return strcmp(name, "dry") == 0 ? OC_DEVICE_DRY : OC_DEVICE_HOST;
}

const char *oc_result_where(const struct oc_result *result, char *text, size_t size)
{
    if (result->device == OC_DEVICE_CUDA)
        snprintf(text, size, "measured on %s", result->gpu[0] ? result->gpu : "the GPU");
    else
        snprintf(text, size, "%s", result->device == OC_DEVICE_DRY ? "simulated" : "measured in host memory");
    return text;
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
    rank->stage = (int64_t)bytes_of(object, "stage");
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

static double share_of(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= 1 ? item->valuedouble : 0;
}

static void read_numbers(const cJSON *root, struct oc_result *result)
{
    const cJSON *numbers = member(root, "numerics"), *loss;
    cJSON_ArrayForEach(loss, member(root, "losses"))
    {
        if (cJSON_IsNumber(loss) && result->n_losses < OC_MAX_LOSSES)
            result->losses[result->n_losses++] = loss->valuedouble;
    }
    if (!cJSON_IsObject(numbers)) return;
    result->numbers = (struct oc_result_numbers){.known = true,
                                                 .underflow = share_of(numbers, "fp16_underflow_unscaled"),
                                                 .underflow_scaled = share_of(numbers, "fp16_underflow_scaled"),
                                                 .lost = share_of(numbers, "updates_lost"),
                                                 .lost_bf16 = share_of(numbers, "updates_lost_bf16_no_master"),
                                                 .lost_fp16 = share_of(numbers, "updates_lost_fp16_no_master")};
}

static double divide(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

void oc_result_take(const struct oc_probe_result *probe, struct oc_result *result)
{
    const struct oc_probe_numerics *n = &probe->numerics;
    memset(result, 0, sizeof *result);
    result->plan = probe->plan_hash;
    result->status = probe->status;
    snprintf(result->why, sizeof result->why, "%s", probe->why);
    snprintf(result->gpu, sizeof result->gpu, "%s", probe->bytes.name);
    snprintf(result->fallback, sizeof result->fallback, "%s", probe->fallback);
    result->device = probe->device;
    result->rank = probe->rank;
    result->seconds = probe->seconds;
    result->n_losses = probe->n_losses;
    memcpy(result->losses, probe->losses, sizeof result->losses);
    result->numbers = (struct oc_result_numbers){.known = n->updates > 0,
                                                 .underflow = divide(n->flushed, n->gradients),
                                                 .underflow_scaled = divide(n->flushed_scaled, n->gradients),
                                                 .lost = divide(n->lost, n->updates),
                                                 .lost_bf16 = divide(n->lost_bf16, n->updates),
                                                 .lost_fp16 = divide(n->lost_fp16, n->updates)};
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
        snprintf(result->gpu, sizeof result->gpu, "%s", text_of(member(root, "gpu"), "name"));
        snprintf(result->fallback, sizeof result->fallback, "%s", text_of(root, "fallback"));
        result->device = device_named(text_of(root, "device"));
        if (result->status == OC_PROBE_DONE && !read_rank(member(root, "rank"), &result->rank))
            good = fail(result, "the probe's result has no peak");
        read_numbers(root, result);
    }
    cJSON_Delete(root);
    return good;
}
