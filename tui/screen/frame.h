/* What is sent to a terminal so that it shows another canvas: only what looks different, in the order that takes the
 * fewest bytes. Over a slow line most of a frame would be changes of colour, so cells of one style are sent together
 * wherever they stand, blanks keep the foreground of whatever came before, and long stretches of them are erased.
 *
 * Pure: it knows no terminal but by the codes that it is given. Ownership: the caller's buffer grows. */
#ifndef OOMCAST_FRAME_H
#define OOMCAST_FRAME_H

#include "tui/report/buffer.h"
#include "tui/screen/canvas.h"

enum { OC_CODE = 48 };

/* How a terminal is told things, as bytes without padding. */
struct oc_codes {
    bool ecma;      /* CSI with parameters: the cursor moves by columns, each attribute goes off by itself */
    bool down;      /* a line feed goes down one row, in the same column */
    bool erase;     /* CSI n X blanks n cells, and the cursor stays */
    bool erase_end; /* CSI K blanks the rest of the row */
    bool keeps;     /* what is erased has the current background, not the terminal's own */
    bool corner; /* the last column can be written without wrapping at once: the lower right corner does not scroll */
    int plain;   /* attributes that cannot be shown in colour, OC_ATTR_* */
    char normal[OC_CODE], bold[OC_CODE], reverse[OC_CODE], underline[OC_CODE];
    char fg[OC_MAX_COLOURS][OC_CODE], bg[OC_MAX_COLOURS][OC_CODE]; /* "": has none; [0] is not used */
    int (*move)(int x, int y, char *text, size_t size);            /* the cursor to a place; returns the bytes */
};

/* Appends what makes a terminal that shows `from` show `to`, which has the same size. Before and after, its style is
 * the normal one; where the cursor is, is not known. Nothing when both look the same. */
void oc_frame_write(const struct oc_codes *codes, const struct oc_canvas *from, const struct oc_canvas *to,
                    struct oc_buffer *out);

#endif
