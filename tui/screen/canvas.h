/* A grid of cells that everything is drawn on. Views write roles and text here and know no terminal; term.c shows a
 * canvas, tests and :save-screen write it to a file, picture.c makes an SVG of it.
 *
 * Every drawing function clips at the canvas and at the rectangle or limit it is given; none can write outside.
 *
 * Ownership: oc_canvas_resize() allocates the cells, oc_canvas_free() releases them. The theme is borrowed. */
#ifndef OOMCAST_CANVAS_H
#define OOMCAST_CANVAS_H

#include <stdio.h>

#include "tui/screen/theme.h"

struct oc_cell {
    uint32_t code; /* Unicode; 0 in the second half of a wide character */
    struct oc_style style;
};

struct oc_rect {
    int x, y, w, h;
};

enum { OC_CANVAS_MAX = 1000 }; /* columns, and rows, at most */

/* What was drawn in a place, for the mouse: which of its kind it is. */
enum oc_target_kind { OC_TARGET_VIEW, OC_TARGET_OPTION, OC_TARGET_ROW, OC_TARGET_KINDS };
struct oc_target {
    struct oc_rect rect;
    enum oc_target_kind kind;
    int index; /* of the view, of the panel's row, of the row of the view's list */
};
enum { OC_TARGETS = 256 };

struct oc_canvas {
    int width, height;
    struct oc_cell *cells; /* row by row */
    const struct oc_theme *theme;
    bool colour; /* false: only letters and attributes carry meaning */
    bool ascii;  /* true: only ASCII may be drawn */
    bool
        letters; /* fill every cell of a bar with its class's letter: no colour, or too few to tell all classes apart */
    int cursor_x, cursor_y; /* -1: hidden */
    struct oc_target targets[OC_TARGETS];
    int n_targets;
};

/* Makes the canvas so large (clamped to OC_CANVAS_MAX) and blank. False when out of memory: the canvas is then 0 x 0.
 */
bool oc_canvas_resize(struct oc_canvas *canvas, int width, int height);
void oc_canvas_free(struct oc_canvas *canvas);

/* Blanks everything, hides the cursor and forgets the targets. */
void oc_canvas_clear(struct oc_canvas *canvas);

/* The cell at a place, or NULL outside. */
struct oc_cell *oc_canvas_at(const struct oc_canvas *canvas, int x, int y);

/* The style of a role in this canvas's theme, without colours where there are none. */
struct oc_style oc_canvas_style(const struct oc_canvas *canvas, enum oc_role role);

/* Puts one character. In ASCII, the blocks and lines that this program uses become their nearest ASCII sign, others
 * '?'. */
void oc_canvas_put(struct oc_canvas *canvas, int x, int y, struct oc_style style, uint32_t code);

/* Writes UTF-8 text in at most `limit` columns; returns the columns used. Control characters and malformed bytes become
 * '?'; text that does not fit ends in '~'. */
int oc_canvas_text(struct oc_canvas *canvas, int x, int y, int limit, enum oc_role role, const char *text);

/* The same, printf-formatted, for at most 400 bytes. */
int oc_canvas_print(struct oc_canvas *canvas, int x, int y, int limit, enum oc_role role, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Writes text so that it ends just before column x + limit; the left part stays blank. Returns the column where it
 * starts. */
int oc_canvas_right(struct oc_canvas *canvas, int x, int y, int limit, enum oc_role role, const char *text);

/* Wraps text at spaces into the rectangle; returns the rows used (at most rect.h). The last row ends in '~' if text is
 * left. `skip` rows are left out at the top. With canvas NULL nothing is drawn, and the rows needed are counted without
 * limit. */
int oc_canvas_wrap(struct oc_canvas *canvas, struct oc_rect rect, int skip, enum oc_role role, const char *text);

/* Fills a rectangle with blanks of a role. */
void oc_canvas_fill(struct oc_canvas *canvas, struct oc_rect rect, enum oc_role role);

/* Adds a role's attributes and colours to the cells of a rectangle, keeping their characters. */
void oc_canvas_mark(struct oc_canvas *canvas, struct oc_rect rect, enum oc_role role);

/* Says what stands in a rectangle. Beyond OC_TARGETS it cannot be clicked. */
void oc_canvas_target(struct oc_canvas *canvas, struct oc_rect rect, enum oc_target_kind kind, int index);

/* Rules in the border's style. */
void oc_canvas_hline(struct oc_canvas *canvas, int x, int y, int width);
void oc_canvas_vline(struct oc_canvas *canvas, int x, int y, int height);

/* Columns that UTF-8 text takes. */
int oc_text_width(const char *text);

/* Reads one character of UTF-8, at most `size` bytes: its length, 0 at the end. Malformed bytes read as U+FFFD,
 * length 1. */
int oc_utf8_read(const char *text, size_t size, uint32_t *code);

/* Writes one character; returns its length (at most 4). */
int oc_utf8_write(uint32_t code, char text[5]);

/* Columns of one character: 0, 1 or 2. */
int oc_code_width(uint32_t code);

/* One row as text, without blanks at its end. */
void oc_canvas_write_row(const struct oc_canvas *canvas, int y, FILE *out);

/* The canvas as text: its rows, then a map of styles with its legend. Golden screens are these files. */
void oc_canvas_write(const struct oc_canvas *canvas, FILE *out);

/* The canvas as an SVG picture in the theme's colours; in picture.c. */
void oc_canvas_picture(const struct oc_canvas *canvas, FILE *out);

#endif
