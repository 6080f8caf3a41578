/* FSDP2: shards and their padding, what a layer gathers and reduces, accumulation, mixed precision, refusals. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct oc_ledger ledger;

#define TITAN                                                                                                          \
    "framework=fsdp2", "model.name=llama-3-8b", "kernels.transformer=torchtitan", "gpu=none", "parallel.world=8",      \
        "batch.seq=2048"

static struct oc_rank rank_of(const char *const *words)
{
    return help_rank_of(words, 0, &ledger);
}

/* Bytes of one instance of the entries with that name (or copy), births in `phase` only. */
static uint64_t bytes_of(const char *name, enum oc_phase phase)
{
    uint64_t sum = 0;
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *entry = &ledger.entries[i];
        const bool named = !strcmp(entry->name, name) || (entry->copy && !strcmp(entry->copy, name));
        if (named && entry->birth.phase == phase && entry->birth.part == OC_PART_LAYER) sum += entry->bytes;
    }
    return sum;
}

/* A Llama-3-8B layer: shared/fixtures/shards.json, unit "llama3-8b layer". */
static const uint64_t layer = 218112000;

static void shards_of_every_rank(void **state)
{
    (void)state;
    const struct oc_rank rank = rank_of(HELP_WORDS(TITAN, "precision=amp-bf16"));
    /* 8 divides every first dimension: 4 B weights and 8 B moments, no padding. */
    assert_int_equal(help_states(&rank.moments[OC_STEADY][OC_M_IDLE]), 12 * rank.params / 8);
    assert_int_equal(help_states(&rank.moments[OC_STEADY][OC_M_AFTER_STEP]), 16 * rank.params / 8);
    /* 3 does not: a norm of 4096 becomes 3 x 1366, a matrix of 4096 rows 3 x 1366 rows. */
    const struct oc_rank odd = rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "parallel.world=3"));
    const uint64_t norms = 65, square = 32 * 2 + 32 /* down */, narrow = 32 * 2, wide = 32 * 2;
    const uint64_t rows = 1366 * 4096 * square + 1366 * (14336 - 4096) * 32 /* down has 14336 columns */
                          + 342 * 4096 * narrow + 4779 * 4096 * wide + 42752ULL * 4096 * 2 + 1366 * norms;
    assert_int_equal(help_states(&odd.moments[OC_STEADY][OC_M_IDLE]), 12 * rows);
}

static void a_layer_in_backward(void **state)
{
    (void)state;
    rank_of(HELP_WORDS(TITAN, "precision=amp-bf16"));
    assert_int_equal(bytes_of("gathered layer", OC_PH_FORWARD), 2 * layer);
    assert_int_equal(bytes_of("unsharded layer", OC_PH_FORWARD), 2 * layer);
    /* 10 S: weights 2, the next layer's all-gather 2, gradients 2, the reduce-scatter input of the layer before 4. */
    assert_int_equal(bytes_of("unsharded layer", OC_PH_RECOMPUTE), 2 * layer);
    assert_int_equal(bytes_of("prefetched layer", OC_PH_RECOMPUTE), 2 * layer);
    assert_int_equal(bytes_of("unsharded gradient", OC_PH_BACKWARD), 2 * layer);
    assert_int_equal(bytes_of("reduce-scatter input, layer above", OC_PH_RECOMPUTE), 4 * layer);
    assert_int_equal(bytes_of("sharded gradients", OC_PH_BACKWARD), 4 * layer / 8);
    /* 8 S when the reduction is in 16 bits, and a cast to the type of the shard. */
    rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "precision.reduce=bf16"));
    assert_int_equal(bytes_of("reduce-scatter input, layer above", OC_PH_RECOMPUTE), 2 * layer);
    assert_int_equal(bytes_of("reduce-scatter output", OC_PH_BACKWARD), 2 * layer / 8);
}

static void weights_that_stay(void **state)
{
    (void)state;
    rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "parallel.zero=2"));
    assert_int_equal(bytes_of("unsharded layer", OC_PH_FORWARD), 2 * layer);
    assert_int_equal(bytes_of("unsharded layer", OC_PH_RECOMPUTE), 0);
    const struct oc_rank stay = rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "parallel.zero=2")),
                         go = rank_of(HELP_WORDS(TITAN, "precision=amp-bf16"));
    assert_true(stay.moments[OC_STEADY][OC_M_LOSS].classes[OC_BUFFERS] -
                    go.moments[OC_STEADY][OC_M_LOSS].classes[OC_BUFFERS] >=
                32 * 2 * layer);
}

static void accumulation(void **state)
{
    (void)state;
    const struct oc_rank synced = rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "batch.accum=4")),
                         whole =
                             rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "batch.accum=4", "parallel.no_sync=1"));
    const uint64_t more = whole.moments[OC_STEADY][OC_M_LOSS].classes[OC_GRADIENTS] -
                          synced.moments[OC_STEADY][OC_M_LOSS].classes[OC_GRADIENTS];
    /* Whole in the type of the reduction, and no shards before the last micro-batch has been reduced. */
    assert_int_equal(more, 4 * whole.params - 4 * whole.params / 8);
    assert_int_equal(whole.moments[OC_STEADY][OC_M_AFTER_STEP].classes[OC_GRADIENTS], 4 * whole.params / 8);
    /* accelerate's accumulate() does not synchronize; torchtitan does. */
    assert_int_equal(help_plan(HELP_WORDS("framework=fsdp2", "parallel.world=8")).c.parallel_no_sync, 1);
    assert_int_equal(help_plan(HELP_WORDS(TITAN)).c.parallel_no_sync, 0);
}

/* One entry by its name (or copy), birth and micro-batches; NULL when there is none. */
static const struct oc_entry *entry_of(const char *name, enum oc_part part, enum oc_when when)
{
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *entry = &ledger.entries[i];
        const bool named = !strcmp(entry->name, name) || (entry->copy && !strcmp(entry->copy, name));
        if (named && entry->birth.part == part && entry->when == when) return entry;
    }
    return NULL;
}

/* PyTorch 2.4.1, traced (docs/step-pytorch.md): nothing is reduced before the last micro-batch. */
static void no_sync_reduces_once(void **state)
{
    (void)state;
    rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "batch.accum=7", "parallel.no_sync=1"));
    assert_int_equal(ledger.n_slots, 6);  /* the first micro-batch, one like the others, the last */
    assert_int_equal(ledger.left_out, 4); /* which is the seventh */
    static const char *const reduction[] = {"reduce-scatter input", "sharded gradients",
                                            "reduce-scatter input, layer above"};
    for (size_t i = 0; i < sizeof reduction / sizeof *reduction; i++) {
        assert_non_null(entry_of(reduction[i], OC_PART_LAYER, OC_LAST_MICRO_BATCH));
        assert_null(entry_of(reduction[i], OC_PART_LAYER, OC_ALWAYS));
    }
    /* Reduced in fp32, gradients of bf16 weights are cast; a later micro-batch's live until they are added. */
    const struct oc_entry *sum = entry_of("unsharded gradient sum", OC_PART_LAYER, OC_FIRST_TO_LAST);
    assert_non_null(sum);
    assert_int_equal(sum->dtype, OC_FP32);
    /* One after the other: no two of a layer are cast at once. */
    for (const struct oc_entry *a = ledger.entries; a < ledger.entries + ledger.n_entries; a++)
        for (const struct oc_entry *b = ledger.entries; a->copy && !strcmp(a->copy, sum->copy) && b < a; b++)
            if (b->copy && !strcmp(b->copy, sum->copy) && a->birth.part == b->birth.part)
                assert_int_not_equal(a->birth.sub, b->birth.sub);
    assert_non_null(entry_of("unsharded gradient", OC_PART_LAYER, OC_FIRST_MICRO_BATCH));
    assert_non_null(entry_of("unsharded gradient", OC_PART_LAYER, OC_LATER_MICRO_BATCHES));
    /* Reduced as they are, they stay. */
    rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "batch.accum=7", "parallel.no_sync=1", "precision.reduce=bf16"));
    assert_null(entry_of("unsharded gradient sum", OC_PART_LAYER, OC_FIRST_TO_LAST));
    assert_non_null(entry_of("unsharded gradient", OC_PART_LAYER, OC_FIRST_TO_LAST));
    /* One micro-batch reduces as ever. */
    rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "parallel.no_sync=1"));
    assert_non_null(entry_of("reduce-scatter input", OC_PART_LAYER, OC_ALWAYS));
}

/* Above the last layer nothing has been reduced: a model of one layer has no such input. */
static void the_top_layer_finds_no_reduction(void **state)
{
    (void)state;
    const char *const name = "reduce-scatter input, layer above";
    const struct oc_rank one = rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "model.layers=1"));
    const struct oc_entry *above = entry_of(name, OC_PART_LAYER, OC_ALWAYS);
    assert_non_null(above);
    assert_true(above->spares_top);
    for (int i = 0; i < ledger.n_entries; i++)
        if (!strcmp(ledger.entries[i].name, name)) ledger.entries[i] = ledger.entries[--ledger.n_entries];
    struct oc_rank without;
    oc_sweep(&ledger, &without);
    assert_int_equal(one.moments[OC_STEADY][OC_M_BACKWARD].allocated,
                     without.moments[OC_STEADY][OC_M_BACKWARD].allocated);
    /* With two it is the lower one's. */
    const struct oc_rank two =
        rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "model.layers=2", "recompute=full", "model.vocab=512"));
    assert_int_equal(two.moments[OC_STEADY][OC_M_BACKWARD].place.layer, 0);
}

static void types(void **state)
{
    (void)state;
    /* accelerate upcasts what trains; without it 16-bit weights are 16-bit shards. */
    struct oc_plan plan = help_plan(HELP_WORDS("framework=fsdp2", "parallel.world=8", "precision=bf16"));
    assert_int_equal(plan.c.precision_weights, OC_FP32);
    assert_int_equal(plan.dt.compute, OC_BF16);
    assert_int_equal(plan.dt.moment1, OC_FP32);
    plan = help_plan(HELP_WORDS("framework=fsdp2", "parallel.world=8", "precision=bf16", "fsdp.upcast=false"));
    assert_int_equal(plan.c.precision_weights, OC_BF16);
    plan = help_plan(HELP_WORDS(TITAN, "precision=fp8"));
    assert_int_equal(plan.c.precision_weights, OC_FP32);
    assert_int_equal(plan.dt.compute, OC_BF16);
    /* A given type of the weights is that of the shards: forward reads bf16 all the same. */
    plan = help_plan(HELP_WORDS(TITAN, "precision=fp8", "precision.weights=bf16"));
    assert_int_equal(plan.c.precision_weights, OC_BF16);
    assert_int_equal(plan.dt.weights, OC_BF16);
}

static void groups(void **state)
{
    (void)state;
    /* torchtitan shares over data- and context-parallel ranks; a shard group of 4 makes two copies. */
    assert_int_equal(help_plan(HELP_WORDS(TITAN, "parallel.cp=2")).shard, 8);
    assert_int_equal(help_plan(HELP_WORDS(TITAN, "parallel.shard_group=4")).shard, 4);
}

static void a_tied_head_has_one_gradient(void **state)
{
    (void)state;
    const struct oc_rank rank = rank_of(HELP_WORDS(TITAN, "precision=amp-bf16", "model.tied=true"));
    const uint64_t embedding = 128256ULL * 4096;
    uint64_t largest = 0;
    for (int i = 0; i < ledger.n_entries; i++)
        if (ledger.entries[i].copy && !strcmp(ledger.entries[i].copy, "unsharded gradient") &&
            ledger.entries[i].birth.part != OC_PART_LAYER)
            largest += ledger.entries[i].bytes > embedding;
    assert_int_equal(largest, 3); /* the head's, the look-up's, and their sum */
    assert_int_equal(help_states(&rank.moments[OC_STEADY][OC_M_AFTER_STEP]), 16 * rank.params / 8);
}

static void refuses(const char *const *words, const char *needle)
{
    const struct oc_config config = help_config(words);
    struct oc_plan plan;
    struct oc_error error;
    assert_false(oc_resolve(&config, &plan, NULL, &error));
    if (!strstr(error.message, needle)) fail_msg("%s", error.message);
}

static void refusals(void **state)
{
    (void)state;
    refuses(HELP_WORDS("framework=fsdp2", "parallel.zero=1"), "always shares parameters");
    refuses(HELP_WORDS("framework=fsdp2", "kernels.transformer=te"), "belong to Megatron");
    refuses(HELP_WORDS("framework=fsdp2", "recompute=selective"), "only torchtitan");
}

/* What the streams of gathers and reductions have freed is not there for activations: more is reserved. */
static void streams_reserve_apart(void **state)
{
    (void)state;
    const struct oc_plan plan = help_plan(HELP_WORDS(TITAN, "precision=amp-bf16"));
    struct oc_error error;
    struct oc_alloc *alloc = oc_alloc_create(NULL);
    struct oc_rank apart, together;
    assert_true(oc_estimate(&plan, 0, &ledger, &error));
    oc_sweep(&ledger, &apart);
    assert_true(oc_reserve(&plan, &ledger, alloc, &apart));
    for (int i = 0; i < ledger.n_entries; i++) ledger.entries[i].stream = 0;
    oc_sweep(&ledger, &together);
    assert_true(oc_reserve(&plan, &ledger, alloc, &together));
    assert_true(apart.reserved > together.reserved);
    assert_true(together.reserved >= together.peak.allocated);
    oc_alloc_destroy(alloc);
}

/* Shards are kept in fp32 while forward reads bf16, and the reason says so. */
static void the_reason_is_of_what_is_kept(void **state)
{
    (void)state;
    static struct oc_answer answer;
    struct oc_reason reason;
    struct oc_error error;
    const struct oc_config config =
        help_config(HELP_WORDS("framework=fsdp2", "model.name=llama-3-8b", "parallel.world=8", "precision=bf16"));
    assert_true(oc_answer(&config, &answer, NULL, NULL, &error));
    assert_int_equal(oc_stored_weights(&answer.plan), OC_FP32);
    assert_int_equal(answer.plan.dt.weights, OC_BF16);
    oc_explain(&answer, &reason);
    assert_non_null(strstr(reason.sentence[0], "4/8 fp32 weights"));
    assert_non_null(strstr(reason.sentence[1], "keeps its shards in fp32"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reason_is_of_what_is_kept),
        cmocka_unit_test(shards_of_every_rank),
        cmocka_unit_test(a_layer_in_backward),
        cmocka_unit_test(weights_that_stay),
        cmocka_unit_test(accumulation),
        cmocka_unit_test(no_sync_reduces_once),
        cmocka_unit_test(the_top_layer_finds_no_reduction),
        cmocka_unit_test(types),
        cmocka_unit_test(groups),
        cmocka_unit_test(a_tied_head_has_one_gradient),
        cmocka_unit_test(refusals),
        cmocka_unit_test(streams_reserve_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
