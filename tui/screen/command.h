/* Commands typed after ':', under the names of the command line where it has them. Each is a row of a const table,
 * which also completes them and lists them in the help.
 *
 * Ownership: plain values. */
#ifndef OOMCAST_COMMAND_H
#define OOMCAST_COMMAND_H

#include "tui/screen/app.h"

/* What Tab offers for the arguments of a command. */
enum oc_argument {
    OC_ARG_NONE,
    OC_ARG_SET,
    OC_ARG_OPTION,
    OC_ARG_FILE,
    OC_ARG_EXPORT,
    OC_ARG_VIEW,
    OC_ARG_THEME,
    OC_ARG_LESSON
};

struct oc_command_row {
    const char *name;      /* "set" */
    const char *arguments; /* "KEY=VALUE...", "" when it takes none */
    const char *help;
    enum oc_argument kind;
    /* `force`: what would be lost or replaced was asked about. False: it failed, and app->message says why. */
    bool (*run)(struct oc_app *app, char *arguments, bool force);
};

/* All rows; ended by one whose name is NULL. */
extern const struct oc_command_row oc_command_rows[];

/* Opens the prompt with the beginning of a command, "" for none. */
void oc_command_start(struct oc_app *app, const char *text);

/* The same, and says at once what may follow. */
void oc_command_offer(struct oc_app *app, const char *text);

/* Runs a line as it would be typed. False: it failed, and app->message says why. */
bool oc_command_run(struct oc_app *app, const char *line, bool force);

/* Completes the last word of a line: as far as all that fit agree. `offers` lists them, "" when there is one. */
void oc_command_complete(struct oc_app *app, char *line, size_t size, char *offers, size_t offers_size);

#endif
