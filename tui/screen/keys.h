/* Keys, and the requests they make. Both are rows of keys.def. */
#ifndef OOMCAST_KEYS_H
#define OOMCAST_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* A key is a Unicode character, or one of these. */
enum oc_key {
    OC_KEY_NONE = -1, /* nothing is waiting */
    OC_KEY_TAB = 9,
    OC_KEY_ENTER = 13,
    OC_KEY_ESCAPE = 27,
    OC_KEY_BACKSPACE = 127,
    OC_KEY_UP = 0x110000,
    OC_KEY_DOWN,
    OC_KEY_LEFT,
    OC_KEY_RIGHT,
    OC_KEY_HOME,
    OC_KEY_END,
    OC_KEY_PAGE_UP,
    OC_KEY_PAGE_DOWN,
    OC_KEY_DELETE,
    OC_KEY_RESIZE, /* the terminal has another size */
    OC_KEY_MOUSE,  /* the mouse did something: oc_term_mouse() says what */
    OC_KEY_OTHER   /* a key this program has no use for */
};

#define OC_KEY_CTRL(letter) ((letter)&0x1f)

enum oc_request {
#define OC_REQUEST(id, ...) OC_REQ_##id,
#include "tui/screen/keys.def"
#undef OC_REQUEST
    OC_REQUESTS
};

enum { OC_REQUEST_KEYS = 4 };

struct oc_request_row {
    const char *name, *group, *hint;
    int rank;
    const char *help;
    int keys[OC_REQUEST_KEYS]; /* ended by 0 when fewer */
};

const struct oc_request_row *oc_request_row(enum oc_request request);

/* The request that a key makes; OC_REQUESTS when none. */
enum oc_request oc_request_of(int key);

/* "j", "Down", "Ctrl-R", "Space" into `text`; returns it. */
const char *oc_key_name(int key, char text[16]);

/* The key of a name in a script, "Enter", "Up", "Ctrl-R", "Space"; OC_KEY_NONE when there is none. */
int oc_key_find(const char *name);

/* All keys of a request, "j Down", into `text`; returns it. */
const char *oc_request_keys(enum oc_request request, char *text, size_t size);

/* One item of the hint row: its keys, "jk", and its word, "move". */
struct oc_hint_item {
    char keys[24];
    const char *word;
};

/* What a request means in a view: a row of the help overlay, and of the hint row when `word` is not "". Rows that
 * follow each other with the same word share it. A list of them ends with a row of OC_REQUESTS. */
struct oc_view_key {
    enum oc_request request;
    const char *word, *help;
};

enum { OC_HINTS_MAX = 2 * OC_REQUESTS };

/* Picks the hints that fit in `width` columns, two blanks between them; returns how many. A view's own come first and
 * stand for what their keys mean elsewhere; `view` is NULL where it has none. */
int oc_hint_row(int width, const struct oc_view_key *view, struct oc_hint_item items[OC_HINTS_MAX]);

#endif
