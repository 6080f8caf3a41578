#include <stddef.h>
#include <string.h>

#include "oomcast/model.h"

static bool answer_stage(struct oc_answer *answer, int stage, struct oc_ledger *ledger, struct oc_alloc *alloc,
                         struct oc_error *error)
{
    struct oc_rank *rank = &answer->ranks[stage];
    if (!oc_estimate(&answer->plan, stage, ledger, error)) return false;
    oc_sweep(ledger, rank);
    if (alloc && !oc_reserve(&answer->plan, ledger, alloc, rank)) return oc_fail(error, OC_E_INTERNAL, "out of memory");
    return true;
}

bool oc_answer(const struct oc_config *config, struct oc_answer *answer, struct oc_ledger *ledgers,
               struct oc_alloc *alloc, struct oc_error *error)
{
    struct oc_ledger scratch; /* stage after stage, for callers that keep none */
    answer->n_ranks = 0;
    if (!oc_resolve(config, &answer->plan, &answer->warnings, error)) return false;
    for (int stage = 0; stage < answer->plan.c.parallel_pp; stage++)
        if (!answer_stage(answer, stage, ledgers ? &ledgers[stage] : &scratch, alloc, error)) return false;
    answer->n_ranks = (int)answer->plan.c.parallel_pp;
    answer->params_total = oc_model_params(&answer->plan, &answer->params_active);
    oc_judge(&answer->plan, answer->ranks, answer->n_ranks, &answer->verdict);
    return true;
}
