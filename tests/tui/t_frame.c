/* What is sent to a terminal: libvterm, told so, shows the canvas cell by cell, whatever was on it before; and it is
 * little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <vterm.h>

#include "tui/screen/frame.h"

enum { WIDTH = 60, HEIGHT = 12, COLOURS = 6 };

static int move_code(int x, int y, char *text, size_t size)
{
    return snprintf(text, size, "\033[%d;%dH", y + 1, x + 1);
}

/* An xterm with 256 colours; colour i of the theme is i + 40 of them. */
static struct oc_codes xterm_codes(void)
{
    struct oc_codes codes = {.ecma = true,
                             .down = true,
                             .erase = true,
                             .erase_end = true,
                             .keeps = true,
                             .corner = true,
                             .normal = "\033[m",
                             .bold = "\033[1m",
                             .reverse = "\033[7m",
                             .underline = "\033[4m",
                             .move = move_code};
    for (int i = 1; i < COLOURS; i++) {
        snprintf(codes.fg[i], OC_CODE, "\033[38;5;%dm", i + 40);
        snprintf(codes.bg[i], OC_CODE, "\033[48;5;%dm", i + 40);
    }
    return codes;
}

/* Terminals that can do less and less. */
static struct oc_codes codes_of(int kind)
{
    struct oc_codes codes = xterm_codes();
    if (kind >= 1) codes.keeps = false;                                   /* tmux, screen */
    if (kind >= 2) codes.erase = codes.erase_end = false;                 /* neither */
    if (kind >= 3) codes.ecma = codes.down = false, codes.corner = false; /* vt100 */
    if (kind >= 4) memset(codes.fg, 0, sizeof codes.fg), memset(codes.bg, 0, sizeof codes.bg);
    return codes;
}

enum { KINDS = 5 };

struct shown {
    VTerm *vterm;
    VTermScreen *screen;
};

static struct shown open_terminal(void)
{
    struct shown shown = {.vterm = vterm_new(HEIGHT, WIDTH)};
    vterm_set_utf8(shown.vterm, 1);
    shown.screen = vterm_obtain_screen(shown.vterm);
    vterm_screen_reset(shown.screen, 1);
    return shown;
}

static int index_of(VTermColor colour, bool standard)
{
    return standard ? 0 : (int)colour.indexed.idx - 40;
}

static void assert_cell(const struct shown *shown, const struct oc_canvas *canvas, int x, int y, int kind)
{
    VTermScreenCell cell;
    const struct oc_cell *wanted = oc_canvas_at(canvas, x, y);
    vterm_screen_get_cell(shown->screen, (VTermPos){y, x}, &cell);
    if (wanted->code == 0) return; /* the half before it is looked at */
    bool blank = wanted->code == ' ' && !(wanted->style.attr & (OC_ATTR_REVERSE | OC_ATTR_UNDERLINE));
    uint32_t code = cell.chars[0] ? cell.chars[0] : ' ';
    int fg = index_of(cell.fg, VTERM_COLOR_IS_DEFAULT_FG(&cell.fg)),
        bg = index_of(cell.bg, VTERM_COLOR_IS_DEFAULT_BG(&cell.bg));
    int attr = (cell.attrs.bold ? OC_ATTR_BOLD : 0) | (cell.attrs.reverse ? OC_ATTR_REVERSE : 0) |
               (cell.attrs.underline ? OC_ATTR_UNDERLINE : 0);
    bool colours = kind < 4;
    if (code != wanted->code || (colours && bg != wanted->style.bg) ||
        (!blank && ((colours && fg != wanted->style.fg) || attr != wanted->style.attr)))
        fail_msg("terminal %d, column %d of row %d: '%c' %d on %d, attributes %d; it should be '%c' %d on %d, %d", kind,
                 x, y, (int)code, fg, bg, attr, (int)wanted->code, wanted->style.fg, wanted->style.bg,
                 wanted->style.attr);
}

static void assert_shows(const struct shown *shown, const struct oc_canvas *canvas, int kind)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            if (kind < 3 || x < WIDTH - 1 || y < HEIGHT - 1) assert_cell(shown, canvas, x, y, kind);
}

static unsigned next(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* Changes a few stretches: text, fills, blocks, wide characters, with any style. */
static void disturb(struct oc_canvas *canvas, unsigned *seed)
{
    static const uint32_t codes[] = {' ', ' ', ' ', 'a', 'W', 0x2500, 0x2584, 0x258c, 0x6f22};
    for (int i = (int)next(seed, 12); i >= 0; i--) {
        struct oc_style style = {(uint8_t)next(seed, COLOURS), (uint8_t)next(seed, COLOURS), (uint8_t)next(seed, 8)};
        if (next(seed, 2)) style.attr = 0;
        uint32_t code = codes[next(seed, sizeof codes / sizeof codes[0])];
        int y = (int)next(seed, HEIGHT), x = (int)next(seed, WIDTH), n = 1 + (int)next(seed, next(seed, 2) ? 4 : WIDTH);
        for (; n > 0 && x < WIDTH; n--, x++) {
            bool wide = code > 0x3000;
            if (wide && x + 1 >= WIDTH) break;
            oc_canvas_put(canvas, x, y, style, code);
            if (!wide) continue;
            oc_canvas_put(canvas, x + 1, y, style, ' ');
            oc_canvas_at(canvas, ++x, y)->code = 0;
        }
    }
}

static size_t send(const struct shown *shown, const struct oc_codes *codes, const struct oc_canvas *from,
                   const struct oc_canvas *to)
{
    struct oc_buffer out = {0};
    oc_frame_write(codes, from, to, &out);
    size_t size = out.size;
    assert_false(out.failed);
    if (shown && size) vterm_input_write(shown->vterm, out.data, size);
    oc_buffer_free(&out);
    return size;
}

static void copy(struct oc_canvas *to, const struct oc_canvas *from)
{
    memcpy(to->cells, from->cells, sizeof *from->cells * WIDTH * HEIGHT);
}

static void any_canvas_follows_any_other(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct oc_codes codes = codes_of(kind);
        struct shown shown = open_terminal();
        struct oc_canvas now = {0}, before = {0};
        unsigned seed = 7;
        assert_true(oc_canvas_resize(&now, WIDTH, HEIGHT) && oc_canvas_resize(&before, WIDTH, HEIGHT));
        for (int frame = 0; frame < 400; frame++) {
            if (frame % 50 == 49) oc_canvas_clear(&now);
            disturb(&now, &seed);
            send(&shown, &codes, &before, &now);
            assert_shows(&shown, &now, kind);
            assert_int_equal(send(NULL, &codes, &now, &now), 0);
            copy(&before, &now);
        }
        oc_canvas_free(&now);
        oc_canvas_free(&before);
        vterm_free(shown.vterm);
    }
}

/* Bytes of what `put` does to a blank canvas. */
static size_t cost(void (*put)(struct oc_canvas *canvas))
{
    struct oc_codes codes = xterm_codes();
    struct oc_canvas now = {0}, before = {0};
    assert_true(oc_canvas_resize(&now, WIDTH, HEIGHT) && oc_canvas_resize(&before, WIDTH, HEIGHT));
    put(&now);
    size_t size = send(NULL, &codes, &before, &now);
    oc_canvas_free(&now);
    oc_canvas_free(&before);
    return size;
}

static void put_bar(struct oc_canvas *canvas)
{
    for (int x = 10; x < 50; x++) oc_canvas_put(canvas, x, 3, (struct oc_style){1, 2, 0}, ' ');
}

/* Two colours in turn, on four rows. */
static void put_stripes(struct oc_canvas *canvas)
{
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 40; x++)
            oc_canvas_put(canvas, x, y, (struct oc_style){0, (uint8_t)(1 + x / 5 % 2), 0}, 'x');
}

static void put_column(struct oc_canvas *canvas)
{
    for (int y = 2; y < 10; y++) oc_canvas_put(canvas, 30, y, (struct oc_style){0, 0, 0}, '8');
}

static void put_unseen(struct oc_canvas *canvas)
{
    for (int x = 0; x < WIDTH; x++) oc_canvas_put(canvas, x, 0, (struct oc_style){3, 0, OC_ATTR_BOLD}, ' ');
}

static void little_is_sent(void **state)
{
    (void)state;
    /* a place, one background, one erasure, back to normal: "CSI 4;11H CSI 48;5;42m CSI 40X CSI m" */
    assert_true(cost(put_bar) <= 7 + 10 + 5 + 3);
    /* each colour is said once for all rows, not 32 times: 160 characters and a move of at most 6 bytes per stripe */
    assert_true(cost(put_stripes) <= 160 + 32 * 6 + 2 * 10 + 9);
    assert_true(cost(put_column) <= 7 + 8 + 7 * 2); /* a row down and a column back, not a place each */
    assert_int_equal(cost(put_unseen), 0);          /* the foreground of a blank does not show */
}

/* Two changed stretches of one background, which lie 30 unchanged cells of it apart. */
static size_t cost_of_ends(const struct oc_codes *codes)
{
    struct oc_canvas now = {0}, before = {0};
    assert_true(oc_canvas_resize(&now, WIDTH, HEIGHT) && oc_canvas_resize(&before, WIDTH, HEIGHT));
    put_bar(&now);
    put_bar(&before);
    for (int x = 0; x < 5; x++) {
        oc_canvas_put(&before, 10 + x, 3, (struct oc_style){1, 3, 0}, ' ');
        oc_canvas_put(&before, 45 + x, 3, (struct oc_style){1, 3, 0}, ' ');
    }
    size_t size = send(NULL, codes, &before, &now);
    oc_canvas_free(&now);
    oc_canvas_free(&before);
    return size;
}

static void what_lies_between_is_erased_with_them(void **state)
{
    (void)state;
    const struct oc_codes codes = codes_of(0), plain = codes_of(1);
    assert_int_equal(cost_of_ends(&codes), 7 + 10 + 5 + 3);         /* as all of the bar */
    assert_int_equal(cost_of_ends(&plain), 7 + 10 + 5 + 5 + 5 + 3); /* two times five blanks, and a move */
}

/* A blank is written in whatever colour is current; a letter between two blanks that stays must not be. */
static void what_stays_keeps_its_colour(void **state)
{
    (void)state;
    struct oc_codes codes = xterm_codes();
    struct shown shown = open_terminal();
    struct oc_canvas now = {0}, before = {0}, blank = {0};
    const struct oc_style normal = {0, 0, 0};
    assert_true(oc_canvas_resize(&now, WIDTH, HEIGHT) && oc_canvas_resize(&before, WIDTH, HEIGHT) &&
                oc_canvas_resize(&blank, WIDTH, HEIGHT));
    for (int x = 10; x < 13; x++) oc_canvas_put(&before, x, 2, normal, 'A');
    oc_canvas_put(&now, 11, 2, normal, 'A');
    for (int x = 0; x < 5; x++) oc_canvas_put(&now, x, 1, (struct oc_style){3, 0, 0}, 'R');
    send(&shown, &codes, &blank, &before);
    send(&shown, &codes, &before, &now);
    assert_shows(&shown, &now, 0);
    vterm_free(shown.vterm);
    oc_canvas_free(&now);
    oc_canvas_free(&before);
    oc_canvas_free(&blank);
}

/* Where erasing takes the terminal's own background, fills are written out. */
static void a_fill_is_not_erased_without_bce(void **state)
{
    (void)state;
    struct oc_codes codes = codes_of(1);
    struct oc_canvas now = {0}, before = {0};
    struct oc_buffer out = {0};
    assert_true(oc_canvas_resize(&now, WIDTH, HEIGHT) && oc_canvas_resize(&before, WIDTH, HEIGHT));
    put_bar(&now);
    oc_frame_write(&codes, &before, &now, &out);
    assert_null(strstr(out.data, "40X"));
    out.size = 0;
    oc_frame_write(&codes, &now, &before, &out); /* but the terminal's own can be */
    assert_non_null(strstr(out.data, "40X"));
    oc_buffer_free(&out);
    oc_canvas_free(&now);
    oc_canvas_free(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_canvas_follows_any_other),          cmocka_unit_test(little_is_sent),
        cmocka_unit_test(what_lies_between_is_erased_with_them), cmocka_unit_test(what_stays_keeps_its_colour),
        cmocka_unit_test(a_fill_is_not_erased_without_bce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
