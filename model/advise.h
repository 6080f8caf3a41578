/* The changes that oc_advise() tries, as data. Internal to the model. */
#ifndef OOMCAST_ADVISE_H
#define OOMCAST_ADVISE_H

#include "oomcast/model.h"

/* Which values of its option a row tries, in this order. */
enum oc_values {
    OC_TRY_VALUE,  /* `value` */
    OC_TRY_DOUBLE, /* twice the present number, four times, ... up to `value` */
    OC_TRY_HALVE,  /* half of it, a quarter, ... down to `value`, while it divides evenly */
    OC_TRY_RAISE,  /* one more, two more, ... up to `value` */
    OC_TRY_LOWER,  /* one less, ... down to `value` */
    OC_TRY_COUNT   /* 1, 2, 4, ... up to `value`, whatever it is now */
};

struct oc_setting {
    enum oc_option_id option;
    int64_t value;
};

enum { OC_ADVISE_ALSO = 2, OC_ADVISE_VALUES = 6 };

struct oc_advice_row {
    enum oc_option_id option;
    enum oc_values how;
    int64_t value;
    unsigned frameworks;                           /* bits of enum oc_framework that have it */
    enum oc_effect effect;                         /* at least; more GPUs and another batch are seen by themselves */
    unsigned from;                                 /* ENUM: bits of the present values it starts from; 0 = any */
    bool (*applies)(const struct oc_plan *result); /* with the change in place; NULL = always */
    struct oc_setting also[OC_ADVISE_ALSO];        /* set with it */
    int n_also;
    bool resets_types; /* single number formats that were given follow again */
    bool keeps_accum;  /* samples of a step may change: that is what it is about */
    const char *note;  /* what it means for the run, in a few words */
};

/* One row with one value. */
struct oc_atom {
    const struct oc_advice_row *row;
    int64_t value;
};

enum { OC_MAX_ATOMS = 160 };

/* A combination of atoms that resolves, in what it costs and holds. */
struct oc_try {
    uint8_t atoms[OC_MAX_STEPS];
    int n;
    enum oc_effect effect;
    int64_t ranks;
    double price;  /* share of a step's time, roughly: for the order only */
    int order;     /* sum of the atoms' indices: earlier rows are gentler */
    bool failed;   /* it does not fit when it is replayed */
    uint64_t high; /* upper end of the device bytes, without what the allocator adds; a lower bound when it does not fit
                    */
};

/* What tries are made against, and the one that is being made. */
struct oc_trial {
    const struct oc_config *config;
    struct oc_alloc *alloc;    /* NULL: reserved bytes are not simulated */
    struct oc_plan plan;       /* of `config` */
    struct oc_warnings warned; /* about it */
    struct oc_cost cost;       /* of it */
    struct oc_atom atoms[OC_MAX_ATOMS];
    int n_atoms;
    int tried, stages, replays; /* configurations resolved, stages estimated, stages replayed */

    struct oc_config with; /* `config` and the atoms of a try */
    struct oc_plan then;
    struct oc_warnings warnings;
    struct oc_ledger ledger;
    struct oc_rank ranks[OC_MAX_STAGES];
};

/* Resolves a try into trial->with and trial->then. False when the framework would refuse it, rewrite it or warn of it.
 */
bool oc_try_resolve(struct oc_trial *trial, const struct oc_try *t);

/* What the resolved try costs: fills effect, price and order. */
void oc_try_weigh(const struct oc_trial *trial, struct oc_try *t);

/* Estimates the stages of trial->then, at least both ends; `all` of them, or until one does not fit. False when one
 * cannot be counted. */
bool oc_try_measure(struct oc_trial *trial, bool all, struct oc_try *t);

/* Replays the measured stages that may reserve most. False when out of memory. */
bool oc_try_replay(struct oc_trial *trial);

/* Resolves, measures and replays a try, and writes down everything about it. False when it cannot be counted. */
bool oc_try_describe(struct oc_trial *trial, struct oc_try *t, struct oc_advice *advice);

/* Whether one combination cannot hold both: they are about the same option. */
bool oc_atoms_contradict(const struct oc_atom *a, const struct oc_atom *b);

/* Towards less memory, cheapest kinds first; and the way back, for a run that fits. */
extern const struct oc_advice_row oc_advice_rows[], oc_advice_back_rows[];
extern const int oc_n_advice_rows, oc_n_advice_back_rows;

/* The values a row tries, given the present one; returns how many, at most OC_ADVISE_VALUES. */
int oc_advice_values(const struct oc_advice_row *row, int64_t present, int64_t values[OC_ADVISE_VALUES]);

#endif
