/* The history of cases. Ownership: oc_undo_start() allocates, oc_undo_free() releases; cases are copied in and out. */
#ifndef OOMCAST_UNDO_H
#define OOMCAST_UNDO_H

#include "oomcast/case.h"

enum { OC_UNDO_MAX = 10000 }; /* about 3 KiB each, as they are made; the oldest are forgotten beyond it */

struct oc_undo {
    struct oc_case *cases;
    int n, room; /* cases held, cases there is memory for */
    int at;      /* the current one */
};

/* False when out of memory. */
bool oc_undo_start(struct oc_undo *undo, const struct oc_case *first);
void oc_undo_free(struct oc_undo *undo);

/* Adds a case after the current one and forgets what had been taken back. When out of memory the current case is
 * replaced: the change is kept, only the way back is lost. */
void oc_undo_push(struct oc_undo *undo, const struct oc_case *next);

/* Moves back (-1) or forward (1); NULL when there is nothing there. */
const struct oc_case *oc_undo_move(struct oc_undo *undo, int direction);

#endif
