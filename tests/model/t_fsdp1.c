/* FullyShardedDataParallel: shards, gathered units, gradients that wait, and figures of real runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "help_model.h"

static struct oc_ledger ledger;

#define LAYERS                                                                                                         \
    "framework=fsdp1", "model.layers=32", "model.hidden=4096", "model.heads=32", "model.kv_heads=8",                   \
        "model.head_dim=128", "model.ffn=14336", "model.tied=false", "recompute=full", "kernels.attention=flash",      \
        "gpu=a100-80g", "optimizer.impl=foreach"
#define ADAPTERS "lora.rank=16", "lora.targets=q,k,v,o", "lora.dropout=0.1", "batch.seq=4096"

static struct oc_rank rank_of(const char *const *words)
{
    return help_rank_of(words, 0, &ledger);
}

/* Byte counts of torch's allocator on A100s. Source: foundation-model-stack/fms-acceleration, benchmark CSVs, as
 * collected in shared/corpus/frameworks.json; Mistral-7B (vocab 32000), Llama-3-8B (128256) and Mixtral-8x7B (experts).
 */
static const struct run {
    const char *words[40];
    uint64_t idle, peak;
    double error;
} runs[] = {
    {{LAYERS, ADAPTERS, "model.vocab=32000", "parallel.world=2", "batch.micro=4", "precision=pure-bf16",
      "lora.base=bf16"},
     7368227328,
     21959827968,
     0.002},
    {{LAYERS, ADAPTERS, "model.vocab=32000", "parallel.world=2", "batch.micro=4", "precision=pure-bf16",
      "precision.autocast=bf16", "lora.base=nf4-dq", "lora.dtype=bf16"},
     2244722176,
     15970067968,
     0.002},
    {{LAYERS, ADAPTERS, "model.vocab=128256", "parallel.world=4", "batch.micro=8", "precision=pure-bf16",
      "precision.autocast=bf16", "lora.base=bf16", "kernels.norm=fused", "kernels.loss=fused-linear"},
     4088547840,
     32003797504,
     0.002},
    {{LAYERS, "model.vocab=128256", "parallel.world=2", "batch.micro=4", "batch.seq=4096", "precision=amp-bf16",
      "kernels.norm=fused", "kernels.loss=fused-linear"},
     64259672576,
     80320219648,
     0.001},
    {{LAYERS, "model.vocab=32000", "parallel.world=2", "batch.micro=16", "batch.seq=279", "batch.accum=2",
      "precision=pure-fp16"},
     28984641536,
     39973031424,
     0.01},
    {{LAYERS, ADAPTERS, "model.vocab=32000", "parallel.world=2", "batch.micro=2", "precision=pure-bf16",
      "precision.autocast=bf16", "lora.base=nf4-dq", "lora.dtype=bf16", "model.experts=8", "model.experts_per_token=2",
      "model.expert_ffn=14336"},
     12736740864,
     21126185472,
     0.01},
};

static void real_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct oc_rank rank = rank_of(runs[i].words);
        help_near(&rank, (int)i, runs[i].idle, runs[i].peak, runs[i].error);
    }
}

#define SMALL                                                                                                          \
    "framework=fsdp1", "model.layers=4", "model.hidden=64", "model.heads=4", "model.ffn=96", "model.vocab=128",        \
        "batch.seq=8", "gpu=none"

static uint64_t bytes_of(const char *copy, uint8_t birth)
{
    uint64_t bytes = 0;
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *e = &ledger.entries[i];
        if (e->copy && strcmp(e->copy, copy) == 0 && e->birth.phase == birth) bytes += e->bytes * e->count;
    }
    return bytes;
}

/* Twice the ranks, half the states; and every rank gathers as much as before. */
static void shards_shrink_and_units_do_not(void **state)
{
    (void)state;
    const struct oc_rank two = rank_of(HELP_WORDS(SMALL, "precision=amp-bf16", "parallel.world=2"));
    const uint64_t gathered = bytes_of("gathered", OC_PH_FORWARD), shard = bytes_of("shard", OC_PH_INIT);
    const struct oc_rank four = rank_of(HELP_WORDS(SMALL, "precision=amp-bf16", "parallel.world=4"));
    assert_int_equal(bytes_of("gathered", OC_PH_FORWARD), gathered);
    assert_int_equal(bytes_of("shard", OC_PH_INIT) * 2, shard);
    assert_int_equal(gathered, two.params * 2);  /* bf16, all units together */
    assert_int_equal(shard, two.params * 4 / 2); /* fp32 */
    assert_int_equal(help_states(&two.moments[OC_STEADY][OC_M_AFTER_STEP]), two.params * 16 / 2);
    assert_int_equal(help_states(&four.moments[OC_STEADY][OC_M_AFTER_STEP]), two.params * 16 / 4);
}

/* zero_grad does not free the shards' gradients: the next forward does. */
static void gradients_outlive_zero_grad(void **state)
{
    (void)state;
    const struct oc_rank rank = rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=2"));
    assert_int_equal(rank.moments[OC_STEADY][OC_M_IDLE].classes[OC_GRADIENTS], rank.params * 2 / 2);
    assert_int_equal(rank.moments[OC_STEADY][OC_M_FORWARD].classes[OC_GRADIENTS], 0);
}

static void no_sync_keeps_whole_gradients(void **state)
{
    (void)state;
    const struct oc_rank once = rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4", "batch.accum=1"));
    const struct oc_rank waiting =
        rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4", "batch.accum=3"));
    const struct oc_rank each = rank_of(
        HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4", "batch.accum=3", "parallel.no_sync=false"));
    assert_true(waiting.peak.classes[OC_GRADIENTS] >= 2 * once.params);
    assert_true(each.peak.allocated < waiting.peak.allocated);
    assert_int_equal(waiting.moments[OC_STEADY][OC_M_AFTER_STEP].allocated,
                     once.moments[OC_STEADY][OC_M_AFTER_STEP].allocated);
    assert_int_equal(each.moments[OC_STEADY][OC_M_AFTER_STEP].allocated,
                     once.moments[OC_STEADY][OC_M_AFTER_STEP].allocated);
}

static void what_stays_gathered(void **state)
{
    (void)state;
    const struct oc_rank full = rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4"));
    const struct oc_rank grad_op =
        rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4", "parallel.zero=2"));
    const struct oc_rank kept =
        rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4", "fsdp.reshard_after_forward=false"));
    const struct oc_rank ahead =
        rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4", "fsdp.backward_prefetch=true"));
    const struct oc_rank whole =
        rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=4", "fsdp.wrap=none"));
    assert_true(grad_op.peak.allocated > full.peak.allocated);
    assert_int_equal(grad_op.peak.allocated, kept.peak.allocated);
    assert_true(ahead.moments[OC_STEADY][OC_M_BACKWARD].allocated > full.moments[OC_STEADY][OC_M_BACKWARD].allocated);
    assert_true(whole.peak.allocated > full.peak.allocated);
    /* Loss: the root alone is gathered; with everything in one unit, everything is. */
    const uint64_t root = full.moments[OC_STEADY][OC_M_LOSS].classes[OC_BUFFERS];
    assert_true(whole.moments[OC_STEADY][OC_M_LOSS].classes[OC_BUFFERS] > root + 2 * full.params / 2);
}

/* Hooks of frozen flat parameters hold layer inputs and their gradients: one more of each for every layer. */
static void frozen_layers_hold_their_inputs(void **state)
{
    (void)state;
    const struct oc_rank sharded = rank_of(HELP_WORDS(SMALL, "precision=pure-bf16", "parallel.world=2",
                                                      "recompute=full", "lora.rank=4", "lora.targets=q"));
    assert_int_equal(sharded.peak.place.layer, 0);
    uint64_t held = 0;
    for (int i = 0; i < ledger.n_entries; i++)
        if (strcmp(ledger.entries[i].name, "layers.grad_input") == 0) held += ledger.entries[i].bytes;
    assert_int_equal(held, 8 * 64 * 2);
}

/* Units come from a pool of their own, which nothing else may use; near the GPU's capacity the cache is given back. */
static void what_is_reserved(void **state)
{
    (void)state;
    struct oc_alloc *alloc = oc_alloc_create(&(struct oc_alloc_provider){0});
    assert_non_null(alloc);
    const char *const gpus[] = {"gpu=none", "gpu=a100-80g"};
    uint64_t reserved[2], gathered = 0, unit = 0;
    for (int i = 0; i < 2; i++) {
        const struct oc_plan plan = help_plan(HELP_WORDS(
            "framework=fsdp1", "model.name=llama-3-8b", "parallel.world=2", "batch.micro=4", "batch.seq=4096",
            "precision=amp-bf16", "recompute=full", "kernels.norm=fused", "kernels.loss=fused", gpus[i]));
        struct oc_rank rank;
        help_rank(&plan, 0, &ledger, &rank);
        const uint64_t peak = rank.peak.allocated;
        assert_true(oc_reserve(&plan, &ledger, alloc, &rank));
        assert_true(rank.reserved > peak);
        reserved[i] = rank.reserved;
        if (i) assert_true(rank.reserved + plan.context.low + plan.nccl.low <= plan.capacity);
    }
    assert_true(reserved[0] > reserved[1]);
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *e = &ledger.entries[i];
        if (!e->stream || e->birth.phase != OC_PH_FORWARD) continue;
        gathered += e->bytes;
        unit = e->bytes > unit ? e->bytes : unit;
    }
    assert_true(gathered > 0 && reserved[0] > gathered + unit);
    oc_alloc_destroy(alloc);
}

static void what_it_refuses(void **state)
{
    (void)state;
    const char *const refused[][3] = {{"framework=fsdp1", "model.name=llama-2-7b", "parallel.zero=1"},
                                      {"framework=fsdp1", "model.name=llama-2-7b", "parallel.tp=2"},
                                      {"framework=fsdp1", "model.name=llama-2-7b", "kernels.transformer=te"},
                                      {"framework=fsdp1", "model.params=7B", "parallel.world=2"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct oc_config config = help_config(HELP_WORDS(refused[i][0], refused[i][1], refused[i][2]));
        struct oc_plan plan;
        struct oc_error error;
        assert_false(oc_resolve(&config, &plan, NULL, &error));
        assert_true(error.hint[0] != '\0');
    }
}

static void what_is_left_out_is_said(void **state)
{
    (void)state;
    const struct oc_config config =
        help_config(HELP_WORDS(SMALL, "parallel.world=2", "optimizer.in_backward=true", "offload.optimizer=cpu"));
    struct oc_plan plan;
    struct oc_warnings warnings;
    assert_true(oc_resolve(&config, &plan, &warnings, NULL));
    assert_int_equal(warnings.n, 2);
    assert_non_null(strstr(warnings.text[0], "offload.optimizer"));
    assert_non_null(strstr(warnings.text[1], "optimizer.in_backward"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(real_runs),
                                       cmocka_unit_test(shards_shrink_and_units_do_not),
                                       cmocka_unit_test(gradients_outlive_zero_grad),
                                       cmocka_unit_test(no_sync_keeps_whole_gradients),
                                       cmocka_unit_test(what_stays_gathered),
                                       cmocka_unit_test(frozen_layers_hold_their_inputs),
                                       cmocka_unit_test(what_is_reserved),
                                       cmocka_unit_test(what_it_refuses),
                                       cmocka_unit_test(what_is_left_out_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
