/* oc_advise(): a search over the rows of model/advise_rows.c.
 *
 * Single atoms are tried first, then pairs, then the nearest combinations with one atom more, up to OC_MAX_STEPS atoms.
 * The whole space is compared by allocated bytes. What fits is replayed through the allocator in the order of its cost
 * until the list is full. */
#include <string.h>

#include "model/advise.h"

enum { BEAM = 24, MAX_FITTING = 128 };

/* Limits of the search, counted and not timed, so that the same question has the same answer everywhere. */
enum { MOST_STAGES = 16000, MOST_REPLAYS = 48 };

struct search {
    struct oc_trial trial;
    struct oc_advices *out;
    uint64_t limit;           /* bytes on the device that a try may have before it is replayed */
    struct oc_try beam[BEAM]; /* the nearest that do not fit, the nearest first */
    int n_beam;
    struct oc_try fitting[MAX_FITTING]; /* the cheapest first */
    int n_fitting;
    struct oc_try taken[OC_MAX_ADVICE]; /* of out->list */
};

/* ---- order ---- */

static int compare_number(double a, double b)
{
    const double little = 1e-4; /* a hundredth of a percent is no difference */
    return a < b - little ? -1 : a > b + little;
}

/* Cheapest first. */
static int compare(const struct oc_try *a, const struct oc_try *b)
{
    if (a->effect != b->effect) return a->effect < b->effect ? -1 : 1;
    if (a->ranks != b->ranks) return a->ranks < b->ranks ? -1 : 1;
    const int price = compare_number(a->price, b->price);
    if (price) return price;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    return memcmp(a->atoms, b->atoms, sizeof a->atoms);
}

/* Fullest last. */
static int compare_high(const struct oc_try *a, const struct oc_try *b)
{
    if (a->high != b->high) return a->high < b->high ? -1 : 1;
    return compare(a, b);
}

static void insert(struct oc_try *list, int *n, int most, const struct oc_try *t,
                   int (*order)(const struct oc_try *, const struct oc_try *))
{
    int at = *n;
    while (at > 0 && order(t, &list[at - 1]) < 0) at--;
    if (at == most) return;
    const int end = *n < most ? (*n)++ : most - 1;
    memmove(&list[at + 1], &list[at], (size_t)(end - at) * sizeof *list);
    list[at] = *t;
}

static bool is_among(const struct oc_try *list, int n, const struct oc_try *t)
{
    for (int i = 0; i < n; i++)
        if (list[i].n == t->n && memcmp(list[i].atoms, t->atoms, sizeof t->atoms) == 0) return true;
    return false;
}

/* ---- the search ---- */

/* Tries a combination and keeps it where it belongs. Several steps together change no more than `most`; a single one
 * is kept whatever it changes. */
static void try_one(struct search *s, struct oc_try *t, enum oc_effect most, struct oc_try *beam, int *n_beam)
{
    if (s->trial.stages >= MOST_STAGES || !oc_try_resolve(&s->trial, t)) return;
    oc_try_weigh(&s->trial, t);
    if (s->out->back) t->order = -t->order; /* the larger step back is the better one */
    if ((t->effect > most && t->n > 1) || !oc_try_measure(&s->trial, false, t)) return;
    if (t->high <= s->limit)
        insert(s->fitting, &s->n_fitting, MAX_FITTING, t, compare);
    else if (t->effect <= most)
        insert(beam, n_beam, BEAM, t, compare_high);
}

static void try_singles(struct search *s)
{
    for (int i = 0; i < s->trial.n_atoms; i++) {
        struct oc_try t = {.atoms = {(uint8_t)i}, .n = 1};
        try_one(s, &t, OC_EFFECT_TRAINING, s->beam, &s->n_beam);
    }
}

/* Whether an atom may be added to a combination. */
static bool may_join(const struct search *s, const struct oc_try *t, int atom, enum oc_effect most)
{
    if (s->trial.atoms[atom].row->effect > most) return false;
    for (int i = 0; i < t->n; i++)
        if (oc_atoms_contradict(&s->trial.atoms[t->atoms[i]], &s->trial.atoms[atom])) return false;
    return true;
}

/* `t` and one atom more, the atoms in the order of their rows. */
static struct oc_try joined(const struct oc_try *t, int atom)
{
    struct oc_try more = *t;
    int at = more.n++;
    for (; at > 0 && more.atoms[at - 1] > atom; at--) more.atoms[at] = more.atoms[at - 1];
    more.atoms[at] = (uint8_t)atom;
    return more;
}

/* Each of `n` combinations with every atom; what comes nearest is the next beam. */
static void try_more(struct search *s, const struct oc_try *from, int n, enum oc_effect most)
{
    struct oc_try beam[BEAM];
    int n_beam = 0;
    for (int b = 0; b < n; b++)
        for (int i = 0; i < s->trial.n_atoms; i++) {
            if (!may_join(s, &from[b], i, most)) continue;
            struct oc_try more = joined(&from[b], i);
            if (is_among(beam, n_beam, &more) || is_among(s->fitting, s->n_fitting, &more)) continue;
            try_one(s, &more, most, beam, &n_beam);
        }
    if (!n_beam) return; /* what came nearest before stays it */
    memcpy(s->beam, beam, (size_t)n_beam * sizeof *beam);
    s->n_beam = n_beam;
}

static void try_pairs(struct search *s, enum oc_effect most)
{
    struct oc_try singles[OC_MAX_ATOMS];
    int n = 0;
    for (int i = 0; i < s->trial.n_atoms; i++)
        if (s->trial.atoms[i].row->effect <= most) singles[n++] = (struct oc_try){.atoms = {(uint8_t)i}, .n = 1};
    try_more(s, singles, n, most);
}

static void add_atoms(struct oc_trial *trial, const struct oc_advice_row *rows, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t values[OC_ADVISE_VALUES];
        if (!(rows[i].frameworks >> trial->plan.c.framework & 1)) continue;
        const int count = oc_advice_values(&rows[i], oc_option_get(&trial->plan.c, rows[i].option), values);
        for (int v = 0; v < count && trial->n_atoms < OC_MAX_ATOMS; v++)
            trial->atoms[trial->n_atoms++] = (struct oc_atom){&rows[i], values[v]};
    }
}

/* ---- what the list holds ---- */

/* The same kinds of changes, with whatever values; back, the same option. */
static bool same_kind(const struct search *s, const struct oc_try *a, const struct oc_try *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++) {
        const struct oc_advice_row *x = s->trial.atoms[a->atoms[i]].row, *y = s->trial.atoms[b->atoms[i]].row;
        if (s->out->back ? x->option != y->option : x != y) return false;
    }
    return true;
}

static bool is_named(const struct search *s, const struct oc_try *t)
{
    for (int i = 0; i < s->out->n; i++)
        if (same_kind(s, &s->taken[i], t)) return true;
    return false;
}

/* Of the combinations with the same kinds of changes the one with the smallest steps; back, with the largest. */
static struct oc_try *smallest(struct search *s, struct oc_try *t)
{
    for (int i = 0; i < s->n_fitting; i++)
        if (!s->fitting[i].failed && s->fitting[i].order < t->order && s->fitting[i].effect == t->effect &&
            same_kind(s, &s->fitting[i], t))
            t = &s->fitting[i];
    return t;
}

/* `a` costs no more than `b` in any respect, and leaves as much room. */
static bool dominates(const struct oc_advice *a, const struct oc_advice *b)
{
    return a->effect <= b->effect && a->n_steps <= b->n_steps && a->operations <= b->operations && a->sent <= b->sent &&
           a->host <= b->host && a->idle <= b->idle && a->cost.ranks <= b->cost.ranks &&
           a->cost.samples == b->cost.samples && a->cost.tokens == b->cost.tokens && a->cost.grain >= b->cost.grain &&
           a->n_changes <= b->n_changes && a->verdict.device.high <= b->verdict.device.high;
}

/* Something is won by taking it back. */
static bool pays(const struct search *s, const struct oc_advice *advice)
{
    const struct oc_cost *now = &s->trial.cost;
    return advice->operations < -1e-9 || advice->sent < 0 || advice->host < 0 || advice->idle < 0 ||
           advice->cost.ranks < now->ranks || advice->cost.grain > now->grain;
}

/* Describes a combination, and adds it to the list where it fits when replayed and no other one on the list makes it
 * pointless. False when it does not fit. */
static bool add(struct search *s, struct oc_try *t)
{
    struct oc_advices *out = s->out;
    struct oc_advice *advice = &out->list[out->n];
    t->failed = !oc_try_describe(&s->trial, t, advice) || !advice->verdict.fits;
    bool wanted = !t->failed && (!out->back || pays(s, advice));
    for (int i = 0; wanted && i < out->n; i++) wanted = !dominates(&out->list[i], advice);
    if (wanted) s->taken[out->n++] = *t;
    return !t->failed;
}

/* Adds combinations of `steps` steps that change no more than `most`. */
static void choose(struct search *s, int steps, enum oc_effect most)
{
    for (int i = 0; i < s->n_fitting; i++) {
        struct oc_try *t = &s->fitting[i];
        if (t->n != steps || t->effect > most) continue;
        while (!t->failed && !is_named(s, t) && s->out->n < OC_MAX_ADVICE && s->trial.replays < MOST_REPLAYS)
            if (add(s, smallest(s, t))) break;
    }
}

/* Leaves out what a later one makes pointless; the order stays. */
static void drop_dominated(struct oc_advices *out)
{
    int kept = 0;
    for (int i = 0; i < out->n; i++) {
        bool wanted = true;
        for (int j = i + 1; wanted && j < out->n; j++) wanted = !dominates(&out->list[j], &out->list[i]);
        if (wanted && kept != i) out->list[kept] = out->list[i];
        kept += wanted;
    }
    out->n = kept;
}

/* What fits with the fewest steps that change no more than `most`. */
static void find(struct search *s, enum oc_effect most)
{
    choose(s, 1, most);
    for (int steps = 2; steps <= OC_MAX_STEPS && !s->out->n; steps++) {
        if (steps == 2)
            try_pairs(s, most);
        else
            try_more(s, s->beam, s->n_beam, most);
        choose(s, steps, most);
    }
}

/* The configuration as it is. */
static bool start(struct search *s, struct oc_error *error)
{
    struct oc_trial *trial = &s->trial;
    struct oc_advices *out = s->out;
    struct oc_try now = {0};
    if (!oc_resolve(trial->config, &trial->plan, &trial->warned, error)) return false;
    if (!trial->plan.capacity) {
        oc_fail(error, OC_E_USAGE, "no GPU is named, so nothing says how much must fit");
        return oc_hint(error, "gpu=h100-80g, see `oomcast gpus`; or gpu.capacity=80GiB");
    }
    trial->then = trial->plan;
    if (!oc_estimate(&trial->plan, 0, &trial->ledger, error)) return false;
    if (!oc_try_measure(trial, true, &now))
        return oc_fail(error, OC_E_LIMIT, "this configuration is too large to count");
    if (!oc_try_replay(trial)) return oc_fail(error, OC_E_INTERNAL, "out of memory");
    oc_judge(&trial->plan, trial->ranks, (int)trial->plan.c.parallel_pp, &out->now);
    oc_cost(&trial->plan, &trial->cost);
    out->allocated = trial->ranks[out->now.worst_stage].peak.allocated;
    out->cost = trial->cost;
    out->back = out->now.fits;
    /* Where only the allocator's share is too much, half of that share is expected of every try. */
    s->limit = trial->plan.capacity -
               (now.high <= trial->plan.capacity && !out->back ? (out->now.device.high - now.high) / 2 : 0);
    return true;
}

bool oc_advise(const struct oc_config *config, struct oc_alloc *alloc, struct oc_advices *advices,
               struct oc_error *error)
{
    static const enum oc_effect passes[] = {OC_EFFECT_ROUNDING, OC_EFFECT_RANKS, OC_EFFECT_TRAINING};
    struct search s;
    memset(advices, 0, sizeof *advices);
    s.trial.config = config;
    s.trial.alloc = alloc;
    s.trial.n_atoms = s.trial.tried = s.trial.stages = s.trial.replays = 0;
    s.out = advices;
    s.n_beam = s.n_fitting = 0;
    if (!start(&s, error)) return false;
    s.trial.replays = 0;
    if (advices->back)
        add_atoms(&s.trial, oc_advice_back_rows, oc_n_advice_back_rows);
    else
        add_atoms(&s.trial, oc_advice_rows, oc_n_advice_rows);
    try_singles(&s);
    for (size_t i = 0; i < sizeof passes / sizeof *passes && !advices->n && !advices->back; i++) find(&s, passes[i]);
    choose(&s, 1, OC_EFFECT_TRAINING);
    drop_dominated(advices);
    advices->tried = s.trial.tried;
    if (!advices->n && !advices->back && s.n_beam)
        advices->has_nearest = oc_try_describe(&s.trial, &s.beam[0], &advices->nearest);
    return true;
}
