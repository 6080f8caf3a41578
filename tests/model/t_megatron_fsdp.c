/* Megatron-FSDP: what each stage shares, what is gathered ahead and what waits for its reduction, and two of NVIDIA's
 * own runs. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct oc_ledger ledger;

#define LLAMA                                                                                                          \
    "framework=megatron-fsdp", "model.name=llama-3-8b", "precision=bf16", "parallel.world=8", "batch.seq=1024",        \
        "recompute=full", "gpu=none"

static struct oc_rank rank_of(const char *const *words)
{
    return help_rank_of(words, 0, &ledger);
}

/* Elements of the entry with that name that is born in that phase; 0 when there is none. */
static uint64_t elements(const char *name, enum oc_phase phase)
{
    for (int i = 0; i < ledger.n_entries; i++)
        if (!strcmp(ledger.entries[i].name, name) && ledger.entries[i].birth.phase == phase)
            return ledger.entries[i].elements;
    return 0;
}

/* 18 bytes a parameter, all of them over 8 ranks in stage 3; stage 2 holds the weights whole. */
static void what_each_stage_shares(void **state)
{
    (void)state;
    const struct oc_rank all = rank_of(HELP_WORDS(LLAMA)), two = rank_of(HELP_WORDS(LLAMA, "parallel.zero=2"));
    const struct oc_plan plan = help_plan(HELP_WORDS(LLAMA)),
                         plain = help_plan(HELP_WORDS(LLAMA, "parallel.zero=1", "framework=megatron"));
    assert_string_equal(oc_plan_framework(&plan), "megatron-fsdp");
    assert_string_equal(oc_plan_framework(&plain), "megatron");
    const struct oc_instant *after = &all.moments[OC_STEADY][OC_M_AFTER_STEP];
    const uint64_t shard = all.params / 8;
    assert_int_equal(after->classes[OC_WEIGHTS], 2 * shard);
    assert_int_equal(after->classes[OC_MASTER], 4 * shard);
    assert_int_equal(after->classes[OC_GRADIENTS], 4 * shard);
    assert_int_equal(after->classes[OC_OPTIMIZER], 8 * shard);
    const struct oc_instant *also = &two.moments[OC_STEADY][OC_M_AFTER_STEP];
    assert_int_equal(also->classes[OC_WEIGHTS], 2 * two.params);
    assert_int_equal(also->classes[OC_GRADIENTS], 4 * shard);
    assert_int_equal(elements("gathered layer", OC_PH_FORWARD), 0);
}

/* A Llama-3-8B layer has 218,112,000 parameters: 5e8 of those that follow are gathered, and 1e9 wait. In a small model
 * that is all of the other layers. */
static void lookahead_is_counted_in_elements(void **state)
{
    (void)state;
    const uint64_t layer = 218112000;
    rank_of(HELP_WORDS(LLAMA));
    assert_int_equal(elements("gathered layer", OC_PH_FORWARD), layer);
    assert_int_equal(elements("layers gathered ahead", OC_PH_FORWARD), 500000000);
    assert_int_equal(elements("main grads being reduced", OC_PH_RECOMPUTE), 1000000000);
    for (int i = 0; i < ledger.n_entries; i++) /* nothing waits when the last layer runs backward */
        if (ledger.entries[i].birth.part == OC_PART_LAYER)
            assert_int_equal(ledger.entries[i].spares_top, !strcmp(ledger.entries[i].name, "main grads being reduced"));
    rank_of(HELP_WORDS(LLAMA, "model.layers=2"));
    assert_int_equal(elements("layers gathered ahead", OC_PH_FORWARD), layer);
    assert_int_equal(elements("main grads being reduced", OC_PH_RECOMPUTE), layer);
    rank_of(HELP_WORDS(LLAMA, "model.name=llama-3.1-405b"));
    const uint64_t wide = elements("gathered layer", OC_PH_FORWARD);
    assert_true(wide > 1000000000);
    assert_int_equal(elements("layers gathered ahead", OC_PH_FORWARD), wide);
    assert_int_equal(elements("main grads being reduced", OC_PH_RECOMPUTE), 2 * wide);
}

/* Behind the step weights are gathered only where the next forward's gathering is overlapped. */
static void gathered_behind_the_step(void **state)
{
    (void)state;
    const struct oc_rank plain = rank_of(HELP_WORDS(LLAMA, "model.layers=1")),
                         ahead = rank_of(HELP_WORDS(LLAMA, "model.layers=1", "parallel.overlap_param_gather=true"));
    const uint64_t most = 2 * 500000000ull;
    assert_int_equal(ahead.moments[OC_STEADY][OC_M_IDLE].classes[OC_BUFFERS] -
                         plain.moments[OC_STEADY][OC_M_IDLE].classes[OC_BUFFERS],
                     most);
    assert_int_equal(ahead.moments[OC_STEADY][OC_M_FORWARD].classes[OC_BUFFERS],
                     plain.moments[OC_STEADY][OC_M_FORWARD].classes[OC_BUFFERS]);
}

/* One rank shares nothing and gathers nothing. */
static void one_rank(void **state)
{
    (void)state;
    const struct oc_rank rank = rank_of(HELP_WORDS(LLAMA, "parallel.world=1"));
    assert_int_equal(rank.moments[OC_STEADY][OC_M_AFTER_STEP].classes[OC_WEIGHTS], 2 * rank.params);
    assert_int_equal(elements("gathered layer", OC_PH_FORWARD), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_each_stage_shares),
        cmocka_unit_test(lookahead_is_counted_in_elements),
        cmocka_unit_test(gathered_behind_the_step),
        cmocka_unit_test(one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
