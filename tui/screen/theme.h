/* Themes: what each meaning on the screen looks like. A theme is JSON (themes/NAME.json); themes/default.json is built
 * in, and another theme states only what differs from it.
 *
 * Ownership: a theme is a plain value, copied by assignment. */
#ifndef OOMCAST_THEME_H
#define OOMCAST_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomcast/error.h"
#include "oomcast/ledger.h"

/* Meanings, as themes name them under "ui". Code draws with these and never with a colour. */
#define OC_ROLE_TABLE(ROLE)                                                                                            \
    ROLE(TEXT, "text")                                                                                                 \
    ROLE(DIM, "dim")                                                                                                   \
    ROLE(HEADER, "header")                                                                                             \
    ROLE(TITLE, "title")                                                                                               \
    ROLE(SECTION, "section")                                                                                           \
    ROLE(FOCUS, "focus")                                                                                               \
    ROLE(FOCUS_OUT, "focus.out")                                                                                       \
    ROLE(CHANGED, "changed")                                                                                           \
    ROLE(ASSUMED, "assumed")                                                                                           \
    ROLE(DISABLED, "disabled")                                                                                         \
    ROLE(BORDER, "border")                                                                                             \
    ROLE(CAPACITY, "capacity")                                                                                         \
    ROLE(OK, "ok")                                                                                                     \
    ROLE(WARN, "warn")                                                                                                 \
    ROLE(BAD, "bad")                                                                                                   \
    ROLE(STALE, "stale")                                                                                               \
    ROLE(HINT, "hint")                                                                                                 \
    ROLE(HINT_KEY, "hint.key")                                                                                         \
    ROLE(DELTA_UP, "delta.up")                                                                                         \
    ROLE(DELTA_DOWN, "delta.down")                                                                                     \
    ROLE(PROMPT, "prompt")

enum oc_role {
#define OC_ROLE_ENUM(id, name) OC_ROLE_##id,
    OC_ROLE_TABLE(OC_ROLE_ENUM)
#undef OC_ROLE_ENUM
        OC_ROLES
};

enum { OC_ATTR_BOLD = 1, OC_ATTR_REVERSE = 2, OC_ATTR_UNDERLINE = 4 };

/* How a cell is painted. Colours are indices in the theme; 0 is the terminal's own. */
struct oc_style {
    uint8_t fg, bg, attr;
};

enum { OC_MAX_COLOURS = 32 };

/* One colour, stated for each depth a terminal may have: computing one from another loses the distances between
 * classes. */
struct oc_colour {
    char name[24];
    uint8_t red, green, blue;
    uint8_t xterm; /* of 256 */
    uint8_t ansi;  /* of 8 */
};

struct oc_class_look {
    uint8_t colour; /* index in colours: the fill */
    uint8_t text;   /* index in colours: what is readable on it */
    char letter;    /* colour is never alone */
};

struct oc_theme {
    char name[32];
    bool light; /* it is made for a light background; pictures have one */
    bool mono;  /* nothing is told by colour, whatever the terminal has */
    struct oc_colour colours[OC_MAX_COLOURS];
    int n_colours;
    struct oc_class_look classes[OC_CLASSES];
    struct oc_style roles[OC_ROLES];
};

/* The theme that the others state their differences from. */
bool oc_theme_default(struct oc_theme *theme, struct oc_error *error);

/* A theme by its name: the user's own ($XDG_CONFIG_HOME/oomcast/themes/NAME.json, or ~/.config), or one that is built
 * in; or by the path of its file. NULL is the default. On failure `theme` is unchanged and the error says why. */
bool oc_theme_open(struct oc_theme *theme, const char *name, struct oc_error *error);

/* Names that oc_theme_open() knows, the built-in ones first, each in at most `size` bytes; returns how many. */
int oc_theme_names(char (*names)[256], int most);

/* The folder of the user's themes; false when neither $XDG_CONFIG_HOME nor $HOME is set. */
bool oc_theme_folder(char *path, size_t size);

/* The path of the user's own theme of that name; false when there is none. */
bool oc_theme_users(const char *name, char *path, size_t size);

/* Reads a theme file over the default. */
bool oc_theme_load(struct oc_theme *theme, const char *path, struct oc_error *error);

/* The same for text in memory, over what `theme` holds; `file` is what errors call it. A role with a dot in its name
 * that the text does not state looks like the role before the dot, when it states that. */
bool oc_theme_parse(struct oc_theme *theme, const char *file, const char *text, size_t size, struct oc_error *error);

/* "#rrggbb" of a colour index, or NULL for the terminal's own; writes into `text`. */
const char *oc_theme_rgb(const struct oc_theme *theme, int colour, char text[8]);

#endif
