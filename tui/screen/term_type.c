#include "tui/screen/term_type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

static bool can_use(const char *name)
{
    int status;
    if (setupterm((char *)name, STDOUT_FILENO, &status) != OK) return false;
    const char *cup = tigetstr((char *)"cup"), *clear_screen_code = tigetstr((char *)"clear");
    bool good = cup && cup != (char *)-1 && clear_screen_code && clear_screen_code != (char *)-1;
    del_curterm(cur_term);
    return good;
}

const char *oc_term_type(void)
{
    static const char *const fallbacks[] = {"xterm-256color", "xterm", "vt100", "ansi"};
    const char *name = getenv("TERM"), *colour = getenv("COLORTERM");
    if (name && name[0] && can_use(name)) return name;
    bool modern = (name && strncmp(name, "xterm", 5) == 0) || (colour && colour[0]);
    for (size_t i = modern ? 0 : 1; i < sizeof fallbacks / sizeof fallbacks[0]; i++)
        if (can_use(fallbacks[i])) return fallbacks[i];
    return NULL;
}

const char *oc_term_type_direct(char *text, size_t size)
{
    const char *name = getenv("TERM");
    if (!name) return NULL;
    snprintf(text, size, "%.*s-direct", (int)strcspn(name, "-"), name);
    if (can_use(text)) return text;
    return can_use("xterm-direct") ? "xterm-direct" : NULL;
}

enum oc_depth oc_term_depth(enum oc_depth asked)
{
    const char *no_color = getenv("NO_COLOR");
    int colours = tigetnum((char *)"colors");
    if (asked == OC_DEPTH_NONE || (asked == OC_DEPTH_AUTO && no_color && no_color[0])) return OC_DEPTH_NONE;
    enum oc_depth has = colours > 65536  ? OC_DEPTH_RGB
                        : colours >= 256 ? OC_DEPTH_256
                        : colours >= 16  ? OC_DEPTH_16
                        : colours >= 8   ? OC_DEPTH_8
                                         : OC_DEPTH_NONE;
    if (asked == OC_DEPTH_AUTO && has == OC_DEPTH_RGB) return OC_DEPTH_RGB; /* TERM asks for it */
    return asked == OC_DEPTH_AUTO || has < asked ? has : asked;
}
