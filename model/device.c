#include "model/device.h"
#include "model/frameworks/framework.h"
#include "model/shapes/opset.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)

/* CUDA context with PyTorch's kernels loaded lazily: 256-426 MiB on RTX cards (InvokeAI#9413, unsloth-zoo#1053), 612
 * MiB on a B200 (unsloth#8677), about 3 MiB an SM (llama.cpp#23604). No figure for A100 and H100 alone has a source: a
 * range, until a probe measures.
 *
 * An A100's range is fitted, in part: 1573 MiB is measured with all kernels loaded (below). What nvidia-smi showed in
 * 22 one-GPU runs of PyTorch 2.4 (tests/corpus/fms.txt), less the segments that we replay for them, is 0.3 to 2.3 GiB,
 * in the middle 1.5; with Liger's fused loss, whose segments we know best, 0.3 to 1.1, in the middle 0.7. */
static struct oc_range context_range(const struct oc_plan *plan)
{
    const int sm = plan->sm;
    /* Before CUDA 11.7 all kernels are loaded at once: 1113 MiB on a V100, 1573 MiB on an A100, measured
     * (bigscience-workshop/bigscience experiments/tr3m-1B3.md, train/tr11-176B-ml/chronicles-prequel.md), 1343 MiB on a
     * V100 in the transformers guide of 2022 (perf_train_gpu_one). */
    const int torch = oc_torch_release(&plan->c);
    const bool eager = oc_is_2021(plan) || (torch && torch < 113);
    if (eager && sm == 70) return (struct oc_range){1113 * MIB, (oc_is_2021(plan) ? 1113 : 1343) * MIB};
    if (eager && sm == 80) return (struct oc_range){1573 * MIB, 1573 * MIB};
    if (sm >= 100) return (struct oc_range){500 * MIB, 800 * MIB};
    if (sm >= 90) return (struct oc_range){400 * MIB, 700 * MIB};
    if (sm == 80) return (struct oc_range){400 * MIB, 1573 * MIB}; /* A100 */
    if (sm > 80) return (struct oc_range){300 * MIB, 550 * MIB};   /* RTX 3090 and later */
    /* A V100 is met with software of either kind. */
    if (sm == 70) return (struct oc_range){250 * MIB, 1343 * MIB};
    return (struct oc_range){250 * MIB, 500 * MIB};
}

/* One communicator per group of more than one rank. A ring takes 12 MiB a channel, 24 channels on NVLink: 288 MiB (NCCL
 * src/transport/p2p.cc); measured 544 to 688 MiB for one on 4 A100 (nccl#964); NVLS adds 256 MiB on Hopper
 * (src/transport/nvls.cc). */
static struct oc_range nccl_range(const struct oc_plan *plan)
{
    const int64_t groups[] = {plan->c.parallel_tp, plan->c.parallel_pp, plan->c.parallel_cp, plan->dp};
    uint64_t communicators = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) communicators += groups[i] > 1;
    const uint64_t most = plan->sm >= 90 ? (688 + 256) * MIB : 688 * MIB;
    return (struct oc_range){communicators * 288 * MIB, communicators * most};
}

static struct oc_range exactly(int64_t bytes)
{
    return (struct oc_range){(uint64_t)bytes, (uint64_t)bytes};
}

bool oc_find_device(struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (strcmp(c->gpu, "none")) {
        const struct oc_gpu_row *gpu = oc_gpu_find(c->gpu);
        if (!gpu) {
            oc_fail(error, OC_E_VALUE, "gpu: there is no GPU '%s'", c->gpu);
            return oc_hint(
                error,
                "`oomcast gpus` lists them; gpu.capacity sets the bytes of another one, gpu=none leaves it open");
        }
        plan->capacity = gpu->capacity;
        plan->sm = gpu->sm;
        plan->context = context_range(plan);
        plan->nccl = nccl_range(plan);
    }
    if (oc_given(c, OC_OPT_gpu_capacity)) plan->capacity = (uint64_t)c->gpu_capacity;
    if (oc_given(c, OC_OPT_gpu_context)) plan->context = exactly(c->gpu_context);
    if (oc_given(c, OC_OPT_gpu_nccl)) plan->nccl = exactly(c->gpu_nccl);
    plan->c.gpu_capacity = (int64_t)plan->capacity;
    return true;
}

struct oc_range oc_device(const struct oc_plan *plan, const struct oc_rank *rank)
{
    const uint64_t torch = rank->reserved > rank->peak.allocated ? rank->reserved : rank->peak.allocated;
    return (struct oc_range){torch + plan->context.low + plan->nccl.low, torch + plan->context.high + plan->nccl.high};
}

void oc_judge(const struct oc_plan *plan, const struct oc_rank *ranks, int n_ranks, struct oc_verdict *verdict)
{
    /* The 90th percentile of the model's error on peaks that is aimed at (DESIGN section 8, corpus/README.md): a fit by
     * less is tight. */
    const double p90 = 0.04;
    memset(verdict, 0, sizeof *verdict);
    for (int i = 0; i < n_ranks; i++) {
        const struct oc_range device = oc_device(plan, &ranks[i]);
        if (i && device.high <= verdict->device.high) continue;
        verdict->worst_stage = ranks[i].stage;
        verdict->device = device;
    }
    if (!plan->capacity || !n_ranks) return;
    verdict->known = true;
    verdict->fits = verdict->device.high <= plan->capacity;
    verdict->headroom = (int64_t)plan->capacity - (int64_t)verdict->device.high;
    verdict->tight = verdict->fits && (double)verdict->headroom < p90 * (double)verdict->device.high;
}
