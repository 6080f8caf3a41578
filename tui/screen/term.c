#define NCURSES_WIDECHAR 1
#include "tui/screen/term.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "tui/screen/frame.h"
#include "tui/screen/signals.h"
#include "tui/screen/term_type.h"

struct oc_term {
    SCREEN *screen;
    WINDOW *keys; /* a pad that keys are read from: reading from a window would draw it */
    FILE *in;     /* stdin, or /dev/tty */
    enum oc_depth depth;
    bool utf8;
    struct oc_codes codes;  /* of the theme that `shown` was drawn with */
    char clear[OC_CODE];    /* blanks the screen */
    struct oc_canvas shown; /* what the terminal holds; 0 x 0 when unknown */
    struct oc_buffer out;   /* a frame on its way */
    sigset_t waiting;       /* the signal mask while waiting */
    struct oc_mouse mouse;  /* what it did last */
    bool gone;              /* the terminal was hung up */
};

/* ---- keys ---- */

/* Both forms of the cursor keys: terminals in normal mode send CSI where terminfo has SS3, and the other way round. */
static void define_keys(void)
{
    static const struct {
        const char *bytes;
        int key;
    } variants[] = {
        {"\033[A", KEY_UP},     {"\033OA", KEY_UP},     {"\033[B", KEY_DOWN},  {"\033OB", KEY_DOWN},
        {"\033[C", KEY_RIGHT},  {"\033OC", KEY_RIGHT},  {"\033[D", KEY_LEFT},  {"\033OD", KEY_LEFT},
        {"\033[H", KEY_HOME},   {"\033OH", KEY_HOME},   {"\033[1~", KEY_HOME}, {"\033[7~", KEY_HOME},
        {"\033[F", KEY_END},    {"\033OF", KEY_END},    {"\033[4~", KEY_END},  {"\033[8~", KEY_END},
        {"\033[5~", KEY_PPAGE}, {"\033[6~", KEY_NPAGE}, {"\033[3~", KEY_DC},
    };
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        define_key((char *)variants[i].bytes, variants[i].key);
}

static int translate(int key)
{
    static const struct {
        int curses, ours;
    } keys[] = {{KEY_UP, OC_KEY_UP},         {KEY_DOWN, OC_KEY_DOWN},       {KEY_LEFT, OC_KEY_LEFT},
                {KEY_RIGHT, OC_KEY_RIGHT},   {KEY_HOME, OC_KEY_HOME},       {KEY_END, OC_KEY_END},
                {KEY_PPAGE, OC_KEY_PAGE_UP}, {KEY_NPAGE, OC_KEY_PAGE_DOWN}, {KEY_DC, OC_KEY_DELETE},
                {KEY_RESIZE, OC_KEY_RESIZE}, {KEY_ENTER, OC_KEY_ENTER},     {KEY_BACKSPACE, OC_KEY_BACKSPACE}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].curses == key) return keys[i].ours;
    return OC_KEY_OTHER;
}

/* The bytes after an Esc that curses did not recognise belong to a key we do not know: they must not be read as
 * commands. */
static int finish_escape(const struct oc_term *term)
{
    wint_t next;
    bool sequence = false;
    while (wget_wch(term->keys, &next) != ERR) {
        sequence = true;
        if (next >= 0x40 && next <= 0x7e && next != '[' && next != 'O') break;
    }
    return sequence ? OC_KEY_OTHER : OC_KEY_ESCAPE;
}

/* A press of the first button, or a notch of the wheel; everything else is nothing. */
static int take_mouse(struct oc_term *term)
{
    static const struct {
        mmask_t state;
        enum oc_mouse_kind kind;
    } kinds[] = {{BUTTON1_PRESSED, OC_MOUSE_CLICK},
                 {BUTTON4_PRESSED, OC_MOUSE_WHEEL_UP},
                 {BUTTON5_PRESSED, OC_MOUSE_WHEEL_DOWN}};
    MEVENT event;
    if (getmouse(&event) != OK) return OC_KEY_OTHER;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!(event.bstate & kinds[i].state)) continue;
        term->mouse = (struct oc_mouse){kinds[i].kind, event.x, event.y};
        return OC_KEY_MOUSE;
    }
    return OC_KEY_OTHER;
}

struct oc_mouse oc_term_mouse(const struct oc_term *term)
{
    return term->mouse;
}

int oc_term_key(struct oc_term *term)
{
    wint_t key;
    if (oc_signals_resumed()) { /* the screen was someone else's in between, and its size may be another */
        oc_term_repaint(term);
        return OC_KEY_RESIZE;
    }
    int kind = wget_wch(term->keys, &key);
    if (kind == ERR) return OC_KEY_NONE;
    if (kind == KEY_CODE_YES && key == KEY_MOUSE) return take_mouse(term);
    if (kind == KEY_CODE_YES) return translate((int)key);
    if (key == 27) return finish_escape(term);
    if (key == '\n' || key == '\r') return OC_KEY_ENTER;
    if (key == 8 || key == 127) return OC_KEY_BACKSPACE;
    return (int)key;
}

/* ---- opening and closing ---- */

/* Collects what tputs() would send, without the padding that terminfo writes as $<5>. Returns the bytes. */
static size_t strip(const char *code, char *text, size_t size)
{
    size_t n = 0;
    if (!code || code == (char *)-1) return 0;
    while (*code && n + 1 < size) {
        const char *end = code[0] == '$' && code[1] == '<' ? strchr(code, '>') : NULL;
        if (end)
            code = end + 1;
        else
            text[n++] = *code++;
    }
    text[n] = '\0';
    return n;
}

static void add_capability(struct oc_rescue *rescue, const char *name)
{
    rescue->n += strip(tigetstr((char *)name), rescue->bytes + rescue->n, sizeof rescue->bytes - rescue->n);
}

static void prepare_rescue(const struct termios *modes, bool has_modes, bool mouse)
{
    static const char mouse_off[] = "\033[?1000l\033[?1006l";
    struct oc_rescue rescue = {.fd = STDOUT_FILENO, .has_modes = has_modes};
    if (has_modes) rescue.modes = *modes;
    static const char *const capabilities[] = {"sgr0", "op", "rmkx", "rmcup", "cnorm"};
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) add_capability(&rescue, capabilities[i]);
    if (mouse && rescue.n + sizeof mouse_off <= sizeof rescue.bytes) {
        memcpy(rescue.bytes + rescue.n, mouse_off, sizeof mouse_off - 1);
        rescue.n += sizeof mouse_off - 1;
    }
    oc_signals_rescue(&rescue);
}

/* With LINES and COLUMNS exported curses never follows a resize; the terminal itself knows its size. */
static void trust_the_terminal(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
    unsetenv("LINES");
    unsetenv("COLUMNS");
}

/* Signals that must not get lost between looking for them and waiting are blocked everywhere but while waiting. */
static void block_signals(struct oc_term *term)
{
    sigset_t set;
    static const int held[] = {SIGWINCH, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) sigaddset(&set, held[i]);
    sigprocmask(SIG_BLOCK, &set, &term->waiting);
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) sigdelset(&term->waiting, held[i]);
}

static int move_code(int x, int y, char *text, size_t size)
{
    return (int)strip(tparm(tigetstr((char *)"cup"), y, x), text, size);
}

/* What the terminal understands, all but its colours. */
static void learn_codes(struct oc_term *term)
{
    struct oc_codes *codes = &term->codes;
    const struct {
        const char *name;
        char *code;
    } attributes[] = {{"sgr0", codes->normal},
                      {"bold", codes->bold},
                      {"rev", codes->reverse},
                      {"smul", codes->underline},
                      {"clear", term->clear}};
    char text[OC_CODE];
    *codes = (struct oc_codes){.move = move_code};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        strip(tigetstr((char *)attributes[i].name), attributes[i].code, OC_CODE);
    strip(tigetstr((char *)"op"), text, sizeof text);
    codes->ecma = strcmp(text, "\033[39;49m") == 0;
    if (codes->ecma) strcpy(codes->normal, "\033[m"); /* without the character sets, which stay as they are */
    strip(tigetstr((char *)"cud1"), text, sizeof text);
    codes->down = strcmp(text, "\n") == 0;
    codes->keeps = tigetflag((char *)"bce") > 0;
    codes->erase = codes->ecma && strip(tigetstr((char *)"ech"), text, sizeof text) > 0;
    codes->erase_end = strip(tigetstr((char *)"el"), text, sizeof text) > 0 && strcmp(text, "\033[K") == 0;
    codes->corner = tigetflag((char *)"am") <= 0 || tigetflag((char *)"xenl") > 0;
    int never = tigetnum((char *)"ncv"); /* bit 1: underline, 2: reverse, 5: bold */
    if (never > 0)
        codes->plain =
            (never & 2 ? OC_ATTR_UNDERLINE : 0) | (never & 4 ? OC_ATTR_REVERSE : 0) | (never & 32 ? OC_ATTR_BOLD : 0);
}

static bool start_curses(struct oc_term *term, enum oc_depth depth, bool mouse, struct oc_error *error)
{
    char direct[64];
    const char *type = depth == OC_DEPTH_RGB ? oc_term_type_direct(direct, sizeof direct) : NULL;
    if (!type) type = oc_term_type();
    term->in = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "r");
    if (!term->in) return oc_fail(error, OC_E_IO, "there is no terminal to read keys from");
    term->screen = type ? newterm((char *)type, stdout, term->in) : NULL;
    if (!term->screen) {
        oc_fail(error, OC_E_IO, "no terminal description can be used (TERM=%.60s)",
                getenv("TERM") ? getenv("TERM") : "");
        return oc_hint(error, "set TERM=xterm or vt100, or use `oomcast report`");
    }
    set_term(term->screen);
    cbreak();
    noecho();
    nonl();
    term->keys = newpad(1, 1);
    if (!term->keys) return oc_fail(error, OC_E_INTERNAL, "out of memory");
    intrflush(term->keys, FALSE);
    keypad(term->keys, TRUE);
    nodelay(term->keys, TRUE);
    if (mouse) {
        mouseinterval(0); /* a press is a click: nothing waits for a second one */
        mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    }
    refresh(); /* curses has the terminal now; what is on it comes from here */
    curs_set(0);
    if (!getenv("ESCDELAY")) set_escdelay(50);
    define_keys();
    term->depth = oc_term_depth(depth);
    learn_codes(term);
    return true;
}

struct oc_term *oc_term_open(enum oc_depth depth, bool ascii, bool mouse, struct oc_error *error)
{
    struct termios modes;
    struct oc_term *term = calloc(1, sizeof *term);
    if (!term) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        return NULL;
    }
    bool has_modes = tcgetattr(STDOUT_FILENO, &modes) == 0;
    trust_the_terminal();
    oc_signals_catch();
    if (!start_curses(term, depth, mouse, error)) {
        if (term->screen) endwin();
        oc_signals_release();
        if (term->in && term->in != stdin) fclose(term->in);
        free(term);
        return NULL;
    }
    prepare_rescue(&modes, has_modes, mouse);
    block_signals(term);
    const char *name = getenv("TERM");
    term->utf8 = !ascii && strcmp(nl_langinfo(CODESET), "UTF-8") == 0 && !(name && strcmp(name, "linux") == 0);
    return term;
}

void oc_term_close(struct oc_term *term)
{
    if (!term) return;
    delwin(term->keys);
    endwin();
    delscreen(term->screen);
    if (term->in != stdin) fclose(term->in);
    oc_canvas_free(&term->shown);
    oc_buffer_free(&term->out);
    oc_signals_release();
    sigprocmask(SIG_SETMASK, &term->waiting, NULL);
    free(term);
}

/* ---- showing ---- */

int oc_term_width(const struct oc_term *term)
{
    (void)term;
    return COLS;
}

int oc_term_height(const struct oc_term *term)
{
    (void)term;
    return LINES;
}

void oc_term_describe(const struct oc_term *term, struct oc_canvas *canvas)
{
    canvas->colour = term->depth != OC_DEPTH_NONE;
    canvas->letters = term->depth < OC_DEPTH_256;
    canvas->ascii = !term->utf8;
}

static int number_of(const struct oc_term *term, const struct oc_colour *colour)
{
    if (term->depth == OC_DEPTH_RGB) return colour->red << 16 | colour->green << 8 | colour->blue;
    return term->depth == OC_DEPTH_256 ? colour->xterm : colour->ansi;
}

static void learn_colours(struct oc_term *term, const struct oc_theme *theme)
{
    const char *fg = tigetstr((char *)"setaf"), *bg = tigetstr((char *)"setab");
    if (term->depth == OC_DEPTH_NONE || !fg || fg == (char *)-1 || !bg || bg == (char *)-1) return;
    for (int i = 1; i < theme->n_colours; i++) {
        int number = number_of(term, &theme->colours[i]);
        strip(tparm((char *)fg, number), term->codes.fg[i], OC_CODE);
        strip(tparm((char *)bg, number), term->codes.bg[i], OC_CODE);
    }
}

static void send(const struct oc_buffer *out)
{
    for (size_t at = 0; at < out->size && !out->failed;) {
        ssize_t n = write(STDOUT_FILENO, out->data + at, out->size - at);
        if (n < 0 && errno != EINTR) return; /* a terminal that is gone is noticed while waiting for keys */
        if (n > 0) at += (size_t)n;
    }
}

/* A blank screen, whose size the canvas has. */
static bool start_anew(struct oc_term *term, const struct oc_canvas *canvas)
{
    if (!oc_canvas_resize(&term->shown, canvas->width, canvas->height)) return false;
    learn_colours(term, canvas->theme);
    oc_put(&term->out, term->codes.normal);
    oc_put(&term->out, term->clear);
    return true;
}

void oc_term_show(struct oc_term *term, const struct oc_canvas *canvas)
{
    struct oc_canvas *shown = &term->shown;
    char text[OC_CODE];
    term->out.size = 0;
    if (shown->width != canvas->width || shown->height != canvas->height || !shown->cells)
        if (!start_anew(term, canvas)) return;
    oc_frame_write(&term->codes, shown, canvas, &term->out);
    bool moved = canvas->cursor_x != shown->cursor_x || canvas->cursor_y != shown->cursor_y;
    if (canvas->cursor_x >= 0 && (moved || term->out.size > 0)) {
        move_code(canvas->cursor_x, canvas->cursor_y, text, sizeof text);
        oc_put(&term->out, text);
    }
    send(&term->out);
    if (moved) curs_set(canvas->cursor_x >= 0);
    memcpy(shown->cells, canvas->cells, (size_t)canvas->width * (size_t)canvas->height * sizeof *canvas->cells);
    shown->cursor_x = canvas->cursor_x, shown->cursor_y = canvas->cursor_y;
}

void oc_term_repaint(struct oc_term *term)
{
    oc_canvas_free(&term->shown); /* the colours are looked up again: the theme may be another one */
}

/* ---- waiting ---- */

void oc_term_wait(struct oc_term *term, const int *fds, int n, int timeout)
{
    fd_set set;
    struct timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    int input = fileno(term->in), highest = input;
    if (input < 0 || input >= FD_SETSIZE) return;
    FD_ZERO(&set);
    FD_SET(input, &set);
    for (int i = 0; i < n; i++) {
        if (fds[i] < 0 || fds[i] >= FD_SETSIZE) continue;
        FD_SET(fds[i], &set);
        if (fds[i] > highest) highest = fds[i];
    }
    if (pselect(highest + 1, &set, NULL, NULL, timeout < 0 ? NULL : &time, &term->waiting) <= 0) return;
    struct pollfd state = {input, POLLIN, 0}; /* a hung-up terminal is readable for ever and never has a key */
    if (FD_ISSET(input, &set) && poll(&state, 1, 0) > 0)
        term->gone = (state.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

int oc_term_signal(const struct oc_term *term)
{
    return term->gone ? SIGHUP : oc_signals_ended();
}
