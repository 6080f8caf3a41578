/* What the probe takes, beside its budgets (docs/DESIGN.md, "Budgets"), and whether real memory agrees with its books:
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

/* ---- Real memory against the books ---- */

static uint64_t status_bytes(const char *key)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) kib = strtoull(line + strlen(key) + 1, NULL, 10);
    if (file) fclose(file);
    return kib * 1024;
}

/* In a process of its own, so that the high-water mark is this run's. */
static void agreement(const char *title, const char *const *settings)
{
    struct oc_plan plan;
    fflush(stdout);
    const pid_t pid = fork();
    if (pid != 0) {
        if (pid > 0) waitpid(pid, NULL, 0);
        return;
    }
    struct oc_probe_result *result = calloc(1, sizeof *result);
    if (!result || !resolve(settings, &plan)) _exit(1);
    const struct oc_probe_options options = {.device = OC_DEVICE_HOST, .steps = 2};
    FILE *clear = fopen("/proc/self/clear_refs", "w"); /* the mark begins at what is there now */
    if (clear) fputs("5", clear), fclose(clear);
    const uint64_t before = status_bytes("VmRSS:");
    if (!oc_probe_run(&plan, &options, result)) printf("  failed: %s\n", result->why);
    const uint64_t grown = status_bytes("VmHWM:") - before;
    const struct oc_rank *rank = &result->rank;
    const uint64_t peak =
        rank->first_peak.allocated > rank->peak.allocated ? rank->first_peak.allocated : rank->peak.allocated;
    printf("  %-32s%8.2f MiB allocated, %8.2f reserved, %8.2f resident: %+.1f %%, of reserved %+.1f %%\n", title,
           (double)peak / MIB, (double)rank->reserved / MIB, (double)grown / MIB,
           100 * ((double)grown / (double)peak - 1), 100 * ((double)grown / (double)rank->reserved - 1));
    fflush(stdout);
    _exit(0);
}

int main(void)
{
    static const char *const llama[] = {"framework=pytorch", "model.layers=3",    "model.hidden=512", "model.heads=8",
                                        "model.ffn=1408",    "model.vocab=16000", "batch.seq=256",    "batch.micro=2",
                                        "precision=fp32",    "optimizer=adamw",   "gpu=none",         NULL};
    static const char *const eager[] = {"framework=pytorch",
                                        "model.layers=4",
                                        "model.hidden=384",
                                        "model.heads=8",
                                        "model.ffn=1024",
                                        "model.vocab=8000",
                                        "batch.seq=256",
                                        "batch.micro=2",
                                        "kernels.attention=eager",
                                        "precision=amp-bf16",
                                        "optimizer=adamw",
                                        "gpu=none",
                                        NULL};
    static const char *const megatron[] = {"framework=megatron", "model.layers=4",        "model.hidden=512",
                                           "model.heads=8",      "model.ffn=1408",        "model.vocab=16000",
                                           "batch.seq=256",      "batch.micro=2",         "precision=bf16",
                                           "gpu=none",           "kernels.loss=te-fused", NULL};
    /* What the built-in example is cut to by default. */
    static const char *const example[] = {"framework=pytorch",
                                          "model.layers=2",
                                          "model.hidden=128",
                                          "model.heads=2",
                                          "model.kv_heads=1",
                                          "model.head_dim=128",
                                          "model.ffn=224",
                                          "model.vocab=2048",
                                          "batch.seq=128",
                                          "batch.accum=2",
                                          "precision=fp16",
                                          "precision.master=fp32",
                                          "optimizer=sgd",
                                          "optimizer.momentum=0.9",
                                          "recompute=full",
                                          "gpu=none",
                                          NULL};
    dry_runs();
    default_run();
    look_for_gpu();
    printf("VmHWM less what was resident before, against the allocated peak (within 5 %%)\n");
    agreement("the default size", example);
    agreement("Llama, fp32, AdamW", llama);
    agreement("autocast bf16, eager attention", eager);
    agreement("Megatron, bf16", megatron);
    return EXIT_SUCCESS;
}
