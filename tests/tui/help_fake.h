/* A model for tests of the screen: simple arithmetic in place of the real one, so that these tests say nothing about
 * memory and do not change when the model learns something. Everything is made of given values and of the options
 * table's defaults. */
#ifndef OOMCAST_HELP_FAKE_H
#define OOMCAST_HELP_FAKE_H

#include "tui/screen/app.h"

/* resolve refuses heads that tp does not divide; answer makes pp ranks of which the first is the worst; explain writes
 * two sentences; fit leaves two layers. */
extern const struct oc_app_model oc_fake_model;

/* A case of 32 layers of 4096 on eight GPUs of 80 GB, as a file called run.sh would give it. */
struct oc_input oc_fake_input(void);

/* The built-in theme, or the test fails. */
struct oc_theme oc_fake_theme(void);

/* The state of a screen and what it draws on. */
struct oc_fake_app {
    struct oc_input input;
    struct oc_app app;
    struct oc_theme theme;
    struct oc_canvas canvas;
};

/* Set-up and tear-down of a test: 0, and *state is a struct oc_fake_app; -1 on failure. */
int oc_fake_open(void **state, const struct oc_app_model *model, const struct oc_input *input, int width, int height);
int oc_fake_close(void **state);

/* The canvas as one string of rows, without styles; the caller frees it. */
char *oc_fake_text(const struct oc_canvas *canvas);

/* Draws, and fails the test unless `text` is (or, with `there` false, is not) on the screen. */
void oc_fake_assert_drawn(struct oc_fake_app *f, const char *text, bool there);

#endif
