/* How fast the screen answers and how much it sends, beside its budgets (docs/DESIGN.md, "Budgets"): Llama-3-70B on
 * Megatron-LM, TP 8, PP 4, VPP 5, at 160x48.
 *
 *     bench_screen        in process: key press to finished frame; on a pseudo-terminal: bytes, idle bytes and CPU */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

#include "tui/screen/app.h"
#include "tui/views/views.h"

enum { WIDTH = 160, HEIGHT = 48, ROUNDS = 60, MOST = 4096 };

static const char *const settings[] = {
    "framework=megatron", "model.name=llama-3-70b", "parallel.tp=8",   "parallel.sp=true", "parallel.pp=4",
    "parallel.vpp=5",     "parallel.world=64",      "parallel.zero=1", "batch.seq=8192",   "batch.micro=1",
    "batch.global=256",   "precision=bf16",         "optimizer=adam",  "gpu=h100-80g",
};

/* What is changed, there and back: each pair of keys is two value changes. */
static const enum oc_option_id changed[] = {OC_OPT_precision, OC_OPT_batch_seq,     OC_OPT_recompute,
                                            OC_OPT_optimizer, OC_OPT_parallel_zero, OC_OPT_batch_micro};

enum { CHANGED = sizeof changed / sizeof changed[0] };

/* Milliseconds of CPU: one thread does it all, and other programs on the machine prove nothing. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_row(const char *what, double *values, int n, double budget, const char *unit)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    double p99 = values[n * 99 / 100 < n ? n * 99 / 100 : n - 1];
    printf("%-46s %10.2f %10.2f %10.2f %8.2f %s%s\n", what, values[n / 2], p99, values[n - 1], budget, unit,
           budget > 0 && p99 > budget ? "  over" : "");
}

/* ---- in process ---- */

static bool open_app(struct oc_app *app, struct oc_input *input)
{
    struct oc_error error = {0};
    input->c.config = oc_config_default();
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        enum oc_option_id id;
        if (!oc_config_assign(&input->c.config, settings[i], &id, &error)) break;
    }
    if (error.code == OC_OK && oc_app_start(app, &oc_real_model, input, &error)) return true;
    fprintf(stderr, "bench_screen: %s\n", error.message);
    return false;
}

static void measure_view(struct oc_app *app, struct oc_canvas *canvas, int view)
{
    static double times[MOST];
    int n = 0;
    char what[64];
    oc_app_view(app, view);
    app->in_panel = true;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CHANGED; i++) {
            oc_panel_show(&app->panel, changed[i]);
            for (int back = 0; back < 2 && n < MOST; back++) {
                double begin = now();
                oc_app_key(app, back ? 'h' : 'l');
                oc_app_draw(app, canvas);
                times[n++] = now() - begin;
                while (app->unsettled) oc_app_settle(app);
            }
        }
    snprintf(what, sizeof what, "key to frame, CPU, view %d %s", view + 1, oc_views[view]->title);
    print_row(what, times, n, 4, "ms");
}

static bool in_process(void)
{
    static struct oc_app app;
    static struct oc_input input;
    struct oc_theme theme;
    struct oc_canvas canvas = {.theme = &theme, .colour = true};
    if (!open_app(&app, &input) || !oc_theme_default(&theme, NULL) || !oc_canvas_resize(&canvas, WIDTH, HEIGHT))
        return false;
    oc_app_request(&app, OC_REQ_BASE); /* as much as can be on the screen */
    for (int view = 0; view < oc_n_views; view++) measure_view(&app, &canvas, view);
    oc_canvas_free(&canvas);
    oc_app_end(&app);
    return true;
}

/* ---- on a terminal ---- */

/* Bytes that come until nothing does for `quiet` milliseconds. */
static long drain(int terminal, int quiet)
{
    char bytes[8192];
    struct pollfd fd = {terminal, POLLIN, 0};
    long all = 0;
    ssize_t n;
    while (poll(&fd, 1, quiet) > 0 && (n = read(terminal, bytes, sizeof bytes)) > 0) all += n;
    return all;
}

static pid_t start(int *terminal)
{
    struct winsize size = {.ws_row = HEIGHT, .ws_col = WIDTH};
    pid_t pid = forkpty(terminal, NULL, NULL, &size);
    if (pid != 0) return pid;
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    execl(OOMCAST_BIN, "oomcast", "--no-live", OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh", (char *)NULL);
    _exit(127);
}

static long send_keys(int terminal, const char *keys)
{
    if (write(terminal, keys, strlen(keys)) < 0) return -1;
    return drain(terminal, 80);
}

/* Clock ticks that the process has used. */
static long cpu_of(pid_t pid)
{
    char path[64];
    long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2) user = -1;
    fclose(file);
    return user + system;
}

static bool on_a_terminal(void)
{
    static const char *const options[] = {"precision", "optimizer",   "batch.micro",       "batch.seq",
                                          "recompute", "parallel.tp", "optimizer.momentum"};
    static double bytes[MOST], moves[MOST];
    int terminal, n = 0, m = 0;
    pid_t pid = start(&terminal);
    if (pid < 0) return false;
    drain(terminal, 300);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
            char find[64];
            snprintf(find, sizeof find, "/%s\r", options[i]);
            send_keys(terminal, find);
            for (const char *key = "lhlh"; *key; key++) {
                long sent = send_keys(terminal, (char[]){*key, '\0'});
                if (sent > 0) bytes[n++] = (double)sent / 1024;
            }
            moves[m++] = (double)send_keys(terminal, "j");
        }
    print_row("bytes of a value change, Fit at 160x48", bytes, n, 1.5, "KiB");
    print_row("bytes of a move in the panel", moves, m, 0, "B");
    long before = cpu_of(pid), idle = drain(terminal, 3000), used = cpu_of(pid) - before;
    printf("%-46s %10ld bytes, %ld ticks of CPU\n", "three idle seconds", idle, used);
    kill(pid, SIGTERM);
    drain(terminal, 200);
    waitpid(pid, NULL, 0);
    close(terminal);
    return idle == 0 && used == 0;
}

int main(void)
{
    printf("%-46s %10s %10s %10s %8s\n", "", "median", "p99", "largest", "budget");
    bool good = in_process();
    return on_a_terminal() && good ? EXIT_SUCCESS : EXIT_FAILURE;
}
