/* Low-rank adapters: parameters, states, what frozen weights no longer keep, and figures of real runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "help_model.h"

static struct oc_ledger ledger;

#define MISTRAL                                                                                                        \
    "model.layers=32", "model.hidden=4096", "model.heads=32", "model.kv_heads=8", "model.head_dim=128",                \
        "model.ffn=14336", "model.vocab=32000", "model.tied=false", "batch.seq=4096", "recompute=full",                \
        "kernels.attention=flash", "gpu=a100-80g", "optimizer.impl=foreach", "kernels.stack=torch 2.4.1"
#define LLAMA3                                                                                                         \
    "model.layers=32", "model.hidden=4096", "model.heads=32", "model.kv_heads=8", "model.head_dim=128",                \
        "model.ffn=14336", "model.vocab=128256", "model.tied=false", "batch.seq=4096", "recompute=full",               \
        "kernels.attention=flash", "gpu=a100-80g", "optimizer.impl=foreach", "kernels.stack=torch 2.4.1"
#define ADAPTERS "lora.rank=16", "lora.targets=q,k,v,o", "lora.dropout=0.1"

static struct oc_rank rank_of(const char *const *words)
{
    return help_rank_of(words, 0, &ledger);
}

/* Runs of Hugging Face's Trainer on one A100, byte counts of torch's allocator. Source: foundation-model-stack/
 * fms-acceleration, benchmark CSVs, as collected in shared/corpus/frameworks.json (fms-main-mistral-7b-none-g1,
 * -accelerated-peft-bnb-g1, -autogptq-g1, fms-liger-llama-3-8b-foak-fast-kernels-liger-g1-b4-lora). */
static const struct run {
    const char *words[40];
    uint64_t idle, peak;
} runs[] = {
    {{"framework=pytorch", MISTRAL, ADAPTERS, "batch.micro=4", "precision=pure-bf16", "lora.base=bf16"},
     14664493056,
     26704571904},
    {{"framework=pytorch", MISTRAL, ADAPTERS, "batch.micro=8", "precision=pure-bf16", "lora.base=bf16"},
     14664886272,
     38742912512},
    {{"framework=pytorch", MISTRAL, ADAPTERS, "batch.micro=4", "precision=pure-bf16", "precision.autocast=bf16",
      "lora.base=nf4-dq"},
     4306496512,
     16373838336},
    {{"framework=pytorch", MISTRAL, ADAPTERS, "batch.micro=4", "precision=pure-fp16", "precision.autocast=fp16",
      "lora.base=int4-gptq"},
     4336806912,
     16404148736},
    {{"framework=pytorch", LLAMA3, ADAPTERS, "batch.micro=4", "precision=pure-bf16", "precision.autocast=bf16",
      "lora.base=bf16", "kernels.norm=fused", "kernels.loss=fused-linear"},
     16241584128,
     24905936896},
};

static void real_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct oc_rank rank = rank_of(runs[i].words);
        help_near(&rank, (int)i, runs[i].idle, runs[i].peak, 0.003);
    }
}

static void adapters_are_counted(void **state)
{
    (void)state;
    const char *const small[] = {"framework=pytorch",
                                 "model.layers=3",
                                 "model.hidden=64",
                                 "model.heads=4",
                                 "model.kv_heads=2",
                                 "model.head_dim=16",
                                 "model.ffn=96",
                                 "model.vocab=100",
                                 "gpu=none",
                                 NULL,
                                 NULL,
                                 NULL};
    const struct {
        const char *targets;
        uint64_t each; /* a layer's, over the rank */
        uint64_t once;
    } cases[] = {{"lora.targets=q", 64 + 64, 0},           {"lora.targets=k,v", 2 * (64 + 32), 0},
                 {"lora.targets=o", 64 + 64, 0},           {"lora.targets=gate,up", 2 * (64 + 96), 0},
                 {"lora.targets=down", 96 + 64, 0},        {"lora.targets=head", 0, 64 + 100},
                 {"lora.targets=qkv", 64 + 64 + 2 * 32, 0}};
    const struct oc_rank base = rank_of(small);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *words[12];
        memcpy(words, small, sizeof small);
        words[9] = "lora.rank=8";
        words[10] = cases[i].targets;
        const struct oc_rank rank = rank_of(words);
        assert_int_equal(rank.params - base.params, 8 * (3 * cases[i].each + cases[i].once));
    }
}

static uint64_t kept(const char *name)
{
    uint64_t bytes = 0;
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *e = &ledger.entries[i];
        const bool forward = e->birth.phase == OC_PH_FORWARD && e->death.phase == OC_PH_BACKWARD;
        if (forward && strcmp(e->name, name) == 0) bytes += e->bytes;
    }
    return bytes;
}

#define SMALL                                                                                                          \
    "framework=pytorch", "model.layers=2", "model.hidden=64", "model.heads=4", "model.ffn=96", "model.vocab=100",      \
        "batch.seq=8", "gpu=none", "precision=pure-bf16"

/* A frozen linear needs its weight for the gradient of its input, and its input for nothing. */
static void frozen_linears_keep_no_input(void **state)
{
    (void)state;
    rank_of(HELP_WORDS(SMALL));
    assert_int_equal(kept("layers.norm1.output"), 8 * 64 * 2);
    assert_int_equal(kept("layers.mlp.fc2_input"), 8 * 96 * 2);
    rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q"));
    assert_int_equal(kept("layers.norm1.output"), 0);
    assert_int_equal(kept("layers.norm2.output"), 0);
    assert_int_equal(kept("layers.mlp.fc2_input"), 0);
    assert_int_equal(kept("head.norm.output"), 0);
    /* What the activation functions and the products of two tensors keep, they keep still. */
    assert_int_equal(kept("layers.mlp.fc1_output"), 8 * 96 * 2);
    assert_int_equal(kept("layers.mlp.up_output"), 8 * 96 * 2);
}

/* An adapter's input: its own copy when it is cast or dropped, else the tensor that is there. */
static void an_adapter_keeps_its_input(void **state)
{
    (void)state;
    const uint64_t t = 8, h = 64, r = 4;
    rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q", "lora.dtype=bf16"));
    assert_int_equal(kept("layers.norm1.output"), t * h * 2);
    assert_int_equal(kept("layers.attention.q"), t * r * 2);
    rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q"));
    assert_int_equal(kept("layers.attention.q"), t * h * 4 + t * r * 4);
    rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q", "lora.dropout=0.1"));
    assert_int_equal(kept("layers.attention.q"), t * h + t * h * 4 + t * r * 4);
    rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q", "lora.dropout=0.1", "precision.autocast=bf16"));
    assert_int_equal(kept("layers.attention.q"), t * h + t * h * 2 + t * r * 2);
}

/* Two of four experts a token: what they keep is of twice the tokens; frozen ones drop what only their weights need. */
static void experts_keep_what_they_work_on(void **state)
{
    (void)state;
    const uint64_t r = 2 * 8, h = 64, x = 32, bf16 = 2;
    rank_of(HELP_WORDS(SMALL, "model.experts=4", "model.experts_per_token=2", "model.expert_ffn=32"));
    assert_int_equal(kept("layers.mlp.fc1_output"), 0);
    assert_int_equal(kept("layers.experts.input"), r * h * bf16);
    assert_int_equal(kept("layers.experts.fc1_output"), r * x * bf16);
    assert_int_equal(kept("layers.experts.activated"), r * x * bf16);
    assert_int_equal(kept("layers.experts.up_output"), r * x * bf16);
    assert_int_equal(kept("layers.experts.fc2_input"), r * x * bf16);
    assert_int_equal(kept("layers.experts.output"), r * h * bf16);
    rank_of(HELP_WORDS(SMALL, "model.experts=4", "model.experts_per_token=2", "model.expert_ffn=32", "lora.rank=4",
                       "lora.targets=q"));
    assert_int_equal(kept("layers.experts.input"), 0);
    assert_int_equal(kept("layers.experts.fc2_input"), 0);
    assert_int_equal(kept("layers.experts.fc1_output"), r * x * bf16);
    assert_int_equal(kept("layers.experts.output"), r * h * bf16);
}

static void only_adapters_have_gradients_and_states(void **state)
{
    (void)state;
    const struct oc_rank base = rank_of(HELP_WORDS(SMALL));
    const struct oc_rank rank = rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q,v"));
    const uint64_t adapters = rank.params - base.params;
    const struct oc_instant *after = &rank.moments[OC_STEADY][OC_M_AFTER_STEP];
    assert_int_equal(adapters, 2 * 2 * 4 * (64 + 64));
    assert_int_equal(after->classes[OC_WEIGHTS], 2 * base.params + 4 * adapters);
    assert_int_equal(after->classes[OC_GRADIENTS], 4 * adapters);
    assert_int_equal(after->classes[OC_OPTIMIZER], 8 * adapters);
    /* The embedding and the head trained whole: copies beside the frozen originals. */
    const struct oc_rank whole =
        rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q,v", "lora.train_embeddings=true"));
    const uint64_t trained = 2 * 100 * 64;
    assert_int_equal(whole.moments[OC_STEADY][OC_M_AFTER_STEP].classes[OC_WEIGHTS],
                     after->classes[OC_WEIGHTS] + 2 * trained);
    assert_int_equal(whole.moments[OC_STEADY][OC_M_AFTER_STEP].classes[OC_GRADIENTS], 4 * adapters + 2 * trained);
}

static void groups_of_gptq(void **state)
{
    (void)state;
    const uint64_t n = 64 * 64, out = 64, in = 64;
    const struct {
        const char *group;
        uint64_t groups;
    } cases[] = {{"lora.quant_group=0", 1}, {"lora.quant_group=16", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rank_of(HELP_WORDS(SMALL, "lora.rank=4", "lora.targets=q", "lora.base=int4-gptq", cases[i].group));
        uint64_t bytes = 0;
        for (int e = 0; e < ledger.n_entries; e++)
            if (ledger.entries[e].class == OC_WEIGHTS && strcmp(ledger.entries[e].name, "layers.attention.q") == 0)
                bytes += ledger.entries[e].bytes;
        const uint64_t g = cases[i].groups;
        assert_int_equal(bytes, n / 2 + g * out / 2 + g * out * 2 + in * 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(real_runs),
                                       cmocka_unit_test(adapters_are_counted),
                                       cmocka_unit_test(frozen_linears_keep_no_input),
                                       cmocka_unit_test(an_adapter_keeps_its_input),
                                       cmocka_unit_test(experts_keep_what_they_work_on),
                                       cmocka_unit_test(only_adapters_have_gradients_and_states),
                                       cmocka_unit_test(groups_of_gptq)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
