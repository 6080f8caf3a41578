/* DeepSpeed: the states of every ZeRO stage beside DeepSpeed's own estimators, the optimizer wrappers, the pipeline
 * engine, and what it refuses. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct oc_ledger ledger;

static struct oc_rank rank_of(const char *const *words, int64_t stage)
{
    return help_rank_of(words, stage, &ledger);
}

/* Bytes on this rank of the copy of the parameters with that name; padding is left out. */
static uint64_t copy_bytes(const char *copy)
{
    uint64_t sum = 0;
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *entry = &ledger.entries[i];
        if (entry->copy && !strcmp(entry->copy, copy) && !entry->is_rounding && strcmp(entry->name, "padding"))
            sum += entry->bytes * entry->count;
    }
    return sum;
}

static void estimate(int zero, uint64_t params, int gpus, int offloaded)
{
    char count[64], world[64], stage[64];
    snprintf(count, sizeof count, "model.params=%llu", (unsigned long long)params);
    snprintf(world, sizeof world, "parallel.world=%d", gpus);
    snprintf(stage, sizeof stage, "parallel.zero=%d", zero);
    rank_of(HELP_WORDS("framework=deepspeed", "precision=bf16", "gpu=none", count, world, stage,
                       offloaded ? "offload.optimizer=cpu" : "offload.optimizer=none"),
            0);
}

/* Their formula rounds 18 P / n down once, we round each state down: a byte or two a state. */
static void check_near(uint64_t ours, uint64_t theirs)
{
    const uint64_t apart = ours > theirs ? ours - theirs : theirs - ours;
    if (apart > 18) fail_msg("%llu for %llu", (unsigned long long)ours, (unsigned long long)theirs);
}

static void check_line(int zero, const long long *v)
{
    const long long params = v[0], largest = zero == 3 ? v[1] : 0;
    const long long *rest = v + (zero == 3 ? 2 : 1);
    const int gpus = (int)rest[0], offloaded = (int)rest[1];
    estimate(zero, (uint64_t)params, gpus, offloaded);
    uint64_t sum = copy_bytes("weights");
    if (!offloaded) {
        sum += copy_bytes("master") + copy_bytes("exp_avg") + copy_bytes("exp_avg_sq");
        /* Stage 3 widens gradients a sub-group at a time; the estimator takes all of them. */
        sum += zero == 3 ? 4 * (uint64_t)params / (uint64_t)gpus : copy_bytes("fp32 gradients for the step");
        if (zero == 2) sum += copy_bytes("averaged gradients");
    }
    check_near(sum, (uint64_t)rest[2] - 4 * (uint64_t)largest);
}

static void the_estimators_states(void **state)
{
    (void)state;
    FILE *file = fopen(OOMCAST_SOURCE "/tests/data/deepspeed_estimators.txt", "r");
    assert_non_null(file);
    char line[256];
    int rows = 0;
    while (fgets(line, sizeof line, file)) {
        int zero;
        long long v[5];
        if (line[0] == '#') continue;
        const int n = sscanf(line, "zero%d %lld %lld %lld %lld %lld", &zero, &v[0], &v[1], &v[2], &v[3], &v[4]);
        assert_int_equal(n, zero == 3 ? 6 : 5);
        check_line(zero, v);
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, 504);
}

#define LLAMA "framework=deepspeed", "model.name=llama-3-8b", "gpu=none", "parallel.world=8", "batch.accum=4"

static uint64_t states_at(const struct oc_rank *rank, enum oc_moment moment)
{
    return help_states(&rank->moments[OC_STEADY][moment]);
}

static void each_stage_shares_more(void **state)
{
    (void)state;
    static const char *const stages[] = {"parallel.zero=0", "parallel.zero=1", "parallel.zero=2", "parallel.zero=3"};
    uint64_t before = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        const struct oc_rank rank = rank_of(HELP_WORDS(LLAMA, "precision=fp16", stages[i]), 0);
        assert_true(states_at(&rank, OC_M_BACKWARD) < before);
        before = states_at(&rank, OC_M_BACKWARD);
    }
}

static void fp16_optimizer(void **state)
{
    (void)state;
    const struct oc_rank rank = rank_of(HELP_WORDS(LLAMA, "precision=fp16", "parallel.zero=0"), 0);
    const uint64_t p = rank.params;
    assert_int_equal(states_at(&rank, OC_M_BACKWARD), 16 * p);
    assert_int_equal(states_at(&rank, OC_M_STEP), 20 * p);
    assert_int_equal(states_at(&rank, OC_M_AFTER_STEP), 14 * p); /* gradients are freed in the step */
    assert_int_equal(help_states(&rank.moments[OC_FIRST][OC_M_INIT]),
                     14 * p); /* states are there before the first step */
}

/* BF16_Optimizer flattens the module's tensors on the GPU, and its sums travel through a 16-bit copy of all of them. */
static void bf16_optimizer_copies_whole(void **state)
{
    (void)state;
    const struct oc_rank rank =
        rank_of(HELP_WORDS(LLAMA, "precision=bf16", "precision.grads=fp32", "parallel.zero=1"), 0);
    uint64_t narrow = 0;
    for (int i = 0; i < ledger.n_entries; i++)
        if (!strcmp(ledger.entries[i].name, "sums in 16 bits")) narrow += ledger.entries[i].bytes;
    assert_int_equal(narrow, 2 * rank.params);
    assert_int_equal(copy_bytes("weights as made"), 2 * rank.params);
    assert_true(rank.moments[OC_STEADY][OC_M_REDUCE].classes[OC_GRADIENTS] >=
                rank.moments[OC_STEADY][OC_M_STEP].classes[OC_GRADIENTS] + 2 * rank.params);
    assert_true(rank.moments[OC_STEADY][OC_M_FORWARD].classes[OC_WEIGHTS] < 3 * rank.params);
}

static void bf16_optimizer_sums_in_fp32(void **state)
{
    (void)state;
    const struct oc_rank rank =
        rank_of(HELP_WORDS(LLAMA, "precision=bf16", "precision.grads=fp32", "parallel.zero=1"), 0);
    const uint64_t p = rank.params;
    /* 2 weights, 4 sums, 2 param.grad, 12 / 8 shared. The padding to 16 elements is not states. */
    assert_int_equal(states_at(&rank, OC_M_AFTER_STEP), 8 * p + 3 * (p / 8 * 4));
    const struct oc_rank narrow = rank_of(HELP_WORDS(LLAMA, "precision=bf16", "parallel.zero=1"), 0);
    assert_int_equal(states_at(&narrow, OC_M_AFTER_STEP), 2 * p + 3 * (p / 8 * 4));
}

static void buckets(void **state)
{
    (void)state;
    const struct oc_rank one = rank_of(HELP_WORDS(LLAMA, "precision=bf16", "parallel.zero=2",
                                                  "zero.reduce_bucket=500000000", "zero.overlap_comm=false"),
                                       0),
                         two = rank_of(HELP_WORDS(LLAMA, "precision=bf16", "parallel.zero=2",
                                                  "zero.reduce_bucket=500000000", "zero.overlap_comm=true"),
                                       0);
    assert_int_equal(two.moments[OC_STEADY][OC_M_BACKWARD].classes[OC_BUFFERS] -
                         one.moments[OC_STEADY][OC_M_BACKWARD].classes[OC_BUFFERS],
                     1000000000);
}

#define GPT                                                                                                            \
    "framework=deepspeed", "model.layers=64", "model.hidden=8192", "model.heads=32", "model.ffn=32768",                \
        "model.vocab=50688", "model.vocab_multiple=1", "model.positions=learned", "model.max_positions=1024",          \
        "model.tied=true", "model.norm=layernorm", "model.activation=gelu", "model.linear_bias=true",                  \
        "batch.seq=1024", "batch.micro=4", "batch.accum=256", "precision=fp16", "recompute=full",                      \
        "kernels.attention=unfused", "kernels.transformer=local", "parallel.tp=4", "parallel.pp=16", "gpu=v100-32g",   \
        "model.dropout=0.1", "model.attention_dropout=0.1"

static void check_within(uint64_t ours, uint64_t measured, double share)
{
    const double error = (double)ours / (double)measured - 1;
    if (error > share || error < -share)
        fail_msg("%llu for %llu: %+.2f %%", (unsigned long long)ours, (unsigned long long)measured, 100 * error);
}

/* bigscience-workshop/bigscience experiments/gpt2-meg-ds-3d/meg_ds_3d_gpt2_perf_n16-ds-on.out: allocated after the
 * first iteration, and its peak. */
static void measured_pipeline(void **state)
{
    (void)state;
    static const struct {
        int64_t stage;
        uint64_t after, peak;
    } ranks[] = {{0, 12936760832, 20930701312},
                 {1, 11363832320, 18310179328},
                 {8, 11363832320, 16313687040},
                 {14, 11363832320, 16197193216},
                 {15, 13551620608, 19058265600}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const struct oc_rank rank = rank_of(HELP_WORDS(GPT), ranks[i].stage);
        check_within(rank.moments[OC_STEADY][OC_M_AFTER_STEP].allocated, ranks[i].after, 0.01);
        check_within(rank.first_peak.allocated, ranks[i].peak, 0.01);
    }
}

static void refuses(const char *const *words, const char *needle)
{
    const struct oc_config config = help_config(words);
    struct oc_plan plan;
    struct oc_error error;
    assert_false(oc_resolve(&config, &plan, NULL, &error));
    assert_non_null(strstr(error.message, needle));
}

static void refusals(void **state)
{
    (void)state;
    refuses(HELP_WORDS("framework=deepspeed", "parallel.zero=2", "parallel.pp=2"), "pipeline engine refuses");
    refuses(HELP_WORDS("framework=deepspeed", "parallel.pp=2", "parallel.vpp=2"), "does not interleave");
}

static void autocast_is_read_as_16_bit_weights(void **state)
{
    (void)state;
    const struct oc_config config = help_config(HELP_WORDS("framework=deepspeed", "precision=amp-bf16"));
    struct oc_plan plan;
    struct oc_warnings warnings;
    assert_true(oc_resolve(&config, &plan, &warnings, NULL));
    assert_int_equal(plan.dt.weights, OC_BF16);
    assert_int_equal(plan.dt.master, OC_FP32);
    assert_int_equal(warnings.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_estimators_states),
        cmocka_unit_test(each_stage_shares_more),
        cmocka_unit_test(fp16_optimizer),
        cmocka_unit_test(bf16_optimizer_copies_whole),
        cmocka_unit_test(bf16_optimizer_sums_in_fp32),
        cmocka_unit_test(buckets),
        cmocka_unit_test(measured_pipeline),
        cmocka_unit_test(refusals),
        cmocka_unit_test(autocast_is_read_as_16_bit_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
