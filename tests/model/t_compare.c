/* oc_compare(): the differences add up, and their reasons name what differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_model.h"

/* One side, with everything that it points to. */
static struct whole {
    struct oc_plan plan;
    struct oc_ledger ledger;
    struct oc_rank rank;
    struct oc_side side;
} first, second;

static struct oc_comparison c;

static void fill(struct whole *whole, const struct oc_config *config, int64_t stage)
{
    struct oc_error error;
    if (!oc_resolve(config, &whole->plan, NULL, &error)) fail_msg("%s", error.message);
    help_rank(&whole->plan, stage, &whole->ledger, &whole->rank);
    whole->side = (struct oc_side){&whole->plan, &whole->ledger, &whole->rank};
}

static void compare(const char *const *a, const char *const *b, int moment)
{
    const struct oc_config x = help_config(a), y = help_config(b);
    fill(&first, &x, 0);
    fill(&second, &y, 0);
    oc_compare(&first.side, &second.side, moment, &c);
}

static const struct oc_entry_difference *find(enum oc_class class, const char *name, const char *copy)
{
    for (int i = 0; i < c.n_entries; i++) {
        const struct oc_entry *e = c.entries[i].a ? c.entries[i].a : c.entries[i].b;
        if (e->class == class && !strcmp(c.entries[i].name, name) && (!copy || (e->copy && !strcmp(e->copy, copy))))
            return &c.entries[i];
    }
    fail_msg("%s does not differ", name);
    return NULL;
}

static void assert_reason(const struct oc_entry_difference *d, const char *part)
{
    char text[300];
    oc_difference_text(&c, d, text, sizeof text);
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

#define RUN                                                                                                            \
    "framework=megatron", "model.name=llama-3-8b", "tp=8", "sp=true", "optimizer=sgd", "recompute=full",               \
        "batch.seq=4096", "batch.accum=4"

static void fp16_against_fp32(void **state)
{
    (void)state;
    compare(HELP_WORDS(RUN, "precision=fp16"), HELP_WORDS(RUN, "precision=fp32"), OC_AT_PEAK);
    const struct oc_entry_difference *weights = find(OC_WEIGHTS, "layers.mlp.fc1", NULL);
    assert_int_equal(2 * weights->bytes_a, weights->bytes_b);
    assert_reason(weights, "fp16 against fp32");
    const struct oc_entry_difference *master = find(OC_MASTER, "layers.mlp.fc1", NULL);
    assert_int_equal(master->bytes_b, 0);
    assert_null(master->b);
    assert_reason(master, "only in A: param.detach().clone().float()");
    assert_int_equal(c.options[0].option, OC_OPT_precision);
    assert_true(c.options[0].given && c.options[0].alone);
    assert_int_equal(c.options[0].change, (int64_t)(second.rank.peak.allocated - first.rank.peak.allocated));
}

/* What one option does by itself, where several differ: the largest comes first. */
static void options_one_by_one(void **state)
{
    (void)state;
    compare(HELP_WORDS(RUN, "batch.micro=2", "precision=bf16"), HELP_WORDS(RUN, "batch.micro=1", "precision=fp16"),
            OC_AT_PEAK);
    bool micro = false, precision = false;
    for (int i = 0; i < c.n_options && c.options[i].given; i++) {
        micro = micro || c.options[i].option == OC_OPT_batch_micro;
        precision = precision || c.options[i].option == OC_OPT_precision;
        if (i) assert_true(llabs(c.options[i - 1].change) >= llabs(c.options[i].change));
    }
    assert_true(micro && precision);
    for (int i = 0; i < c.n_options; i++)
        if (c.options[i].option == OC_OPT_precision_weights) assert_false(c.options[i].given);
}

static void splits_are_named(void **state)
{
    (void)state;
#define ADAM "framework=megatron", "model.name=llama-3-8b", "optimizer=adam", "precision=bf16", "batch.accum=2"
    compare(HELP_WORDS(ADAM, "world=8", "zero=1"), HELP_WORDS(ADAM, "world=8"), OC_M_IDLE);
    assert_reason(find(OC_MASTER, "all parameters", NULL), "ranks that share it 8 against 1");
    compare(HELP_WORDS(ADAM, "tp=2"), HELP_WORDS(ADAM), OC_M_IDLE);
    assert_reason(find(OC_WEIGHTS, "layers.mlp.fc1", NULL), "tp 2 against 1");
#undef ADAM
}

/* Peaks at different moments: what one side has too, but not then. */
static void lifetimes_are_named(void **state)
{
    (void)state;
#define ADAM "framework=pytorch", "model.name=gpt2", "optimizer=adam", "precision=fp32", "batch.seq=1024"
    compare(HELP_WORDS(ADAM, "batch.micro=8"), HELP_WORDS(ADAM, "batch.micro=1", "recompute=full"), OC_AT_PEAK);
    assert_int_not_equal(c.at_a.place.moment, c.at_b.place.moment);
    bool named = false;
    for (int i = 0; i < c.n_entries; i++) {
        char text[300];
        oc_difference_text(&c, &c.entries[i], text, sizeof text);
        named = named || strstr(text, "B has it too, but not in step");
    }
    assert_true(named);
#undef ADAM
}

static void the_same_does_not_differ(void **state)
{
    (void)state;
    compare(HELP_WORDS(RUN), HELP_WORDS(RUN), OC_AT_PEAK);
    assert_int_equal(c.n_options, 0);
    assert_int_equal(c.n_entries, 0);
    assert_true(c.n_same > 20);
}

static void check_sums(int moment)
{
    int64_t sum = 0;
    uint64_t last = UINT64_MAX;
    oc_compare(&first.side, &second.side, moment, &c);
    for (int i = 0; i < c.n_entries; i++) {
        const struct oc_entry_difference *d = &c.entries[i];
        const uint64_t size = d->bytes_a > d->bytes_b ? d->bytes_a - d->bytes_b : d->bytes_b - d->bytes_a;
        char text[300];
        assert_true(size > 0 && size <= last);
        assert_true(*oc_difference_text(&c, d, text, sizeof text) != '\0');
        last = size;
        sum += (int64_t)(d->bytes_a - d->bytes_b);
    }
    assert_int_equal(sum, (int64_t)(c.at_a.allocated - c.at_b.allocated));
}

static void differences_add_up(void **state)
{
    (void)state;
    uint64_t seed = 4711;
    struct oc_alloc *alloc = oc_alloc_create(NULL);
    assert_non_null(alloc);
    for (int n = 0; n < 300 / help_share(); n++) {
        const struct oc_config a = help_random_config(&seed), b = help_random_config(&seed);
        fill(&first, &a, 0);
        fill(&second, &b, 0);
        assert_true(oc_reserve(&first.plan, &first.ledger, alloc, &first.rank));
        assert_true(oc_reserve(&second.plan, &second.ledger, alloc, &second.rank));
        check_sums(OC_AT_PEAK);
        for (int m = OC_M_FORWARD; m < OC_MOMENTS; m++) check_sums(m);
    }
    oc_alloc_destroy(alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp16_against_fp32),        cmocka_unit_test(options_one_by_one),
        cmocka_unit_test(splits_are_named),         cmocka_unit_test(lifetimes_are_named),
        cmocka_unit_test(the_same_does_not_differ), cmocka_unit_test(differences_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
