/* The terminal. term.c and term_type.c alone include curses; what is shown is a canvas.
 *
 * Ownership: oc_term_open() allocates and changes the terminal; oc_term_close() gives it back as it was. There can be
 * one at a time, because there is one terminal. */
#ifndef OOMCAST_TERM_H
#define OOMCAST_TERM_H

#include <signal.h>

#include "tui/screen/canvas.h"
#include "tui/screen/keys.h"
#include "tui/screen/mouse.h"

/* How many colours: what the terminal has, none, or so many. */
enum oc_depth {
    OC_DEPTH_AUTO = 0,
    OC_DEPTH_NONE = 1,
    OC_DEPTH_8 = 8,
    OC_DEPTH_16 = 16,
    OC_DEPTH_256 = 256,
    OC_DEPTH_RGB = 1 << 24
};

struct oc_term; /* opaque */

/* Takes over the terminal of standard output; keys come from standard input, or from /dev/tty where that is no
 * terminal. `depth` may ask for fewer colours than the terminal has; OC_DEPTH_AUTO takes what it has, and none under
 * NO_COLOR; with `mouse` clicks and the wheel are keys, too, where the terminal has one; OC_DEPTH_RGB looks for a
 * description of the terminal that has all colours, such as xterm-direct. NULL with the reason when no terminal type
 * that can be used is found. */
struct oc_term *oc_term_open(enum oc_depth depth, bool ascii, bool mouse, struct oc_error *error);
void oc_term_close(struct oc_term *term);

int oc_term_width(const struct oc_term *term);
int oc_term_height(const struct oc_term *term);

/* Sets what the canvas may use: colour, letters, ASCII. */
void oc_term_describe(const struct oc_term *term, struct oc_canvas *canvas);

/* Shows the canvas: what differs from the last one is sent (frame.h), nothing when nothing does. */
void oc_term_show(struct oc_term *term, const struct oc_canvas *canvas);

/* The next oc_term_show() sends everything again, for a screen that others have written on. */
void oc_term_repaint(struct oc_term *term);

/* The next key, or OC_KEY_NONE; never waits. OC_KEY_RESIZE: the size has changed. */
int oc_term_key(struct oc_term *term);

/* What the mouse did, after OC_KEY_MOUSE. */
struct oc_mouse oc_term_mouse(const struct oc_term *term);

/* Waits until a key, one of the descriptors (-1 are left out), a signal, or `timeout` milliseconds (-1 = for ever). */
void oc_term_wait(struct oc_term *term, const int *fds, int n, int timeout);

/* The signal that asked the program to end (HUP, INT, QUIT, TERM), or 0. A terminal that is gone counts as HUP. */
int oc_term_signal(const struct oc_term *term);

#endif
