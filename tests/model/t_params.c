/* The model's parameter counts: every known model to its published number, whole and split over ranks. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_known_model_has_its_published_count(void **state)
{
    (void)state;
    int count;
    const struct oc_model_row *models = oc_models(&count);
    assert_true(count > 30);
    for (int i = 0; i < count; i++) {
        char name[96];
        snprintf(name, sizeof name, "model.name=%s", models[i].name);
        const struct oc_plan plan = help_plan(HELP_WORDS("framework=pytorch", name));
        if (oc_model_params(&plan, NULL) != models[i].params)
            fail_msg("%s: %llu, published %llu", models[i].name, (unsigned long long)oc_model_params(&plan, NULL),
                     (unsigned long long)models[i].params);
    }
}

/* What is not replicated over tensor-parallel ranks adds up to the whole; norms and biases of row-parallel layers are
 * replicated. */
static void ranks_add_up_to_the_model(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank rank;
    const struct oc_plan whole =
        help_plan(HELP_WORDS("framework=megatron", "model.name=llama-3-8b", "model.vocab_multiple=1"));
    const struct oc_plan split = help_plan(HELP_WORDS("framework=megatron", "model.name=llama-3-8b",
                                                      "model.vocab_multiple=1", "parallel.tp=4", "parallel.pp=4"));
    uint64_t sum = 0;
    for (int stage = 0; stage < 4; stage++) {
        help_rank(&split, stage, &ledger, &rank);
        sum += rank.params * 4;
    }
    const uint64_t norms = (2 * 32 + 1) * 4096;
    assert_int_equal(oc_model_params(&whole, NULL), 8030261248);
    assert_int_equal(sum, oc_model_params(&whole, NULL) + norms * 3);
}

static uint64_t active_params(const struct oc_plan *plan)
{
    uint64_t active;
    oc_model_params(plan, &active);
    return active;
}

/* Mixtral sends a token to 2 of 8 experts: 12.9 billion of 46.7 (arXiv:2401.04088, table 1). */
static void a_token_meets_few_experts(void **state)
{
    (void)state;
    const struct oc_plan one = help_plan(
                             HELP_WORDS("framework=megatron", "model.name=mixtral-8x7b", "model.vocab_multiple=1")),
                         split = help_plan(HELP_WORDS("framework=megatron", "model.name=mixtral-8x7b",
                                                      "model.vocab_multiple=1", "parallel.ep=8", "parallel.world=8"));
    assert_int_equal(oc_model_params(&one, NULL), 46702792704);
    assert_int_equal(oc_model_params(&split, NULL), 46702792704);
    assert_int_equal(active_params(&one), 46702792704 - 32ull * 6 * 3 * 4096 * 14336);
    assert_int_equal(active_params(&split), active_params(&one));
    const struct oc_plan dense = help_plan(HELP_WORDS("model.name=llama-3-8b"));
    assert_int_equal(active_params(&dense), oc_model_params(&dense, NULL));
}

/* A tied embedding exists on the first and on the last stage. */
static void tied_embeddings_are_held_twice(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    struct oc_rank first, last, middle;
    const struct oc_plan plan =
        help_plan(HELP_WORDS("framework=megatron", "model.name=llama-3-8b", "model.tied=true", "parallel.pp=4"));
    help_rank(&plan, 0, &ledger, &first);
    help_rank(&plan, 1, &ledger, &middle);
    help_rank(&plan, 3, &ledger, &last);
    const uint64_t embedding = (uint64_t)plan.vocab * 4096;
    assert_int_equal(first.params, middle.params + embedding);
    assert_int_equal(last.params, middle.params + embedding + 4096);
}

/* The seed's rank: Llama-3-8B, tied, vocabulary padded to 129,024, TP8 (memory-megatron.md section 2). */
static void padded_vocabulary(void **state)
{
    (void)state;
    const struct oc_plan plan =
        help_plan(HELP_WORDS("framework=megatron", "model.name=llama-3-8b", "model.tied=true", "parallel.tp=8"));
    static struct oc_ledger ledger;
    struct oc_rank rank;
    help_rank(&plan, 0, &ledger, &rank);
    assert_int_equal(plan.vocab, 129024);
    assert_int_equal(rank.params, 938741760);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_model_has_its_published_count),
        cmocka_unit_test(ranks_add_up_to_the_model),
        cmocka_unit_test(a_token_meets_few_experts),
        cmocka_unit_test(tied_embeddings_are_held_twice),
        cmocka_unit_test(padded_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
