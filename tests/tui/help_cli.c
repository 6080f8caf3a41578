#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "help_cli.h"

/* A nameless file that holds `text`, read from its start. */
static int nameless(const char *text)
{
    char name[] = "/tmp/oomcast-test-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0 || unlink(name)) abort();
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || lseek(fd, 0, SEEK_SET)) abort();
    return fd;
}

static char *read_all(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    if (!text || pread(fd, text, (size_t)size, 0) != size) abort();
    text[size] = '\0';
    close(fd);
    return text;
}

struct help_output help_cli(const char *input, const char *const argv[])
{
    char *args[HELP_ARGS + 2] = {(char *)OOMCAST_BIN};
    for (int i = 0; argv[i]; i++) {
        if (i == HELP_ARGS) abort();
        args[i + 1] = (char *)argv[i];
    }
    const int in = nameless(input), out = nameless(""), err = nameless("");
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
        execv(args[0], args);
        _exit(127);
    }
    int status;
    if (waitpid(child, &status, 0) != child) abort();
    close(in);
    struct help_output output = {.out = read_all(out), .err = read_all(err)};
    output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return output;
}

void help_cli_free(struct help_output *output)
{
    free(output->out);
    free(output->err);
}

char *help_file(const char *bytes, size_t size)
{
    char *name = strdup("/tmp/oomcast-test-XXXXXX");
    int fd = name ? mkstemp(name) : -1;
    if (fd < 0) abort();
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0) abort();
        bytes += written;
        size -= (size_t)written;
    }
    close(fd);
    return name;
}
