#include <string.h>

#include "model/base/program.h"

#include "tui/report/alive.h"

struct counter {
    const struct oc_ledger *ledger;
    uint32_t instances[OC_MAX_ENTRIES];
    uint64_t allocated, peak;
    long events;     /* so far */
    long peak_after; /* so many of them: found in one walk, gone back to in another */
    bool in_steady, to_peak;
};

static void note_peak(struct counter *counter)
{
    if (counter->to_peak) return;
    counter->peak = counter->allocated;
    counter->peak_after = counter->events;
}

static bool count(const struct oc_event *event, void *user)
{
    struct counter *counter = user;
    if (counter->to_peak && counter->events == counter->peak_after) return false;
    const bool steady = event->place.iteration == OC_STEADY;
    if (steady && !counter->in_steady) note_peak(counter); /* what the steady iteration starts with */
    counter->in_steady = steady;

    const struct oc_entry *entry = &counter->ledger->entries[event->entry];
    const uint64_t block = entry->bytes + oc_entry_rounding(entry);
    if (event->birth) {
        counter->instances[event->entry]++;
        counter->allocated += block;
    } else {
        counter->instances[event->entry]--;
        counter->allocated -= block;
    }
    counter->events++;
    if (steady && counter->allocated > counter->peak) note_peak(counter);
    return true;
}

void oc_alive_at_peak(const struct oc_ledger *ledger, struct oc_alive *alive)
{
    struct counter counter = {.ledger = ledger};
    oc_walk(ledger, OC_ITERATIONS, count, &counter);
    if (counter.in_steady) {
        counter = (struct counter){.ledger = ledger, .peak_after = counter.peak_after, .to_peak = true};
        oc_walk(ledger, OC_ITERATIONS, count, &counter);
    } /* else nothing happens in the steady iteration, and what the first one left is its peak */

    memset(alive, 0, sizeof *alive);
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *entry = &ledger->entries[i];
        const uint64_t n = counter.instances[i];
        alive->instances[i] = counter.instances[i];
        alive->bytes[i] = n * entry->bytes;
        alive->rounding += n * oc_entry_rounding(entry);
    }
    alive->allocated = counter.allocated;
}

struct oc_entry oc_rounding_entry(const struct oc_alive *alive)
{
    return (struct oc_entry){.name = "allocator.rounding",
                             .why = "the caching allocator's blocks are multiples of 512 bytes",
                             .source = "pytorch c10/cuda/CUDACachingAllocator.cpp round_size",
                             .bytes = alive->rounding,
                             .count = 1,
                             .class = OC_BUFFERS,
                             .death = {.phase = OC_PH_END}};
}

const char *oc_phase_name(enum oc_phase phase)
{
    static const char *const names[OC_PHASES] = {[OC_PH_INIT] = "init",           [OC_PH_START] = "start",
                                                 [OC_PH_FORWARD] = "forward",     [OC_PH_LOSS] = "loss",
                                                 [OC_PH_RECOMPUTE] = "recompute", [OC_PH_BACKWARD] = "backward",
                                                 [OC_PH_REDUCE] = "reduce",       [OC_PH_CLIP] = "clip",
                                                 [OC_PH_STEP] = "step",           [OC_PH_AFTER_STEP] = "after_step",
                                                 [OC_PH_IDLE] = "idle",           [OC_PH_END] = "end"};
    return phase < OC_PHASES ? names[phase] : "?";
}
