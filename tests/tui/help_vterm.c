#include "help_vterm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

static int on_property(VTermProp property, VTermValue *value, void *user)
{
    struct oc_pty *pty = user;
    if (property == VTERM_PROP_ALTSCREEN) pty->alternate = value->boolean;
    if (property == VTERM_PROP_CURSORVISIBLE) pty->cursor = value->boolean;
    return 1;
}

static const VTermScreenCallbacks callbacks = {.settermprop = on_property};

static void set_environment(const char *const *environment)
{
    static const char *const fixed[] = {"LC_ALL=C.UTF-8", "TERM=xterm-256color", "NO_COLOR", "LINES",
                                        "COLUMNS",        "COLORTERM",           "ESCDELAY"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (strchr(fixed[i], '='))
            putenv((char *)fixed[i]);
        else
            unsetenv(fixed[i]);
    }
    for (; environment && *environment; environment++) {
        if (strchr(*environment, '='))
            putenv((char *)*environment);
        else
            unsetenv(*environment);
    }
}

void oc_pty_start(struct oc_pty *pty, int width, int height, const char *const *environment, const char *const *argv)
{
    struct winsize size = {.ws_row = (unsigned short)height, .ws_col = (unsigned short)width};
    memset(pty, 0, sizeof *pty);
    pty->width = width, pty->height = height;
    pty->cursor = true;
    pty->vterm = vterm_new(height, width);
    assert_non_null(pty->vterm);
    vterm_set_utf8(pty->vterm, 1);
    pty->screen = vterm_obtain_screen(pty->vterm);
    vterm_screen_enable_altscreen(pty->screen, 1);
    vterm_screen_set_callbacks(pty->screen, &callbacks, pty);
    vterm_screen_reset(pty->screen, 1);
    int slave;
    assert_int_equal(openpty(&pty->master, &slave, NULL, NULL, &size), 0);
    assert_int_equal(tcgetattr(slave, &pty->before), 0);
    pty->pid = fork();
    assert_true(pty->pid >= 0);
    if (pty->pid == 0) {
        close(pty->master);
        login_tty(slave);
        set_environment(environment);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(slave);
}

/* Clicks are asked for with "CSI ? 1006 ; 1000 h", of which libvterm takes the first number alone. */
static void watch_mouse(struct oc_pty *pty, const char *bytes, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        memmove(pty->tail, pty->tail + 1, 4);
        pty->tail[4] = bytes[i];
        if (strcmp(pty->tail, "1000h") == 0) pty->mouse = true;
        if (strcmp(pty->tail, "1000l") == 0) pty->mouse = false;
    }
}

/* One read, if something comes within `wait` milliseconds. */
static long read_some(struct oc_pty *pty, int wait)
{
    char bytes[8192];
    struct pollfd fd = {pty->master, POLLIN, 0};
    if (poll(&fd, 1, wait) <= 0) return 0;
    ssize_t n = read(pty->master, bytes, sizeof bytes);
    if (n <= 0) return -1; /* the program has closed its side */
    watch_mouse(pty, bytes, n);
    vterm_input_write(pty->vterm, bytes, (size_t)n);
    vterm_screen_flush_damage(pty->screen);
    char answer[256]; /* what the terminal itself wants to say */
    size_t said = vterm_output_read(pty->vterm, answer, sizeof answer);
    if (said > 0 && write(pty->master, answer, said) < 0) return -1;
    pty->bytes += n;
    return n;
}

long oc_pty_settle(struct oc_pty *pty, int quiet)
{
    long before = pty->bytes;
    while (read_some(pty, quiet) > 0) {
    }
    return pty->bytes - before;
}

long oc_pty_keys(struct oc_pty *pty, const char *keys)
{
    assert_int_equal(write(pty->master, keys, strlen(keys)), (long)strlen(keys));
    return oc_pty_settle(pty, 120);
}

void oc_pty_resize(struct oc_pty *pty, int width, int height)
{
    struct winsize size = {.ws_row = (unsigned short)height, .ws_col = (unsigned short)width};
    pty->width = width, pty->height = height;
    vterm_set_size(pty->vterm, height, width);
    assert_int_equal(ioctl(pty->master, TIOCSWINSZ, &size), 0);
    oc_pty_settle(pty, 60);
}

bool oc_pty_wait(struct oc_pty *pty)
{
    for (int i = 0; i < 400 && !pty->ended; i++) {
        if (read_some(pty, 5) < 0) poll(NULL, 0, 5); /* it has closed its side and is about to end */
        pty->ended = waitpid(pty->pid, &pty->status, WNOHANG) == pty->pid;
    }
    oc_pty_settle(pty, 0);
    return pty->ended;
}

bool oc_pty_restored(struct oc_pty *pty)
{
    struct termios now;
    if (tcgetattr(pty->master, &now) != 0) return false;
    return !pty->alternate && pty->cursor && !pty->mouse && now.c_lflag == pty->before.c_lflag &&
           now.c_iflag == pty->before.c_iflag && now.c_oflag == pty->before.c_oflag;
}

char *oc_pty_text(struct oc_pty *pty)
{
    char *text = malloc((size_t)pty->height * ((size_t)pty->width * 6 + 1) + 1), *at = text;
    assert_non_null(text);
    for (int y = 0; y < pty->height; y++) {
        char *start = at;
        for (int x = 0; x < pty->width; x++) {
            VTermScreenCell cell;
            vterm_screen_get_cell(pty->screen, (VTermPos){y, x}, &cell);
            if (cell.chars[0] == (uint32_t)-1) continue; /* second half of a wide character */
            uint32_t code = cell.chars[0] ? cell.chars[0] : ' ';
            if (code < 0x80) {
                *at++ = (char)code;
            } else if (code < 0x800) {
                *at++ = (char)(0xc0 | code >> 6), *at++ = (char)(0x80 | (code & 0x3f));
            } else {
                *at++ = (char)(0xe0 | code >> 12), *at++ = (char)(0x80 | (code >> 6 & 0x3f)),
                *at++ = (char)(0x80 | (code & 0x3f));
            }
        }
        while (at > start && at[-1] == ' ') at--;
        *at++ = '\n';
    }
    *at = '\0';
    return text;
}

long oc_pty_rgb(struct oc_pty *pty, int x, int y)
{
    VTermScreenCell cell;
    vterm_screen_get_cell(pty->screen, (VTermPos){y, x}, &cell);
    if (VTERM_COLOR_IS_DEFAULT_BG(&cell.bg) || !VTERM_COLOR_IS_RGB(&cell.bg)) return -1;
    return (long)cell.bg.rgb.red << 16 | cell.bg.rgb.green << 8 | cell.bg.rgb.blue;
}

int oc_pty_background(struct oc_pty *pty, int x, int y)
{
    VTermScreenCell cell;
    vterm_screen_get_cell(pty->screen, (VTermPos){y, x}, &cell);
    if (VTERM_COLOR_IS_DEFAULT_BG(&cell.bg)) return -1;
    return VTERM_COLOR_IS_INDEXED(&cell.bg) ? cell.bg.indexed.idx : -2;
}

bool oc_pty_has_colour(struct oc_pty *pty)
{
    for (int y = 0; y < pty->height; y++) {
        for (int x = 0; x < pty->width; x++) {
            VTermScreenCell cell;
            vterm_screen_get_cell(pty->screen, (VTermPos){y, x}, &cell);
            if (!VTERM_COLOR_IS_DEFAULT_BG(&cell.bg) || !VTERM_COLOR_IS_DEFAULT_FG(&cell.fg)) return true;
        }
    }
    return false;
}

void oc_pty_end(struct oc_pty *pty)
{
    if (!pty->ended) {
        kill(pty->pid, SIGKILL);
        waitpid(pty->pid, &pty->status, 0);
    }
    close(pty->master);
    vterm_free(pty->vterm);
}

/* The rows that the program says it drew, from its own :save-screen without a terminal. */
static char *rows_on_canvas(int width, int height, const char *opened, const char *keys, const char *options)
{
    char script[64] = "/tmp/oomcast-script-XXXXXX", saved[80], command[512];
    int fd = mkstemp(script);
    assert_true(fd >= 0);
    snprintf(saved, sizeof saved, "%s.screen", script);
    FILE *file = fdopen(fd, "w");
    fprintf(file, ":size %d %d\n%s%s:save-screen %s\n", width, height, keys, keys[0] ? "\n" : "", saved);
    fclose(file);
    snprintf(command, sizeof command, "%s --no-live --no-display %s --script %s %s", OOMCAST_BIN, options, script,
             opened);
    assert_int_equal(system(command), 0);
    char *text = calloc(1, 1 << 17);
    file = fopen(saved, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 17) - 1, file) > 0);
    fclose(file);
    unlink(script);
    unlink(saved);
    char *rows = strchr(text, '\n') + 1, *end = strstr(rows, "\nstyles\n");
    assert_non_null(end);
    end[1] = '\0';
    memmove(text, rows, strlen(rows) + 1);
    return text;
}

void oc_pty_same_rows(struct oc_pty *pty, const char *file, const char *keys, const char *options)
{
    char *expected = rows_on_canvas(pty->width, pty->height, file, keys, options), *text = oc_pty_text(pty);
    assert_string_equal(text, expected);
    free(expected);
    free(text);
}
