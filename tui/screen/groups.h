/* Pipeline stages that hold the same, as one row. Ownership: plain values. */
#ifndef OOMCAST_GROUPS_H
#define OOMCAST_GROUPS_H

#include "oomcast/model.h"

/* Stages first..last have equal peaks, class by class, and equal reserved bytes. */
struct oc_group {
    int first, last;
    bool worst; /* the worst stage is one of them */
};

/* Groups of consecutive stages, in order; at most `most`, of which one is the worst. Returns how many; `*left_out`
 * counts the stages that are in none. */
int oc_groups(const struct oc_answer *answer, struct oc_group *groups, int most, int *left_out);

#endif
