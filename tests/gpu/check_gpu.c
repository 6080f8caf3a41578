/* Everything about the probe that only a GPU can tell, as one JSON object: tests/gpu/check runs it. Exit status 77 when
 * there is no GPU, 1 when something is not as it should be.
 *
 *     check_gpu            the object, on standard output
 *     check_gpu --quick    the same of every fifth plan
 *     check_gpu --context  bytes of the context, or null
 *     check_gpu --one      one small run, for compute-sanitizer
 *     check_gpu --endless  runs until it gets TERM, then says "cancelled"
 *     check_gpu --trace    allocations of a dry run, for tests/gpu/replay_torch.py: "a HANDLE BYTES" and "f HANDLE"
 *                          lines, then "peak RESERVED" */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomcast/alloc.h"
#include "oomcast/probe.h"
#include "probes/shards.h"
#include "probes/te.h"
#include "tests/probes/help_plan.h"

enum { MIXED = 42, MEGATRON = 36, FSDP2 = 18, PLANS = MIXED + HELP_FAMILIES + MEGATRON + FSDP2, SKIPPED = 77 };

static int failures, stride = 1;

/* Small shapes of every kind, and every seventh one larger than a block of any kernel. */
static struct oc_plan plan_number(int i)
{
    struct oc_plan plan = i < MIXED                   ? help_mixed_plan(i)
                          : i < MIXED + HELP_FAMILIES ? help_family_plan(i - MIXED)
                          : i < PLANS - FSDP2         ? help_megatron_plan(i - MIXED - HELP_FAMILIES)
                                                      : help_fsdp2_plan(i - PLANS + FSDP2);
    if (i % 7 == 3) {
        plan.c.model_hidden = 192, plan.c.model_ffn = 320, plan.c.model_vocab = plan.vocab = 1031;
        plan.c.batch_seq = 130, plan.c.model_max_positions = 140;
    }
    return plan;
}

/* ---- Bytes: cuda == dry ---- */

static bool same_bytes(const struct oc_probe_result *a, const struct oc_probe_result *b)
{
    struct oc_rank x = a->rank, y = b->rank;
    x.allocated_by = y.allocated_by, x.reserved_by = y.reserved_by;
    return a->status == OC_PROBE_DONE && b->status == OC_PROBE_DONE && memcmp(&x, &y, sizeof x) == 0 &&
           a->n_entries == b->n_entries && memcmp(a->entries, b->entries, sizeof a->entries) == 0;
}

static void check_bytes(void)
{
    static struct oc_probe_result cuda, dry;
    int same = 0, ran = 0;
    int64_t overhead = 0;
    for (int i = 0; i < PLANS; i += stride) {
        const struct oc_plan plan = plan_number(i);
        if (oc_probe_covers(&plan)) continue;
        struct oc_probe_options options = {.device = OC_DEVICE_CUDA, .steps = 3};
        oc_probe_run(&plan, &options, &cuda);
        options.device = OC_DEVICE_DRY;
        oc_probe_run(&plan, &options, &dry);
        const bool equal = same_bytes(&cuda, &dry);
        if (!equal) fprintf(stderr, "bytes of plan %d differ: %s\n", i, cuda.why);
        if (llabs(oc_device_overhead(&cuda)) > llabs(overhead)) overhead = oc_device_overhead(&cuda);
        ran++;
        same += equal;
    }
    failures += ran - same;
    printf(" \"bytes\": {\"plans\": %d, \"cuda_is_dry\": %d, \"largest_device_overhead\": %" PRId64 "},\n", ran, same,
           overhead);
}

/* ---- Numbers: the gradients of a step, against the host's ---- */

struct step {
    struct oc_probe_backend backend;
    struct oc_books books;
    struct oc_rank rank;
    struct oc_train train;
    struct oc_probe_options options;
};

/* Forward and backward of one step with poisoned memory. False when the backend cannot. */
static bool run_step(struct step *step, const struct oc_plan *plan, enum oc_device device)
{
    memset(step, 0, sizeof *step);
    step->options = (struct oc_probe_options){.device = device, .steps = 2, .poison = true};
    if (device == OC_DEVICE_HOST)
        oc_backend_host(&step->backend, 0);
    else if (!oc_backend_cuda(&step->backend, 0, false, 0))
        return false;
    if (!oc_books_open(&step->books, &step->backend, false, true, &step->rank)) return false;
    if (!oc_train_open(&step->train, plan, &step->options, &step->backend, &step->books)) return false;
    if (step->train.loss_scale > 1024) step->train.loss_scale = 1024;
    if (step->train.te) oc_te_run_slots(&step->train);
    for (int i = 0; !step->train.te && i < step->train.micro_batches; i++) {
        step->train.micro_batch = i;
        oc_micro_batch(&step->train);
    }
    oc_ddp_reduce(&step->train);
    step->backend.sync(&step->backend);
    return !oc_train_stopped(&step->train);
}

static void end_step(struct step *step)
{
    oc_train_close(&step->train);
    oc_books_close(&step->books);
    if (step->backend.close) step->backend.close(&step->backend);
}

/* Of a parameter, or of this rank's share of it. */
static const struct oc_tensor *gradient(const struct step *step, int param)
{
    return (step->train.shards ? step->train.units : step->train.params)[param].grad;
}

/* |a - b| / |b| of the gradients of one parameter. */
static double distance(const struct step *a, const struct step *b, int param)
{
    const struct oc_tensor *x = gradient(a, param), *y = gradient(b, param);
    struct step *device = (struct step *)(uintptr_t)a;
    struct oc_array copy = {malloc((size_t)x->bytes), x->array.dtype};
    double difference = 0, length = 0;
    if (!copy.data) return (double)INFINITY;
    a->backend.read(&device->backend, copy.data, x->array.data, (size_t)x->bytes);
    for (int64_t i = 0; i < (int64_t)x->elements; i++) {
        const double p = (double)oc_load(copy, i), q = (double)oc_load(y->array, i);
        difference += (p - q) * (p - q);
        length += q * q;
    }
    free(copy.data);
    return length > 0 ? sqrt(difference / length) : difference > 0 ? (double)INFINITY : 0;
}

static void check_numbers(void)
{
    static struct step cuda, host;
    double worst[2] = {0, 0}, worst_loss = 0; /* fp32, and with 16-bit numbers */
    int good = 0, ran = 0;
    for (int i = 0; i < PLANS; i += stride) {
        const struct oc_plan plan = plan_number(i);
        const int half = plan.dt.compute != OC_FP32;
        const double most = half ? 0.05 : 1e-3;
        bool fine = run_step(&cuda, &plan, OC_DEVICE_CUDA) && run_step(&host, &plan, OC_DEVICE_HOST);
        double largest = 0;
        for (int p = 0; fine && p < cuda.train.n_params; p++) {
            const double d = distance(&cuda, &host, p);
            /* Without rope nothing depends on the keys' bias: its gradient is noise. */
            if (strstr(cuda.train.params[p].block, "k.bias") && plan.c.model_positions != OC_POS_ROPE) continue;
            if (!(d <= largest)) largest = d;
        }
        const double loss = fabs(cuda.train.loss - host.train.loss) / fmax(1e-3, fabs(host.train.loss));
        fine = fine && largest <= most && loss <= most;
        if (!fine)
            fprintf(stderr, "numbers of plan %d differ: gradients by %g, losses by %g (%s)\n", i, largest, loss,
                    cuda.backend.why);
        if (!(largest <= worst[half])) worst[half] = largest;
        if (!(loss <= worst_loss)) worst_loss = loss;
        end_step(&cuda);
        end_step(&host);
        ran++;
        good += fine;
    }
    failures += ran - good;
    printf(" \"numbers\": {\"plans\": %d, \"near_host\": %d, \"worst_fp32\": %.3g, \"worst_16_bit\": %.3g, "
           "\"worst_loss\": %.3g},\n",
           ran, good, worst[0], worst[1], worst_loss);
}

/* ---- Too little memory ---- */

static void check_limits(void)
{
    static struct oc_probe_result result;
    int ended = 0, oom = 0;
    struct oc_plan plan = plan_number(3);
    for (uint64_t mib = 2; mib < 400; mib += 6) {
        struct oc_probe_options options = {.device = OC_DEVICE_CUDA, .steps = 2, .limit = mib << 20};
        if (oc_probe_run(&plan, &options, &result)) break;
        ended++;
        oom += result.status == OC_PROBE_OOM;
    }
    failures += ended != oom || result.status != OC_PROBE_DONE;
    printf(" \"out_of_memory\": {\"runs\": %d, \"said\": %d},\n", ended, oom);
}

/* ---- A real size ---- */

static struct oc_plan llama_layers(void)
{
    struct oc_plan plan = help_plan();
    struct oc_config *c = &plan.c;
    c->model_layers = 3, c->model_hidden = 4096, c->model_heads = 32, c->model_kv_heads = 8, c->model_head_dim = 128;
    c->model_ffn = 14336, c->model_vocab = plan.vocab = 32000, c->batch_seq = 1024, c->batch_micro = 1;
    plan.q = 4096, plan.kv = 1024;
    help_precision(&plan, OC_PREC_AMP_BF16);
    return plan;
}

static void check_size(void)
{
    static struct oc_probe_result cuda, dry;
    const struct oc_plan plan = llama_layers();
    struct oc_probe_options options = {.device = OC_DEVICE_CUDA, .steps = 3};
    oc_probe_run(&plan, &options, &cuda);
    options.device = OC_DEVICE_DRY;
    oc_probe_run(&plan, &options, &dry);
    /* A small GPU has no room for it, and says so. */
    failures += cuda.status != OC_PROBE_OOM && !same_bytes(&cuda, &dry);
    printf(" \"three_layers_of_llama_3_8b\": {\"done\": %s, \"why\": \"%s\", \"seconds\": %.2f, \"allocated\": %" PRIu64
           ", \"reserved\": %" PRIu64 ", \"device_overhead\": %" PRId64 ", \"cuda_is_dry\": %s},\n",
           cuda.status == OC_PROBE_DONE ? "true" : "false", cuda.why, cuda.seconds, cuda.rank.peak.allocated,
           cuda.rank.reserved, oc_device_overhead(&cuda), same_bytes(&cuda, &dry) ? "true" : "false");
}

/* ---- The device ---- */

static bool check_device(void)
{
    static struct oc_probe_result result;
    const struct oc_plan plan = help_plan();
    const struct oc_probe_options options = {.device = OC_DEVICE_CUDA, .steps = 2};
    if (!oc_probe_run(&plan, &options, &result)) {
        fprintf(stderr, "check_gpu: %s\n", result.why);
        return false;
    }
    const struct oc_device_bytes *bytes = &result.bytes;
    printf("{\"gpu\": \"%s\", \"total\": %" PRIu64 ", \"context\": ", bytes->name, bytes->total);
    if (bytes->context_known)
        printf("%" PRIu64, bytes->context);
    else
        printf("null");
    printf(", \"others\": %d, \"seconds_with_context\": %.3f,\n", bytes->others, result.seconds);
    return true;
}

/* ---- Single runs ---- */

static volatile sig_atomic_t told;

static void tell(int signal)
{
    (void)signal;
    told = 1;
}

static bool go_on(void *user, const char *phase, int step, int steps)
{
    (void)user, (void)phase, (void)step, (void)steps;
    return !told;
}

/* Small matrices, but larger than a block of any kernel; until it is told to end, unless `steps` says so. */
static int run_one(int steps, bool context)
{
    static struct oc_probe_result result;
    const struct oc_plan plan = plan_number(3);
    const struct oc_probe_options options = {.device = OC_DEVICE_CUDA, .steps = steps, .progress = go_on};
    signal(SIGTERM, tell);
    oc_probe_run(&plan, &options, &result);
    if (context && result.bytes.context_known)
        printf("%" PRIu64 "\n", result.bytes.context);
    else
        printf("%s\n", context                               ? "null"
                       : result.status == OC_PROBE_CANCELLED ? "cancelled"
                       : result.status == OC_PROBE_DONE      ? "done"
                                                             : result.why);
    return result.status == OC_PROBE_DONE || result.status == OC_PROBE_CANCELLED ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- A trace ---- */

static void print_event(void *user, uint32_t handle, uint64_t bytes)
{
    (void)user;
    if (bytes)
        printf("a %" PRIu32 " %" PRIu64 "\n", handle, bytes);
    else
        printf("f %" PRIu32 "\n", handle);
}

static int print_trace(void)
{
    static struct oc_probe_result result;
    const struct oc_plan plan = llama_layers();
    const struct oc_probe_options options = {.device = OC_DEVICE_DRY, .steps = 3, .trace = print_event};
    if (!oc_probe_run(&plan, &options, &result)) return EXIT_FAILURE;
    printf("peak %" PRIu64 "\n", result.rank.reserved);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--trace") == 0) return print_trace();
    if (argc > 1 && strcmp(argv[1], "--context") == 0) return run_one(2, true);
    if (argc > 1 && strcmp(argv[1], "--one") == 0) return run_one(2, false);
    if (argc > 1 && strcmp(argv[1], "--endless") == 0) return run_one(1 << 30, false);
    if (argc > 1 && strcmp(argv[1], "--quick") == 0) stride = 5;
    if (!check_device()) return SKIPPED;
    check_bytes();
    check_numbers();
    check_limits();
    check_size();
    printf(" \"failures\": %d}\n", failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
