/* How fast the screen answers and how much it sends, beside its budgets (docs/DESIGN.md, "Budgets"): Llama-3-70B on
 * Megatron-LM, TP 8, PP 4, VPP 5, at 160x48.
 *
 *     bench_screen        in process: key press to finished frame; on a pseudo-terminal: idle bytes and CPU, and what
 *                         every change of every option sends in every view, on four configurations */
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

#include <locale.h>

#include "tests/tui/help_bytes.h"
#include "tui/views/views.h"

enum { WIDTH = 160, HEIGHT = 48, ROUNDS = 60, MOST = 4096 };

static const char *const settings[] = {
    "framework=megatron", "model.name=llama-3-70b", "parallel.tp=8",   "parallel.sp=true", "parallel.pp=4",
    "parallel.vpp=5",     "parallel.world=64",      "parallel.zero=1", "batch.seq=8192",   "batch.micro=1",
    "batch.global=256",   "precision=bf16",         "optimizer=adam",  "gpu=h100-80g",     NULL};

/* What bytes are counted on: the first seed's script (examples/), the run above, and two of other frameworks. */
static const struct {
    const char *title, *words[20];
} examples[] = {
    {"seed",
     {"framework=megatron", "model.layers=32", "model.hidden=4096", "model.heads=32", "model.kv_heads=8",
      "model.ffn=14336", "model.activation=swiglu", "model.norm=rmsnorm", "model.vocab=128256", "parallel.tp=8",
      "parallel.sp=true", "parallel.world=8", "precision=fp16", "optimizer=sgd", "recompute=full", "gpu=h100-80g"}},
    {"Megatron PP 4",
     {"framework=megatron", "model.name=llama-3-70b", "parallel.tp=8", "parallel.sp=true", "parallel.pp=4",
      "parallel.vpp=5", "parallel.world=64", "parallel.zero=1", "batch.seq=8192", "batch.global=256", "precision=bf16",
      "optimizer=adam", "gpu=h100-80g"}},
    {"FSDP2",
     {"framework=fsdp2", "model.name=llama-3.1-8b", "parallel.world=8", "batch.seq=4096", "precision=amp-bf16",
      "optimizer=adamw", "gpu=a100-80g"}},
    {"DeepSpeed",
     {"framework=deepspeed", "model.name=llama-2-7b", "parallel.world=8", "parallel.zero=2", "batch.seq=4096",
      "precision=bf16", "optimizer=adamw", "gpu=a100-40g"}},
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

static bool open_app(struct oc_app *app, struct oc_input *input, const char *const *words)
{
    struct oc_error error = {0};
    memset(app, 0, sizeof *app);
    memset(input, 0, sizeof *input);
    input->c.config = oc_config_default();
    for (; *words; words++) {
        enum oc_option_id id;
        if (!oc_config_assign(&input->c.config, *words, &id, &error)) break;
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
                oc_app_settle_all(app);
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
    if (!open_app(&app, &input, settings) || !oc_theme_default(&theme, NULL) ||
        !oc_canvas_resize(&canvas, WIDTH, HEIGHT))
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

/* The screen stands still: nothing is sent and nothing is computed. */
static bool is_idle(void)
{
    int terminal;
    pid_t pid = start(&terminal);
    if (pid < 0) return false;
    drain(terminal, 300);
    long before = cpu_of(pid), idle = drain(terminal, 3000), used = cpu_of(pid) - before;
    printf("%-46s %10ld bytes, %ld ticks of CPU\n", "three idle seconds", idle, used);
    kill(pid, SIGTERM);
    drain(terminal, 200);
    waitpid(pid, NULL, 0);
    close(terminal);
    return idle == 0 && used == 0;
}

/* ---- bytes ---- */

enum { CHANGES = 40000, VALUES = 2 }; /* values of an option, each way */

struct sent {
    double kib[CHANGES];
    int n, over;
    struct help_change most;
};

/* Of one view: changes after which the same rows are there, and only numbers and bars differ; and those that add,
 * remove or replace rows, whose text has to be sent whatever the frame is like. */
struct sent_by_view {
    struct sent kept, reworded;
};

static void note(const struct help_change *change, void *user)
{
    struct sent_by_view *view = user;
    struct sent *sent = change->reworded ? &view->reworded : &view->kept;
    if (sent->n == CHANGES) return;
    sent->kib[sent->n++] = (double)change->bytes / 1024;
    sent->over += change->bytes > 1500;
    if (change->bytes > sent->most.bytes) sent->most = *change;
}

static void print_sent(const char *title, const char *view, const char *kind, struct sent *sent)
{
    char what[96];
    if (!sent->n) return;
    snprintf(what, sizeof what, "bytes, %s, %s, %s", title, view, kind);
    print_row(what, sent->kib, sent->n, 1.5, "KiB");
    printf("    %d of %d above 1,500 bytes; most: %ld, %s %s -> %s\n", sent->over, sent->n, sent->most.bytes,
           oc_option(sent->most.option)->key, sent->most.from, sent->most.to);
}

/* Every option and its values, in every view, with a base to compare with. */
static bool count_bytes(const char *title, const char *const *words)
{
    static struct oc_app app;
    static struct oc_input input;
    static struct sent_by_view views[OC_VIEWS_MAX];
    struct help_bytes bytes;
    memset(views, 0, sizeof views);
    if (!open_app(&app, &input, words) || !help_bytes_open(&bytes, WIDTH, HEIGHT)) return false;
    for (int base = 0; base < 2; base++) {
        if (base) oc_app_request(&app, OC_REQ_BASE);
        for (int view = 0; view < oc_n_views; view++) {
            oc_app_view(&app, view);
            for (int id = 0; id < OC_OPTIONS; id++)
                help_bytes_walk(&bytes, &app, (enum oc_option_id)id, VALUES, note, &views[view]);
        }
    }
    help_bytes_close(&bytes);
    oc_app_end(&app);
    for (int view = 0; view < oc_n_views; view++) {
        print_sent(title, oc_views[view]->title, "same rows", &views[view].kept);
        print_sent(title, oc_views[view]->title, "other rows", &views[view].reworded);
    }
    return true;
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    printf("%-46s %10s %10s %10s %8s\n", "", "median", "p99", "largest", "budget");
    bool good = in_process() && is_idle();
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        good = count_bytes(examples[i].title, examples[i].words) && good;
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
