/* What the surroundings do for the state: files, themes, the cells on the screen. The state itself opens nothing, so
 * that tests can press any key.
 *
 * Ownership: as each function says. */
#ifndef OOMCAST_HOST_H
#define OOMCAST_HOST_H

#include "oomcast/case.h"
#include "tui/screen/canvas.h"

enum { OC_HOST_NAMES = 64, OC_HOST_NAME = 256 };

struct oc_app_host {
    /* Reads a file of any kind that is known into an empty input. */
    bool (*open)(void *user, const char *path, struct oc_input *input, struct oc_error *error);
    bool (*exists)(void *user, const char *path);
    bool (*write)(void *user, const char *path, const char *text, size_t size, struct oc_error *error);
    /* Files whose path begins with `prefix`, folders with a slash at the end; returns how many. */
    int (*files)(void *user, const char *prefix, char (*names)[OC_HOST_NAME], int most);
    /* Names of themes, and showing one. */
    int (*themes)(void *user, char (*names)[OC_HOST_NAME], int most);
    bool (*theme)(void *user, const char *name, struct oc_error *error);
    /* The screen as it is now, without what asks for the command. */
    const struct oc_canvas *(*canvas)(void *user);
    void *user;
};

/* Files of this machine, for the program; `user` is not used by them. */
bool oc_host_open(void *user, const char *path, struct oc_input *input, struct oc_error *error);
bool oc_host_exists(void *user, const char *path);
bool oc_host_write(void *user, const char *path, const char *text, size_t size, struct oc_error *error);
int oc_host_files(void *user, const char *prefix, char (*names)[OC_HOST_NAME], int most);

#endif
