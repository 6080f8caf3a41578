/* The two documents the project began with, in figures: shared/seeds/000 (Megatron-LM: fp16 takes more than fp32) and
 * 002 (an article's 112 GB against 84 GB), and Megatron's documented bytes per parameter
 * (docs/user-guide/features/dist_optimizer.md). */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEED                                                                                                           \
    "framework=megatron", "model.layers=32", "model.hidden=4096", "model.heads=32", "model.kv_heads=8",                \
        "model.ffn=14336", "model.vocab=128256", "model.tied=true", "batch.seq=4096", "parallel.tp=8",                 \
        "parallel.sp=true", "optimizer=sgd", "recompute=full"

static struct oc_rank rank_of(const char *const *words)
{
    static struct oc_ledger ledger;
    return help_rank_of(words, 0, &ledger);
}

static uint64_t states_at(const struct oc_rank *rank, enum oc_moment moment)
{
    return help_states(&rank->moments[OC_STEADY][moment]);
}

static void fp16_takes_more_than_fp32(void **state)
{
    (void)state;
    const struct oc_rank fp16 = rank_of(HELP_WORDS(SEED, "precision=fp16")),
                         fp32 = rank_of(HELP_WORDS(SEED, "precision=fp32")),
                         bf16 = rank_of(HELP_WORDS(SEED, "precision=bf16"));
    assert_int_equal(fp16.params, 938741760);
    assert_int_equal(states_at(&fp16, OC_M_STEP), 15019868160);     /* 16 B a parameter */
    assert_int_equal(states_at(&fp32, OC_M_STEP), 11264901120);     /* 12 */
    assert_int_equal(states_at(&bf16, OC_M_STEP), 13142384640);     /* 14 */
    assert_int_equal(states_at(&fp16, OC_M_BACKWARD), 11264901120); /* 12: the fp32 gradient copy is not there yet */
    assert_int_equal(states_at(&fp32, OC_M_BACKWARD), 11264901120);
    assert_int_equal(states_at(&fp16, OC_M_AFTER_STEP), 15019868160);
    assert_int_equal(states_at(&fp16, OC_M_IDLE), 11264901120);
    assert_true(fp16.peak.allocated > fp32.peak.allocated);
}

static void fp32_main_grads_cost_less_than_the_copy(void **state)
{
    (void)state;
    const struct oc_rank rank =
        rank_of(HELP_WORDS(SEED, "precision=fp16", "megatron.accumulate_allreduce_grads_in_fp32=true"));
    assert_int_equal(states_at(&rank, OC_M_STEP), 13142384640); /* 14 */
    assert_int_equal(states_at(&rank, OC_M_BACKWARD), 13142384640);
}

static void sentences_contain(const char *const *words, const char *const *needles)
{
    static struct oc_answer answer;
    const struct oc_config config = help_config(words);
    struct oc_reason reason;
    struct oc_error error;
    char all[OC_MAX_SENTENCES * 400] = "";
    if (!oc_answer(&config, &answer, NULL, NULL, &error)) fail_msg("%s", error.message);
    oc_explain(&answer, &reason);
    for (int i = 0; i < reason.n; i++) strcat(all, reason.sentence[i]);
    for (; *needles; needles++)
        if (!strstr(all, *needles)) fail_msg("\"%s\" is not in \"%s\"", *needles, all);
}

static void reason_names_the_mechanism(void **state)
{
    (void)state;
    sentences_contain(HELP_WORDS(SEED, "precision=fp16"),
                      HELP_WORDS("param.detach().clone().float()", "main_grad.float()", "16 B a parameter",
                                 "From micro-batch", "full recompute"));
    sentences_contain(HELP_WORDS(SEED, "precision=bf16"), HELP_WORDS("always so under bf16", "14 B a parameter"));
}

/* From the micro-batch that the sentence names on, and not before, fp16 peaks lower. */
static void crossing_is_where_the_sentence_says(void **state)
{
    (void)state;
    static struct oc_answer answer;
    const struct oc_config config = help_config(HELP_WORDS(SEED, "precision=fp16"));
    struct oc_reason reason;
    struct oc_error error;
    int said = 0;
    assert_true(oc_answer(&config, &answer, NULL, NULL, &error));
    oc_explain(&answer, &reason);
    for (int i = 0; i < reason.n; i++) sscanf(reason.sentence[i], "From micro-batch %d", &said);
    assert_true(said > 1);
    for (int size = said - 1; size <= said; size++) {
        char micro[32];
        snprintf(micro, sizeof micro, "batch.micro=%d", size);
        const struct oc_rank fp16 = rank_of(HELP_WORDS(SEED, "precision=fp16", micro)),
                             fp32 = rank_of(HELP_WORDS(SEED, "precision=fp32", micro));
        assert_int_equal(fp16.peak.allocated < fp32.peak.allocated, size == said);
    }
}

#define BILLION 1000000000ull

static void check_classes(const struct oc_instant *instant, uint64_t w, uint64_t m, uint64_t g, uint64_t o, uint64_t b)
{
    assert_int_equal(instant->classes[OC_WEIGHTS], w * BILLION);
    assert_int_equal(instant->classes[OC_MASTER], m * BILLION);
    assert_int_equal(instant->classes[OC_GRADIENTS], g * BILLION);
    assert_int_equal(instant->classes[OC_OPTIMIZER], o * BILLION);
    assert_int_equal(instant->classes[OC_BUFFERS], b * BILLION);
}

static void article_adds_up(void **state)
{
    (void)state;
    const struct oc_rank fp32 =
        rank_of(HELP_WORDS("framework=article", "model.params=7000000000", "optimizer=adamw", "precision=fp32"));
    const struct oc_rank fp16 =
        rank_of(HELP_WORDS("framework=article", "model.params=7B", "optimizer=adamw", "precision=fp16"));
    check_classes(&fp32.peak, 28, 0, 28, 56, 0);
    check_classes(&fp16.peak, 14, 28, 14, 28, 0);
    assert_int_equal(fp32.peak.allocated, 112 * BILLION);
    assert_int_equal(fp16.peak.allocated, 84 * BILLION);
    sentences_contain(HELP_WORDS("framework=article", "model.params=7B", "optimizer=adamw", "precision=fp16"),
                      HELP_WORDS("98 GB in forward", "up to 14", "112 after backward", "140 in a foreach",
                                 "112 in a fused", "140 GB at the step in fp16", "126 in bf16"));
}

static void real_frameworks_hold_more(void **state)
{
    (void)state;
#define PYTORCH "framework=pytorch", "model.params=7B", "optimizer=adamw", "precision=amp-fp16"
    const struct oc_rank foreach_ = rank_of(HELP_WORDS(PYTORCH, "optimizer.impl=foreach")),
                         fused = rank_of(HELP_WORDS(PYTORCH, "optimizer.impl=fused"));
    check_classes(&foreach_.moments[OC_STEADY][OC_M_FORWARD], 28, 0, 0, 56, 14);
    check_classes(&foreach_.moments[OC_STEADY][OC_M_REDUCE], 28, 0, 28, 56, 0);
    assert_int_equal(foreach_.moments[OC_STEADY][OC_M_STEP].allocated, 140 * BILLION);
    assert_int_equal(fused.moments[OC_STEADY][OC_M_STEP].allocated, 112 * BILLION);
    const struct oc_rank fp16 =
        rank_of(HELP_WORDS("framework=megatron", "model.params=7B", "optimizer=adamw", "precision=fp16"));
    const struct oc_rank bf16 =
        rank_of(HELP_WORDS("framework=megatron", "model.params=7B", "optimizer=adamw", "precision=bf16"));
    assert_int_equal(fp16.peak.allocated, 140 * BILLION);
    assert_int_equal(bf16.peak.allocated, 126 * BILLION);
}

static void zero_paper_adds_up(void **state)
{
    (void)state;
    /* ZeRO, arXiv:1910.02054, table 1: 7.5B on 64 ranks: 120, 31.4, 16.6 and 1.88 GB. */
    const uint64_t want[] = {120000000000, 31406250000, 16640625000, 1875000000};
    for (int stage = 0; stage <= 3; stage++) {
        char zero[32];
        snprintf(zero, sizeof zero, "parallel.zero=%d", stage);
        const struct oc_rank rank = rank_of(HELP_WORDS("framework=zero-paper", "model.params=7500000000",
                                                       "precision=fp16", "optimizer=adam", "parallel.world=64", zero));
        assert_int_equal(help_states(&rank.peak), want[stage]);
    }
}

/* Megatron's table at the step: bytes that every rank holds of a parameter, plus bytes that d ranks share. */
static void documented_bytes_per_parameter(void **state)
{
    (void)state;
    static const struct {
        const char *precision;
        int whole, shared;
    } table[] = {{"precision=fp16", 4, 16}, {"precision=bf16", 6, 12}, {"precision=fp32", 8, 8}};
    static const int ranks[] = {1, 2, 4, 8, 64};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct oc_rank plain =
            rank_of(HELP_WORDS("framework=megatron", "model.name=llama-3-8b", "optimizer=adam", table[i].precision));
        assert_int_equal(states_at(&plain, OC_M_STEP), plain.params * (uint64_t)(table[i].whole + table[i].shared));
        for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
            char world[32];
            snprintf(world, sizeof world, "parallel.world=%d", ranks[k]);
            const struct oc_rank rank =
                rank_of(HELP_WORDS("framework=megatron", "model.name=llama-3-8b", "optimizer=adam", table[i].precision,
                                   "parallel.zero=1", world));
            const uint64_t d = (uint64_t)ranks[k], n = rank.params;
            assert_int_equal(n % d, 0);
            assert_int_equal(states_at(&rank, OC_M_STEP),
                             n * (uint64_t)table[i].whole + n / d * (uint64_t)table[i].shared);
        }
    }
}

/* 7B of Megatron's functional tests on 8 ranks, TP4 DP2: predicted states 20,559,593,472 B without workspaces
 * (memory-megatron.md, T1). */
static void bucket_padding_is_an_entry(void **state)
{
    (void)state;
    static struct oc_ledger ledger;
    const struct oc_plan plan = help_plan(
        HELP_WORDS("framework=megatron", "model.layers=12", "model.hidden=512", "model.heads=8", "model.vocab=50257",
                   "model.tied=true", "model.positions=learned", "model.max_positions=1024", "model.norm=layernorm",
                   "model.activation=gelu", "model.linear_bias=true", "batch.seq=1024", "optimizer=adam",
                   "precision=bf16", "parallel.zero=1", "parallel.world=8"));
    struct oc_rank rank;
    help_rank(&plan, 0, &ledger, &rank);
    assert_int_equal(rank.params, 64109568);
    uint64_t padding = 0;
    for (int i = 0; i < ledger.n_entries; i++)
        if (!strcmp(ledger.entries[i].name, "padding")) padding += ledger.entries[i].bytes;
    /* Measured 480,821,760 B of states in all, padding included (GPT-345M-like TP1 DP8). */
    assert_int_equal(states_at(&rank, OC_M_STEP) + padding, 480821760);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp16_takes_more_than_fp32),
        cmocka_unit_test(fp32_main_grads_cost_less_than_the_copy),
        cmocka_unit_test(reason_names_the_mechanism),
        cmocka_unit_test(crossing_is_where_the_sentence_says),
        cmocka_unit_test(article_adds_up),
        cmocka_unit_test(real_frameworks_hold_more),
        cmocka_unit_test(zero_paper_adds_up),
        cmocka_unit_test(documented_bytes_per_parameter),
        cmocka_unit_test(bucket_padding_is_an_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
