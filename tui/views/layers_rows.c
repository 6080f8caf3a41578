/* The rows of the layers view: which entries, in which order, under which headings. */
#include "tui/views/layers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct oc_entry *oc_layers_entry(const struct oc_layers_state *state, const struct oc_ledger *ledger, int index)
{
    return index < ledger->n_entries ? &ledger->entries[index] : &state->added[index - ledger->n_entries];
}

const char *oc_layers_name(const struct oc_entry *entry, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", entry->name, entry->copy ? ", " : "", entry->copy ? entry->copy : "");
    return text;
}

/* The layer part that an entry belongs to: "layers.attention", "embedding". */
static void write_part(const struct oc_entry *entry, char text[OC_LAYERS_PART])
{
    const char *dot = strchr(entry->name, '.');
    const bool layers = !strncmp(entry->name, "layers.", 7);
    if (layers && strchr(dot + 1, '.')) dot = strchr(dot + 1, '.'); /* layers.attention of layers.attention.qkv */
    const size_t size = dot ? (size_t)(dot - entry->name) : strlen(entry->name);
    snprintf(text, OC_LAYERS_PART, "%.*s", (int)size, entry->name);
}

/* ---- filter ---- */

static bool contains(const char *text, const char *part)
{
    const size_t size = strlen(part);
    for (; text && strlen(text) >= size; text++)
        if (!strncasecmp(text, part, size)) return true;
    return false;
}

/* Every word of the filter stands somewhere in what is known of the entry. */
static bool passes(const struct oc_entry *entry, const char *filter)
{
    char words[sizeof((struct oc_layers_state *)0)->filter];
    char *rest = words;
    snprintf(words, sizeof words, "%s", filter);
    while (*rest) {
        char *word = rest;
        rest += strcspn(rest, " ");
        while (*rest == ' ') *rest++ = '\0';
        if (*word && !contains(entry->name, word) && !contains(entry->copy, word) && !contains(entry->why, word) &&
            !contains(oc_class_name((enum oc_class)entry->class), word) &&
            !contains(oc_dtype_name((enum oc_dtype)entry->dtype), word))
            return false;
    }
    return true;
}

/* ---- order ---- */

/* An entry with all that it is sorted by. */
struct item {
    const struct oc_entry *entry;
    int index, group; /* in the list of groups */
    uint64_t bytes;
    enum oc_layers_sort sort;
};

struct group {
    char heading[OC_LAYERS_PART];
    int class, members, rank; /* rank: place in the order of groups */
    uint64_t bytes;
};

static int compare_names(const struct oc_entry *a, const struct oc_entry *b)
{
    const int name = strcmp(a->name, b->name);
    return name ? name : strcmp(a->copy ? a->copy : "", b->copy ? b->copy : "");
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->group != y->group) return x->group - y->group;
    if (x->sort == OC_SORT_NAME) {
        const int name = compare_names(x->entry, y->entry);
        if (name) return name;
    }
    if (x->sort == OC_SORT_CLASS && x->entry->class != y->entry->class)
        return (int)x->entry->class - (int)y->entry->class;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->index - y->index;
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->class >= 0 && x->class != y->class) return x->class - y->class;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->heading, y->heading);
}

/* ---- rows ---- */

static uint64_t bytes_of(const struct oc_layers_state *state, const struct oc_ledger *ledger, int index)
{
    return index < ledger->n_entries ? state->alive.bytes[index] : state->added[index - ledger->n_entries].bytes;
}

/* The group of an entry, added where it is new; the last one takes what finds no room. */
static int group_of(struct group *groups, int *n, const struct oc_entry *entry, enum oc_layers_group by)
{
    char heading[OC_LAYERS_PART] = "";
    if (by == OC_GROUP_PART) write_part(entry, heading);
    if (by == OC_GROUP_CLASS) snprintf(heading, sizeof heading, "%s", oc_class_name((enum oc_class)entry->class));
    for (int i = 0; i < *n; i++)
        if (!strcmp(groups[i].heading, heading)) return i;
    if (*n == OC_LAYERS_GROUPS) return *n - 1;
    struct group *group = &groups[(*n)++];
    *group = (struct group){.class = by == OC_GROUP_CLASS ? entry->class : -1};
    memcpy(group->heading, heading, sizeof heading);
    return *n - 1;
}

/* Chooses the entries that are shown. Returns how many. */
static int collect(struct oc_layers_state *state, const struct oc_ledger *ledger, struct item *items,
                   struct group *groups, int *n_groups)
{
    int n = 0;
    state->n_hidden = 0;
    state->bytes = 0;
    for (int i = 0; i < ledger->n_entries + 2; i++) {
        const struct oc_entry *entry = oc_layers_entry(state, ledger, i);
        const uint64_t bytes = bytes_of(state, ledger, i);
        if (i >= ledger->n_entries && !bytes) continue;
        if ((!bytes && !state->everything) || !passes(entry, state->filter)) {
            state->n_hidden++;
            continue;
        }
        const int group = group_of(groups, n_groups, entry, state->group);
        groups[group].members++;
        groups[group].bytes += bytes;
        state->bytes += bytes;
        items[n++] = (struct item){entry, i, group, bytes, state->sort};
    }
    return n;
}

/* Puts the groups in order, and tells the items. */
static void rank_groups(struct group *groups, int n_groups, struct item *items, int n)
{
    int place[OC_LAYERS_GROUPS];
    for (int i = 0; i < n_groups; i++) groups[i].rank = i;
    qsort(groups, (size_t)n_groups, sizeof *groups, compare_groups);
    for (int i = 0; i < n_groups; i++) place[groups[i].rank] = i;
    for (int i = 0; i < n; i++) items[i].group = place[items[i].group];
}

void oc_layers_make(struct oc_layers_state *state, const struct oc_ledger *ledger)
{
    struct item items[OC_MAX_ENTRIES + 2];
    struct group groups[OC_LAYERS_GROUPS];
    const int focused = state->started && state->focus < state->n_rows ? state->rows[state->focus].entry : -1;
    int n_groups = 0, n = collect(state, ledger, items, groups, &n_groups), group = -1;
    rank_groups(groups, n_groups, items, n);
    qsort(items, (size_t)n, sizeof *items, compare_items);
    state->n_entries = n;
    state->n_rows = 0;
    for (int i = 0; i < n; i++) {
        if (state->group != OC_GROUP_NONE && items[i].group != group) {
            const struct group *of = &groups[group = items[i].group];
            struct oc_layers_row *row = &state->rows[state->n_rows++];
            *row = (struct oc_layers_row){-1, "", of->class, of->members, of->bytes};
            memcpy(row->heading, of->heading, sizeof row->heading);
        }
        state->rows[state->n_rows++] = (struct oc_layers_row){.entry = items[i].index, .bytes = items[i].bytes};
    }
    int focus = 0;
    for (int i = 0; i < state->n_rows; i++)
        if (focused >= 0 && state->rows[i].entry == focused) focus = i;
    if (focused >= 0 || state->focus >= state->n_rows) state->focus = focus;
    state->started = true;
}
