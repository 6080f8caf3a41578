/* What must hold of every configuration, whatever its figures are: checked on random ones. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/base/program.h"
#include "model/frameworks/framework.h"

enum { CONFIGURATIONS = 100000 };

/* One stage of a random configuration. */
struct subject {
    struct oc_config config;
    struct oc_plan plan;
    struct oc_ledger ledger;
    struct oc_rank rank;
};

/* "key=value ..." of what is given, for the message of a failing test. */
static const char *text_of(const struct oc_config *config)
{
    static char text[8192];
    size_t used = 0;
    for (int i = 0; i < OC_OPTIONS && used < sizeof text; i++) {
        char value[512];
        if (!oc_given(config, (enum oc_option_id)i)) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s=%s ", oc_option((enum oc_option_id)i)->key,
                                 oc_option_text(config, (enum oc_option_id)i, value, sizeof value));
    }
    return text;
}

#define CHECK(subject, condition, ...)                                                                                 \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("%s\n", text_of(&(subject)->config));                                                          \
            fail_msg(__VA_ARGS__);                                                                                     \
        }                                                                                                              \
    } while (0)

static void fill(struct subject *s, int64_t stage)
{
    struct oc_error error;
    CHECK(s, oc_resolve(&s->config, &s->plan, NULL, &error), "%s", error.message);
    CHECK(s, oc_estimate(&s->plan, stage, &s->ledger, &error), "%s", error.message);
    oc_sweep(&s->ledger, &s->rank);
}

/* Calls `check` for random configurations, each at a random stage. `check` returns whether the property says anything
 * of the configuration: at least a tenth must be of use. */
static void for_each(uint64_t seed, bool (*check)(struct subject *s))
{
    const int times = CONFIGURATIONS / help_share();
    int useful = 0;
    struct subject *s = malloc(sizeof *s);
    assert_non_null(s);
    for (int i = 0; i < times; i++) {
        s->config = help_random_config(&seed);
        fill(s, (int64_t)help_below(&seed, (uint64_t)s->config.parallel_pp));
        useful += check(s);
    }
    free(s);
    assert_true(useful >= times / 10);
}

/* ---- of one ledger ---- */

static bool check_sums(struct subject *s)
{
    uint64_t most[OC_ITERATIONS] = {0};
    for (int it = 0; it < OC_ITERATIONS; it++)
        for (int m = 0; m < OC_MOMENTS; m++) {
            const struct oc_instant *instant = &s->rank.moments[it][m];
            if (!instant->exists) continue;
            uint64_t sum = 0;
            for (int c = 0; c < OC_CLASSES; c++) sum += instant->classes[c];
            CHECK(s, sum == instant->allocated, "%s: classes sum to %llu, not %llu", oc_moment_name((enum oc_moment)m),
                  (unsigned long long)sum, (unsigned long long)instant->allocated);
            CHECK(s, instant->requested <= instant->allocated, "%s: more requested than allocated",
                  oc_moment_name((enum oc_moment)m));
            if (m != OC_M_INIT && instant->allocated > most[it]) most[it] = instant->allocated;
        }
    CHECK(s, s->rank.peak.allocated == most[OC_STEADY], "the steady peak is no moment's");
    CHECK(s, s->rank.first_peak.allocated == most[OC_FIRST], "the first peak is no moment's");
    return true;
}

static void classes_sum_to_allocated(void **state)
{
    (void)state;
    for_each(11, check_sums);
}

static bool check_peaks(struct subject *s)
{
    CHECK(s, s->rank.first_peak.allocated <= s->rank.peak.allocated, "first iteration %llu, steady %llu",
          (unsigned long long)s->rank.first_peak.allocated, (unsigned long long)s->rank.peak.allocated);
    return true;
}

static void first_iteration_peaks_no_higher_than_steady(void **state)
{
    (void)state;
    for_each(12, check_peaks);
}

static bool says_something(const char *text)
{
    return text && *text;
}

static bool check_words(struct subject *s)
{
    for (int i = 0; i < s->ledger.n_entries; i++) {
        const struct oc_entry *entry = &s->ledger.entries[i];
        CHECK(s, says_something(entry->name), "entry %d has no name", i);
        CHECK(s, says_something(entry->why), "%s has no reason", entry->name);
        CHECK(s, says_something(entry->source), "%s has no source", entry->name);
        CHECK(s, entry->bytes && entry->count, "%s is nothing", entry->name);
    }
    return true;
}

static void every_entry_says_what_why_and_whence(void **state)
{
    (void)state;
    for_each(14, check_words);
}

/* Whoever is born in slots and dies outside dies `count` times at once: as often as it was born. */
static bool check_births(struct subject *s)
{
    for (int i = 0; i < s->ledger.n_entries; i++) {
        const struct oc_entry *entry = &s->ledger.entries[i];
        if (oc_entry_life(entry) != OC_LIFE_GRADIENT) continue;
        uint64_t born = 0;
        for (int c = 0; c < s->ledger.n_chunks; c++)
            born += entry->birth.part == OC_PART_LAYER ? (uint64_t)oc_chunk_layers(&s->ledger.chunks[c], entry->kind)
                                                       : oc_entry_on(entry, &s->ledger.chunks[c]);
        CHECK(s, born == entry->count, "%s (%s): born %llu times, dies %u times", entry->name,
              entry->copy ? entry->copy : "", (unsigned long long)born, entry->count);
    }
    return true;
}

static void gradients_die_as_often_as_they_are_born(void **state)
{
    (void)state;
    for_each(15, check_births);
}

/* ---- what is alive at the peak ---- */

struct census {
    const struct oc_ledger *ledger;
    const struct oc_instant *peak;
    int64_t alive[OC_MAX_ENTRIES]; /* instances */
    int64_t allocated;             /* bytes, summed event by event */
    bool reached;
};

static bool count_alive(const struct oc_event *event, void *user)
{
    struct census *census = user;
    const struct oc_entry *entry = &census->ledger->entries[event->entry];
    const int64_t block = (int64_t)(entry->bytes + oc_entry_rounding(entry));
    census->alive[event->entry] += event->birth ? 1 : -1;
    census->allocated += event->birth ? block : -block;
    census->reached = event->place.iteration == OC_STEADY && event->place.moment == census->peak->place.moment &&
                      census->allocated == (int64_t)census->peak->allocated;
    return !census->reached;
}

static bool check_census(struct subject *s)
{
    static struct census census;
    memset(&census, 0, sizeof census);
    census.ledger = &s->ledger;
    census.peak = &s->rank.peak;
    oc_walk(&s->ledger, 2, count_alive, &census);
    if (!census.reached) return false; /* the level that a moment begins with: no event leads to it */
    int64_t classes[OC_CLASSES] = {0};
    for (int i = 0; i < s->ledger.n_entries; i++) {
        const struct oc_entry *entry = &s->ledger.entries[i];
        CHECK(s, census.alive[i] >= 0, "%s died before it was born", entry->name);
        classes[entry->class] += census.alive[i] * (int64_t)entry->bytes;
        classes[OC_BUFFERS] += census.alive[i] * (int64_t)oc_entry_rounding(entry);
    }
    for (int c = 0; c < OC_CLASSES; c++)
        CHECK(s, classes[c] == (int64_t)s->rank.peak.classes[c], "%s at the peak: entries %lld, sweep %llu",
              oc_class_name((enum oc_class)c), (long long)classes[c], (unsigned long long)s->rank.peak.classes[c]);
    return true;
}

static void entries_alive_at_the_peak_sum_to_it(void **state)
{
    (void)state;
    for_each(16, check_census);
}

/* ---- what a change must not do ---- */

/* The same configuration with other values; false when it does not resolve so. */
static bool change(const struct subject *s, struct subject *other, enum oc_option_id id, int64_t value)
{
    struct oc_plan plan;
    other->config = s->config;
    help_put(&other->config, id, value);
    if (!oc_resolve(&other->config, &plan, NULL, NULL)) return false;
    fill(other, s->ledger.stage);
    return true;
}

static uint64_t states_of(const struct subject *s)
{
    const uint64_t after = help_states(&s->rank.moments[OC_STEADY][OC_M_AFTER_STEP]),
                   idle = help_states(&s->rank.moments[OC_STEADY][OC_M_IDLE]);
    return after > idle ? after : idle;
}

static struct subject other; /* too large for the stack */

static bool check_sharding(struct subject *s)
{
    if (!s->config.parallel_zero) return false;
    const int64_t model = s->config.parallel_tp * s->config.parallel_pp * s->config.parallel_cp;
    help_put(&s->config, OC_OPT_parallel_shard_group, 0);
    uint64_t before = UINT64_MAX;
    for (int64_t d = s->plan.dp; d <= 16 * s->plan.dp; d *= 2) {
        if (!change(s, &other, OC_OPT_parallel_world, model * d)) continue;
        const uint64_t now = states_of(&other);
        CHECK(s, now <= before, "states grow from %llu to %llu bytes on %lld data-parallel ranks",
              (unsigned long long)before, (unsigned long long)now, (long long)d);
        before = now;
    }
    return true;
}

static void more_ranks_never_hold_more_states(void **state)
{
    (void)state;
    for_each(13, check_sharding);
}

/* Adapters are trained instead of the model, never beside it. FSDP1 alone cannot tell them apart: they lie in one flat
 * parameter, whose gradient is whole. */
static bool check_adapters(struct subject *s)
{
    const struct oc_config base = s->config;
    const uint64_t all = states_of(s) - s->rank.moments[OC_STEADY][OC_M_AFTER_STEP].classes[OC_WEIGHTS];
    if (base.lora_rank || base.framework < OC_FW_PYTORCH || base.framework == OC_FW_FSDP1 || base.model_experts)
        return false;
    help_put(&s->config, OC_OPT_lora_rank, 1);
    help_put(&s->config, OC_OPT_lora_targets, OC_LORA_Q);
    help_put(&s->config, OC_OPT_lora_dtype, s->plan.dt.weights);
    const bool good = change(s, &other, OC_OPT_lora_base, OC_BASE_SAME);
    s->config = base;
    if (!good) return false;
    const uint64_t few = states_of(&other) - other.rank.moments[OC_STEADY][OC_M_AFTER_STEP].classes[OC_WEIGHTS];
    CHECK(s, few <= all, "states beside weights: %llu bytes for adapters, %llu for everything", (unsigned long long)few,
          (unsigned long long)all);
    return true;
}

static void adapters_take_less_than_the_model(void **state)
{
    (void)state;
    for_each(19, check_adapters);
}

/* Whether an entry is kept for backward: born in the forward of a micro-batch, alive when its backward begins. */
static bool is_saved(const struct oc_entry *entry)
{
    return entry->class == OC_ACTIVATIONS && entry->birth.phase >= OC_PH_FORWARD && entry->birth.phase <= OC_PH_LOSS &&
           entry->death.phase >= OC_PH_RECOMPUTE && entry->death.phase <= OC_PH_BACKWARD;
}

/* Bytes that one micro-batch keeps on this rank for its backward. The mask is an argument of every checkpointed layer,
 * which full recompute keeps, the others not: in a model of one layer it can be more than all that it saves. */
static uint64_t saved_bytes(const struct oc_ledger *ledger)
{
    uint64_t sum = 0;
    for (int i = 0; i < ledger->n_entries; i++)
        if (is_saved(&ledger->entries[i]) && strcmp(ledger->entries[i].name, "attention_mask") != 0)
            sum += ledger->entries[i].bytes * ledger->entries[i].count;
    return sum;
}

static bool check_recompute(struct subject *s)
{
    uint64_t saved[3];
    help_put(&s->config, OC_OPT_recompute_method, OC_METHOD_UNIFORM); /* block leaves some layers as they are */
    for (int level = OC_RECOMPUTE_NONE; level <= OC_RECOMPUTE_FULL; level++) {
        if (!change(s, &other, OC_OPT_recompute, level)) return false;
        saved[level] = saved_bytes(&other.ledger);
    }
    CHECK(s,
          saved[OC_RECOMPUTE_SELECTIVE] <= saved[OC_RECOMPUTE_NONE] &&
              saved[OC_RECOMPUTE_FULL] <= saved[OC_RECOMPUTE_SELECTIVE],
          "kept for backward: none %llu, selective %llu, full %llu bytes", (unsigned long long)saved[OC_RECOMPUTE_NONE],
          (unsigned long long)saved[OC_RECOMPUTE_SELECTIVE], (unsigned long long)saved[OC_RECOMPUTE_FULL]);
    return true;
}

static void more_recompute_never_keeps_more(void **state)
{
    (void)state;
    for_each(17, check_recompute);
}

/* One for all samples: tables by position, and the output layer's gradient that a fused loss makes in forward. */
static bool knows_no_samples(const struct oc_entry *entry)
{
    static const char *const names[] = {"embedding.position_ids", "rope.cos", "rope.sin", "head.grad_output_weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(entry->name, names[i])) return true;
    return false;
}

static bool check_doubling(struct subject *s)
{
    /* From 2 to 4: with one sample alone some tensors are views, not copies. */
    static struct subject two;
    if (!change(s, &two, OC_OPT_batch_micro, 2) || !change(&two, &other, OC_OPT_batch_micro, 4)) return false;
    CHECK(s, two.ledger.n_entries == other.ledger.n_entries, "%d entries, then %d", two.ledger.n_entries,
          other.ledger.n_entries);
    for (int i = 0; i < two.ledger.n_entries; i++) {
        const struct oc_entry *a = &two.ledger.entries[i], *b = &other.ledger.entries[i];
        if (!is_saved(a)) continue;
        /* One input for each group of recomputed layers counts as a share of each, rounded up. */
        const uint64_t least = 2 * a->elements - (strstr(a->name, "checkpoint") != NULL);
        const bool same = b->elements == a->elements && knows_no_samples(a);
        CHECK(s, same || (b->elements <= 2 * a->elements && b->elements >= least), "%s: %llu elements, then %llu",
              a->name, (unsigned long long)a->elements, (unsigned long long)b->elements);
    }
    return true;
}

static void twice_the_samples_keep_twice_the_activations(void **state)
{
    (void)state;
    for_each(18, check_doubling);
}

static void sharding_changes_nothing_but_states(void **state)
{
    (void)state;
    const char *const base[] = {"framework=megatron", "model.name=llama-3-8b", "parallel.tp=8",
                                "parallel.world=64",  "precision=bf16",        NULL};
    static struct subject whole;
    whole.config = help_config(base);
    fill(&whole, 0);
    assert_true(change(&whole, &other, OC_OPT_parallel_zero, 1));
    const struct oc_rank *alone = &whole.rank, *shared = &other.rank;
    assert_int_equal(alone->moments[OC_STEADY][OC_M_LOSS].classes[OC_ACTIVATIONS],
                     shared->moments[OC_STEADY][OC_M_LOSS].classes[OC_ACTIVATIONS]);
    assert_true(shared->peak.classes[OC_OPTIMIZER] * 8 <= alone->peak.classes[OC_OPTIMIZER]);
    assert_int_equal(shared->peak.classes[OC_WEIGHTS], alone->peak.classes[OC_WEIGHTS]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_sum_to_allocated),
        cmocka_unit_test(first_iteration_peaks_no_higher_than_steady),
        cmocka_unit_test(every_entry_says_what_why_and_whence),
        cmocka_unit_test(gradients_die_as_often_as_they_are_born),
        cmocka_unit_test(entries_alive_at_the_peak_sum_to_it),
        cmocka_unit_test(more_ranks_never_hold_more_states),
        cmocka_unit_test(adapters_take_less_than_the_model),
        cmocka_unit_test(more_recompute_never_keeps_more),
        cmocka_unit_test(sharding_changes_nothing_but_states),
        cmocka_unit_test(twice_the_samples_keep_twice_the_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
