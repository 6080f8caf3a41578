/* A training step held open, so that a test can look at gradients and change weights between two runs of it. */
#ifndef OC_TESTS_HELP_TRAIN_H
#define OC_TESTS_HELP_TRAIN_H

#include "probes/train.h"

struct help_train {
    struct oc_plan plan;
    struct oc_probe_options options;
    struct oc_probe_backend backend;
    struct oc_books books;
    struct oc_rank rank;
    struct oc_train train;
};

/* On the host, with freed memory poisoned when asked and the named saved tensor dropped (NULL: none). */
void help_train_open(struct help_train *help, const struct oc_plan *plan, bool poison, const char *drop);
void help_train_close(struct help_train *help);

/* Forward and backward of one step, on fresh gradients; returns the loss. */
double help_train_run(struct help_train *help);

/* What has gradients: train.n_params parameters, or this rank's shares of them. */
struct oc_param *help_train_params(const struct help_train *help);

/* Gradients of all of them one after another, as floats, divided by the loss scale. The caller frees. */
float *help_train_gradients(struct help_train *help, int64_t *count);

/* The largest over all parameters of |a - b| / |b| (Euclidean norms over the parameter). NaN counts as infinite. */
double help_train_distance(const struct help_train *help, const float *a, const float *b);

#endif
