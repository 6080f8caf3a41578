/* Which description of the terminal is used, and how many colours it has. Internal to term.c. */
#ifndef OOMCAST_TERM_TYPE_H
#define OOMCAST_TERM_TYPE_H

#include <stddef.h>

#include "tui/screen/term.h"

/* $TERM when it is known here, else the nearest type that this machine has: servers often lack the newest terminals.
 * NULL when it has none that can move the cursor. */
const char *oc_term_type(void);

/* The description of the same terminal that takes colours as they are, "xterm-direct" for "xterm-256color"; NULL when
 * this machine has none. May lie in `text`. */
const char *oc_term_type_direct(char *text, size_t size);

/* What is asked for, but no more than the terminal whose description is loaded has; none under NO_COLOR. */
enum oc_depth oc_term_depth(enum oc_depth asked);

#endif
