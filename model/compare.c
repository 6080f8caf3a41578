/* oc_compare(): the join of two ledgers at an instant of each. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/alive.h"
#include "oomcast/model.h"

/* ---- options ---- */

static bool same_value(const struct oc_config *a, const struct oc_config *b, enum oc_option_id id)
{
    char x[OC_NAME_MAX + 16], y[OC_NAME_MAX + 16];
    const enum oc_type type = oc_option(id)->type;
    if (type != OC_T_FLOAT && type != OC_T_STRING) return oc_option_get(a, id) == oc_option_get(b, id);
    return !strcmp(oc_option_text(a, id, x, sizeof x), oc_option_text(b, id, y, sizeof y));
}

static uint64_t peak_of(const struct oc_config *config, int64_t stage)
{
    struct oc_plan plan;
    struct oc_ledger ledger;
    struct oc_rank rank;
    if (!oc_resolve(config, &plan, NULL, NULL) || stage >= plan.c.parallel_pp ||
        !oc_estimate(&plan, stage, &ledger, NULL))
        return 0;
    oc_sweep(&ledger, &rank);
    return rank.peak.allocated;
}

/* What this one option would change of a peak of `here`: the first side, of which `before` is what was given, with the
 * second's value of it. */
static void try_alone(const struct oc_side *a, const struct oc_side *b, const struct oc_config *before, uint64_t here,
                      struct oc_option_difference *difference)
{
    char text[OC_NAME_MAX + 16];
    struct oc_config config = *before;
    const enum oc_option_id id = difference->option;
    oc_option_reset(&config, id);
    oc_option_text(&b->plan->c, id, text, sizeof text);
    if (oc_given(&b->plan->c, id) && !oc_option_set(&config, id, text, NULL)) return;
    const uint64_t there = peak_of(&config, a->rank->stage);
    difference->alone = here && there;
    difference->change = (int64_t)(there - here);
}

static uint64_t size_of(int64_t change)
{
    return change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
}

static int more_first(const void *a, const void *b)
{
    const struct oc_option_difference *x = a, *y = b;
    if (x->given != y->given) return x->given ? -1 : 1;
    if (size_of(x->change) != size_of(y->change)) return size_of(x->change) > size_of(y->change) ? -1 : 1;
    return (int)x->option - (int)y->option;
}

static void compare_options(struct oc_comparison *c)
{
    const struct oc_config *a = &c->a.plan->c, *b = &c->b.plan->c;
    struct oc_config before = oc_config_default();
    oc_config_merge(&before, a);
    const uint64_t here = peak_of(&before, c->a.rank->stage);
    for (int i = 0; i < OC_OPTIONS; i++) {
        const enum oc_option_id id = (enum oc_option_id)i;
        if (same_value(a, b, id)) continue;
        struct oc_option_difference *difference = &c->options[c->n_options++];
        *difference = (struct oc_option_difference){.option = id, .given = oc_given(a, id) || oc_given(b, id)};
        if (difference->given) try_alone(&c->a, &c->b, &before, here, difference);
    }
    qsort(c->options, (size_t)c->n_options, sizeof *c->options, more_first);
}

/* ---- entries ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static const char whole[] = "all parameters";

/* This rank's share of a copy of all parameters, as model/states.c names it. */
static bool is_share(const struct oc_entry *entry)
{
    return entry->copy && !strncmp(entry->name, whole, sizeof whole - 1);
}

static bool same_copy(const struct oc_entry *a, const struct oc_entry *b)
{
    return a->class == b->class && a->copy && b->copy && same_text(a->copy, b->copy);
}

static bool has_share(const struct oc_ledger *ledger, const struct oc_entry *entry)
{
    for (int i = 0; entry->copy && i < ledger->n_entries; i++)
        if (is_share(&ledger->entries[i]) && same_copy(&ledger->entries[i], entry)) return true;
    return false;
}

static struct oc_entry_difference *find(struct oc_comparison *c, const struct oc_entry *entry)
{
    const bool shared = has_share(c->a.ledger, entry) || has_share(c->b.ledger, entry);
    const char *name = shared ? whole : entry->name;
    for (int i = 0; i < c->n_entries; i++) {
        struct oc_entry_difference *d = &c->entries[i];
        const struct oc_entry *other = d->a ? d->a : d->b;
        if (other->class == entry->class && same_text(d->name, name) && same_text(other->copy, entry->copy)) return d;
    }
    struct oc_entry_difference *d = &c->entries[c->n_entries++];
    *d = (struct oc_entry_difference){.name = name};
    return d;
}

/* Adds what one side holds of an entry. */
static void add(struct oc_comparison *c, bool second, const struct oc_entry *entry, uint64_t bytes, uint32_t instances)
{
    struct oc_entry_difference *d = find(c, entry);
    const struct oc_entry **largest = second ? &d->b : &d->a;
    if (!*largest || entry->bytes > (*largest)->bytes) *largest = entry;
    *(second ? &d->bytes_b : &d->bytes_a) += bytes;
    *(second ? &d->instances_b : &d->instances_a) += instances;
    *(second ? &d->elements_b : &d->elements_a) += instances * entry->elements;
}

static void add_side(struct oc_comparison *c, bool second, const struct oc_side *side, const struct oc_instant *at)
{
    struct oc_alive alive;
    struct oc_entry *added = &c->added[second ? 2 : 0];
    if (at->exists)
        oc_alive_at(side->ledger, at, &alive);
    else
        memset(&alive, 0, sizeof alive);
    for (int i = 0; i < side->ledger->n_entries; i++)
        add(c, second, &side->ledger->entries[i], alive.bytes[i], alive.instances[i]);
    added[0] = oc_rounding_entry(&alive);
    added[1] = oc_unsplit_entry(&alive);
    add(c, second, &added[0], alive.rounding, 1);
    add(c, second, &added[1], alive.unsplit, 1);
}

static int64_t change_of(const struct oc_entry_difference *d)
{
    return (int64_t)(d->bytes_a - d->bytes_b);
}

static int larger_first(const void *a, const void *b)
{
    const struct oc_entry_difference *x = a, *y = b;
    const uint64_t mine = size_of(change_of(x)), other = size_of(change_of(y));
    if (mine != other) return mine > other ? -1 : 1;
    const struct oc_entry *m = x->a ? x->a : x->b, *o = y->a ? y->a : y->b;
    if (m->class != o->class) return (int)m->class - (int)o->class;
    const int name = strcmp(x->name, y->name);
    return name ? name : strcmp(m->copy ? m->copy : "", o->copy ? o->copy : "");
}

/* Leaves what differs. */
static void drop_same(struct oc_comparison *c)
{
    int kept = 0;
    for (int i = 0; i < c->n_entries; i++) {
        const struct oc_entry_difference d = c->entries[i];
        if (d.bytes_a == d.bytes_b)
            c->n_same += d.bytes_a > 0;
        else
            c->entries[kept++] = d;
    }
    c->n_entries = kept;
    qsort(c->entries, (size_t)kept, sizeof *c->entries, larger_first);
}

void oc_compare(const struct oc_side *a, const struct oc_side *b, int moment, struct oc_comparison *comparison)
{
    struct oc_comparison *c = comparison;
    c->a = *a;
    c->b = *b;
    c->moment = moment;
    c->at_a = moment == OC_AT_PEAK ? a->rank->peak : a->rank->moments[OC_STEADY][moment];
    c->at_b = moment == OC_AT_PEAK ? b->rank->peak : b->rank->moments[OC_STEADY][moment];
    c->n_options = c->n_entries = c->n_same = 0;
    compare_options(c);
    add_side(c, false, a, &c->at_a);
    add_side(c, true, b, &c->at_b);
    drop_same(c);
}

/* ---- the reason ---- */

struct text {
    char *text;
    size_t size, used;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *t, const char *format, ...)
{
    va_list args;
    if (t->used >= t->size) return;
    if (t->used) t->used += (size_t)snprintf(t->text + t->used, t->size - t->used, "; ");
    if (t->used >= t->size) return;
    va_start(args, format);
    t->used += (size_t)vsnprintf(t->text + t->used, t->size - t->used, format, args);
    va_end(args);
}

/* What splits tensors, or makes them longer, on a side. */
struct factor {
    const char *name;
    int64_t a, b;
    bool splits; /* twice of it is half as many elements */
};

/* Names the one factor that accounts for the ratio of the elements; nothing where several could. */
static void say_factor(const struct oc_comparison *c, double ratio, struct text *t)
{
    const struct oc_plan *p = c->a.plan, *q = c->b.plan;
    const struct factor factors[] = {
        {"tp", p->c.parallel_tp, q->c.parallel_tp, true},           {"cp", p->c.parallel_cp, q->c.parallel_cp, true},
        {"ranks that share it", p->shard, q->shard, true},          {"ep", p->c.parallel_ep, q->c.parallel_ep, true},
        {"micro-batch", p->c.batch_micro, q->c.batch_micro, false}, {"sequence", p->c.batch_seq, q->c.batch_seq, false},
    };
    const struct factor *found = NULL;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        const struct factor *f = &factors[i];
        const int64_t more = f->splits ? f->b : f->a, fewer = f->splits ? f->a : f->b;
        const double want = (double)more / (double)fewer;
        if (f->a == f->b || ratio < want * 0.999 || ratio > want * 1.001) continue;
        if (found) return;
        found = f;
    }
    if (found) say(t, "%s %lld against %lld", found->name, (long long)found->a, (long long)found->b);
}

/* In one ledger, or alive on one side, only. */
static void say_one_sided(const struct oc_comparison *c, const struct oc_entry_difference *d, struct text *t)
{
    const bool in_a = d->bytes_a > 0;
    const struct oc_entry *here = in_a ? d->a : d->b, *there = in_a ? d->b : d->a;
    const struct oc_instant *at = in_a ? &c->at_b : &c->at_a;
    if (there && at->exists)
        say(t, "%c has it too, but not in %s", in_a ? 'B' : 'A', oc_moment_name(at->place.moment));
    else
        say(t, "only in %c: %s", in_a ? 'A' : 'B', here->why ? here->why : here->name);
}

const char *oc_difference_text(const struct oc_comparison *comparison, const struct oc_entry_difference *difference,
                               char *text, size_t size)
{
    const struct oc_entry_difference *d = difference;
    struct text t = {text, size, 0};
    if (size) text[0] = '\0';
    if (!d->bytes_a || !d->bytes_b) {
        say_one_sided(comparison, d, &t);
        return text;
    }
    if (d->a->dtype != d->b->dtype)
        say(&t, "%s against %s", oc_dtype_name((enum oc_dtype)d->a->dtype), oc_dtype_name((enum oc_dtype)d->b->dtype));
    const bool whole_copy = d->name == whole;
    const uint64_t in_a = whole_copy ? d->elements_a : d->a->elements,
                   in_b = whole_copy ? d->elements_b : d->b->elements;
    if (in_a != in_b && in_a && in_b) {
        const size_t before = t.used;
        say_factor(comparison, (double)in_a / (double)in_b, &t);
        if (t.used == before) say(&t, "%.4g times as many elements", (double)in_a / (double)in_b);
    }
    if (!whole_copy && d->instances_a != d->instances_b)
        say(&t, "%llu alive against %llu", (unsigned long long)d->instances_a, (unsigned long long)d->instances_b);
    if (!t.used) say(&t, "%s", d->a->why ? d->a->why : "");
    return text;
}
