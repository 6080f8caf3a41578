/* The screen on the real model, on a small run, without a terminal. */
#ifndef OOMCAST_HELP_SCREEN_H
#define OOMCAST_HELP_SCREEN_H

#include "tui/screen/app.h"
#include "tui/views/views.h"

struct help_screen {
    struct oc_input input;
    struct oc_app app;
    struct oc_theme theme;
    struct oc_canvas canvas;
};

/* Opens the real model on KEY=VALUE words (ended by NULL), on a canvas of that size; fails the test when it cannot. */
struct help_screen *help_screen(int width, int height, const char *const *words);
void help_screen_free(struct help_screen *screen);

/* Presses keys, drawing after each as the program does; "\n" is Enter and "\033" Esc. */
void help_keys(struct help_screen *screen, const char *keys);

/* Draws, and fails the test unless the text is (or is not) there. */
void help_drawn(struct help_screen *screen, const char *text, bool there);

#define HELP_SCREEN(width_, height_, ...) help_screen(width_, height_, (const char *const[]){__VA_ARGS__, NULL})

#endif
