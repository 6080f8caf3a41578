#include "tests/probes/help_process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double help_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

bool help_is_gone(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    const char *name = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    fclose(file);
    return !name || name[2] == 'Z';
}

pid_t help_child_of(pid_t parent)
{
    DIR *proc = opendir("/proc");
    if (!proc) abort();
    pid_t found = 0;
    for (struct dirent *entry; !found && (entry = readdir(proc));) {
        char path[300], text[512] = "";
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (!file) continue;
        const char *name = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
        fclose(file);
        if (name && strtol(name + 3, NULL, 10) == parent) found = (pid_t)strtol(text, NULL, 10); /* ") S PPID" */
    }
    closedir(proc);
    return found;
}
