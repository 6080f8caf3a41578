/* What the probe takes, beside its budgets (docs/DESIGN.md, "Budgets"):
 * cmake --build DIR --target bench_probe && DIR/tests/bench/bench_probe, in a release build. Not a test: the time of a
 * shared machine proves nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oomcast/model.h"
#include "oomcast/probe.h"

#define MIB (1024.0 * 1024.0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool resolve(const char *const *settings, struct oc_plan *plan)
{
    struct oc_config config = oc_config_default();
    struct oc_error error = {0};
    enum oc_option_id id;
    for (; *settings; settings++)
        if (!oc_config_assign(&config, *settings, &id, &error)) break;
    if (*settings || !oc_resolve(&config, plan, NULL, &error)) {
        printf("bench_probe: %s\n", error.message);
        return false;
    }
    return true;
}

/* ---- The full-size dry run ---- */

static void dry_runs(void)
{
    static const char *const settings[] = {
        "framework=megatron", "model.name=llama-3-70b", "parallel.tp=8",  "parallel.sp=true",      "parallel.pp=4",
        "parallel.world=64",  "parallel.zero=1",        "batch.seq=8192", "batch.micro=1",         "batch.global=256",
        "precision=bf16",     "optimizer=adam",         "gpu=h100-80g",   "kernels.loss=te-fused", NULL};
    static struct oc_probe_result result;
    static struct oc_ledger ledger;
    struct oc_plan plan;
    if (!resolve(settings, &plan)) return;
    printf("Dry run of Llama-3-70B, TP 8, PP 4, fill + 2 micro-batches, 3 steps (budget 8 ms)\n");
    for (int stage = 0; stage < (int)plan.c.parallel_pp; stage++) {
        double best = 1e9;
        const struct oc_probe_options options = {.device = OC_DEVICE_DRY, .stage = stage, .steps = 3};
        for (int i = 0; i < 20; i++) {
            const double begin = now();
            if (!oc_probe_run(&plan, &options, &result)) printf("  failed: %s\n", result.why);
            const double time = now() - begin;
            if (time < best) best = time;
        }
        struct oc_rank model = {0};
        struct oc_error error;
        if (oc_estimate(&plan, stage, &ledger, &error)) oc_sweep(&ledger, &model);
        printf("  stage %d: %6.2f ms, %10.2f MiB requested, model %+" PRId64 " B\n", stage, 1e3 * best,
               (double)result.rank.peak.requested / MIB, (int64_t)(model.peak.requested - result.rank.peak.requested));
    }
}

/* ---- The default run on the host, as a process ---- */

static void default_run(void)
{
    const double begin = now();
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(1);
        execl(OOMCAST_BIN, OOMCAST_BIN, "probe", "--device", "host", "--json", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) return;
    printf("`oomcast probe --device host` at its default size (budget 3 s and 1 GB)\n  %.2f s, %.1f MiB, status %d\n",
           now() - begin, (double)usage.ru_maxrss / 1024, WEXITSTATUS(status));
}

/* A process that looks for a GPU and finds what there is instead; with one, it makes a context and runs. */
static void look_for_gpu(void)
{
    double best = 1e9;
    int status = 0;
    for (int i = 0; i < 20; i++) {
        const double begin = now();
        fflush(stdout);
        const pid_t pid = fork();
        if (pid == 0) {
            if (!freopen("/dev/null", "w", stdout)) _exit(1);
            execl(OOMCAST_BIN, OOMCAST_BIN, "probe", "--device", "cuda", "--json", (char *)NULL);
            _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid) return;
        if (now() - begin < best) best = now() - begin;
    }
    printf("`oomcast probe --device cuda` (budget without a driver: 5 ms)\n  %.2f ms, status %d\n", 1e3 * best,
           WEXITSTATUS(status));
}

int main(void)
{
    dry_runs();
    default_run();
    look_for_gpu();
    return EXIT_SUCCESS;
}
