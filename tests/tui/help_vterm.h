/* A program on a real pseudo-terminal, with libvterm as the terminal behind it: what it draws, how many bytes that
 * took, and in which state it leaves the terminal. */
#ifndef OOMCAST_HELP_VTERM_H
#define OOMCAST_HELP_VTERM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>
#include <vterm.h>

struct oc_pty {
    pid_t pid;
    int master;
    VTerm *vterm;
    VTermScreen *screen;
    int width, height;
    bool alternate, cursor; /* the alternate screen is on, the cursor is visible */
    bool mouse;             /* the program asks for clicks */
    char tail[6];           /* the last bytes that came */
    long bytes;             /* received so far */
    struct termios before;  /* modes as the program found them */
    bool ended;
    int status; /* of waitpid() */
};

/* Starts argv[0] with `environment` ("NAME=value", ended by NULL; "NAME" alone unsets) added to a fixed one: C.UTF-8,
 * xterm-256color, no NO_COLOR, LINES or COLUMNS. Fails the test when it cannot. */
void oc_pty_start(struct oc_pty *pty, int width, int height, const char *const *environment, const char *const *argv);

/* Reads until nothing has come for `quiet` milliseconds, or the program has ended; returns the bytes read. */
long oc_pty_settle(struct oc_pty *pty, int quiet);

/* Sends keys as a terminal would, and settles; returns the bytes that came back. */
long oc_pty_keys(struct oc_pty *pty, const char *keys);

/* Gives the terminal another size, as a window manager does, and settles. */
void oc_pty_resize(struct oc_pty *pty, int width, int height);

/* Waits for the end of the program, at most two seconds; false when it has not ended. Reads what it writes meanwhile.
 */
bool oc_pty_wait(struct oc_pty *pty);

/* Whether screen, cursor and modes are as they were before the program. */
bool oc_pty_restored(struct oc_pty *pty);

/* The rows of the screen, blanks at their ends cut off, each ended by a newline. The caller frees it. */
char *oc_pty_text(struct oc_pty *pty);

/* Fails the test unless the rows are those that the program says it draws after these keys, from its own :save-screen
 * without a terminal. */
void oc_pty_same_rows(struct oc_pty *pty, const char *file, const char *keys, const char *options);

/* Background of a cell as 0xrrggbb, or -1 when it is the terminal's own or of a palette. */
long oc_pty_rgb(struct oc_pty *pty, int x, int y);

/* The palette index of a cell's background or foreground; -1 for the default colour, -2 when it is no palette colour.
 */
int oc_pty_background(struct oc_pty *pty, int x, int y);
bool oc_pty_has_colour(struct oc_pty *pty);

/* Kills the program if it still runs and releases everything. */
void oc_pty_end(struct oc_pty *pty);

#endif
