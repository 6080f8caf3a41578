/* The ledger: what one rank holds, as a list of entries with lifetimes. Everything that is shown is a sum over it.
 *
 * Time on a rank is a program that a ledger describes and its entries' ticks refer to:
 *
 *     init
 *     each iteration:
 *         for each slot of the pipeline schedule (the forward or the backward of one micro-batch through one model
 * chunk): forward slot:   part EMBED, then part LAYER for each layer upwards, then part HEAD; phase LOSS after it on
 * the chunk that ends the model backward slot:  part HEAD, then part LAYER for each layer downwards (phase RECOMPUTE,
 * then BACKWARD), then EMBED reduce, clip, step, after_step, idle
 *
 * Inside a part, sub-steps count up in the order in which things happen, in forward and in backward alike. A tick is
 * (phase, part, sub). An entry is alive from its birth up to, and not including, its death; at one tick deaths come
 * first, then births in the order of the entries. How often it exists follows from its ticks:
 *
 *     birth and death inside slots    once per slot, and in part LAYER once per layer of its kind: a saved activation
 * is born in the forward slot of a micro-batch and dies in the backward slot of the same one birth inside a slot, death
 * not  once (per layer) in the first micro-batch of an iteration: a gradient birth and death outside slots   `count`
 * instances at once: states, buffers, scratch of the step death OC_PH_END                 it is born in the first
 * iteration and stays; the steady iteration starts with it death at OC_PH_START            it outlives its iteration
 * and dies at the beginning of the next
 *
 * Every forward slot ends with the ticks of phase LOSS; only entries of kind OC_END_HERE are born there.
 *
 * Ownership: a ledger is a plain value that the caller owns; names and reasons point to static text. */
#ifndef OOMCAST_LEDGER_H
#define OOMCAST_LEDGER_H

#include "oomcast/dtype.h"
#include "oomcast/error.h"
#include "oomcast/plan.h"

enum oc_class {
    OC_WEIGHTS,     /* W: the parameters that forward reads */
    OC_MASTER,      /* M: higher-precision copies of them */
    OC_GRADIENTS,   /* G: every copy of a parameter gradient, an fp32 copy made for the step included */
    OC_OPTIMIZER,   /* O: persistent optimizer state */
    OC_ACTIVATIONS, /* A: saved for backward, working set of recomputed layers, activation gradients, logits */
    OC_BUFFERS, /* B: autocast casts, gathered parameters, buckets, workspaces, scratch, padding, allocator rounding */
    OC_CLASSES
};

enum oc_phase {
    OC_PH_INIT,
    OC_PH_START, /* the first instant of an iteration */
    OC_PH_FORWARD,
    OC_PH_LOSS,
    OC_PH_RECOMPUTE,
    OC_PH_BACKWARD,
    OC_PH_REDUCE,
    OC_PH_CLIP,
    OC_PH_STEP,
    OC_PH_AFTER_STEP,
    OC_PH_IDLE, /* gradients are zeroed or freed at its first tick */
    OC_PH_END,  /* as a death: never */
    OC_PHASES
};

enum oc_part { OC_PART_NONE, OC_PART_EMBED, OC_PART_LAYER, OC_PART_HEAD };

enum {
    OC_MAX_SUB = 128,
    OC_MAX_KINDS = 4,
    OC_MAX_CHUNKS = 64,
    OC_MAX_RUNS = 4,
    OC_MAX_ENTRIES = 2048,
    OC_MAX_SLOTS = 4096,
    OC_MAX_STREAMS = 3
};

struct oc_tick {
    uint8_t phase; /* enum oc_phase */
    uint8_t part;  /* enum oc_part: OC_PART_NONE outside slots */
    uint8_t sub;   /* below OC_MAX_SUB */
};

/* The moments of an iteration that are reported. A moment's figure is the largest instant inside it. */
enum oc_moment {
    OC_M_INIT,
    OC_M_FORWARD,
    OC_M_LOSS,
    OC_M_BACKWARD, /* recompute included */
    OC_M_REDUCE,
    OC_M_CLIP,
    OC_M_STEP,
    OC_M_AFTER_STEP, /* after optimizer.step and before gradients are zeroed */
    OC_M_IDLE,       /* after that */
    OC_MOMENTS
};

enum oc_iteration { OC_FIRST, OC_STEADY, OC_ITERATIONS };

/* Which micro-batches an entry exists in; later ones accumulate into gradients that are already there. */
enum oc_when {
    OC_ALWAYS,
    OC_FIRST_MICRO_BATCH,   /* of every iteration */
    OC_LATER_MICRO_BATCHES, /* all but the first of every iteration */
    OC_ALL_BUT_THE_FIRST,   /* all but the first of the first iteration: gradients that are never freed */
    OC_LAST_MICRO_BATCH,    /* of every iteration that has several */
    OC_FIRST_TO_LAST        /* born in the first, dies at its tick of the last of several: what waits for a reduction */
};

/* `kind` of an entry in part EMBED or HEAD: on which model chunks it exists. */
enum oc_end {
    OC_END_ANY,      /* every chunk */
    OC_END_HERE,     /* the chunk that has the embedding (the output layer) */
    OC_END_ELSEWHERE /* chunks that receive from (send to) another stage instead */
};

struct oc_entry {
    const char *name;   /* "layers.attention.qkv" */
    const char *copy;   /* which copy of that parameter, "main grads"; NULL for what is no copy of one */
    const char *why;    /* the rule in a few words */
    const char *source; /* where the rule comes from */
    uint64_t elements;  /* of one instance */
    uint64_t bytes;     /* of one instance, as requested from the allocator */
    uint32_t count; /* instances on this rank at most at once, micro-batches aside: layers of its kind, tensors, or 1 */
    uint8_t class;  /* enum oc_class */
    uint8_t dtype;  /* enum oc_dtype */
    uint8_t kind;   /* part LAYER: which kind of layer, below OC_MAX_KINDS; EMBED, HEAD: enum oc_end */
    uint8_t when;   /* enum oc_when */
    bool pooled;    /* a view of a larger block: not rounded by itself */
    bool renewed;   /* made anew in every step, tensor by tensor, each before its old one is freed: for oc_reserve() */
    bool is_rounding; /* bytes the allocator adds: counted in allocated, not in requested */
    bool spares_top;  /* part LAYER of backward: not in the layers that run backward first */
    uint8_t stream;   /* which CUDA stream allocates it, below OC_MAX_STREAMS: 0 = the one that computes. The allocator
                       * gives what a stream has freed to that stream only */
    struct oc_tick birth, death;
};

/* `layers` consecutive layers of one kind, counted from the first layer of the chunk. */
struct oc_run {
    uint16_t kind;
    uint16_t layers;
};

struct oc_chunk {
    struct oc_run runs[OC_MAX_RUNS];
    int n_runs;
    int64_t first_layer; /* index in the whole model */
    bool embedding, head;
};

struct oc_slot {
    uint16_t micro_batch;
    uint8_t chunk;
    bool backward;
};

struct oc_ledger {
    int64_t stage;
    int64_t ranks;   /* ranks that hold the same: tp x cp x dp */
    uint64_t params; /* parameters on this rank, shards counted whole */
    struct oc_chunk chunks[OC_MAX_CHUNKS];
    int n_chunks;
    int group[OC_MAX_KINDS]; /* layers that are recomputed together (recompute.layers under uniform); 1 otherwise */
    struct oc_slot slots[OC_MAX_SLOTS]; /* the schedule cut to its fill and two more micro-batches (three where
                                         * the last is unlike the others): the rest repeats */
    int n_slots;
    int64_t left_out; /* micro-batches before the schedule's last one, which is numbered as in the whole step */
    struct oc_entry entries[OC_MAX_ENTRIES];
    int n_entries;
};

/* Where in the program an instant lies. */
struct oc_place {
    enum oc_iteration iteration;
    enum oc_moment moment;
    int32_t micro_batch; /* -1 outside slots */
    int32_t layer;       /* in the whole model; -1 outside layers */
    struct oc_tick tick;
};

/* One instant: allocated == sum of classes. */
struct oc_instant {
    uint64_t requested, allocated; /* bytes; allocated = requested + rounding of each block to 512 */
    uint64_t classes[OC_CLASSES];  /* bytes; rounding is in OC_BUFFERS */
    struct oc_place place;
    bool exists; /* false for a moment that this run does not have (init of the steady iteration, say) */
};

enum oc_evidence { OC_MODELLED, OC_SIMULATED, OC_MEASURED };

/* What is known of one rank: filled from a ledger by oc_sweep() and oc_reserve(), or by the probe from what it
 * measured. */
struct oc_rank {
    int64_t stage, ranks;
    uint64_t params;
    struct oc_instant moments[OC_ITERATIONS][OC_MOMENTS];
    struct oc_instant first_peak; /* first iteration, init excluded */
    struct oc_instant peak;       /* steady iteration */
    uint64_t reserved;            /* bytes of segments at their largest; 0 = not simulated */
    enum oc_evidence allocated_by, reserved_by;
};

/* Sums the ledger over its program: every moment of both iterations and both peaks. Closed over repetition: the time
 * does not grow with layers or micro-batches. Cannot fail on a ledger that oc_estimate() made. */
void oc_sweep(const struct oc_ledger *ledger, struct oc_rank *rank);

/* Sets first_peak and peak from the moments. */
void oc_rank_find_peaks(struct oc_rank *rank);

/* Appends an entry; returns it, or NULL when the ledger is full. */
struct oc_entry *oc_ledger_add(struct oc_ledger *ledger, const struct oc_entry *entry);

/* One birth or death of one instance, in program order. */
struct oc_event {
    int entry;    /* index in ledger->entries */
    int instance; /* unique among the entry's live instances, dense from 0: see oc_walk() */
    bool birth;
    struct oc_place place;
};

/* Runs the whole program for `iterations` iterations (init included), calling `visit` for every event in order; stops
 * when it returns false. The long form of what oc_sweep() sums: replay and tests are built on it. Instances are
 * numbered below oc_walk_instances(). */
void oc_walk(const struct oc_ledger *ledger, int iterations, bool (*visit)(const struct oc_event *event, void *user),
             void *user);

/* One more than the largest instance number that oc_walk() uses. */
int oc_walk_instances(const struct oc_ledger *ledger);

/* Names as the report writes them: "weights", "forward", "steady". */
const char *oc_class_name(enum oc_class class);
char oc_class_letter(enum oc_class class);
const char *oc_moment_name(enum oc_moment moment);
const char *oc_iteration_name(enum oc_iteration iteration);
enum oc_moment oc_phase_moment(enum oc_phase phase);

/* "layer 31, micro-batch 1" into `text`; returns `text`. */
const char *oc_place_text(const struct oc_place *place, char *text, int size);

#endif
