#include "tests/probes/help_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "oomcast/probe.h"

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

void help_wait_for(struct oc_child *child, double seconds)
{
    const double end = help_now() + seconds;
    while (!oc_child_pump(child)) {
        assert_true(help_now() < end);
        struct pollfd poll_fd = {.fd = oc_child_fd(child), .events = POLLIN};
        assert_true(poll_fd.fd >= 0);
        poll(&poll_fd, 1, 20);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(oc_child_fd(child), -1);
}

int help_run(const char *command, char *text, size_t size)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, size - 1, pipe)] = '\0';
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
