/* torchtitan, torchtune and litgpt: what a layer keeps for backward, in closed form; torchtitan's per-op list; their
 * losses; and runs that others have measured. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct oc_ledger ledger;

static struct oc_rank rank_of(const char *const *words)
{
    return help_rank_of(words, 0, &ledger);
}

/* Bytes that one layer keeps from its forward to its backward. */
static uint64_t kept_by_layer(const char *const *words)
{
    rank_of(words);
    uint64_t sum = 0;
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *entry = &ledger.entries[i];
        if (entry->class == OC_ACTIVATIONS && entry->birth.part == OC_PART_LAYER &&
            entry->birth.phase == OC_PH_FORWARD && entry->death.phase == OC_PH_BACKWARD)
            sum += entry->bytes;
    }
    return sum;
}

/* A layer with grouped heads. T tokens, widths h, q, k, f; a heads. */
enum { T = 4096, h = 2048, q = 2048, k = 512, f = 5632, a = 16 };
#define SHAPE                                                                                                          \
    "framework=pytorch", "model.layers=4", "model.hidden=2048", "model.heads=16", "model.kv_heads=4",                  \
        "model.ffn=5632", "model.vocab=32000", "batch.seq=2048", "batch.micro=2", "precision=pure-bf16", "gpu=none"

/* An eager RMSNorm keeps its fp32 input, the normalized tensor, one number a row, and its output; attention q, keys and
 * values written out for every head, its output and a number a row; the MLP gate, its activation, up and their product.
 */
static const uint64_t norms = 2 * T * (4 * h + 2 * h + 2 * h + 4), attention = T * (2 * 4 * q) + 4 * T * a,
                      mlp = T * 4 * 2 * f;

static void a_layer_of_each(void **state)
{
    (void)state;
    assert_int_equal(kept_by_layer(HELP_WORDS(SHAPE, "kernels.transformer=torchtitan")), norms + attention + mlp);
    /* torchtune runs compiled: norms keep their input and one number a row, the activation is made again. */
    assert_int_equal(kept_by_layer(HELP_WORDS(SHAPE, "kernels.transformer=torchtune")),
                     2 * T * (2 * h + 2 * h + 4) + attention + T * 3 * 2 * f);
    assert_int_equal(kept_by_layer(HELP_WORDS(SHAPE, "kernels.transformer=torchtune", "kernels.compile=false")),
                     norms + attention + mlp);
    /* litgpt keeps normalized tensors in fp32, and copies attention's output to merge its heads. */
    assert_int_equal(kept_by_layer(HELP_WORDS(SHAPE, "kernels.transformer=litgpt")),
                     norms + 2 * T * 2 * h + attention + T * 2 * q + mlp);
    /* Without groups its values are a view that keeps the whole fused projection. */
    assert_int_equal(kept_by_layer(HELP_WORDS(SHAPE, "kernels.transformer=litgpt", "model.kv_heads=16")),
                     norms + 2 * T * 2 * h + attention + T * 2 * (3 * q - q) + T * 2 * q + mlp);
}

static void recompute(void **state)
{
    (void)state;
    assert_int_equal(kept_by_layer(HELP_WORDS(SHAPE, "kernels.transformer=torchtune", "recompute=full")), T * 2 * h);
    /* torchtitan's list: the input; of the products the first, third, fifth and seventh; attention's output. */
    const uint64_t listed = T * 2 * (h + q + k + f + h) + T * 2 * q + 4 * T * a;
    assert_int_equal(kept_by_layer(HELP_WORDS(SHAPE, "kernels.transformer=torchtitan", "recompute=selective")), listed);
}

static uint64_t at(const struct oc_rank *rank, enum oc_moment moment)
{
    return rank->moments[OC_STEADY][moment].classes[OC_ACTIVATIONS];
}

static void losses(void **state)
{
    (void)state;
    const uint64_t logits = (uint64_t)T * 32000;
    const struct oc_rank eager = rank_of(HELP_WORDS(SHAPE, "kernels.transformer=torchtitan")),
                         fused = rank_of(HELP_WORDS(SHAPE, "kernels.transformer=torchtitan", "kernels.loss=fused")),
                         pieces = rank_of(HELP_WORDS(SHAPE, "kernels.transformer=torchtune", "kernels.loss=chunked")),
                         whole = rank_of(HELP_WORDS(SHAPE, "kernels.transformer=torchtune")),
                         litgpt = rank_of(HELP_WORDS(SHAPE, "kernels.transformer=litgpt"));
    /* Log-probabilities and two gradients in fp32, against logits in 16 bits. */
    assert_true(at(&eager, OC_M_BACKWARD) - at(&fused, OC_M_BACKWARD) > 7 * logits);
    assert_true(at(&whole, OC_M_LOSS) - at(&pieces, OC_M_LOSS) >= 2 * logits);
    /* litgpt casts nothing to fp32: logits, log-probabilities, the pieces' gradients, and these joined. */
    uint64_t widest = 0;
    for (int i = 0; i < ledger.n_entries; i++)
        if (ledger.entries[i].elements == logits && ledger.entries[i].bytes > widest) widest = ledger.entries[i].bytes;
    assert_int_equal(widest, 2 * logits);
    assert_true(at(&litgpt, OC_M_LOSS) > 4 * logits);
}

static void offloaded_activations_wait_on_the_host(void **state)
{
    (void)state;
    const struct oc_rank here = rank_of(HELP_WORDS(SHAPE, "kernels.transformer=torchtune", "recompute=full")),
                         there = rank_of(HELP_WORDS(SHAPE, "kernels.transformer=torchtune", "recompute=full",
                                                    "offload.activations=cpu"));
    /* At the loss all four inputs are away; in a layer its own is back. */
    assert_int_equal(at(&here, OC_M_LOSS) - at(&there, OC_M_LOSS), 4ULL * T * 2 * h);
    assert_true(at(&here, OC_M_BACKWARD) > at(&there, OC_M_BACKWARD));
}

static void check_within(const char *const *words, double measured, double share)
{
    const struct oc_rank rank = rank_of(words);
    const double error = (double)rank.peak.allocated / measured - 1;
    if (error > share || error < -share)
        fail_msg("%.0f for %.0f: %+.2f %%", (double)rank.peak.allocated, measured, 100 * error);
}

#define TINY                                                                                                           \
    "model.layers=22", "model.hidden=2048", "model.heads=32", "model.kv_heads=4", "model.ffn=5632",                    \
        "model.vocab=32000", "batch.seq=2048", "batch.micro=4", "precision=pure-bf16", "kernels.transformer=litgpt",   \
        "gpu=a100-40g"
#define LLAMA3B                                                                                                        \
    "framework=pytorch", "model.layers=28", "model.hidden=3072", "model.heads=24", "model.kv_heads=8",                 \
        "model.ffn=8192", "model.vocab=128256", "model.tied=true", "batch.seq=4096", "batch.micro=2",                  \
        "precision=pure-bf16", "optimizer.impl=fused", "kernels.transformer=torchtune", "gpu=a100-80g"
#define GIB (1024. * 1024 * 1024)

/* Lightning-AI/litgpt extensions/thunder/README.md (GB = 1e9); pytorch/torchtune README.md (GiB). */
static void measured(void **state)
{
    (void)state;
    check_within(HELP_WORDS("framework=pytorch", TINY, "batch.accum=128"), 29.84e9, 0.01);
    check_within(HELP_WORDS("framework=pytorch", TINY, "batch.accum=16", "parallel.world=8"), 32.04e9, 0.01);
    check_within(HELP_WORDS(LLAMA3B, "kernels.loss=chunked"), 42.9 * GIB, 0.02);
    check_within(HELP_WORDS(LLAMA3B, "kernels.loss=chunked", "recompute=full"), 24.9 * GIB, 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_of_each), cmocka_unit_test(recompute), cmocka_unit_test(losses),
        cmocka_unit_test(offloaded_activations_wait_on_the_host), cmocka_unit_test(measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
