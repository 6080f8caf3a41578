/* The probe: a real training step, op by op, whose allocations are measured. It reads a plan and never the model's
 * formulas.
 *
 * Ownership: see each function. */
#ifndef OOMCAST_PROBE_H
#define OOMCAST_PROBE_H

#include "oomcast/ledger.h"
#include "oomcast/plan.h"

enum oc_device { OC_DEVICE_AUTO, OC_DEVICE_CUDA, OC_DEVICE_HOST, OC_DEVICE_DRY };

enum oc_probe_status { OC_PROBE_DONE, OC_PROBE_OOM, OC_PROBE_CANCELLED, OC_PROBE_FAILED };

/* One tensor name as the probe's allocator saw it, summed over instances at the peak instant. */
struct oc_measured_entry {
    char name[48];
    uint8_t class, dtype;
    uint32_t count;
    uint64_t bytes; /* of all instances */
};

enum { OC_MAX_MEASURED = 256, OC_MAX_LOSSES = 64, OC_PROBE_WHY = 224 };

/* What became of the numbers, over the whole run: why loss scaling and master copies exist. None on dry. */
struct oc_probe_numerics {
    double gradients;            /* that were not zero, each step's counted */
    double flushed;              /* of them, that fp16 holds as zero */
    double flushed_scaled;       /* ... even when the loss is scaled by 65536 first */
    double updates;              /* of weights, by something that is not zero */
    double lost;                 /* of them, that were lost to rounding in the type that the optimizer updates */
    double lost_bf16, lost_fp16; /* that would be lost with weights of that type and no master copy */
    int skipped;                 /* steps whose gradients overflowed: nothing was updated */
    double loss_scale;           /* at the end; 1 where there is none */
    double norm;                 /* of the last step's gradients, before it was clipped to 1 */
};

/* What the device itself says of its memory, below the allocator: only a GPU says anything. */
struct oc_device_bytes {
    bool measured;         /* false: nothing below is known */
    char name[64];         /* of the GPU */
    uint64_t total;        /* as CUDA reports it */
    uint64_t before, peak; /* in use by everybody, once this process had its context, and at most while it ran */
    bool context_known;    /* NVML saw the device before this process came to it */
    uint64_t context;      /* what the context took: driver, kernels, stacks */
    int others;            /* processes that compute on it beside this one; -1 = unknown */
};

struct oc_probe_result {
    enum oc_probe_status status;
    char why[OC_PROBE_WHY]; /* one sentence unless DONE */
    enum oc_device device;
    uint64_t plan_hash;
    struct oc_rank rank;                               /* measured (host, cuda) or simulated (dry) */
    struct oc_measured_entry entries[OC_MAX_MEASURED]; /* at the steady peak */
    int n_entries;
    double losses[OC_MAX_LOSSES]; /* after each step; none on dry */
    int n_losses;
    double seconds;
    struct oc_probe_numerics numerics;
    struct oc_device_bytes bytes;
    /* Host, without poison: by how much the most that was ever resident of this process (VmHWM) grew in the run: about
     * the largest sum of blocks. 0 = unknown. */
    uint64_t resident;
    char fallback[OC_PROBE_WHY]; /* why AUTO ran on the host: a sentence; "" where it did not have to */
};

struct oc_probe_options {
    enum oc_device device; /* AUTO: the GPU where there is one that can be used, else the host */
    int ordinal;           /* which GPU of those that are visible */
    bool wrap;             /* past the last GPU the first one follows: more ranks than GPUs share them */
    bool alone;            /* AUTO leaves a GPU alone where other processes compute */
    int stage;             /* of the pipeline: which rank's part runs */
    int steps;             /* at least 2: the first and a steady one */
    uint64_t limit;        /* bytes of segments at most; 0 = none */
    bool poison;           /* fill freed memory with 0xA5 */
    const char *drop;      /* tests: name of a saved tensor to free and poison before its backward; NULL = none */
    /* Tests: called for every block that is taken (its handle and bytes) and given back (bytes = 0). May be NULL. */
    void (*trace)(void *user, uint32_t handle, uint64_t bytes);
    /* Called now and then from inside the run; returning false cancels it. May be NULL. */
    bool (*progress)(void *user, const char *phase, int step, int steps);
    void *user;
};

/* Runs the plan's training step in this process. `result` is always filled; returns status == OC_PROBE_DONE. A plan for
 * which oc_probe_covers() gives a reason FAILS with that reason. */
bool oc_probe_run(const struct oc_plan *plan, const struct oc_probe_options *options, struct oc_probe_result *result);

/* What the device gave beyond the allocator's segments, bytes: 0 where cudaMalloc gives what it is asked for. */
int64_t oc_device_overhead(const struct oc_probe_result *result);

/* One process of many, as torchrun, OpenMPI, MVAPICH, Slurm or Hydra started it. */
struct oc_launch {
    int rank, world; /* of all; 0 of 1 when it is alone */
    int local;       /* among those on this machine */
    const char *by;  /* the launcher; "" when there is none */
};
bool oc_find_rank(struct oc_launch *launch); /* false: this process is alone */

/* Cuts a plan to what runs in about `seconds` on one core and `bytes` of memory: layers first (to no fewer than 2),
 * then micro-batch, then vocabulary or sequence, whichever is larger, then widths; what the last cut left of the budget
 * goes to layers again. A rank's slice stays one where the probe covers it; otherwise parallelism is taken out, and a
 * plan that is still not covered becomes the nearest one that is. Says in `what` (may be NULL) what was changed, "" if
 * nothing; the hash is recomputed. */
void oc_probe_fit(struct oc_plan *plan, uint64_t bytes, double seconds, char *what, int size);

/* Whether only layers (and accumulation) were cut: a peak is linear in layers, so that of the whole is known from
 * there; of any other cut nothing follows. */
bool oc_probe_cut_layers_alone(const struct oc_plan *whole, const struct oc_plan *cut);

/* The child that runs a probe for a parent which must not block, crash or touch CUDA. */
struct oc_child; /* opaque */

/* Starts `executable probe --json ARGS... --ppid PID` (argv is NULL-terminated and begins with "probe"; the last two
 * are added). Call it from the thread that lives longest: Linux ends the child with it. Returns NULL with `error`
 * filled. */
struct oc_child *oc_child_start(const char *executable, char *const argv[], struct oc_error *error);
int oc_child_fd(const struct oc_child *child); /* to poll() on; -1 when the child has ended */
/* Reads what is there without blocking. True when the child has ended and oc_child_line() holds its last words. */
bool oc_child_pump(struct oc_child *child);
/* How it stands with a child. */
enum oc_child_state {
    OC_CHILD_RUNS,
    OC_CHILD_DONE, /* these four it has said itself, in its last line */
    OC_CHILD_OOM,
    OC_CHILD_CANCELLED,
    OC_CHILD_FAILED,
    OC_CHILD_SILENT,  /* it made no progress for too long, and was stopped */
    OC_CHILD_CRASHED, /* a signal stopped it */
    OC_CHILD_STRANGE  /* it ended without a result, or is no probe */
};
enum oc_child_state oc_child_state(const struct oc_child *child);

const char *oc_child_phase(const struct oc_child *child); /* of the last progress line, or "" */
double oc_child_fraction(const struct oc_child *child);   /* 0..1 of it */
const char *oc_child_line(const struct oc_child *child);  /* the final JSON line, or "" */
const char *oc_child_why(const struct oc_child *child);   /* one sentence when it ended badly, or "" */
/* Frees the child. One that still runs gets TERM now and KILL a second later; the caller does not wait for that. */
void oc_child_end(struct oc_child *child);

#endif
