#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

uint64_t help_below(uint64_t *state, uint64_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % n;
}

struct oc_config help_config(const char *const *words)
{
    struct oc_config config = oc_config_default();
    for (; *words; words++) {
        struct oc_error error;
        if (!oc_config_assign(&config, *words, NULL, &error)) fail_msg("%s: %s", *words, error.message);
    }
    return config;
}

struct oc_plan help_plan(const char *const *words)
{
    const struct oc_config config = help_config(words);
    struct oc_plan plan;
    struct oc_error error;
    if (!oc_resolve(&config, &plan, NULL, &error)) fail_msg("%s (%s)", error.message, error.hint);
    return plan;
}

void help_rank(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger, struct oc_rank *rank)
{
    struct oc_error error;
    if (!oc_estimate(plan, stage, ledger, &error)) fail_msg("%s", error.message);
    oc_sweep(ledger, rank);
}

struct oc_rank help_rank_of(const char *const *words, int64_t stage, struct oc_ledger *ledger)
{
    struct oc_rank rank;
    const struct oc_plan plan = help_plan(words);
    help_rank(&plan, stage, ledger, &rank);
    return rank;
}

void help_near(const struct oc_rank *rank, int run, uint64_t idle, uint64_t peak, double error)
{
    const double idle_off = (double)rank->moments[OC_STEADY][OC_M_IDLE].allocated / (double)idle - 1;
    const double peak_off = (double)rank->peak.allocated / (double)peak - 1;
    if (idle_off < -0.0005 || idle_off > 0.0005) fail_msg("run %d: idle off by %.3f %%", run, 100 * idle_off);
    if (peak_off < -error || peak_off > error) fail_msg("run %d: peak off by %.3f %%", run, 100 * peak_off);
}

uint64_t help_states(const struct oc_instant *instant)
{
    return instant->classes[OC_WEIGHTS] + instant->classes[OC_MASTER] + instant->classes[OC_GRADIENTS] +
           instant->classes[OC_OPTIMIZER];
}

int help_share(void)
{
    return getenv("OOMCAST_LONG") ? 1 : 10;
}
