#define NCURSES_WIDECHAR 1
#include "tui/screen/term.h"

#include <langinfo.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "tui/screen/signals.h"

struct oc_term {
    SCREEN *screen;
    FILE *in; /* stdin, or /dev/tty */
    enum oc_depth depth;
    bool utf8;
    int pairs[OC_MAX_COLOURS][OC_MAX_COLOURS]; /* by foreground and background; -1 = not asked for yet */
    struct oc_canvas shown;                    /* what the terminal holds; 0 x 0 when unknown */
    sigset_t waiting;                          /* the signal mask while waiting */
    bool gone;                                 /* the terminal was hung up */
};

/* ---- terminal types ---- */

static bool can_use(const char *name)
{
    int status;
    if (setupterm((char *)name, STDOUT_FILENO, &status) != OK) return false;
    const char *cup = tigetstr((char *)"cup"), *clear_screen_code = tigetstr((char *)"clear");
    bool good = cup && cup != (char *)-1 && clear_screen_code && clear_screen_code != (char *)-1;
    del_curterm(cur_term);
    return good;
}

/* $TERM when it is known here, else the nearest type that this machine has: servers often lack the newest terminals. */
static const char *usable_type(void)
{
    static const char *const fallbacks[] = {"xterm-256color", "xterm", "vt100", "ansi"};
    const char *name = getenv("TERM"), *colour = getenv("COLORTERM");
    if (name && name[0] && can_use(name)) return name;
    bool modern = (name && strncmp(name, "xterm", 5) == 0) || (colour && colour[0]);
    for (size_t i = modern ? 0 : 1; i < sizeof fallbacks / sizeof fallbacks[0]; i++)
        if (can_use(fallbacks[i])) return fallbacks[i];
    return NULL;
}

/* The description of the same terminal that takes colours as they are, "xterm-direct" for "xterm-256color"; NULL when
 * this machine has none. */
static const char *direct_type(char *text, size_t size)
{
    const char *name = getenv("TERM");
    if (!name) return NULL;
    snprintf(text, size, "%.*s-direct", (int)strcspn(name, "-"), name);
    if (can_use(text)) return text;
    return can_use("xterm-direct") ? "xterm-direct" : NULL;
}

static enum oc_depth depth_of_terminal(enum oc_depth asked)
{
    const char *no_color = getenv("NO_COLOR");
    if (asked == OC_DEPTH_NONE || (asked == OC_DEPTH_AUTO && no_color && no_color[0])) return OC_DEPTH_NONE;
    if (start_color() != OK || !has_colors()) return OC_DEPTH_NONE;
    enum oc_depth has = COLORS > 65536  ? OC_DEPTH_RGB
                        : COLORS >= 256 ? OC_DEPTH_256
                        : COLORS >= 16  ? OC_DEPTH_16
                        : COLORS >= 8   ? OC_DEPTH_8
                                        : OC_DEPTH_NONE;
    use_default_colors();
    if (asked == OC_DEPTH_AUTO && has == OC_DEPTH_RGB) return OC_DEPTH_RGB; /* TERM asks for it */
    return asked == OC_DEPTH_AUTO || has < asked ? has : asked;
}

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
static int finish_escape(void)
{
    wint_t next;
    bool sequence = false;
    while (get_wch(&next) != ERR) {
        sequence = true;
        if (next >= 0x40 && next <= 0x7e && next != '[' && next != 'O') break;
    }
    return sequence ? OC_KEY_OTHER : OC_KEY_ESCAPE;
}

int oc_term_key(struct oc_term *term)
{
    wint_t key;
    (void)term;
    int kind = get_wch(&key);
    if (kind == ERR) return OC_KEY_NONE;
    if (kind == KEY_CODE_YES) return translate((int)key);
    if (key == 27) return finish_escape();
    if (key == '\n' || key == '\r') return OC_KEY_ENTER;
    if (key == 8 || key == 127) return OC_KEY_BACKSPACE;
    return (int)key;
}

/* ---- opening and closing ---- */

/* Collects what tputs() would send, without the padding that terminfo writes as $<5>. */
static void add_capability(struct oc_rescue *rescue, const char *name)
{
    const char *code = tigetstr((char *)name);
    if (!code || code == (char *)-1) return;
    while (*code && rescue->n + 1 < sizeof rescue->bytes) {
        if (code[0] == '$' && code[1] == '<') {
            const char *end = strchr(code, '>');
            if (end) {
                code = end + 1;
                continue;
            }
        }
        rescue->bytes[rescue->n++] = *code++;
    }
}

static void prepare_rescue(const struct termios *modes, bool has_modes)
{
    struct oc_rescue rescue = {.fd = STDOUT_FILENO, .has_modes = has_modes};
    if (has_modes) rescue.modes = *modes;
    static const char *const capabilities[] = {"sgr0", "op", "rmkx", "rmcup", "cnorm"};
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) add_capability(&rescue, capabilities[i]);
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

static bool start_curses(struct oc_term *term, enum oc_depth depth, struct oc_error *error)
{
    char direct[64];
    const char *type = depth == OC_DEPTH_RGB ? direct_type(direct, sizeof direct) : NULL;
    if (!type) type = usable_type();
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
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    if (!getenv("ESCDELAY")) set_escdelay(50);
    define_keys();
    term->depth = depth_of_terminal(depth);
    return true;
}

struct oc_term *oc_term_open(enum oc_depth depth, bool ascii, struct oc_error *error)
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
    if (!start_curses(term, depth, error)) {
        oc_signals_release();
        if (term->in && term->in != stdin) fclose(term->in);
        free(term);
        return NULL;
    }
    prepare_rescue(&modes, has_modes);
    block_signals(term);
    const char *name = getenv("TERM");
    term->utf8 = !ascii && strcmp(nl_langinfo(CODESET), "UTF-8") == 0 && !(name && strcmp(name, "linux") == 0);
    memset(term->pairs, -1, sizeof term->pairs);
    return term;
}

void oc_term_close(struct oc_term *term)
{
    if (!term) return;
    endwin();
    delscreen(term->screen);
    if (term->in != stdin) fclose(term->in);
    oc_canvas_free(&term->shown);
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

static int number_of(const struct oc_term *term, const struct oc_theme *theme, int colour)
{
    if (colour == 0) return -1;
    const struct oc_colour *c = &theme->colours[colour];
    if (term->depth == OC_DEPTH_RGB) return c->red << 16 | c->green << 8 | c->blue;
    return term->depth == OC_DEPTH_256 ? c->xterm : c->ansi;
}

/* The colour pair of a style; -1 when the terminal has no more. init_pair() past COLOR_PAIRS draws black on black,
 * alloc_pair() says so. */
static int pair_of(struct oc_term *term, const struct oc_theme *theme, struct oc_style style)
{
    if (term->depth == OC_DEPTH_NONE || (!style.fg && !style.bg)) return 0;
    int *pair = &term->pairs[style.fg][style.bg];
    if (*pair < 0) *pair = alloc_pair(number_of(term, theme, style.fg), number_of(term, theme, style.bg));
    return *pair;
}

static bool show_cell(struct oc_term *term, const struct oc_canvas *canvas, int x, int y)
{
    const struct oc_cell *cell = oc_canvas_at(canvas, x, y);
    if (cell->code == 0) return true; /* the wide character before it covers this column */
    int pair = pair_of(term, canvas->theme, cell->style);
    if (pair < 0) return false;
    attr_t attributes = 0;
    if (cell->style.attr & OC_ATTR_BOLD) attributes |= A_BOLD;
    if (cell->style.attr & OC_ATTR_REVERSE) attributes |= A_REVERSE;
    if (cell->style.attr & OC_ATTR_UNDERLINE) attributes |= A_UNDERLINE;
    wchar_t text[2] = {(wchar_t)cell->code, 0};
    cchar_t character;
    if (setcchar(&character, text, attributes, 0, &pair) == OK) mvadd_wch(y, x, &character);
    return true;
}

static bool same_cell(const struct oc_cell *a, const struct oc_cell *b)
{
    return a->code == b->code && a->style.fg == b->style.fg && a->style.bg == b->style.bg &&
           a->style.attr == b->style.attr;
}

bool oc_term_show(struct oc_term *term, const struct oc_canvas *canvas)
{
    bool all = term->shown.width != canvas->width || term->shown.height != canvas->height;
    if (all && oc_canvas_resize(&term->shown, canvas->width, canvas->height)) erase();
    all |= term->shown.cells == NULL;
    bool cursor = canvas->cursor_x != term->shown.cursor_x || canvas->cursor_y != term->shown.cursor_y;
    bool any = all || cursor;
    for (int y = 0; y < canvas->height; y++) {
        for (int x = 0; x < canvas->width; x++) {
            const struct oc_cell *cell = oc_canvas_at(canvas, x, y);
            struct oc_cell *shown = oc_canvas_at(&term->shown, x, y);
            if (!all && shown && same_cell(cell, shown)) continue;
            if (!show_cell(term, canvas, x, y)) {
                term->depth = OC_DEPTH_NONE;
                oc_term_repaint(term);
                return false;
            }
            if (shown) *shown = *cell;
            any = true;
        }
    }
    if (!any) return true;
    term->shown.cursor_x = canvas->cursor_x, term->shown.cursor_y = canvas->cursor_y;
    curs_set(canvas->cursor_x >= 0);
    move(canvas->cursor_y >= 0 ? canvas->cursor_y : 0, canvas->cursor_x >= 0 ? canvas->cursor_x : 0);
    wnoutrefresh(stdscr);
    doupdate();
    return true;
}

void oc_term_repaint(struct oc_term *term)
{
    oc_canvas_free(&term->shown);
    memset(term->pairs, -1, sizeof term->pairs); /* the theme may be another one */
    clearok(curscr, TRUE);
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
