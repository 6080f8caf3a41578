#include "tui/screen/host.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oomcast/import.h"

bool oc_host_open(void *user, const char *path, struct oc_input *input, struct oc_error *error)
{
    (void)user;
    memset(input, 0, sizeof *input);
    input->c.config = oc_config_default();
    return oc_import_file(input, path, error);
}

bool oc_host_exists(void *user, const char *path)
{
    (void)user;
    return access(path, F_OK) == 0;
}

/* The text takes the place of the file in one step: a full disk leaves what was there. */
bool oc_host_write(void *user, const char *path, const char *text, size_t size, struct oc_error *error)
{
    char draft[600];
    (void)user;
    if (!path[0] || snprintf(draft, sizeof draft, "%s.part", path) >= (int)sizeof draft)
        return oc_fail(error, OC_E_IO, "%.80s is no name for a file", path);
    FILE *file = fopen(draft, "wbx");
    if (!file) return oc_fail(error, OC_E_IO, "%.200s cannot be written: %s", path, strerror(errno));
    bool written = fwrite(text, 1, size, file) == size;
    written &= fclose(file) == 0;
    if (written && rename(draft, path) == 0) return true;
    int why = errno;
    remove(draft);
    return oc_fail(error, OC_E_IO, "%.200s cannot be written: %s", path, strerror(why));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int oc_host_files(void *user, const char *prefix, char (*names)[OC_HOST_NAME], int most)
{
    char folder[OC_HOST_NAME];
    const char *slash = strrchr(prefix, '/'), *start = slash ? slash + 1 : prefix;
    int n = 0;
    (void)user;
    snprintf(folder, sizeof folder, "%.*s", (int)(start - prefix), prefix);
    DIR *directory = opendir(folder[0] ? folder : ".");
    if (!directory) return 0;
    for (struct dirent *entry; n < most && (entry = readdir(directory));) {
        struct stat about;
        if (strncmp(entry->d_name, start, strlen(start)) != 0 || (entry->d_name[0] == '.' && start[0] != '.')) continue;
        int length = snprintf(names[n], OC_HOST_NAME, "%s%s", folder, entry->d_name);
        if (length < 0 || length >= OC_HOST_NAME - 1 || strpbrk(names[n], " \t"))
            continue; /* a command ends at a blank */
        if (stat(names[n], &about) == 0 && S_ISDIR(about.st_mode)) strcat(names[n], "/");
        n++;
    }
    closedir(directory);
    qsort(names, (size_t)n, sizeof *names, by_name);
    return n;
}
