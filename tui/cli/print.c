/* What leaves the process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tui/cli/cli.h"

bool oc_cli_print(const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno == EPIPE;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

void oc_cli_complain(const struct oc_error *error)
{
    /* A message that names its file needs it once. */
    const bool placed = error->file[0] && (error->line > 0 || !strstr(error->message, error->file));
    fprintf(stderr, "oomcast: ");
    if (placed) fprintf(stderr, "%s:", error->file);
    if (placed && error->line > 0) fprintf(stderr, "%d:", error->line);
    if (placed && error->line > 0 && error->column > 0) fprintf(stderr, "%d:", error->column);
    fprintf(stderr, "%s%s\n", placed ? " " : "", error->message);
    if (error->hint[0]) fprintf(stderr, "  %s\n", error->hint);
}

enum oc_exit oc_cli_status(const struct oc_error *error)
{
    return error->code == OC_E_INTERNAL ? OC_EXIT_INTERNAL : OC_EXIT_USAGE;
}
