/* A one-line editor. Ownership: a plain value. */
#ifndef OOMCAST_PROMPT_H
#define OOMCAST_PROMPT_H

#include "tui/screen/canvas.h"

enum { OC_PROMPT_MAX = 256 };

struct oc_prompt {
    char text[OC_PROMPT_MAX]; /* UTF-8 */
    int at;                   /* byte before which the cursor stands, always at the start of a character */
};

enum oc_prompt_result { OC_PROMPT_OPEN, OC_PROMPT_DONE, OC_PROMPT_CANCELLED };

/* Starts with `text`, the cursor at its end. */
void oc_prompt_start(struct oc_prompt *prompt, const char *text);

/* Takes one key: characters are inserted; Left, Right, Home, End, Backspace, Delete, Ctrl-U and Ctrl-W edit; Enter and
 * Esc end. */
enum oc_prompt_result oc_prompt_key(struct oc_prompt *prompt, int key);

/* Draws "label: text", or ":text" without a label, with the cursor, scrolled so that the cursor is visible. */
void oc_prompt_draw(const struct oc_prompt *prompt, struct oc_canvas *canvas, int x, int y, int width,
                    const char *label);

#endif
