#include "tui/screen/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE = 32, MAX_ARGS = 2 * OC_OPTIONS + 16, ARG = OC_NAME_MAX + 64 };

/* How long a configuration must stand still before a child is started for it. */
static const int debounce[OC_LANES] = {[OC_LANE_DRY] = 60, [OC_LANE_REAL] = 150};

/* What a lane's child runs on. Nobody's GPU is taken from them: where others compute, it runs in host memory. */
static const char *const device[OC_LANES][3] = {
    [OC_LANE_DRY] = {"--device", "dry"}, [OC_LANE_REAL] = {"--device", "auto", "--polite"}};

struct lane {
    struct oc_child *child;
    uint64_t wanted; /* plan the lane is about; 0 = none */
    struct oc_config config;
    int64_t stage;
    uint64_t limit; /* bytes; 0 = none */
    bool due;       /* a child is to be started at `start` */
    int64_t start;  /* when; later when the child was started */
    int percent;    /* last progress that was drawn */
    struct oc_result cache[CACHE];
    int n_cache, oldest;
};

struct oc_live {
    char executable[512];
    struct lane lanes[OC_LANES];
};

struct oc_live *oc_live_start(const char *executable)
{
    struct oc_live *live = calloc(1, sizeof *live);
    if (live) snprintf(live->executable, sizeof live->executable, "%s", executable);
    return live;
}

void oc_live_end(struct oc_live *live)
{
    if (!live) return;
    for (int i = 0; i < OC_LANES; i++)
        if (live->lanes[i].child) oc_child_end(live->lanes[i].child);
    free(live);
}

static struct oc_result *find(struct lane *lane, uint64_t hash)
{
    for (int i = 0; i < lane->n_cache; i++)
        if (lane->cache[i].plan == hash) return &lane->cache[i];
    return NULL;
}

const struct oc_result *oc_live_result(const struct oc_live *live, enum oc_lane lane, uint64_t hash)
{
    for (int i = 0; i < live->lanes[lane].n_cache; i++)
        if (live->lanes[lane].cache[i].plan == hash) return &live->lanes[lane].cache[i];
    return NULL;
}

static void keep(struct lane *lane, const struct oc_result *result)
{
    struct oc_result *slot = find(lane, result->plan);
    if (!slot && lane->n_cache < CACHE) slot = &lane->cache[lane->n_cache++];
    if (!slot) {
        slot = &lane->cache[lane->oldest];
        lane->oldest = (lane->oldest + 1) % CACHE;
    }
    *slot = *result;
}

static void stop(struct lane *lane)
{
    if (lane->child) oc_child_end(lane->child);
    lane->child = NULL;
    lane->due = false;
}

void oc_live_forget(struct oc_live *live, enum oc_lane lane)
{
    stop(&live->lanes[lane]);
    live->lanes[lane].wanted = 0;
}

void oc_live_want(struct oc_live *live, enum oc_lane which, const struct oc_config *config, uint64_t hash,
                  int64_t stage, uint64_t limit, int64_t now, bool force)
{
    struct lane *lane = &live->lanes[which];
    bool same = lane->wanted == hash;
    if (same && (lane->child || lane->due)) return;
    stop(lane);
    lane->wanted = hash;
    lane->config = *config;
    lane->stage = stage;
    lane->limit = limit;
    if (find(lane, hash) && !force) return;
    lane->due = true;
    lane->start = force ? now : now + debounce[which];
}

/* A failure to run at all is a result too: it is shown, and not tried again by itself. */
static void keep_failure(struct lane *lane, const char *why)
{
    struct oc_result result = {.plan = lane->wanted, .status = OC_PROBE_FAILED};
    snprintf(result.why, sizeof result.why, "%.*s", (int)sizeof result.why - 1, why);
    keep(lane, &result);
}

static void launch(struct oc_live *live, enum oc_lane which, int64_t now)
{
    struct lane *lane = &live->lanes[which];
    char *argv[MAX_ARGS], (*text)[ARG] = calloc(OC_OPTIONS, sizeof *text);
    int n = 0;
    char limit[24], stage[24];
    struct oc_error error = {0};
    lane->due = false;
    lane->percent = -1;
    lane->start = now;
    if (!text) {
        keep_failure(lane, "out of memory");
        return;
    }
    argv[n++] = (char *)"probe";
    argv[n++] = (char *)"--json";
    argv[n++] = (char *)"--full"; /* the real lane's configuration is cut already */
    for (int i = 0; i < 3 && device[which][i]; i++) argv[n++] = (char *)device[which][i];
    if (lane->stage) {
        snprintf(stage, sizeof stage, "%" PRId64, lane->stage);
        argv[n++] = (char *)"--stage";
        argv[n++] = stage;
    }
    if (lane->limit) {
        snprintf(limit, sizeof limit, "%" PRIu64, lane->limit);
        argv[n++] = (char *)"--limit";
        argv[n++] = limit;
    }
    for (int id = 0; id < OC_OPTIONS; id++) {
        char value[OC_NAME_MAX];
        if (!oc_given(&lane->config, (enum oc_option_id)id)) continue;
        oc_option_text(&lane->config, (enum oc_option_id)id, value, sizeof value);
        snprintf(text[id], ARG, "%s=%s", oc_option((enum oc_option_id)id)->key, value);
        argv[n++] = (char *)"--set";
        argv[n++] = text[id];
    }
    argv[n] = NULL;
    lane->child = oc_child_start(live->executable, argv, &error);
    if (!lane->child) keep_failure(lane, error.message);
    free(text);
}

static bool collect(struct lane *lane, int64_t now)
{
    if (!oc_child_pump(lane->child)) {
        int percent = (int)(oc_child_fraction(lane->child) * 100.0);
        bool moved = percent / 5 != lane->percent / 5;
        if (moved) lane->percent = percent;
        return moved;
    }
    struct oc_result result;
    bool read = oc_result_read(oc_child_line(lane->child), &result);
    if (!read && oc_child_why(lane->child)[0]) snprintf(result.why, sizeof result.why, "%s", oc_child_why(lane->child));
    result.seconds = (double)(now - lane->start) / 1000.0;
    if (!read || (result.plan != lane->wanted && result.status != OC_PROBE_DONE)) result.plan = lane->wanted;
    if (result.plan != lane->wanted) {
        result = (struct oc_result){.plan = lane->wanted, .status = OC_PROBE_FAILED};
        snprintf(result.why, sizeof result.why, "the probe ran another plan");
    }
    keep(lane, &result);
    stop(lane);
    return true;
}

bool oc_live_tick(struct oc_live *live, int64_t now)
{
    bool changed = false;
    for (int i = 0; i < OC_LANES; i++) {
        struct lane *lane = &live->lanes[i];
        if (lane->due && now >= lane->start) {
            launch(live, (enum oc_lane)i, now);
            changed = true;
        }
        if (lane->child) changed |= collect(lane, now);
    }
    return changed;
}

int oc_live_wait(const struct oc_live *live, int64_t now)
{
    int64_t wait = -1;
    for (int i = 0; i < OC_LANES; i++) {
        const struct lane *lane = &live->lanes[i];
        if (lane->child && oc_child_fd(lane->child) < 0) return 0; /* it has ended and waits to be collected */
        if (!lane->due) continue;
        int64_t left = lane->start > now ? lane->start - now : 0;
        if (wait < 0 || left < wait) wait = left;
    }
    return wait > 10000 ? 10000 : (int)wait;
}

int oc_live_fd(const struct oc_live *live, enum oc_lane lane)
{
    return live->lanes[lane].child ? oc_child_fd(live->lanes[lane].child) : -1;
}

bool oc_live_busy(const struct oc_live *live, enum oc_lane lane)
{
    return live->lanes[lane].child || live->lanes[lane].due;
}

const char *oc_live_phase(const struct oc_live *live, enum oc_lane lane)
{
    return live->lanes[lane].child ? oc_child_phase(live->lanes[lane].child) : "";
}

double oc_live_fraction(const struct oc_live *live, enum oc_lane lane)
{
    return live->lanes[lane].child ? oc_child_fraction(live->lanes[lane].child) : 0;
}
