/* oc_reserve(): replays a ledger's births and deaths through the caching allocator. */
#include "oomcast/model.h"

#include <string.h>

#include "model/base/program.h"

/* Optimizer states are born in the first step, so that the second iteration meets a cache of another shape; from the
 * third on segments hardly move any more. */
enum { ITERATIONS = 3 };

/* Handles of live blocks at most, for every entry of the ledger together: 256 MiB of them. */
static const size_t MOST_HANDLES = (size_t)1 << 26;

/* How an entry becomes blocks. */
struct holder {
    uint64_t bytes; /* of one block; 0: none of its own (rounding, or a view of the block of an entry before it) */
    size_t first;   /* where the handles of its instances begin, in the allocator's notes */
    bool shared;    /* all instances lie in one block; outside slots they are born and die together */
};

struct replay {
    struct oc_alloc *alloc;
    uint32_t *handles; /* by holder.first + instance; 0 = no block */
    struct holder holders[OC_MAX_ENTRIES];
    const struct oc_ledger *ledger;
    enum oc_moment moment;                         /* of the last event */
    bool stepped;                                  /* what is renewed in this iteration's step has been */
    uint64_t allocated[OC_ITERATIONS][OC_MOMENTS]; /* the most that blocks took in each moment */
    bool failed;
};

static bool same_tick(struct oc_tick a, struct oc_tick b)
{
    return a.phase == b.phase && a.part == b.part && a.sub == b.sub;
}

/* Whether a pooled entry lies in the block that began with the pooled entry `leader`: they live together and are of one
 * class. Padding, which is a buffer, belongs to what it pads. */
static bool shares_block(const struct oc_entry *leader, const struct oc_entry *entry)
{
    if (!same_tick(leader->birth, entry->birth) || !same_tick(leader->death, entry->death)) return false;
    if (leader->birth.part != OC_PART_NONE && (leader->kind != entry->kind || leader->when != entry->when))
        return false;
    return leader->class == entry->class || entry->class == OC_BUFFERS;
}

/* Bytes that the block of a pooled entry holds of it: outside slots all of its instances, else one. */
static uint64_t pooled_bytes(const struct oc_entry *entry, bool is_static)
{
    return is_static ? oc_mul(entry->bytes, entry->count) : entry->bytes;
}

/* Decides which entries of a stream get blocks, of what size. A run of pooled entries is one block, held by the first
 * of them. */
static void fill_holders(const struct oc_ledger *ledger, int stream, struct holder *holders)
{
    const struct oc_entry *leader = NULL; /* of the run of pooled entries that we are in */
    struct holder *block = NULL;
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *entry = &ledger->entries[i];
        holders[i] = (struct holder){0};
        if (entry->stream != stream) continue;
        if (entry->is_rounding || !entry->pooled) {
            leader = NULL;
            if (!entry->is_rounding) holders[i].bytes = entry->bytes;
            continue;
        }
        bool is_static = oc_entry_life(entry) == OC_LIFE_STATIC;
        if (!leader || !shares_block(leader, entry)) {
            leader = entry;
            block = &holders[i];
            block->shared = is_static;
        }
        block->bytes = oc_add(block->bytes, pooled_bytes(entry, is_static));
    }
}

/* Gives every holder room for the handles of its instances. False when that is more than there may be. */
static bool make_room(const struct oc_ledger *ledger, struct replay *replay)
{
    size_t total = 0, most = (size_t)oc_walk_instances(ledger);
    for (int i = 0; i < ledger->n_entries; i++) {
        struct holder *holder = &replay->holders[i];
        bool is_static = oc_entry_life(&ledger->entries[i]) == OC_LIFE_STATIC;
        holder->first = total;
        if (holder->bytes) total += holder->shared ? 1 : is_static ? ledger->entries[i].count : most;
        if (total > MOST_HANDLES) return false;
    }
    replay->handles = oc_alloc_notes(replay->alloc, total);
    if (replay->handles) memset(replay->handles, 0, total * sizeof *replay->handles);
    return replay->handles || !total;
}

/* Blocks of an entry that is born instance by instance. */
static uint32_t blocks_of(const struct holder *holder, const struct oc_entry *entry)
{
    return !holder->bytes ? 0 : holder->shared ? 1 : entry->count;
}

/* Makes instance `n` of an entry anew while the old one is still there. */
static void renew_one(struct replay *replay, int i, uint32_t n)
{
    const struct oc_entry *entry = &replay->ledger->entries[i];
    const struct holder *holder = &replay->holders[i];
    if (!entry->renewed || n >= blocks_of(holder, entry)) return;
    uint32_t *handle = &replay->handles[holder->first + n];
    const uint32_t old = *handle;
    if (!old) return; /* not born yet */
    replay->failed = !oc_alloc_get(replay->alloc, holder->bytes, handle);
    oc_alloc_put(replay->alloc, old);
}

/* Tensors that a step makes anew, layer by layer: the cache's shape changes, the sums do not. */
static void renew(struct replay *replay)
{
    uint32_t most = 0;
    for (int i = 0; i < replay->ledger->n_entries; i++)
        if (replay->ledger->entries[i].renewed && replay->ledger->entries[i].count > most)
            most = replay->ledger->entries[i].count;
    for (uint32_t n = 0; n < most; n++)
        for (int i = 0; i < replay->ledger->n_entries && !replay->failed; i++) renew_one(replay, i, n);
}

/* Whether this event is the first of a step, or the first behind one in which nothing is born. */
static bool comes_to_step(struct replay *replay, enum oc_moment moment)
{
    bool here = false;
    if (moment < replay->moment) { /* the next iteration begins */
        here = !replay->stepped && replay->moment >= OC_M_REDUCE;
        replay->stepped = false;
    }
    replay->moment = moment;
    if (moment >= OC_M_STEP && !replay->stepped) here = replay->stepped = true;
    return here;
}

/* What is made in one instant outside slots is made layer by layer, not entry by entry: the instances of all entries
 * that are born then. */
static void bear_by_layers(struct replay *replay, int entry)
{
    const struct oc_ledger *ledger = replay->ledger;
    const struct oc_tick tick = ledger->entries[entry].birth;
    uint32_t most = 0;
    for (int i = entry; i < ledger->n_entries; i++)
        if (same_tick(ledger->entries[i].birth, tick) && ledger->entries[i].count > most)
            most = ledger->entries[i].count;
    for (uint32_t n = 0; n < most; n++)
        for (int i = entry; i < ledger->n_entries && !replay->failed; i++) {
            const struct oc_entry *other = &ledger->entries[i];
            const struct holder *holder = &replay->holders[i];
            if (!same_tick(other->birth, tick) || oc_entry_life(other) != OC_LIFE_STATIC) continue;
            if (n >= blocks_of(holder, other)) continue;
            uint32_t *handle = &replay->handles[holder->first + n];
            if (!*handle) replay->failed = !oc_alloc_get(replay->alloc, holder->bytes, handle);
        }
}

static bool replay_event(const struct oc_event *event, void *user)
{
    struct replay *replay = user;
    if (comes_to_step(replay, event->place.moment)) renew(replay);
    struct holder *holder = &replay->holders[event->entry];
    if (!holder->bytes || (holder->shared && event->instance)) return true;
    uint32_t *handle = &replay->handles[holder->first + (size_t)event->instance];
    if (event->birth) {
        if (oc_entry_life(&replay->ledger->entries[event->entry]) != OC_LIFE_STATIC)
            replay->failed = !oc_alloc_get(replay->alloc, holder->bytes, handle);
        else if (!*handle)
            bear_by_layers(replay, event->entry);
        uint64_t *most = &replay->allocated[event->place.iteration][event->place.moment];
        const uint64_t now = oc_alloc_stats(replay->alloc)->allocated;
        if (now > *most) *most = now;
    } else {
        oc_alloc_put(replay->alloc, *handle);
        *handle = 0;
    }
    return !replay->failed;
}

/* PyTorch counts blocks, and hands out a large block whole when 1 MiB or less would be left of it. What that adds to a
 * moment's figure follows from the order of allocations, so it is known only here; it goes where rounding goes. */
static void add_unsplit_rests(const struct replay *replay, struct oc_rank *rank)
{
    for (int i = 0; i < OC_ITERATIONS; i++)
        for (int m = 0; m < OC_MOMENTS; m++) {
            struct oc_instant *instant = &rank->moments[i][m];
            if (!instant->exists || replay->allocated[i][m] <= instant->allocated) continue;
            instant->classes[OC_BUFFERS] += replay->allocated[i][m] - instant->allocated;
            instant->allocated = replay->allocated[i][m];
        }
    oc_rank_find_peaks(rank);
}

static bool has_stream(const struct oc_ledger *ledger, int stream)
{
    for (int i = 0; i < ledger->n_entries; i++)
        if (ledger->entries[i].stream == stream) return true;
    return false;
}

/* One stream's blocks, in at most `limit` bytes of segments (0: as many as it takes). */
static bool run(struct replay *replay, const struct oc_plan *plan, const struct oc_ledger *ledger, int stream,
                uint64_t limit)
{
    *replay = (struct replay){.alloc = replay->alloc, .ledger = ledger};
    oc_alloc_set_limit(replay->alloc, limit);
    oc_alloc_set_expandable(replay->alloc, plan->c.allocator_expandable_segments);
    fill_holders(ledger, stream, replay->holders);
    if (!make_room(ledger, replay)) return false;
    oc_walk(ledger, ITERATIONS, replay_event, replay);
    return !replay->failed;
}

/* FSDP1 marks gathered units with record_stream(): a freed one can be taken again only when the computing stream has
 * passed, of which the host is ahead, so that the largest is there twice. Source: torch/distributed/fsdp
 * _flat_param.py _free_unsharded_flat_param; FSDP2 does without record_stream. */
static uint64_t held_by_events(const struct oc_plan *plan, const struct oc_ledger *ledger, int stream)
{
    uint64_t largest = 0;
    if (plan->c.framework != OC_FW_FSDP1) return 0;
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *entry = &ledger->entries[i];
        if (entry->stream == stream && entry->bytes > largest) largest = entry->bytes;
    }
    return oc_alloc_segment(oc_alloc_round(largest));
}

/* The stream that computes, in the room that PyTorch has on the GPU: near its end the allocator gives cached segments
 * back instead of failing, those of other streams too. The context's and NCCL's sizes are ranges: the least room that
 * will do. Returns that room; 0 when none will, or no capacity is known. */
static uint64_t run_in_room(struct replay *replay, const struct oc_plan *plan, const struct oc_ledger *ledger,
                            const struct oc_rank *rank)
{
    const uint64_t low = plan->context.low + plan->nccl.low, high = plan->context.high + plan->nccl.high;
    const uint64_t outside[] = {high, low + (high - low) / 2, low};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        const uint64_t room = plan->capacity > outside[i] ? plan->capacity - outside[i] : 0;
        if (rank->peak.allocated < room && run(replay, plan, ledger, 0, room)) return room;
    }
    return 0;
}

/* Streams do not give each other what they have freed: each is replayed by itself, and their segments add up. */
bool oc_reserve(const struct oc_plan *plan, const struct oc_ledger *ledger, struct oc_alloc *alloc,
                struct oc_rank *rank)
{
    struct replay replay = {.alloc = alloc};
    uint64_t reserved = 0;
    bool alone = true;
    rank->reserved = 0;
    for (int stream = OC_MAX_STREAMS - 1; stream > 0; stream--) {
        if (!has_stream(ledger, stream)) continue;
        alone = false;
        if (!run(&replay, plan, ledger, stream, 0)) return false;
        reserved = oc_add(reserved, oc_alloc_stats(alloc)->reserved_peak + held_by_events(plan, ledger, stream));
    }
    const uint64_t room = run_in_room(&replay, plan, ledger, rank);
    if (!room && !run(&replay, plan, ledger, 0, 0)) return false;
    reserved = oc_add(reserved, oc_alloc_stats(alloc)->reserved_peak);
    if (alone) add_unsplit_rests(&replay, rank);
    rank->reserved = room && reserved > room ? room : reserved;
    rank->reserved_by = OC_SIMULATED;
    return true;
}
