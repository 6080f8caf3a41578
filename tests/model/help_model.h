/* Shared by the model's tests: plans from KEY=VALUE text, and random configurations that resolve. */
#ifndef OOMCAST_HELP_MODEL_H
#define OOMCAST_HELP_MODEL_H

#include "oomcast/model.h"

/* A deterministic random number below `n` (xorshift). */
uint64_t help_below(uint64_t *state, uint64_t n);

/* A configuration from NULL-terminated KEY=VALUE words; fails the test on an error. */
struct oc_config help_config(const char *const *words);

/* Resolves KEY=VALUE words into a plan; fails the test on an error. */
struct oc_plan help_plan(const char *const *words);

/* Estimates and sweeps one stage. */
void help_rank(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger, struct oc_rank *rank);

/* The same from KEY=VALUE words. */
struct oc_rank help_rank_of(const char *const *words, int64_t stage, struct oc_ledger *ledger);

/* Fails the test unless what stays between steps is within 0.05 % of run `run`, and the peak within `error` of it. */
void help_near(const struct oc_rank *rank, int run, uint64_t idle, uint64_t peak, double error);

/* W + M + G + O of an instant. */
uint64_t help_states(const struct oc_instant *instant);

/* A random configuration that resolves: over frameworks, shapes (experts, latent attention, adapters), parallelism,
 * precision, recompute and optimizers. The second form keeps to one framework. */
struct oc_config help_random_config(uint64_t *state);
struct oc_config help_random_config_of(uint64_t *state, enum oc_framework framework);

/* Sets an option and its given bit. */
void help_put(struct oc_config *config, enum oc_option_id id, int64_t value);

/* 10 in a normal run, 1 in `test --all`'s long sweeps: divides the number of repetitions. */
int help_share(void);

#define HELP_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
