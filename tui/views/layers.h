/* What the parts of the layers view share: every entry of a ledger as rows that can be sorted, filtered and grouped.
 *
 * Ownership: a plain value, the view's state; entries are borrowed from the ledger that is passed in. */
#ifndef OOMCAST_LAYERS_H
#define OOMCAST_LAYERS_H

#include "model/base/alive.h"

enum oc_layers_sort { OC_SORT_SIZE, OC_SORT_CLASS, OC_SORT_NAME, OC_SORTS };
enum oc_layers_group { OC_GROUP_NONE, OC_GROUP_CLASS, OC_GROUP_PART, OC_GROUPS };

enum { OC_LAYERS_GROUPS = 64, OC_LAYERS_ROWS = OC_MAX_ENTRIES + 2 + OC_LAYERS_GROUPS, OC_LAYERS_PART = 40 };

/* One entry, or the heading of a group. */
struct oc_layers_row {
    int entry;                    /* index; -1 = a heading */
    char heading[OC_LAYERS_PART]; /* of a heading */
    int class;                    /* of a heading by class; -1 otherwise */
    int members;                  /* of a heading */
    uint64_t bytes;               /* alive */
};

struct oc_layers_state {
    uint64_t plan; /* hash that `alive` is of; 0 = none */
    int64_t stage;
    int moment; /* enum oc_moment of the steady iteration; OC_AT_PEAK = the highest */
    int of_moment;
    uint64_t of_bytes; /* allocated then: a replay that comes later adds to it */
    struct oc_alive alive;
    struct oc_entry added[2]; /* what the allocator adds: entries behind the ledger's own */

    enum oc_layers_sort sort;
    enum oc_layers_group group;
    bool everything; /* entries that are not alive then, too */
    char filter[48]; /* part of a name, a copy, a class or a reason; "" = none */
    struct oc_layers_row rows[OC_LAYERS_ROWS];
    int n_rows;
    int n_entries, n_hidden; /* that are shown, and that the filter or the moment leaves out */
    uint64_t bytes;          /* of those shown */
    int focus, top, shown;   /* rows */
    bool started, open;      /* the focus has been set; the entry is told in full */
};

/* An entry of the ledger, or one of those that the allocator adds. */
const struct oc_entry *oc_layers_entry(const struct oc_layers_state *state, const struct oc_ledger *ledger, int index);

/* Makes the rows again; the focus stays on its entry where that is still shown. */
void oc_layers_make(struct oc_layers_state *state, const struct oc_ledger *ledger);

/* "layers.mlp.fc1, main grads" into `text`; returns it. */
const char *oc_layers_name(const struct oc_entry *entry, char *text, size_t size);

/* Everything about the entry that has the focus, which must be one. */
void oc_layers_tell(const struct oc_layers_state *state, const struct oc_ledger *ledger, char *text, size_t size);

#endif
