/* What is alive at the peak, entry by entry: the sum behind the number, so that it can be opened down to its entries.
 */
#ifndef OC_TUI_REPORT_ALIVE_H
#define OC_TUI_REPORT_ALIVE_H

#include "oomcast/ledger.h"

struct oc_alive {
    uint64_t bytes[OC_MAX_ENTRIES];     /* requested bytes of the instances of each entry that are alive at the peak */
    uint32_t instances[OC_MAX_ENTRIES]; /* how many those are */
    uint64_t rounding;                  /* what the allocator adds to them: blocks are multiples of 512 bytes */
    uint64_t allocated;                 /* the sum of both */
};

/* Walks the ledger's program to the largest instant of the steady iteration and lists what is alive there. The peak is
 * found by counting every birth and death, independently of oc_sweep(). */
void oc_alive_at_peak(const struct oc_ledger *ledger, struct oc_alive *alive);

/* The rounding as an entry of its own, so that a list of entries adds up to the allocated bytes. */
struct oc_entry oc_rounding_entry(const struct oc_alive *alive);

/* "init", "forward", ..., "end": as births and deaths are written. */
const char *oc_phase_name(enum oc_phase phase);

#endif
