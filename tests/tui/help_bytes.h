/* The screen on a pseudo-terminal of this very process, to count what each frame sends without waiting for silence. */
#ifndef OOMCAST_HELP_BYTES_H
#define OOMCAST_HELP_BYTES_H

#include "tui/screen/app.h"

enum { OC_SENT_TEXT = 96 };

/* Where the program's standard output goes while it is open, and who reads it. */
struct help_bytes {
    int master, out, in; /* the terminal, and what standard output and input were */
    struct oc_term *term;
    struct oc_theme theme;
    struct oc_canvas canvas;
    char *log; /* what the last frame sent, NUL at its end; NULL = it is only counted */
    struct oc_reader *reader;
};

/* Takes standard input and output for a terminal of `width` x `height` that has 256 colours, until help_bytes_close().
 * Print to help_bytes_out() meanwhile. False when there is none to be had. */
bool help_bytes_open(struct help_bytes *bytes, int width, int height);
void help_bytes_close(struct help_bytes *bytes);

/* Draws and shows the state: the bytes that took. */
long help_bytes_show(struct help_bytes *bytes, struct oc_app *app);

/* The same for a key and everything that follows from it without a child: the frame, the replay of the other stages
 * and the frame after that. */
long help_bytes_key(struct help_bytes *bytes, struct oc_app *app, int key);

/* One change of a value, and what it sent. */
struct help_change {
    enum oc_option_id option;
    char from[OC_SENT_TEXT], to[OC_SENT_TEXT];
    long bytes;
    bool reworded; /* a row of the view came, went or has other words: more than numbers and bars differ */
};

/* Walks the option that has the focus through all values that it can take from here, `l` to the last one and `h` to
 * the first, at most `most` keys each way, and back to where it was; `seen` is told each. */
void help_bytes_walk(struct help_bytes *bytes, struct oc_app *app, enum oc_option_id option, int most,
                     void (*seen)(const struct help_change *change, void *user), void *user);

#endif
