/* The parent's side of a probe in a process of its own: started, listened to without blocking, and ended for certain.
 *
 * The child speaks JSON lines on its standard output: {"event":"progress","phase":...,"fraction":...} as it goes, and
 * one last line with the event done, oom, cancelled or failed. What it says on standard error is kept for the day it
 * says nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oomcast/probe.h"

extern char **environ;

enum { LINE_START = 4096, LINE_MOST = 4 << 20, TAIL = 512, POLITE = 19 };

struct oc_child {
    pid_t pid;
    int out, err; /* read ends; -1 when closed */
    bool ended;
    char *line; /* being read */
    size_t used, room;
    char *last; /* the final line */
    char phase[32];
    double fraction;
    char tail[TAIL]; /* the end of what it wrote to standard error */
    size_t tail_used;
    int dropped; /* lines that were not ours */
    enum oc_child_state state;
    char why[256];
};

/* ---- Starting ---- */

/* executable, argv..., --ppid PID: the child dies when this process does. */
static char **arguments(const char *executable, char *const argv[], char *pid)
{
    size_t n = 0;
    while (argv[n]) n++;
    char **all = calloc(n + 4, sizeof *all);
    if (!all) return NULL;
    all[0] = (char *)executable;
    memcpy(all + 1, argv, n * sizeof *all);
    all[n + 1] = (char *)"--ppid";
    all[n + 2] = pid;
    return all;
}

static int spawn(struct oc_child *child, const char *executable, char **argv, int out, int err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0); /* a group of its own: ^C at the terminal is not for it */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    int failure = posix_spawn(&child->pid, executable, &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return failure;
}

/* A pipe whose ends are not inherited and whose read end does not block. */
static bool open_pipe(int ends[2])
{
    if (pipe(ends) != 0) return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return true;
}

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void release(struct oc_child *child)
{
    close_end(&child->out);
    close_end(&child->err);
    free(child->line);
    free(child->last);
    free(child);
}

struct oc_child *oc_child_start(const char *executable, char *const argv[], struct oc_error *error)
{
    char pid[24];
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    struct oc_child *child = calloc(1, sizeof *child);
    char **all = arguments(executable, argv, pid);
    if (child) child->line = malloc(child->room = LINE_START);
    int failure = child && all && child->line && open_pipe(out) && open_pipe(err) ? 0 : ENOMEM;
    if (!failure) failure = spawn(child, executable, all, out[1], err[1]);
    free(all);
    close_end(&out[1]);
    close_end(&err[1]);
    if (child) child->out = out[0], child->err = err[0];
    if (!failure) {
        setpriority(PRIO_PROCESS, (id_t)child->pid, POLITE);
        return child;
    }
    oc_fail(error, OC_E_IO, "the probe cannot be started: %s: %s", executable, strerror(failure));
    if (child) release(child);
    return NULL;
}

/* ---- Listening ---- */

/* What follows "key": in a line that this program's own child wrote; NULL when it is not there. */
static const char *value_of(const char *line, const char *key)
{
    char quoted[40];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = strstr(line, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    at += strspn(at, " ");
    if (*at++ != ':') return NULL;
    return at + strspn(at, " ");
}

static bool text_of(const char *line, const char *key, char *text, size_t size)
{
    const char *at = value_of(line, key);
    if (!at || *at++ != '"') return false;
    size_t length = strcspn(at, "\"");
    if (length >= size) length = size - 1;
    memcpy(text, at, length);
    text[length] = '\0';
    return true;
}

/* The state that a last line stands for; RUNS when it is none. */
static enum oc_child_state state_of(const char *event)
{
    static const struct {
        const char *event;
        enum oc_child_state state;
    } finals[] = {
        {"done", OC_CHILD_DONE}, {"oom", OC_CHILD_OOM}, {"cancelled", OC_CHILD_CANCELLED}, {"failed", OC_CHILD_FAILED}};
    for (size_t i = 0; i < sizeof finals / sizeof finals[0]; i++)
        if (strcmp(event, finals[i].event) == 0) return finals[i].state;
    return OC_CHILD_RUNS;
}

static void take_line(struct oc_child *child, const char *line)
{
    char event[16];
    if (line[0] != '{' || !text_of(line, "event", event, sizeof event)) {
        child->dropped++;
    } else if (strcmp(event, "progress") == 0) {
        const char *fraction = value_of(line, "fraction");
        text_of(line, "phase", child->phase, sizeof child->phase);
        if (fraction) child->fraction = strtod(fraction, NULL);
        if (!(child->fraction >= 0)) child->fraction = 0; /* not a number either */
        if (child->fraction > 1) child->fraction = 1;
    } else if (state_of(event) != OC_CHILD_RUNS && !child->last) {
        child->last = strdup(line);
        if (child->last) child->state = state_of(event);
    } else {
        child->dropped++;
    }
}

/* Takes whole lines out of the buffer; a line that never ends is dropped. */
static void take_lines(struct oc_child *child)
{
    char *start = child->line, *end;
    while ((end = memchr(start, '\n', child->used - (size_t)(start - child->line)))) {
        *end = '\0';
        take_line(child, start);
        start = end + 1;
    }
    child->used -= (size_t)(start - child->line);
    memmove(child->line, start, child->used);
    if (child->used < child->room) return;
    char *larger = child->room < LINE_MOST ? realloc(child->line, 2 * child->room) : NULL;
    if (larger) {
        child->line = larger;
        child->room *= 2;
    } else {
        child->used = 0;
        child->dropped++;
    }
}

/* Reads what is there. False when the other end is closed. */
static bool read_out(struct oc_child *child)
{
    for (;;) {
        ssize_t n = read(child->out, child->line + child->used, child->room - child->used);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 && errno == EAGAIN;
        child->used += (size_t)n;
        take_lines(child);
    }
}

/* Keeps the end of standard error. */
static void read_err(struct oc_child *child)
{
    char text[TAIL / 2];
    ssize_t n;
    while (child->err >= 0 && (n = read(child->err, text, sizeof text)) > 0) {
        size_t more = (size_t)n, kept = child->tail_used;
        if (kept + more >= TAIL) kept = TAIL - 1 - more;
        memmove(child->tail, child->tail + child->tail_used - kept, kept);
        memcpy(child->tail + kept, text, more);
        child->tail_used = kept + more;
        child->tail[child->tail_used] = '\0';
    }
}

/* ---- How it ended ---- */

/* Its last non-empty line on standard error, without control characters. */
static const char *last_words(struct oc_child *child)
{
    char *text = child->tail;
    size_t end = child->tail_used;
    while (end > 0 && (unsigned char)text[end - 1] <= ' ') end--;
    size_t start = end;
    while (start > 0 && text[start - 1] != '\n') start--;
    for (size_t i = start; i < end; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127) text[i] = ' ';
    text[end] = '\0';
    return text + start;
}

static void explain(struct oc_child *child, int status)
{
    if (child->last) return; /* it has said itself how it went */
    char how[96];
    child->state = WIFSIGNALED(status) ? OC_CHILD_CRASHED : OC_CHILD_STRANGE;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) { /* its own watch: see oc_cli_probe() */
        child->state = OC_CHILD_SILENT;
        snprintf(how, sizeof how, "the probe hung: it was stopped when it made no progress any more");
    } else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "the probe was stopped by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (child->dropped > 0)
        snprintf(how, sizeof how, "the probe's output is not a probe's (%d lines)", child->dropped);
    else
        snprintf(how, sizeof how, "the probe ended with status %d and no result", WEXITSTATUS(status));
    const char *words = last_words(child);
    snprintf(child->why, sizeof child->why, "%s%s%.150s", how, words[0] ? ": " : "", words);
}

bool oc_child_pump(struct oc_child *child)
{
    if (child->ended) return true;
    int status;
    pid_t done = waitpid(child->pid, &status, WNOHANG); /* before the last read, so that nothing is missed */
    read_out(child);
    read_err(child);
    if (done == 0) return false;
    if (done != child->pid) status = 0;
    child->ended = true;
    if (child->used > 0 && child->used < child->room) { /* a last line without its newline */
        child->line[child->used] = '\0';
        take_line(child, child->line);
    }
    explain(child, status);
    close_end(&child->out);
    close_end(&child->err);
    return true;
}

enum oc_child_state oc_child_state(const struct oc_child *child)
{
    return child->ended ? child->state : OC_CHILD_RUNS;
}
int oc_child_fd(const struct oc_child *child)
{
    return child->ended ? -1 : child->out;
}
const char *oc_child_phase(const struct oc_child *child)
{
    return child->phase;
}
double oc_child_fraction(const struct oc_child *child)
{
    return child->fraction;
}
const char *oc_child_line(const struct oc_child *child)
{
    return child->last ? child->last : "";
}
const char *oc_child_why(const struct oc_child *child)
{
    return child->why;
}

/* ---- Ending ---- */

/* Whether the child could be reaped within so many steps of 5 ms. */
static bool gone_within(pid_t pid, int steps)
{
    for (int i = 0; i < steps; i++) {
        pid_t done = waitpid(pid, NULL, WNOHANG);
        if (done == pid || (done < 0 && errno == ECHILD)) return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

/* TERM was sent: after a second KILL. A process stuck in a driver even then is left alone after two more. */
static void *see_off(void *argument)
{
    struct oc_child *child = argument;
    if (!gone_within(child->pid, 200)) {
        kill(-child->pid, SIGKILL);
        gone_within(child->pid, 400);
    }
    release(child);
    return NULL;
}

void oc_child_end(struct oc_child *child)
{
    if (!child) return;
    if (oc_child_pump(child)) {
        release(child);
        return;
    }
    kill(-child->pid, SIGTERM);
    pthread_t thread; /* the caller must not wait for it: a screen is drawn there */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals stay the caller's */
    bool detached = pthread_create(&thread, NULL, see_off, child) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (detached)
        pthread_detach(thread);
    else
        see_off(child);
}
