#include "tui/views/timeline.h"

#include <string.h>

#include "model/base/program.h"

struct walk {
    const struct oc_ledger *ledger;
    struct oc_timeline *timeline;
    uint64_t rounding[OC_MAX_ENTRIES];
    struct oc_sample now; /* after the events of this tick so far */
    bool began;
};

static bool same_tick(const struct oc_place *a, const struct oc_place *b)
{
    return a->iteration == b->iteration && a->moment == b->moment && a->micro_batch == b->micro_batch &&
           a->layer == b->layer && a->tick.phase == b->tick.phase && a->tick.part == b->tick.part &&
           a->tick.sub == b->tick.sub;
}

static bool same_stretch(const struct oc_place *a, const struct oc_place *b)
{
    return a->moment == b->moment && a->micro_batch == b->micro_batch;
}

bool oc_sample_begins(const struct oc_sample *samples, int at)
{
    return at == 0 || !same_stretch(&samples[at - 1].place, &samples[at].place);
}

/* Halves the samples by merging neighbours, inside stretches only unless `anywhere`. */
static int merge(struct oc_sample *samples, int n, bool anywhere)
{
    int kept = 0;
    for (int i = 0; i < n; kept++) {
        bool two = i + 1 < n && (anywhere || same_stretch(&samples[i].place, &samples[i + 1].place));
        samples[kept] = samples[two && samples[i + 1].allocated > samples[i].allocated ? i + 1 : i];
        i += two ? 2 : 1;
    }
    return kept;
}

static void add_sample(struct oc_timeline *timeline, const struct oc_sample *sample)
{
    int iteration = (int)sample->place.iteration, *n = &timeline->n[iteration];
    struct oc_sample *samples = timeline->samples[iteration];
    if (*n == OC_TIMELINE_SAMPLES) *n = merge(samples, *n, false);
    if (*n > OC_TIMELINE_SAMPLES * 3 / 4) *n = merge(samples, *n, true);
    samples[(*n)++] = *sample;
}

/* Moments in which nothing is born or dies hold what was there before them. */
static void add_quiet_moments(struct walk *walk, int end)
{
    struct oc_sample quiet = walk->now;
    quiet.place.micro_batch = quiet.place.layer = -1;
    for (int moment = (int)walk->now.place.moment + 1; moment < end; moment++) {
        if (moment < OC_M_REDUCE) continue;
        quiet.place.moment = (enum oc_moment)moment;
        add_sample(walk->timeline, &quiet);
    }
}

static void close_tick(struct walk *walk, const struct oc_place *next)
{
    add_sample(walk->timeline, &walk->now);
    if (!next || next->iteration != walk->now.place.iteration)
        add_quiet_moments(walk, OC_MOMENTS);
    else
        add_quiet_moments(walk, (int)next->moment);
}

static void change(uint64_t *value, uint64_t by, bool up)
{
    *value = up ? *value + by : *value - by;
}

static bool visit(const struct oc_event *event, void *user)
{
    struct walk *walk = user;
    const struct oc_entry *entry = &walk->ledger->entries[event->entry];
    if (walk->began && !same_tick(&walk->now.place, &event->place)) close_tick(walk, &event->place);
    walk->began = true;
    walk->now.place = event->place;
    change(&walk->now.classes[entry->class], entry->bytes, event->birth);
    change(&walk->now.classes[OC_BUFFERS], walk->rounding[event->entry], event->birth);
    change(&walk->now.allocated, entry->bytes + walk->rounding[event->entry], event->birth);
    return true;
}

/* Adds to each moment what the allocator's blocks hold beyond the ledger. */
static void add_rests(struct oc_timeline *timeline, const struct oc_rank *rank)
{
    uint64_t most[OC_ITERATIONS][OC_MOMENTS] = {{0}};
    for (int i = 0; i < OC_ITERATIONS; i++)
        for (int n = 0; n < timeline->n[i]; n++) {
            const struct oc_sample *sample = &timeline->samples[i][n];
            if (sample->allocated > most[i][sample->place.moment]) most[i][sample->place.moment] = sample->allocated;
        }
    for (int i = 0; i < OC_ITERATIONS; i++)
        for (int n = 0; n < timeline->n[i]; n++) {
            struct oc_sample *sample = &timeline->samples[i][n];
            const struct oc_instant *instant = &rank->moments[i][sample->place.moment];
            uint64_t known = most[i][sample->place.moment];
            if (!instant->exists || instant->allocated <= known) continue;
            sample->classes[OC_BUFFERS] += instant->allocated - known;
            sample->allocated += instant->allocated - known;
        }
}

static void find_static(struct oc_timeline *timeline)
{
    for (int class = 0; class < OC_CLASSES; class ++) {
        uint64_t least = timeline->n[OC_STEADY] ? UINT64_MAX : 0;
        for (int n = 0; n < timeline->n[OC_STEADY]; n++)
            if (timeline->samples[OC_STEADY][n].classes[class] < least)
                least = timeline->samples[OC_STEADY][n].classes[class];
        timeline->least[class] = least;
        timeline->static_bytes += least;
    }
}

void oc_timeline_make(const struct oc_ledger *ledger, const struct oc_rank *rank, struct oc_timeline *timeline)
{
    struct walk walk = {.ledger = ledger, .timeline = timeline};
    memset(timeline->n, 0, sizeof timeline->n);
    timeline->static_bytes = 0;
    for (int i = 0; i < ledger->n_entries; i++) walk.rounding[i] = oc_entry_rounding(&ledger->entries[i]);
    oc_walk(ledger, OC_ITERATIONS, visit, &walk);
    if (walk.began) close_tick(&walk, NULL);
    add_rests(timeline, rank);
    find_static(timeline);
}

int oc_timeline_peak(const struct oc_timeline *timeline, enum oc_iteration iteration)
{
    int best = 0;
    for (int i = 1; i < timeline->n[iteration]; i++)
        if (timeline->samples[iteration][i].allocated > timeline->samples[iteration][best].allocated) best = i;
    return best;
}

static int count_stretches(const struct oc_sample *samples, int n)
{
    int stretches = 0;
    for (int i = 0; i < n; i++) stretches += oc_sample_begins(samples, i);
    return stretches;
}

static int stretch_end(const struct oc_sample *samples, int n, int first)
{
    int end = first + 1;
    while (end < n && !oc_sample_begins(samples, end)) end++;
    return end;
}

/* Columns first..first+count of samples begin..end-1, each at least one sample where there are enough. */
static int deal(const struct oc_sample *samples, int begin, int end, int count, struct oc_column *columns)
{
    int n = end - begin;
    for (int c = 0; c < count; c++) {
        int first = begin + (int)((int64_t)n * c / count), last = begin + (int)((int64_t)n * (c + 1) / count) - 1;
        if (last < first) last = first;
        columns[c] = (struct oc_column){first, last, first};
        for (int i = first; i <= last; i++)
            if (samples[i].allocated > samples[columns[c].top].allocated) columns[c].top = i;
    }
    return count;
}

int oc_timeline_columns(const struct oc_timeline *timeline, enum oc_iteration iteration, int width,
                        struct oc_column *columns)
{
    enum { MOST = 5 }; /* columns that a short stretch is widened to, where there is room */
    const struct oc_sample *samples = timeline->samples[iteration];
    int n = timeline->n[iteration], stretches = count_stretches(samples, n);
    if (n == 0 || width <= 0) return 0;
    int least = MOST;
    while (least > 0 && stretches * least > width * 3 / 5) least--;
    if (least == 0) return deal(samples, 0, n, width, columns);
    int spare = width - stretches * least, used = 0;
    for (int begin = 0; begin < n;) {
        int end = stretch_end(samples, n, begin);
        int extra = (int)((int64_t)spare * end / n) - (int)((int64_t)spare * begin / n);
        used += deal(samples, begin, end, least + extra, columns + used);
        begin = end;
    }
    return used;
}
