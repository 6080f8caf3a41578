/* Megatron's copies of a parameter, in bytes for each, as Megatron-LM's own table has them (docs/source/api-guide/
 * dist_optimizer: 18 and 6 + 12/d for bf16 with fp32 gradients, 20 and 4 + 16/d for fp16, 16 and 8 + 8/d for fp32) and
 * its code where that table is silent (shared/reference/memory-megatron.md section 1). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "tests/model/help_model.h"

/* A shape in which every buffer is a multiple of all that it is padded to. */
#define SHAPE                                                                                                          \
    "framework=megatron", "model.layers=4", "model.hidden=1024", "model.heads=16", "model.ffn=4096",                   \
        "model.activation=gelu", "model.norm=rmsnorm", "model.linear_bias=false", "model.vocab=65536", "batch.seq=64"

struct moments {
    uint64_t params, after, step; /* states after a step, and where most is allocated during one */
    uint64_t scratch;             /* what only the step needs */
};

static struct moments states_of(const char *const *words)
{
    static struct oc_ledger ledger;
    struct oc_rank rank;
    const struct oc_plan plan = help_plan(words);
    help_rank(&plan, 0, &ledger, &rank);
    return (struct moments){ledger.params, help_states(&rank.moments[OC_STEADY][OC_M_AFTER_STEP]),
                            help_states(&rank.moments[OC_STEADY][OC_M_STEP]),
                            rank.moments[OC_STEADY][OC_M_STEP].allocated -
                                rank.moments[OC_STEADY][OC_M_AFTER_STEP].allocated};
}

/* Bytes for a parameter, in hundredths, so that 6 + 12/8 is a whole number. */
static uint64_t hundredths(uint64_t bytes, uint64_t params)
{
    return (bytes * 100 + params / 2) / params;
}

static void bytes_for_a_parameter(void **state)
{
    (void)state;
    static const struct {
        const char *precision, *optimizer, *zero, *grads; /* grads: an option of Megatron's */
        uint64_t step, after;
    } rows[] = {
        {"precision=fp32", "optimizer=adam", "parallel.zero=0", NULL, 1600, 1600},
        {"precision=bf16", "optimizer=adam", "parallel.zero=0", NULL, 1800, 1800},
        {"precision=fp16", "optimizer=adam", "parallel.zero=0", NULL, 2000, 2000},
        {"precision=bf16", "optimizer=adam", "parallel.zero=0", "megatron.grad_reduce_in_bf16=true", 2000, 2000},
        {"precision=fp16", "optimizer=adam", "parallel.zero=0", "megatron.accumulate_allreduce_grads_in_fp32=true",
         1800, 1800},
        {"precision=bf16", "optimizer=sgd", "parallel.zero=0", NULL, 1400, 1400},
        {"precision=bf16", "optimizer=lion", "parallel.zero=0", NULL, 1400, 1400},
        {"precision=fp32", "optimizer=lion", "parallel.zero=0", NULL, 1200, 1200},
        {"precision=bf16", "optimizer=lion", "parallel.zero=1", NULL, 700,
         700}, /* whole parameters over 8 ranks: 6 + 8/8 */
        {"precision=fp32", "optimizer=adam", "parallel.zero=1", NULL, 900, 900},
        {"precision=bf16", "optimizer=adam", "parallel.zero=1", NULL, 750, 750},
        {"precision=fp16", "optimizer=adam", "parallel.zero=1", NULL, 600, 600},
        {"precision=bf16", "optimizer=adam", "parallel.zero=1", "offload.optimizer=cpu", 600, 600},
        {"precision=fp16", "optimizer=adam", "parallel.zero=1", "offload.optimizer=cpu", 400, 400},
        /* the 16 bits that bf16 weights lack, two moments in fp32 */
        {"precision=bf16", "optimizer=adam", "parallel.zero=1", "optimizer.precision_aware=true", 725, 725},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct moments m =
            states_of(HELP_WORDS(SHAPE, rows[i].precision, rows[i].optimizer, rows[i].zero, "parallel.world=8",
                                 rows[i].grads ? rows[i].grads : "batch.micro=1"));
        if (hundredths(m.step, m.params) != rows[i].step || hundredths(m.after, m.params) != rows[i].after)
            fail_msg("row %zu: %.2f in the step, %.2f after it", i, (double)m.step / (double)m.params,
                     (double)m.after / (double)m.params);
    }
}

static void narrow_states(void **state)
{
    (void)state;
    const struct moments m = states_of(HELP_WORDS(SHAPE, "precision=bf16", "parallel.zero=1", "parallel.world=8",
                                                  "optimizer.precision_aware=true", "precision.moment1=bf16",
                                                  "precision.moment2=bf16", "precision.grads=bf16"));
    assert_int_equal(hundredths(m.after, m.params), 475); /* 4 + 6/8 */
    const struct moments fp16 =
        states_of(HELP_WORDS(SHAPE, "precision=bf16", "parallel.zero=1", "parallel.world=8",
                             "optimizer.precision_aware=true", "precision.moment1=fp16", "precision.moment2=fp16"));
    assert_int_equal(hundredths(fp16.after, fp16.params), 675); /* 6 + 6/8, and fp32 copies of both in the step */
    assert_int_equal(hundredths(fp16.scratch, fp16.params), 100);
}

/* Half of the states on the host. */
static void part_of_the_states_is_offloaded(void **state)
{
    (void)state;
    const struct moments m = states_of(
        HELP_WORDS(SHAPE, "precision=bf16", "parallel.zero=0", "offload.optimizer=cpu", "offload.fraction=0.5"));
    assert_int_equal(hundredths(m.after, m.params), 1200); /* 6 + 12/2 */
}

/* Muon steps hidden matrices with one moment; everything else goes to Adam. */
static void muon_keeps_one_moment_of_matrices(void **state)
{
    (void)state;
    const struct moments muon = states_of(HELP_WORDS(SHAPE, "precision=bf16", "optimizer=muon")),
                         adam = states_of(HELP_WORDS(SHAPE, "precision=bf16", "optimizer=adam"));
    const uint64_t matrices = 4u * (4 * 1024 * 1024 + 2 * 1024 * 4096);
    assert_int_equal(adam.after - muon.after, matrices * 4);
}

/* Shared, its states are an eighth; what the step gathers are the weights of all ranks, and this rank's once more. */
static void muon_is_dealt_out(void **state)
{
    (void)state;
    const struct moments whole = states_of(HELP_WORDS(SHAPE, "precision=bf16", "optimizer=muon", "parallel.world=8")),
                         eighth = states_of(HELP_WORDS(SHAPE, "precision=bf16", "optimizer=muon", "parallel.world=8",
                                                       "parallel.zero=1"));
    assert_int_equal(eighth.after - 6 * eighth.params, (whole.after - 6 * whole.params) / 8);
    assert_int_equal(hundredths(eighth.scratch, eighth.params), 225); /* 2 + 2/8 */
}

static void what_megatron_refuses(void **state)
{
    (void)state;
    static const char *const refused[][3] = {
        {"optimizer=sgd", "parallel.zero=1", "precision=bf16"},
        {"optimizer=lion", "parallel.zero=2", "precision=bf16"},
        {"optimizer=muon", "parallel.zero=3", "precision=bf16"},
        {"optimizer=muon", "optimizer.precision_aware=true", "parallel.zero=1"},
        {"optimizer=lion", "parallel.zero=0", "precision=fp16"},
        {"optimizer=adafactor", "parallel.zero=0", "precision=bf16"},
        {"optimizer=sgd", "parallel.zero=2", "precision=bf16"},
        {"framework=megatron-fsdp", "parallel.zero=1", "precision=bf16"},
        {"megatron.deterministic=true", "kernels.loss=fused", "precision=bf16"},
        {"recompute.partition_activations=true", "recompute=full", "parallel.sp=true"},
        {"model.experts=4", "parallel.sp=false", "precision=bf16"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct oc_config config = help_config(
            HELP_WORDS(SHAPE, refused[i][0], refused[i][1], refused[i][2], "parallel.tp=2", "parallel.world=4"));
        struct oc_plan plan;
        struct oc_error error;
        memset(&error, 0, sizeof error);
        if (oc_resolve(&config, &plan, NULL, &error)) fail_msg("row %zu was taken", i);
        assert_true(error.hint[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_for_a_parameter),
                                       cmocka_unit_test(narrow_states),
                                       cmocka_unit_test(part_of_the_states_is_offloaded),
                                       cmocka_unit_test(muon_keeps_one_moment_of_matrices),
                                       cmocka_unit_test(muon_is_dealt_out),
                                       cmocka_unit_test(what_megatron_refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
