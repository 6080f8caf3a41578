/* What the op set hf keeps for backward against what PyTorch kept, to the byte: 700 small GPT-2 and Llama models in
 * fp32, bf16 and under autocast (tests/data/saved_tensors.txt). They were measured on a CPU with torch 1.13; where that
 * differs from the CUDA and the transformers that are modelled, the switches below say so, each by a rule of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "help_fixture.h"

struct row {
    struct help_row run;
    long long saved, casts, params;
};

static bool read_row(const char *line, struct row *row)
{
    const char *rest;
    return help_read_row(line, &row->run, &rest) &&
           sscanf(rest, "%lld %lld %lld", &row->saved, &row->casts, &row->params) == 3;
}

/* ---- switches: bytes that the measurement has beyond what is modelled ---- */

/* Bytes of an operand of a product, and of the residual stream. */
static long long operand(const struct help_row *r)
{
    return help_is(r->mode, "fp32") ? 4 : 2;
}

static long long stream(const struct help_row *r)
{
    return help_is(r->mode, "bf16") ? 2 : 4;
}

/* Layers that keep more than their input. */
static long long open_layers(const struct help_row *r)
{
    return help_is(r->recompute, "full") ? 0 : r->l;
}

/* Layers that keep the scores, and the elements of one layer's scores. */
static long long scores(const struct help_row *r)
{
    return help_is(r->recompute, "none") && help_is(r->attention, "eager") ? (long long)r->l * r->b * r->a * r->s * r->s
                                                                           : 0;
}

/* torch.cpu autocast runs softmax in bf16 where CUDA's list has it in fp32; the result then is the operand, too. */
static long long cpu_autocast_softmax(const struct help_row *r)
{
    if (!help_is_gpt(r) || !help_is(r->mode, "amp_cpu")) return 0;
    return -2 * scores(r) - (r->attention_dropout > 0 ? 0 : 2 * scores(r));
}

/* F.dropout on a CPU keeps its mask in the type of its input, CUDA's native_dropout in bytes. */
static long long cpu_dropout_masks(const struct help_row *r)
{
    if (!help_is(r->masks, "cpu")) return 0;
    const long long tokens = (long long)r->b * r->s * r->h;
    long long more = r->attention_dropout > 0 ? (operand(r) - 1) * scores(r) : 0;
    if (help_is_gpt(r) && r->dropout > 0)
        more += (stream(r) - 1) * tokens + 2 * open_layers(r) * (operand(r) - 1) * tokens;
    return more;
}

/* A CPU's layer_norm keeps mean and rstd in the type of its input, CUDA's in fp32. */
static long long cpu_norm_statistics(const struct help_row *r)
{
    if (!help_is_gpt(r) || !help_is(r->mode, "bf16")) return 0;
    return -4ll * r->b * r->s * (2 * open_layers(r) + 1);
}

/* torch 1.13: mean() keeps its input, the square, which an eager RMSNorm does not otherwise keep. */
static long long mean_keeps_input(const struct help_row *r)
{
    if (help_is_gpt(r) || !help_is(r->mean, "torch113")) return 0;
    return 4ll * r->b * r->s * r->h * (2 * open_layers(r) + 1);
}

/* One key head and one sample: expand() stays a view of stride 0 through the product, where docs/step-pytorch.md writes
 * the heads out. */
static long long expand_is_a_view(const struct help_row *r)
{
    if (help_is_gpt(r) || r->kv != 1 || r->a == 1 || r->b != 1 || !scores(r)) return 0;
    return -2 * operand(r) * r->l * r->s * (r->h - r->h / r->a);
}

static long long (*const switches[])(const struct help_row *) = {
    cpu_autocast_softmax, cpu_dropout_masks, cpu_norm_statistics, mean_keeps_input, expand_is_a_view};

/* ---- the model ---- */

/* Everything born in forward or loss that dies in backward: activations, and copies of weights, which autocast makes.
 */
static void sum_saved(const struct oc_ledger *ledger, long long *saved, long long *casts)
{
    *saved = *casts = 0;
    for (int i = 0; i < ledger->n_entries; i++) {
        const struct oc_entry *e = &ledger->entries[i];
        const bool forward = e->birth.phase == OC_PH_FORWARD || e->birth.phase == OC_PH_LOSS;
        if (!forward || e->death.phase != OC_PH_BACKWARD) continue;
        const long long bytes = (long long)(e->bytes * e->count);
        const bool constant = strncmp(e->name, "rope.", 5) == 0 || help_is(e->name, "attention_mask");
        if (e->copy && help_is(e->copy, "autocast copy")) *casts += bytes;
        if (e->class == OC_ACTIVATIONS && !constant) *saved += bytes;
    }
}

static bool holds(int line, const struct row *r)
{
    static struct oc_ledger ledger;
    const struct oc_config config = help_row_config(&r->run);
    struct oc_plan plan;
    struct oc_error error;
    if (!oc_resolve(&config, &plan, NULL, &error) || !oc_estimate(&plan, 0, &ledger, &error))
        fail_msg("line %d: %s (%s)", line, error.message, error.hint);
    long long saved, casts, expected = r->saved;
    sum_saved(&ledger, &saved, &casts);
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) expected -= switches[i](&r->run);
    if (saved == expected && casts == r->casts && (long long)ledger.params == r->params) return true;
    print_error("line %d: saved %lld for %lld, casts %lld for %lld, parameters %" PRIu64 " for %lld\n", line, saved,
                expected, casts, r->casts, ledger.params, r->params);
    return false;
}

static void what_is_kept_is_what_was_measured(void **state)
{
    (void)state;
    FILE *file = fopen(OOMCAST_SOURCE "/tests/data/saved_tensors.txt", "r");
    assert_non_null(file);
    char text[512];
    int rows = 0, wrong = 0;
    for (int line = 1; fgets(text, sizeof text, file); line++) {
        struct row row = {0};
        if (text[0] == '#') continue;
        if (!read_row(text, &row)) fail_msg("line %d is not a row", line);
        rows++;
        wrong += !holds(line, &row);
    }
    fclose(file);
    assert_int_equal(rows, 700);
    assert_int_equal(wrong, 0);
}

/* A switch that never acts would hide nothing and explain nothing. */
static void every_switch_acts(void **state)
{
    (void)state;
    FILE *file = fopen(OOMCAST_SOURCE "/tests/data/saved_tensors.txt", "r");
    assert_non_null(file);
    char text[512];
    int acts[sizeof switches / sizeof *switches] = {0}, untouched = 0;
    while (fgets(text, sizeof text, file)) {
        struct row row = {0};
        bool any = false;
        if (text[0] == '#' || !read_row(text, &row)) continue;
        for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
            const bool act = switches[i](&row.run) != 0;
            acts[i] += act;
            any |= act;
        }
        untouched += !any;
    }
    fclose(file);
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) assert_true(acts[i] > 0);
    assert_true(untouched > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept_is_what_was_measured),
                                       cmocka_unit_test(every_switch_acts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
