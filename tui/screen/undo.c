#include "tui/screen/undo.h"

#include <stdlib.h>
#include <string.h>

bool oc_undo_start(struct oc_undo *undo, const struct oc_case *first)
{
    *undo = (struct oc_undo){.cases = malloc(16 * sizeof *undo->cases)};
    if (!undo->cases) return false;
    undo->cases[0] = *first;
    undo->n = 1;
    undo->room = 16;
    return true;
}

void oc_undo_free(struct oc_undo *undo)
{
    free(undo->cases);
    *undo = (struct oc_undo){0};
}

static bool make_room(struct oc_undo *undo)
{
    if (undo->n < undo->room) return true;
    if (undo->room >= OC_UNDO_MAX) {
        memmove(undo->cases, undo->cases + 1, (size_t)(undo->n - 1) * sizeof *undo->cases);
        undo->n--, undo->at--;
        return true;
    }
    int room = undo->room * 2 < OC_UNDO_MAX ? undo->room * 2 : OC_UNDO_MAX;
    struct oc_case *cases = realloc(undo->cases, (size_t)room * sizeof *cases);
    if (!cases) return false;
    undo->cases = cases;
    undo->room = room;
    return true;
}

void oc_undo_push(struct oc_undo *undo, const struct oc_case *next)
{
    undo->n = undo->at + 1;
    if (!make_room(undo)) {
        undo->cases[undo->at] = *next;
        return;
    }
    undo->cases[++undo->at] = *next;
    undo->n = undo->at + 1;
}

const struct oc_case *oc_undo_move(struct oc_undo *undo, int direction)
{
    int to = undo->at + direction;
    if (to < 0 || to >= undo->n) return NULL;
    undo->at = to;
    return &undo->cases[to];
}
