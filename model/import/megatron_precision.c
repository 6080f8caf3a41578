/* Number formats that several flags decide together. Source: Megatron-LM megatron/training/arguments.py:1194-1217,
 * core/optimizer/optimizer_config.py. */
#include <string.h>

#include "model/import/megatron.h"

/* What counts only with --use-precision-aware-optimizer. */
static const struct {
    enum megatron_fact fact;
    enum oc_option_id option;
} states[] = {{FACT_MAIN_GRADS, OC_OPT_precision_grads},
              {FACT_MAIN_PARAMS, OC_OPT_precision_master},
              {FACT_EXP_AVG, OC_OPT_precision_moment1},
              {FACT_EXP_AVG_SQ, OC_OPT_precision_moment2}};

static bool state_types(struct megatron *m)
{
    if (!m->input->c.config.optimizer_precision_aware) return true;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        const struct megatron_seen *seen = &m->facts[states[i].fact];
        if (!seen->flag) continue;
        if (!seen->text || (seen->value && seen->value->unknown))
            megatron_assume(m, states[i].option, seen);
        else if (!megatron_set(m, states[i].option, seen->text, seen->line))
            return false;
    }
    return true;
}

bool megatron_precision(struct megatron *m)
{
    const struct megatron_seen *fp8 = &m->facts[FACT_FP8], *fp4 = &m->facts[FACT_FP4];
    if (fp4->flag)
        oc_note_add(m->input, OC_NOTE_UNMODELLED, OC_OPT_precision, fp4->flag, m->file, fp4->line,
                    "fp4 copies of the weights and fp4 activations are left out");
    /* The weights stay in 16 bits beside fp8: --bf16 decides their rules. */
    if (fp8->flag && m->input->c.config.precision == OC_PREC_BF16 &&
        !megatron_set(m, OC_OPT_precision, "fp8", fp8->line))
        return false;
    return state_types(m);
}
