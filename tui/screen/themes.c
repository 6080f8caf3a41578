/* Where themes are: in the program, and in the user's folder. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/screen/embedded.h"
#include "tui/screen/theme.h"

bool oc_theme_folder(char *path, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = config && config[0] ? snprintf(path, size, "%s/oomcast/themes", config)
            : home && home[0]   ? snprintf(path, size, "%s/.config/oomcast/themes", home)
                                : -1;
    return n > 0 && (size_t)n < size;
}

bool oc_theme_users(const char *name, char *path, size_t size)
{
    char folder[300];
    if (!oc_theme_folder(folder, sizeof folder)) return false;
    int n = snprintf(path, size, "%s/%s.json", folder, name);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

static bool open_builtin(struct oc_theme *theme, const char *name, struct oc_error *error)
{
    const struct oc_embedded *row = oc_theme_builtin(name);
    struct oc_theme draft;
    if (!row) {
        oc_fail(error, OC_E_IO, "there is no theme %.60s", name);
        return oc_hint(error, "`oomcast themes` lists them; a path with a slash in it is a theme file");
    }
    if (!oc_theme_default(&draft, error)) return false;
    if (strcmp(name, "default") != 0 && !oc_theme_parse(&draft, name, (const char *)row->bytes, *row->size, error))
        return false;
    *theme = draft;
    return true;
}

bool oc_theme_open(struct oc_theme *theme, const char *name, struct oc_error *error)
{
    char path[600];
    if (!name) return oc_theme_default(theme, error);
    if (strchr(name, '/')) return oc_theme_load(theme, name, error);
    if (oc_theme_users(name, path, sizeof path)) return oc_theme_load(theme, path, error);
    return open_builtin(theme, name, error);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_listed(char (*names)[256], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

int oc_theme_names(char (*names)[256], int most)
{
    int n = 0;
    char folder[300];
    for (const struct oc_embedded *row = oc_embedded_themes; row->name && n < most; row++)
        snprintf(names[n++], sizeof *names, "%s", row->name);
    int builtin = n;
    DIR *directory = oc_theme_folder(folder, sizeof folder) ? opendir(folder) : NULL;
    if (!directory) return n; /* a user without themes has no folder */
    for (struct dirent *entry; n < most && (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name);
        if (length <= 5 || length > 250 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
        snprintf(names[n], sizeof *names, "%.*s", (int)length - 5, entry->d_name);
        if (!is_listed(names, n, names[n])) n++;
    }
    closedir(directory);
    qsort(names + builtin, (size_t)(n - builtin), sizeof *names, by_name);
    return n;
}
