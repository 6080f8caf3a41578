#include "model/base/alive.h"

#include <string.h>

#include "model/base/program.h"

struct counter {
    const struct oc_ledger *ledger;
    enum oc_moment moment;              /* that is looked for */
    uint32_t instances[OC_MAX_ENTRIES]; /* alive after the events so far */
    uint64_t allocated, highest;
    long events;        /* so far */
    long highest_after; /* so many of them: found in one walk, gone back to in another; -1 = not found yet */
    bool to_highest;
};

static void note(struct counter *counter)
{
    if (counter->to_highest || (counter->highest_after >= 0 && counter->allocated <= counter->highest)) return;
    counter->highest = counter->allocated;
    counter->highest_after = counter->events;
}

static bool is_here(const struct counter *counter, const struct oc_place *place)
{
    return place->iteration == OC_STEADY && place->moment == counter->moment && place->tick.phase != OC_PH_START;
}

/* A moment has the level after each birth in it; where nothing is born in it, the level when it is over. */
static void look_before(struct counter *counter, const struct oc_place *place)
{
    if (counter->highest_after < 0 && place->iteration == OC_STEADY && place->moment > counter->moment) note(counter);
}

static bool count(const struct oc_event *event, void *user)
{
    struct counter *counter = user;
    if (counter->to_highest && counter->events == counter->highest_after) return false;
    look_before(counter, &event->place);
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
    if (event->birth && is_here(counter, &event->place)) note(counter);
    return true;
}

void oc_alive_at(const struct oc_ledger *ledger, const struct oc_instant *instant, struct oc_alive *alive)
{
    struct counter counter = {.ledger = ledger, .moment = instant->place.moment, .highest_after = -1};
    oc_walk(ledger, OC_ITERATIONS, count, &counter);
    if (counter.highest_after >= 0) {
        counter = (struct counter){
            .ledger = ledger, .moment = counter.moment, .highest_after = counter.highest_after, .to_highest = true};
        oc_walk(ledger, OC_ITERATIONS, count, &counter);
    } /* else nothing happens any more, and what is left at the end is what there was */

    memset(alive, 0, sizeof *alive);
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *entry = &ledger->entries[i];
        const uint64_t n = counter.instances[i];
        alive->instances[i] = counter.instances[i];
        alive->bytes[i] = n * entry->bytes;
        alive->rounding += n * oc_entry_rounding(entry);
    }
    alive->allocated = counter.allocated;
    if (instant->allocated <= counter.allocated) return;
    alive->unsplit = instant->allocated - counter.allocated;
    alive->allocated = instant->allocated;
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

struct oc_entry oc_unsplit_entry(const struct oc_alive *alive)
{
    return (struct oc_entry){.name = "allocator.unsplit",
                             .why = "large blocks are handed out whole when 1 MiB or less would be left of them",
                             .source = "pytorch c10/cuda/CUDACachingAllocator.cpp should_split",
                             .bytes = alive->unsplit,
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
