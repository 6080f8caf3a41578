/* What is alive at an instant, entry by entry: the sum behind a number, so that it can be opened down to its entries.
 *
 * Ownership: plain values that the caller owns. */
#ifndef OC_MODEL_BASE_ALIVE_H
#define OC_MODEL_BASE_ALIVE_H

#include "oomcast/ledger.h"

struct oc_alive {
    uint64_t bytes[OC_MAX_ENTRIES];     /* requested bytes of the instances of each entry that are alive */
    uint32_t instances[OC_MAX_ENTRIES]; /* how many those are */
    uint64_t rounding;                  /* what the allocator adds to them: blocks are multiples of 512 bytes */
    uint64_t unsplit;                   /* what it adds beyond that: rests of large blocks, known from a replay */
    uint64_t allocated;                 /* the sum of all */
};

/* Lists what is alive at the largest instant of a moment of the steady iteration: `instant` is that moment's, or the
 * peak, as oc_sweep() and oc_reserve() left it. The instant is found again by counting every birth and death,
 * independently of oc_sweep(). */
void oc_alive_at(const struct oc_ledger *ledger, const struct oc_instant *instant, struct oc_alive *alive);

/* What the allocator adds as entries of their own, so that a list of entries adds up to the allocated bytes. */
struct oc_entry oc_rounding_entry(const struct oc_alive *alive);

struct oc_entry oc_unsplit_entry(const struct oc_alive *alive);

/* "init", "forward", ..., "end": as births and deaths are written. */
const char *oc_phase_name(enum oc_phase phase);

#endif
