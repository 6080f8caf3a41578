#include "tui/screen/keys.h"

#include <stdio.h>
#include <string.h>

static const struct oc_request_row rows[OC_REQUESTS] = {
#define OC_REQUEST(id, name, group, hint, rank, help, ...)                                                             \
    [OC_REQ_##id] = {name, group, hint, rank, help, {__VA_ARGS__}},
#include "tui/screen/keys.def"
#undef OC_REQUEST
};

static const struct {
    int key;
    const char *name;
} key_names[] = {
    {OC_KEY_TAB, "Tab"},       {OC_KEY_ENTER, "Enter"}, {OC_KEY_ESCAPE, "Esc"},   {OC_KEY_BACKSPACE, "Backspace"},
    {OC_KEY_UP, "Up"},         {OC_KEY_DOWN, "Down"},   {OC_KEY_LEFT, "Left"},    {OC_KEY_RIGHT, "Right"},
    {OC_KEY_HOME, "Home"},     {OC_KEY_END, "End"},     {OC_KEY_PAGE_UP, "PgUp"}, {OC_KEY_PAGE_DOWN, "PgDn"},
    {OC_KEY_DELETE, "Delete"}, {' ', "Space"},
};

enum { N_KEY_NAMES = sizeof key_names / sizeof key_names[0] };

const struct oc_request_row *oc_request_row(enum oc_request request)
{
    return &rows[request];
}

enum oc_request oc_request_of(int key)
{
    for (int i = 0; i < OC_REQUESTS; i++)
        for (int k = 0; k < OC_REQUEST_KEYS && rows[i].keys[k]; k++)
            if (rows[i].keys[k] == key) return (enum oc_request)i;
    return OC_REQUESTS;
}

const char *oc_key_name(int key, char text[16])
{
    for (int i = 0; i < N_KEY_NAMES; i++) {
        if (key_names[i].key == key) {
            snprintf(text, 16, "%s", key_names[i].name);
            return text;
        }
    }
    if (key > 0 && key < 32)
        snprintf(text, 16, "Ctrl-%c", key + 64);
    else
        snprintf(text, 16, "%c", key > 32 && key < 127 ? key : '?');
    return text;
}

int oc_key_find(const char *name)
{
    for (int i = 0; i < N_KEY_NAMES; i++)
        if (strcmp(key_names[i].name, name) == 0) return key_names[i].key;
    if (strncmp(name, "Ctrl-", 5) == 0 && name[5] >= 'A' && name[5] <= 'Z' && !name[6]) return OC_KEY_CTRL(name[5]);
    return OC_KEY_NONE;
}

const char *oc_request_keys(enum oc_request request, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < OC_REQUEST_KEYS && rows[request].keys[k]; k++) {
        char name[16];
        int n = snprintf(text + used, size - used, "%s%s", k ? " " : "", oc_key_name(rows[request].keys[k], name));
        if (n < 0 || (size_t)n >= size - used) break;
        used += (size_t)n;
    }
    return text;
}

/* Adds a hint, or only its key when the one before has the same word. */
static int add_hint(struct oc_hint_item *items, int n, enum oc_request request, const char *word)
{
    char name[16];
    oc_key_name(rows[request].keys[0], name);
    if (n > 0 && strcmp(items[n - 1].word, word) == 0) {
        size_t used = strlen(items[n - 1].keys);
        snprintf(items[n - 1].keys + used, sizeof items[0].keys - used, "%s", name);
        return n;
    }
    snprintf(items[n].keys, sizeof items[0].keys, "%s", name);
    items[n].word = word;
    return n + 1;
}

static bool is_listed(const struct oc_view_key *view, enum oc_request request)
{
    for (; view && view->request != OC_REQUESTS; view++)
        if (view->request == request) return true;
    return false;
}

/* The hints of rank `most` and below; returns their number and sets the columns they take. */
static int hints_up_to(int most, const struct oc_view_key *view, struct oc_hint_item *items, int *columns)
{
    int n = 0;
    for (const struct oc_view_key *key = view; key && key->request != OC_REQUESTS; key++)
        if (key->word[0]) n = add_hint(items, n, key->request, key->word);
    for (int i = 0; i < OC_REQUESTS; i++)
        if (rows[i].hint[0] && rows[i].rank <= most && !is_listed(view, (enum oc_request)i))
            n = add_hint(items, n, (enum oc_request)i, rows[i].hint);
    *columns = 0;
    for (int i = 0; i < n; i++) *columns += (i ? 2 : 0) + (int)strlen(items[i].keys) + 1 + (int)strlen(items[i].word);
    return n;
}

int oc_hint_row(int width, const struct oc_view_key *view, struct oc_hint_item items[OC_HINTS_MAX])
{
    int columns;
    for (int most = 9; most >= 0; most--) {
        int n = hints_up_to(most, view, items, &columns);
        if (columns <= width) return n;
    }
    return view ? oc_hint_row(width, NULL, items) : 0;
}
