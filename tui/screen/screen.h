/* The interactive screen: the loop around app.c, on a terminal or without one. */
#ifndef OOMCAST_SCREEN_H
#define OOMCAST_SCREEN_H

#include "oomcast/case.h"
#include "tui/screen/term.h"

struct oc_screen_options {
    const char *theme;      /* a name or a path, as oc_theme_open() takes it; NULL = the default */
    enum oc_depth depth;    /* colours */
    bool ascii;             /* only ASCII is drawn */
    bool no_live;           /* the probe runs only on p */
    bool no_mouse;          /* the mouse stays the terminal's */
    bool no_display;        /* no terminal is touched: a script draws on a canvas of $COLUMNS x $LINES, or 80 x 24 */
    const char *script;     /* a file of keys and commands to begin with; NULL = none */
    int lesson;             /* number of the lesson to begin with, from 1; 0 = none */
    const char *executable; /* this program, for the probe's child; NULL = /proc/self/exe */
};

/* Runs until the user leaves. Returns 0, or 128 + the number of the signal that ended it; 2 with `error` filled when it
 * could not start or its script failed. `input` is not changed. */
int oc_screen_run(const struct oc_input *input, const struct oc_screen_options *options, struct oc_error *error);

/* Reads "auto", "never", "8", "16", "256" or "rgb". */
bool oc_depth_find(const char *name, enum oc_depth *depth);

#endif
