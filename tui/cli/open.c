/* `oomcast [FILE...]`: the screen, or the text report where there is no terminal to draw on. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/cli/cli.h"
#include "tui/screen/screen.h"

static bool has_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && term[0] && strcmp(term, "dumb");
}

/* The user's own themes: $XDG_CONFIG_HOME/oomcast/themes. False when neither it nor $HOME is set. */
static bool theme_folder(char *path, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = config && config[0] ? snprintf(path, size, "%s/oomcast/themes", config)
            : home && home[0]   ? snprintf(path, size, "%s/.config/oomcast/themes", home)
                                : -1;
    return n > 0 && (size_t)n < size;
}

/* What --theme names: a file as it is, or a name in the user's folder. */
static const char *theme_path(const char *name, char *path, size_t size)
{
    char folder[300];
    if (!name || strchr(name, '/') || !theme_folder(folder, sizeof folder)) return name;
    int n = snprintf(path, size, "%s/%s.json", folder, name);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0 ? path : name;
}

enum oc_exit oc_cli_open(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    const bool on_screen = args->script || args->no_display || (has_terminal() && !args->plain);
    if (!on_screen) return oc_cli_report(args, out, error);

    struct oc_input *input = malloc(sizeof *input);
    if (!input) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        return OC_EXIT_INTERNAL;
    }
    char path[400];
    const struct oc_screen_options options = {.theme = theme_path(args->theme, path, sizeof path),
                                              .depth = args->depth,
                                              .ascii = args->ascii,
                                              .no_live = args->no_live,
                                              .no_display = args->no_display,
                                              .script = args->script};
    int status = oc_cli_load(args, input, error) ? oc_screen_run(input, &options, error) : (int)oc_cli_status(error);
    free(input);
    return (enum oc_exit)status; /* or 128 + the signal that ended it */
}

/* ---- themes ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the user's themes, in order. */
static void put_folder(const char *folder, struct oc_buffer *out)
{
    enum { MOST = 256 };
    char *names[MOST];
    int n = 0;
    DIR *directory = opendir(folder);
    if (!directory) return; /* a user without themes has no folder */
    for (struct dirent *entry; n < MOST && (entry = readdir(directory));) {
        const size_t size = strlen(entry->d_name);
        if (size <= 5 || strcmp(entry->d_name + size - 5, ".json")) continue;
        names[n] = strdup(entry->d_name);
        if (names[n]) names[n++][size - 5] = '\0';
    }
    closedir(directory);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        oc_putf(out, "%-16s %s/%s.json\n", names[i], folder, names[i]);
        free(names[i]);
    }
}

enum oc_exit oc_cli_themes(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    (void)args, (void)error;
    char folder[300];
    oc_putf(out, "%-16s built in\n", "default");
    if (theme_folder(folder, sizeof folder)) put_folder(folder, out);
    return OC_EXIT_DONE;
}
