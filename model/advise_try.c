/* One try of oc_advise(): a configuration with some atoms in it, resolved, weighed, measured and replayed. */
#include <stdio.h>
#include <string.h>

#include "model/advise.h"

/* One operation on 16-bit numbers in place of one byte between GPUs: an H100 SXM does 989e12 dense operations and sends
 * 450e9 bytes over NVLink in a second, 64e9 over PCIe 5 x16 (NVIDIA H100 data sheet). They only put costs in order. */
#define OPERATIONS_PER_BYTE      (989e12 / 450e9)
#define OPERATIONS_PER_HOST_BYTE (989e12 / 64e9)

/* ---- atoms ---- */

static void put(struct oc_config *config, enum oc_option_id id, int64_t value)
{
    oc_option_put(config, id, value);
    oc_set_given(config, id, true);
}

static void apply(const struct oc_atom *atom, struct oc_config *config)
{
    for (int id = OC_OPT_precision + 1; atom->row->resets_types && id <= OC_OPT_precision_residual; id++)
        oc_option_reset(config, (enum oc_option_id)id);
    put(config, atom->row->option, atom->value);
    for (int i = 0; i < atom->row->n_also; i++) put(config, atom->row->also[i].option, atom->row->also[i].value);
}

/* The value that an atom wants for an option; false when it does not care. */
static bool wants(const struct oc_atom *atom, enum oc_option_id id, int64_t *value)
{
    *value = atom->value;
    if (atom->row->option == id) return true;
    for (int i = 0; i < atom->row->n_also; i++) {
        *value = atom->row->also[i].value;
        if (atom->row->also[i].option == id) return true;
    }
    return false;
}

bool oc_atoms_contradict(const struct oc_atom *a, const struct oc_atom *b)
{
    int64_t value;
    if (wants(b, a->row->option, &value) || wants(a, b->row->option, &value)) return true;
    for (int i = 0; i < a->row->n_also; i++)
        if (wants(b, a->row->also[i].option, &value) && value != a->row->also[i].value) return true;
    return false;
}

/* Whether the plan has what the atom set, and makes something of it. */
static bool took(const struct oc_plan *plan, const struct oc_atom *atom)
{
    const struct oc_advice_row *row = atom->row;
    const struct oc_option *option = oc_option(row->option);
    if (row->applies && !row->applies(plan)) return false;
    for (int i = 0; i < row->n_also; i++)
        if (oc_option_get(&plan->c, row->also[i].option) != row->also[i].value) return false;
    return oc_option_get(&plan->c, row->option) == atom->value &&
           !(option->inapplicable && option->inapplicable(&plan->c));
}

/* ---- a try ---- */

/* A step goes on having as many samples: where accumulation does not follow from batch.global, it makes up for it. */
static bool keep_samples(struct oc_trial *trial)
{
    const int64_t samples = trial->plan.c.batch_global, pass = trial->then.c.batch_micro * trial->then.dp;
    if (trial->then.c.batch_global == samples || samples % pass) return true;
    put(&trial->with, OC_OPT_batch_accum, samples / pass);
    return oc_resolve(&trial->with, &trial->then, &trial->warnings, NULL);
}

bool oc_try_resolve(struct oc_trial *trial, const struct oc_try *t)
{
    bool keeps = true;
    trial->with = *trial->config;
    for (int i = 0; i < t->n; i++) {
        apply(&trial->atoms[t->atoms[i]], &trial->with);
        keeps = keeps && !trial->atoms[t->atoms[i]].row->keeps_accum;
    }
    trial->tried++;
    if (!oc_resolve(&trial->with, &trial->then, &trial->warnings, NULL)) return false;
    if (keeps && !keep_samples(trial)) return false;
    for (int i = 0; i < t->n; i++)
        if (!took(&trial->then, &trial->atoms[t->atoms[i]])) return false;
    return trial->then.c.parallel_pp <= OC_MAX_STAGES && trial->warnings.n <= trial->warned.n;
}

/* What a step of as many tokens as now takes more. */
static double extra(double then, const struct oc_cost *cost, double before, const struct oc_cost *now)
{
    return then * ((double)now->tokens / (double)cost->tokens) - before;
}

/* The part of all operations on as many tokens that comes on top. */
static double more_operations(const struct oc_cost *cost, const struct oc_cost *now)
{
    return cost->operations / (double)cost->tokens / (now->operations / (double)now->tokens) - 1;
}

void oc_try_weigh(const struct oc_trial *trial, struct oc_try *t)
{
    const struct oc_cost *now = &trial->cost;
    struct oc_cost cost;
    oc_cost(&trial->then, &cost);
    t->effect = OC_EFFECT_NONE;
    t->order = 0;
    t->ranks = cost.ranks;
    for (int i = 0; i < t->n; i++) {
        const struct oc_advice_row *row = trial->atoms[t->atoms[i]].row;
        if (row->effect > t->effect) t->effect = row->effect;
        t->order += t->atoms[i];
    }
    if (cost.ranks > now->ranks && t->effect < OC_EFFECT_RANKS) t->effect = OC_EFFECT_RANKS;
    if (cost.samples != now->samples || cost.tokens != now->tokens) t->effect = OC_EFFECT_TRAINING;
    t->price = cost.idle - now->idle;
    if (now->operations <= 0) return;
    t->price += more_operations(&cost, now);
    t->price += (extra(cost.sent, &cost, now->sent, now) * OPERATIONS_PER_BYTE +
                 extra(cost.host, &cost, now->host, now) * OPERATIONS_PER_HOST_BYTE) /
                (now->operations / (double)now->ranks);
}

/* The ends of a pipeline are its fullest stages as a rule, so they come first. */
static int64_t stage_at(int64_t i, int64_t stages)
{
    return i == 0 ? 0 : i == 1 ? stages - 1 : i - 1;
}

bool oc_try_measure(struct oc_trial *trial, bool all, struct oc_try *t)
{
    const int64_t stages = trial->then.c.parallel_pp;
    t->high = 0;
    for (int64_t i = 0; i < stages && (i < 2 || all || t->high <= trial->plan.capacity); i++) {
        const int64_t stage = stage_at(i, stages);
        trial->stages++;
        if (!oc_estimate(&trial->then, stage, &trial->ledger, NULL)) return false;
        oc_sweep(&trial->ledger, &trial->ranks[stage]);
        const uint64_t high = oc_device(&trial->then, &trial->ranks[stage]).high;
        if (high > t->high) t->high = high;
    }
    return true;
}

enum { SPARE_SEGMENTS = 64 << 20 };

bool oc_try_replay(struct oc_trial *trial)
{
    const int stages = (int)trial->then.c.parallel_pp;
    bool done[OC_MAX_STAGES] = {false};
    uint64_t most = 0; /* bytes reserved on one of them */
    for (int n = 0; n < stages && trial->alloc; n++) {
        int next = -1; /* the fullest that is left */
        for (int i = 0; i < stages; i++)
            if (!done[i] && (next < 0 || trial->ranks[i].peak.allocated > trial->ranks[next].peak.allocated)) next = i;
        struct oc_rank *rank = &trial->ranks[next];
        /* The cache does not add a third to a stage, beside segments of 20 MiB and 2 MiB that are hardly used. */
        if (rank->peak.allocated / 3 * 4 + SPARE_SEGMENTS < most) break;
        done[next] = true;
        trial->replays++;
        if (!oc_estimate(&trial->then, next, &trial->ledger, NULL) ||
            !oc_reserve(&trial->then, &trial->ledger, trial->alloc, rank))
            return false;
        if (rank->reserved > most) most = rank->reserved;
        if (oc_device(&trial->then, rank).high > trial->plan.capacity) break; /* it does not fit: enough is known */
    }
    return true;
}

/* ---- what is told of it ---- */

/* Options that were set, and those of the batch and the ranks that followed from them. */
static void note_changes(const struct oc_trial *trial, struct oc_advice *advice)
{
    for (int i = 0; i < OC_OPTIONS && advice->n_changes < OC_MAX_CHANGES; i++) {
        const enum oc_option_id id = (enum oc_option_id)i;
        const enum oc_type type = oc_option(id)->type;
        if (type == OC_T_STRING || type == OC_T_FLOAT) continue;
        const bool told = oc_given(&trial->with, id) || oc_given(trial->config, id) || id == OC_OPT_batch_accum ||
                          id == OC_OPT_parallel_world;
        const int64_t from = oc_option_get(&trial->plan.c, id), to = oc_option_get(&trial->then.c, id);
        if (told && from != to) advice->changes[advice->n_changes++] = (struct oc_change){id, from, to};
    }
}

bool oc_try_describe(struct oc_trial *trial, struct oc_try *t, struct oc_advice *advice)
{
    const struct oc_cost *now = &trial->cost;
    memset(advice, 0, sizeof *advice);
    if (!oc_try_resolve(trial, t) || !oc_try_measure(trial, true, t) || !oc_try_replay(trial)) return false;
    advice->config = trial->with;
    advice->n_steps = t->n;
    advice->effect = t->effect;
    for (int i = 0; i < t->n; i++) advice->notes[i] = trial->atoms[t->atoms[i]].row->note;
    note_changes(trial, advice);
    oc_cost(&trial->then, &advice->cost);
    if (now->operations > 0) advice->operations = more_operations(&advice->cost, now);
    advice->sent = extra(advice->cost.sent, &advice->cost, now->sent, now);
    advice->host = extra(advice->cost.host, &advice->cost, now->host, now);
    advice->idle = advice->cost.idle - now->idle;
    oc_judge(&trial->then, trial->ranks, (int)trial->then.c.parallel_pp, &advice->verdict);
    advice->allocated = trial->ranks[advice->verdict.worst_stage].peak.allocated;
    return true;
}

const char *oc_advice_text(const struct oc_advice *advice, char *text, size_t size)
{
    size_t used = 0;
    if (size) text[0] = '\0';
    for (int i = 0; i < advice->n_changes && used < size; i++) {
        const struct oc_change *change = &advice->changes[i];
        struct oc_config shown = advice->config;
        char from[OC_NAME_MAX], to[OC_NAME_MAX];
        oc_option_put(&shown, change->option, change->from);
        oc_option_text(&shown, change->option, from, sizeof from);
        oc_option_put(&shown, change->option, change->to);
        oc_option_text(&shown, change->option, to, sizeof to);
        used += (size_t)snprintf(text + used, size - used, "%s%s %s -> %s", used ? ", " : "",
                                 oc_option(change->option)->key, from, to);
    }
    return text;
}
