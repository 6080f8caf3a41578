/* What one layer keeps for backward under Megatron-LM and TransformerEngine, in closed form: Korthikanti et al. 2022
 * (arXiv:2205.05198), section 4, and shared/reference/memory-megatron.md 4.2 for what has changed since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/model/help_model.h"

#define LLAMA                                                                                                          \
    "framework=megatron", "model.name=llama-3-8b", "precision=bf16", "parallel.tp=8", "parallel.sp=true",              \
        "batch.seq=8192", "batch.micro=2"
#define LATENT                                                                                                         \
    "framework=megatron", "model.name=deepseek-v2-lite", "precision=bf16", "batch.seq=4096", "model.dense_layers=27"

/* Bytes that one layer of the first kind keeps from forward to its backward. */
static uint64_t kept(const char *const *words)
{
    static struct oc_ledger ledger;
    struct oc_rank rank;
    const struct oc_plan plan = help_plan(words);
    help_rank(&plan, 0, &ledger, &rank);
    uint64_t bytes = 0;
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *entry = &ledger.entries[i];
        const bool layer =
            entry->class == OC_ACTIVATIONS && entry->birth.phase == OC_PH_FORWARD && entry->birth.part == OC_PART_LAYER;
        if (layer && entry->death.phase == OC_PH_BACKWARD && entry->kind == ledger.chunks[0].runs[0].kind)
            bytes += entry->bytes;
    }
    return bytes;
}

enum { T = 2 * 8192, H = 4096, KV = 1024, FFN = 14336, HEADS = 32, TP = 8 };

/* Per s b h / t: norms and their outputs 8, q and attention's output 4, k and v 1, fc1 14, its activation 7: 34. */
static void a_layer_of_llama(void **state)
{
    (void)state;
    const uint64_t statistics = 4 * (2 * T / TP + (uint64_t)T * HEADS / TP); /* two norms, one log-sum-exp a row */
    assert_int_equal(kept(HELP_WORDS(LLAMA)), 34ull * T * H / TP + statistics);
    /* Without sequence parallelism norms are whole on every rank. */
    assert_int_equal(kept(HELP_WORDS(LLAMA, "parallel.sp=false")),
                     8ull * T * H + 26ull * T * H / TP + 4 * (2 * T + (uint64_t)T * HEADS / TP));
    /* Dropout: a byte an element behind attention and behind the MLP. */
    assert_int_equal(kept(HELP_WORDS(LLAMA, "model.dropout=0.1")), 36ull * T * H / TP + statistics);
}

static void recomputed_modules(void **state)
{
    (void)state;
    const uint64_t all = kept(HELP_WORDS(LLAMA)), tokens = T / TP;
    assert_int_equal(all - kept(HELP_WORDS(LLAMA, "recompute=selective", "recompute.modules=layernorm")),
                     2 * 2 * tokens * H); /* the outputs of two norms */
    assert_int_equal(all - kept(HELP_WORDS(LLAMA, "recompute=selective", "recompute.modules=mlp")),
                     2 * 3 * tokens * FFN); /* gate and up, and their product */
    assert_int_equal(all - kept(HELP_WORDS(LLAMA, "recompute=selective", "recompute.modules=core_attn")),
                     4 * tokens * HEADS); /* a flash kernel keeps next to nothing that this could drop */
    assert_int_equal(kept(HELP_WORDS(LLAMA, "recompute=full", "recompute.method=uniform")), 2 * tokens * H);
}

/* fp8 halves the inputs of linear layers, and attention keeps its output in 16 bits besides. */
static void fp8(void **state)
{
    (void)state;
    const uint64_t tokens = T / TP, half = kept(HELP_WORDS(LLAMA)), narrow = kept(HELP_WORDS(LLAMA, "precision=fp8"));
    assert_int_equal(half - narrow, 2 * tokens * H + tokens * FFN - tokens * H);
}

/* Unfused attention keeps the softmax, and with dropout a mask and what it leaves. */
static void unfused_attention(void **state)
{
    (void)state;
    const uint64_t scores = (uint64_t)T * HEADS / TP * 8192, statistics = 4ull * T * HEADS / TP,
                   flash = kept(HELP_WORDS(LLAMA));
    assert_int_equal(kept(HELP_WORDS(LLAMA, "kernels.attention=unfused")), flash - statistics + 2 * scores);
    assert_int_equal(kept(HELP_WORDS(LLAMA, "kernels.attention=unfused", "model.attention_dropout=0.1")),
                     flash - statistics + 5 * scores);
}

/* Recomputing the up projections of latent attention drops q, k and v, and the normalized latents they come from. */
static void latent_attention(void **state)
{
    (void)state;
    const struct oc_plan plan = help_plan(HELP_WORDS(LATENT));
    const uint64_t heads = (uint64_t)plan.c.model_heads,
                   query = (uint64_t)(plan.c.model_qk_nope_head_dim + plan.c.model_qk_rope_head_dim),
                   value = (uint64_t)plan.c.model_v_head_dim, latent = (uint64_t)plan.c.model_kv_lora_rank;
    assert_int_equal(plan.c.model_q_lora_rank, 0);
    const uint64_t all = kept(HELP_WORDS(LATENT)),
                   less = kept(HELP_WORDS(LATENT, "recompute=selective", "recompute.modules=mla_up_proj"));
    assert_int_equal(all - less, 2 * 4096 * (heads * (2 * query + value) + latent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_layer_of_llama), cmocka_unit_test(recomputed_modules),
                                       cmocka_unit_test(fp8), cmocka_unit_test(unfused_attention),
                                       cmocka_unit_test(latent_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
