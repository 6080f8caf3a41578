/* Signals while the terminal is ours. A request to end becomes a flag that the loop reads; a crash puts the terminal
 * back with bytes that were prepared before, says so, and then crashes as it would have.
 *
 * State is static, in signals.c alone: a signal handler can have no other. */
#ifndef OOMCAST_SIGNALS_H
#define OOMCAST_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

/* What a crash writes and sets: the bytes that leave the alternate screen, show the cursor and reset colours, and the
 * modes that the terminal had before. */
struct oc_rescue {
    char bytes[256];
    size_t n;
    int fd;
    struct termios modes;
    int has_modes;
};

/* Installs the handlers. Call before curses starts, so that it does not install its own for INT and TERM. */
void oc_signals_catch(void);

/* Says what a crash has to do from now on. */
void oc_signals_rescue(const struct oc_rescue *rescue);

/* Puts the earlier handlers back. */
void oc_signals_release(void);

/* The last of HUP, INT, QUIT, TERM that arrived, or 0. */
int oc_signals_ended(void);

/* Whether the process was stopped and goes on, since this was asked last. */
bool oc_signals_resumed(void);

#endif
