/* Known models: every row's shape counts to its published number of parameters. The count here is written out from the
 * layers' matrices, independent of the model's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "oomcast/model.h"

/* One linear layer of `in` x `out`. */
static uint64_t linear(int64_t in, int64_t out, bool bias)
{
    return (uint64_t)(in * out + (bias ? out : 0));
}

static uint64_t attention(const struct oc_model_row *m)
{
    const bool qkv_bias = m->linear_bias || m->qkv_bias;
    if (m->kv_lora_rank) {
        const int64_t q = m->heads * (m->qk_nope_head_dim + m->qk_rope_head_dim), v = m->heads * m->v_head_dim;
        uint64_t latent = m->q_lora_rank ? linear(m->hidden, m->q_lora_rank, false) + linear(m->q_lora_rank, q, false) +
                                               (uint64_t)m->q_lora_rank
                                         : linear(m->hidden, q, false);
        latent += linear(m->hidden, m->kv_lora_rank + m->qk_rope_head_dim, false) + (uint64_t)m->kv_lora_rank;
        return latent + linear(m->kv_lora_rank, m->heads * m->qk_nope_head_dim + v, false) +
               linear(v, m->hidden, false);
    }
    const int64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    return linear(m->hidden, q, qkv_bias) + 2 * linear(m->hidden, kv, qkv_bias) + linear(q, m->hidden, m->linear_bias) +
           (m->qk_norm ? 2 * (uint64_t)m->head_dim : 0) + (m->attention_sinks ? (uint64_t)m->heads : 0);
}

static uint64_t mlp(const struct oc_model_row *m, int64_t ffn, bool bias)
{
    const bool gated = m->activation == OC_ACT_SWIGLU || m->activation == OC_ACT_GEGLU;
    return (gated ? 2 : 1) * linear(m->hidden, ffn, bias) + linear(ffn, m->hidden, bias);
}

static uint64_t experts(const struct oc_model_row *m)
{
    uint64_t layer =
        linear(m->hidden, m->experts, m->router_bias) + (uint64_t)m->experts * mlp(m, m->expert_ffn, m->linear_bias);
    if (m->shared_expert_ffn) layer += mlp(m, m->shared_expert_ffn, m->linear_bias);
    return layer + (m->shared_expert_gate ? (uint64_t)m->hidden : 0);
}

static uint64_t count_params(const struct oc_model_row *m)
{
    const uint64_t norm = (uint64_t)m->hidden * (m->norm == OC_NORM_LAYERNORM ? 2 : 1); /* weight, and bias */
    const int64_t width = m->embedding_dim ? m->embedding_dim : m->hidden;
    const int64_t dense = m->experts ? m->dense_layers : m->layers;
    uint64_t total = linear(m->vocab, width, false) + (uint64_t)m->layers * (attention(m) + m->norms_per_layer * norm);
    total +=
        (uint64_t)dense * mlp(m, m->ffn, m->linear_bias || m->mlp_bias) + (uint64_t)(m->layers - dense) * experts(m);
    if (width != m->hidden) total += 2 * linear(width, m->hidden, false);
    if (!m->no_final_norm) total += norm;
    if (m->positions == OC_POS_LEARNED) total += linear(m->max_positions, m->hidden, false);
    if (m->embedding_norm) total += norm;
    if (!m->tied) total += linear(width, m->vocab, false);
    if (m->head_bias) total += (uint64_t)m->vocab;
    return total;
}

static void every_row_counts_to_its_published_number(void **state)
{
    (void)state;
    int n = 0;
    const struct oc_model_row *rows = oc_models(&n);
    assert_true(n >= 65);
    for (int i = 0; i < n; i++) {
        if (count_params(&rows[i]) != rows[i].params)
            fail_msg("%s: counted %llu, published %llu", rows[i].name, (unsigned long long)count_params(&rows[i]),
                     (unsigned long long)rows[i].params);
        assert_true(rows[i].source[0] != '\0');
    }
}

/* Published counts typed in again, so that shape and count of a row cannot be wrong together. */
static void published_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t params;
    } known[] = {
        {"gpt2", 124439808},           {"gpt2-xl", 1557611200},        {"llama-2-7b", 6738415616},
        {"llama-3-8b", 8030261248},    {"llama-3-70b", 70553706496},   {"llama-3.1-405b", 405853388800},
        {"llama-3.2-1b", 1235814400},  {"mistral-7b", 7241732096},     {"qwen2.5-7b", 7615616512},
        {"qwen3-0.6b", 596049920},     {"qwen3-8b", 8190735360},       {"gemma-2b", 2506172416},
        {"gemma-2-9b", 9241705984},    {"phi-3-mini", 3821079552},     {"phi-2", 2779683840},
        {"opt-125m", 125239296},       {"bloom-176b", 176247271424},   {"falcon-40b", 41303293952},
        {"gpt-neox-20b", 20554567680}, {"tinyllama-1.1b", 1100048384}, {"mixtral-8x7b", 46702792704},
        {"deepseek-v3", 671026419200}, {"gpt-oss-120b", 116829156672}, {"opt-350m", 331196416},
        {"gpt-j-6b", 6050882784},      {"qwen3-30b-a3b", 30532122624},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct oc_model_row *row = oc_model_find(known[i].name);
        if (!row) fail_msg("%s is not in the table", known[i].name);
        assert_true(row->params == known[i].params);
    }
}

static void names_are_found_as_people_type_them(void **state)
{
    (void)state;
    const struct oc_model_row *row = oc_model_find("llama-3.1-8b");
    assert_non_null(row);
    assert_ptr_equal(oc_model_find("Llama-3.1-8B"), row);
    assert_ptr_equal(oc_model_find("llama_3_1_8b"), row);
    assert_string_equal(oc_model_find("GPT2")->name, "gpt2");
    assert_null(oc_model_find("llama-3.1-8"));
    assert_null(oc_model_find("llama-3.1-8bb"));
    assert_null(oc_model_find(""));
}

static void shape_of_a_row(void **state)
{
    (void)state;
    const struct oc_model_row *row = oc_model_find("qwen2-0.5b");
    assert_non_null(row);
    assert_int_equal(row->layers, 24);
    assert_int_equal(row->hidden, 896);
    assert_int_equal(row->heads, 14);
    assert_int_equal(row->kv_heads, 2);
    assert_int_equal(row->head_dim, 64);
    assert_int_equal(row->ffn, 4864);
    assert_int_equal(row->vocab, 151936);
    assert_int_equal(row->max_positions, 0);
    assert_int_equal(row->positions, OC_POS_ROPE);
    assert_int_equal(row->activation, OC_ACT_SWIGLU);
    assert_true(row->tied && row->qkv_bias);
    assert_false(row->linear_bias || row->qk_norm || row->head_bias);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_counts_to_its_published_number),
        cmocka_unit_test(published_counts),
        cmocka_unit_test(names_are_found_as_people_type_them),
        cmocka_unit_test(shape_of_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
