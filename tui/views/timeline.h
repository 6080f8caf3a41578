/* What a rank holds from instant to instant of a first and of a steady iteration: a ledger's program walked once, and
 * what it passed, in few enough samples to draw.
 *
 * Ownership: plain values that the caller owns; they are large. */
#ifndef OOMCAST_TIMELINE_H
#define OOMCAST_TIMELINE_H

#include "oomcast/model.h"

enum { OC_TIMELINE_SAMPLES = 4096 }; /* of one iteration at most */

/* The largest instant of a few that follow each other. */
struct oc_sample {
    uint64_t classes[OC_CLASSES], allocated; /* bytes; allocated == sum of classes */
    struct oc_place place;
};

struct oc_timeline {
    struct oc_sample samples[OC_ITERATIONS][OC_TIMELINE_SAMPLES];
    int n[OC_ITERATIONS];
    uint64_t least[OC_CLASSES]; /* what is there in every instant of the steady iteration: its static part */
    uint64_t static_bytes;      /* sum of it */
};

/* Walks the ledger. Each moment's largest sample is what `rank` says of that moment: blocks that the allocator did not
 * split are known to it alone, and are added to the buffers of the whole moment. */
void oc_timeline_make(const struct oc_ledger *ledger, const struct oc_rank *rank, struct oc_timeline *timeline);

/* The largest sample of an iteration; 0 when it is empty. */
int oc_timeline_peak(const struct oc_timeline *timeline, enum oc_iteration iteration);

/* Whether a sample begins another stretch of the step: another moment, or another micro-batch. */
bool oc_sample_begins(const struct oc_sample *samples, int at);

/* One column of the drawn chart: samples first..last, of which `top` is the largest. */
struct oc_column {
    int first, last, top;
};

/* Deals the samples of an iteration out to `width` columns, in order. Stretches get columns by their samples, but short
 * ones are widened so that they can be seen, while there is room. Returns how many columns there are. */
int oc_timeline_columns(const struct oc_timeline *timeline, enum oc_iteration iteration, int width,
                        struct oc_column *columns);

#endif
