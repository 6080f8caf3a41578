/* Scripts drive the screen key by key, so that screens can be tests and pictures. A line holds keys as typed,
 * "jjl<Enter>8<Enter>", or a command:
 *
 *     :save-screen FILE     the cells as text
 *     :save-picture FILE    the cells as SVG
 *     :size WIDTH HEIGHT    another size, without a terminal
 *     :wait                 until the probe has nothing more to do, at most 30 s
 *     :quit                 leaves, and asks nothing
 *     :ANYTHING ELSE        as it would be typed on the screen; it fails when the screen says so
 *
 * Empty lines and lines that begin with '#' are skipped. */
#ifndef OOMCAST_SCRIPT_H
#define OOMCAST_SCRIPT_H

#include <stdbool.h>

#include "oomcast/error.h"

/* What a script acts on. */
struct oc_script_target {
    void (*key)(void *user, int key);
    bool (*save)(void *user, const char *path, bool picture, struct oc_error *error);
    bool (*size)(void *user, int width, int height, struct oc_error *error);
    void (*wait)(void *user);
    void (*quit)(void *user);
    bool (*command)(void *user, const char *line, struct oc_error *error);
    void *user;
};

/* Runs the whole file. False at the first line that is wrong, with its place. */
bool oc_script_run(const char *path, const struct oc_script_target *target, struct oc_error *error);

#endif
