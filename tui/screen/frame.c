#include "tui/screen/frame.h"

#include <stdlib.h>
#include <string.h>

enum {
    GAP = 4,        /* unchanged cells that are cheaper to write again than to jump over */
    NEAR = 256,     /* runs that are looked through for the nearest, so that a frame of noise stays quick */
    LOOKED_AT = 64, /* styles that are weighed against each other */
    ERASED = 11,    /* blanks from which erasing them and moving on is shorter */
    SEQUENCE = 160, /* bytes of one change of style, or one move */
    SHOWN = OC_ATTR_REVERSE | OC_ATTR_UNDERLINE /* attributes that show on a blank */
};

/* Cells of one row that are written in one go. */
struct run {
    int x, y, n;
    struct oc_style style;
    bool blank; /* nothing but blanks: only the background matters */
    bool sent;
    int next; /* the next of its kind; -1 = none */
};

/* Runs that look alike, in reading order. */
struct kind {
    struct oc_style style;
    bool blank;
    int first, last; /* the first that is not sent; -1 = all are */
};

struct frame {
    const struct oc_codes *codes;
    const struct oc_canvas *to;
    struct oc_buffer *out;
    struct run *runs;
    int n_runs, first; /* the first that is not sent */
    struct kind kinds[LOOKED_AT];
    int n_kinds;
    struct oc_style pen;
    int x, y; /* the cursor; -1 = not known */
};

/* ---- what looks different ---- */

static bool is_blank(const struct oc_cell *cell)
{
    return cell->code == ' ' && !(cell->style.attr & SHOWN);
}

static bool same_style(struct oc_style a, struct oc_style b)
{
    return a.fg == b.fg && a.bg == b.bg && a.attr == b.attr;
}

static bool looks_same(const struct oc_cell *a, const struct oc_cell *b)
{
    if (is_blank(a) && is_blank(b)) return a->style.bg == b->style.bg;
    return a->code == b->code && same_style(a->style, b->style);
}

/* Whether cells of this look can be written with that style. */
static bool goes_with(bool blank, struct oc_style style, struct oc_style pen)
{
    return blank ? style.bg == pen.bg && !(pen.attr & SHOWN) : same_style(style, pen);
}

/* Takes a cell into a run, which may have been blank so far; false when it looks otherwise. */
static bool extend(struct run *run, const struct oc_cell *cell)
{
    bool blank = is_blank(cell);
    if (run->blank && !blank) {
        if (!goes_with(true, run->style, cell->style)) return false;
        run->blank = false;
        run->style = cell->style;
        return true;
    }
    return goes_with(blank, cell->style, run->style);
}

/* Whether an unchanged cell can be written again as part of a run. */
static bool goes_on(const struct run *run, const struct oc_cell *cell)
{
    return (is_blank(cell) || !run->blank) && goes_with(is_blank(cell), cell->style, run->style);
}

/* Whether blanks of this background are erased rather than written. */
static bool can_erase(const struct oc_codes *codes, int bg)
{
    return codes->erase && (codes->keeps || !bg);
}

/* The runs of one row. A run goes on over a few unchanged cells of its style; between changed blanks over any number of
 * them, where one erasure costs less than two with a move between them. */
static void find_runs(struct frame *frame, const struct oc_canvas *from, int y)
{
    struct run *run = NULL;
    int changed = 0, blanks = 0; /* columns of the run up to its last changed cell; blanks that it ends in */
    for (int x = 0; x < frame->to->width; x++) {
        const struct oc_cell *cell = oc_canvas_at(frame->to, x, y);
        const bool blank = is_blank(cell);
        bool same = looks_same(cell, oc_canvas_at(from, x, y));
        if (y == frame->to->height - 1 && x == frame->to->width - 1 && !frame->codes->corner) same = true;
        if (cell->code == 0) { /* its first half was written or stays */
            if (run) run->n++;
            if (run && changed == run->n - 1) changed = run->n;
            continue;
        }
        const bool near = run && (run->n - changed < GAP ||
                                  (blank && blanks > run->n - changed && can_erase(frame->codes, cell->style.bg)));
        if (run && !(near && (same ? goes_on(run, cell) : extend(run, cell)))) run->n = changed, run = NULL;
        if (same && !run) continue;
        if (!run) {
            run = &frame->runs[frame->n_runs++];
            *run = (struct run){x, y, 0, cell->style, blank, false, -1};
            changed = blanks = 0;
        }
        run->n++;
        blanks = blank ? blanks + 1 : 0;
        if (!same) changed = run->n;
    }
    if (run) run->n = changed;
}

static void sort_runs(struct frame *frame)
{
    for (int i = 0; i < frame->n_runs; i++) {
        struct run *run = &frame->runs[i];
        int k = 0;
        for (; k < frame->n_kinds; k++) {
            const struct kind *kind = &frame->kinds[k];
            if (run->blank == kind->blank &&
                (run->blank ? run->style.bg == kind->style.bg : same_style(run->style, kind->style)))
                break;
        }
        if (k == LOOKED_AT) continue; /* of too many: such a run is sent in its turn */
        if (k == frame->n_kinds) frame->kinds[frame->n_kinds++] = (struct kind){run->style, run->blank, i, i};
        frame->runs[frame->kinds[k].last].next = i;
        frame->kinds[k].last = i;
        run->next = -1;
    }
}

/* ---- what it costs ---- */

/* One more parameter of the sequence in `text`, or one more sequence. */
static int add_code(const struct oc_codes *codes, char *text, int used, const char *code)
{
    size_t length = strlen(code);
    if (!length || used + (int)length + 1 >= SEQUENCE) return used;
    if (codes->ecma && used > 0 && text[used - 1] == 'm' && length > 2 && code[1] == '[') {
        text[used - 1] = ';';
        memcpy(text + used, code + 2, length - 2);
        return used + (int)length - 2;
    }
    memcpy(text + used, code, length);
    return used + (int)length;
}

static int add_attributes(const struct oc_codes *codes, char *text, int used, int on)
{
    if (on & OC_ATTR_BOLD) used = add_code(codes, text, used, codes->bold);
    if (on & OC_ATTR_UNDERLINE) used = add_code(codes, text, used, codes->underline);
    if (on & OC_ATTR_REVERSE) used = add_code(codes, text, used, codes->reverse);
    return used;
}

static int add_colours(const struct oc_codes *codes, char *text, int used, const struct oc_style *now,
                       struct oc_style style)
{
    if (style.fg != now->fg) used = add_code(codes, text, used, style.fg ? codes->fg[style.fg] : "\033[39m");
    if (style.bg != now->bg) used = add_code(codes, text, used, style.bg ? codes->bg[style.bg] : "\033[49m");
    return used;
}

/* The shorter of going on from the current style and starting from the normal one. */
static int change_style(const struct oc_codes *codes, struct oc_style now, struct oc_style style, char *text)
{
    static const struct oc_style normal = {0, 0, 0};
    if (same_style(now, style)) return 0;
    char other[SEQUENCE];
    int anew = add_code(codes, text, 0, codes->normal);
    anew = add_attributes(codes, text, anew, style.attr);
    anew = add_colours(codes, text, anew, &normal, style);
    if (!codes->ecma && ((now.fg && !style.fg) || (now.bg && !style.bg) || (now.attr & ~style.attr))) return anew;
    int used = 0, off = now.attr & ~style.attr;
    if (off & OC_ATTR_BOLD) used = add_code(codes, other, used, "\033[22m");
    if (off & OC_ATTR_UNDERLINE) used = add_code(codes, other, used, "\033[24m");
    if (off & OC_ATTR_REVERSE) used = add_code(codes, other, used, "\033[27m");
    used = add_attributes(codes, other, used, style.attr & ~now.attr);
    used = add_colours(codes, other, used, &now, style);
    if (used >= anew) return anew;
    memcpy(text, other, (size_t)used);
    return used;
}

/* The style to write a run with, given the one that is current: of blanks only the background matters. */
static struct oc_style style_for(const struct frame *frame, bool blank, struct oc_style style)
{
    struct oc_style pen = frame->pen;
    if (!blank && (style.fg || style.bg)) style.attr &= (uint8_t)~frame->codes->plain;
    if (!blank) return style;
    if (goes_with(true, style, pen)) return pen;
    if (!style.bg) return (struct oc_style){0, 0, 0}; /* the shortest to say */
    pen.bg = style.bg;
    pen.attr &= (uint8_t)~SHOWN;
    return pen;
}

static int digits(int n)
{
    return n < 10 ? 1 : n < 100 ? 2 : n < 1000 ? 3 : 4;
}

/* Bytes of "CSI n C" or, one step, "CSI C". */
static int step_cost(int n)
{
    return n == 0 ? 0 : n == 1 ? 3 : 3 + digits(n);
}

enum { BACKED = 3, FED = 3 }; /* steps back, and down, that are shorter as backspaces and line feeds */

/* Bytes of the way by rows and columns from where the cursor is, as write_steps() writes it. */
static int steps_cost(const struct frame *frame, int x, int y)
{
    const int right = x - frame->x, down = y - frame->y;
    const int vertical = down < 0 ? step_cost(-down) : frame->codes->down && down <= FED ? down : step_cost(down);
    if (right < 0 && x == 0) return vertical + 1;
    return vertical + (right < 0 && -right <= BACKED ? -right : step_cost(right < 0 ? -right : right));
}

static int step(char *text, int used, int n, char way)
{
    if (n == 0) return used;
    if (n > 1) return used + snprintf(text + used, (size_t)(SEQUENCE - used), "\033[%d%c", n, way);
    return used + snprintf(text + used, (size_t)(SEQUENCE - used), "\033[%c", way);
}

static int write_steps(const struct frame *frame, int x, int y, char *text)
{
    const int right = x - frame->x, down = y - frame->y;
    int used = 0;
    if (down > 0 && frame->codes->down && down <= FED)
        while (used < down) text[used++] = '\n';
    else
        used = step(text, used, down < 0 ? -down : down, down < 0 ? 'A' : 'B');
    if (right < 0 && x == 0)
        text[used++] = '\r';
    else if (right < 0 && -right <= BACKED)
        for (int i = right; i < 0; i++) text[used++] = '\b';
    else
        used = step(text, used, right < 0 ? -right : right, right < 0 ? 'D' : 'C');
    return used;
}

/* Bytes of the shortest way to a place. */
static int move_cost(const struct frame *frame, int x, int y)
{
    char text[SEQUENCE];
    if (!frame->codes->ecma) return frame->x == x && frame->y == y ? 0 : frame->codes->move(x, y, text, sizeof text);
    const int whole = 4 + digits(x + 1) + digits(y + 1), steps = frame->x < 0 ? whole : steps_cost(frame, x, y);
    return steps < whole ? steps : whole;
}

static int move_to(const struct frame *frame, int x, int y, char *text)
{
    if (frame->x == x && frame->y == y) return 0;
    const int whole = frame->codes->move(x, y, text, SEQUENCE);
    if (frame->x < 0 || !frame->codes->ecma || steps_cost(frame, x, y) >= whole) return whole;
    return write_steps(frame, x, y, text);
}

/* ---- sending ---- */

static void put_blanks(struct frame *frame, const struct run *run, int x, int n)
{
    const struct oc_codes *codes = frame->codes;
    bool fills = codes->keeps || !frame->pen.bg, last = x + n == run->x + run->n;
    if (fills && codes->erase_end && n > 3 && x + n == frame->to->width) {
        oc_put(frame->out, "\033[K");
        return;
    }
    if (can_erase(codes, frame->pen.bg) && n >= (last ? 6 : ERASED)) {
        oc_putf(frame->out, "\033[%dX", n);
        if (!last) oc_putf(frame->out, "\033[%dC", n);
        return;
    }
    for (int i = 0; i < n; i++) oc_put_bytes(frame->out, " ", 1);
    frame->x = x + n;
}

static void put_cells(struct frame *frame, const struct run *run)
{
    for (int i = 0; i < run->n;) {
        const struct oc_cell *cell = oc_canvas_at(frame->to, run->x + i, run->y);
        int blanks = 0;
        while (i + blanks < run->n && is_blank(&cell[blanks])) blanks++;
        if (blanks) {
            put_blanks(frame, run, run->x + i, blanks);
            i += blanks;
            continue;
        }
        char text[5];
        if (cell->code) oc_put_bytes(frame->out, text, (size_t)oc_utf8_write(cell->code, text));
        frame->x = run->x + ++i;
    }
}

static void send(struct frame *frame, int index)
{
    struct run *run = &frame->runs[index];
    char text[SEQUENCE];
    oc_put_bytes(frame->out, text, (size_t)move_to(frame, run->x, run->y, text));
    struct oc_style style = style_for(frame, run->blank, run->style);
    oc_put_bytes(frame->out, text, (size_t)change_style(frame->codes, frame->pen, style, text));
    frame->pen = style;
    frame->x = run->x, frame->y = run->y;
    put_cells(frame, run);
    if (frame->x >= frame->to->width) frame->x = -1; /* terminals differ in where the cursor is now */
    run->sent = true;
    while (frame->first < frame->n_runs && frame->runs[frame->first].sent) frame->first++;
    for (int k = 0; k < frame->n_kinds; k++)
        while (frame->kinds[k].first >= 0 && frame->runs[frame->kinds[k].first].sent)
            frame->kinds[k].first = frame->runs[frame->kinds[k].first].next;
}

/* Bytes of a change of style and a move; and, when runs of the current style are left, of coming back to it. */
static int cost_of(const struct frame *frame, int index, bool left, int back)
{
    const struct run *run = &frame->runs[index];
    char text[SEQUENCE];
    int change = change_style(frame->codes, frame->pen, style_for(frame, run->blank, run->style), text);
    return change + move_cost(frame, run->x, run->y) + (change && left ? back : 0);
}

/* The run of the current style that is the shortest way off; -1 when none is left. The border of a class in a chart
 * goes up and down from column to column: it is followed, not read row by row. */
static int nearest(const struct frame *frame, int *least)
{
    int best = -1;
    for (int k = 0; k < frame->n_kinds; k++) {
        const struct kind *kind = &frame->kinds[k];
        if (!goes_with(kind->blank, kind->style, frame->pen)) continue;
        for (int i = kind->first, seen = 0; i >= 0 && seen < NEAR; i = frame->runs[i].next) {
            if (frame->runs[i].sent) continue;
            seen++;
            const int cost = move_cost(frame, frame->runs[i].x, frame->runs[i].y);
            if (best >= 0 && cost >= *least) continue;
            best = i;
            *least = cost;
        }
    }
    return best;
}

/* The run that is cheapest to send now. */
static int choose(const struct frame *frame)
{
    char text[SEQUENCE];
    static const struct oc_style normal = {0, 0, 0};
    bool left = false;
    int least = 0, best = nearest(frame, &least);
    if (best >= 0 && least <= 3) return best; /* no change of style is shorter */
    for (int k = 0; k < frame->n_kinds; k++)
        left |= frame->kinds[k].first >= 0 && !frame->kinds[k].blank && same_style(frame->kinds[k].style, frame->pen);
    int back = change_style(frame->codes, normal, frame->pen, text);
    if (best < 0) best = frame->first, least = cost_of(frame, best, left, back);
    for (int k = 0; k < frame->n_kinds; k++) {
        int index = frame->kinds[k].first;
        if (index < 0 || index == best) continue;
        int cost = cost_of(frame, index, left, back);
        if (cost < least) best = index, least = cost;
    }
    return best;
}

void oc_frame_write(const struct oc_codes *codes, const struct oc_canvas *from, const struct oc_canvas *to,
                    struct oc_buffer *out)
{
    struct frame frame = {.codes = codes, .to = to, .out = out, .x = -1, .y = -1};
    char text[SEQUENCE];
    frame.runs = malloc(((size_t)to->width * (size_t)to->height + 1) * sizeof *frame.runs);
    if (!frame.runs) {
        out->failed = true;
        return;
    }
    for (int y = 0; y < to->height; y++) find_runs(&frame, from, y);
    sort_runs(&frame);
    while (frame.first < frame.n_runs) send(&frame, choose(&frame));
    oc_put_bytes(out, text, (size_t)change_style(codes, frame.pen, (struct oc_style){0, 0, 0}, text));
    free(frame.runs);
}
