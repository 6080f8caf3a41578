/* Files that travel inside the program: tui/CMakeLists.txt makes a table of each folder of them.
 *
 * Ownership: const, for ever. */
#ifndef OOMCAST_EMBEDDED_H
#define OOMCAST_EMBEDDED_H

#include <stddef.h>

struct oc_embedded {
    const char *name; /* of the file, without its extension; NULL ends a table */
    const unsigned char *bytes;
    const size_t *size;
};

/* In the order of their names. */
extern const struct oc_embedded oc_embedded_themes[], oc_embedded_lessons[];

/* The built-in theme of that name, or NULL. */
const struct oc_embedded *oc_theme_builtin(const char *name);

#endif
