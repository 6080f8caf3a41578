/* oc_advise() and oc_cost(): what is suggested holds when it is asked of the model again, and what it costs can be
 * followed with a pencil. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "help_model.h"

static struct oc_advices advices, again;
static struct oc_answer answer;
static struct oc_alloc *alloc;

static int set_up(void **state)
{
    (void)state;
    alloc = oc_alloc_create(NULL);
    return alloc ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    oc_alloc_destroy(alloc);
    return 0;
}

static void advise(const struct oc_config *config)
{
    struct oc_error error;
    if (!oc_advise(config, alloc, &advices, &error)) fail_msg("%s (%s)", error.message, error.hint);
}

#define ADVISE(...)                                                                                                    \
    do {                                                                                                               \
        const struct oc_config config_ = help_config(HELP_WORDS(__VA_ARGS__));                                         \
        advise(&config_);                                                                                              \
    } while (0)

static const struct oc_advice *find(const char *text)
{
    char whole[400], list[OC_MAX_ADVICE * 402] = "";
    for (int i = 0; i < advices.n; i++) {
        oc_advice_text(&advices.list[i], whole, sizeof whole);
        if (!strcmp(whole, text)) return &advices.list[i];
        strcat(strcat(list, whole), "\n");
    }
    fail_msg("\"%s\" is not among:\n%s", text, list);
    return NULL;
}

/* ---- costs ---- */

static struct oc_cost cost(const char *const *words)
{
    const struct oc_plan plan = help_plan(words);
    struct oc_cost result;
    oc_cost(&plan, &result);
    return result;
}

static void assert_near(double have, double want)
{
    if (have < want * (1 - 1e-9) - 1e-9 || have > want * (1 + 1e-9) + 1e-9) fail_msg("%.17g is not %.17g", have, want);
}

/* A model of 2 layers, 64 wide, 4 heads, ffn 256 without a gate, 1,000 tokens of vocabulary. */
#define SMALL                                                                                                          \
    "framework=megatron", "model.layers=2", "model.hidden=64", "model.heads=4", "model.ffn=256", "model.vocab=1000",   \
        "model.vocab_multiple=1", "model.activation=gelu", "batch.seq=32", "precision=bf16"

static void operations_with_a_pencil(void **state)
{
    (void)state;
    /* A token forward: 4 h h + 2 h ffn products a layer, 32 / 2 keys for q and v, the output layer; three such passes.
     */
    const double layer = 4 * 64 * 64 + 2 * 64 * 256 + 2 * 64 * 16, head = 64 * 1000, tokens = 32 * 5;
    assert_near(cost(HELP_WORDS(SMALL, "batch.accum=5")).operations, 2 * tokens * 3 * (2 * layer + head));
    assert_near(cost(HELP_WORDS(SMALL, "batch.accum=5", "recompute=full")).operations,
                2 * tokens * (4 * 2 * layer + 3 * head));
    assert_near(
        cost(HELP_WORDS(SMALL, "batch.accum=5", "recompute=full", "recompute.method=block", "recompute.layers=1"))
            .operations,
        2 * tokens * ((3 * 2 + 1) * layer + 3 * head));
    assert_near(cost(HELP_WORDS(SMALL, "batch.accum=5", "recompute=selective")).operations,
                2 * tokens * (3 * (2 * layer + head) + 2 * 2 * 64 * 16));
}

static void bytes_with_a_pencil(void **state)
{
    (void)state;
    /* Four all-reduces a layer of 32 x 64 numbers of 2 bytes, one of the embedding and one of the output layer. */
    const double stream = 32 * 64 * 2;
    assert_near(cost(HELP_WORDS(SMALL, "tp=2", "batch.accum=3")).sent, (4 * 2 + 2) * 2 * 0.5 * stream * 3);
    /* Sequence parallelism gathers two inputs a layer again. */
    assert_near(cost(HELP_WORDS(SMALL, "tp=2", "sp=true")).sent, ((4 + 1) * 2 + 2) * 2 * 0.5 * stream);
    /* Recompute does the forward ones again. */
    assert_near(cost(HELP_WORDS(SMALL, "tp=2", "recompute=full")).sent, (6 * 2 + 2) * 2 * 0.5 * stream);
    assert_near(cost(HELP_WORDS(SMALL, "tp=2", "recompute=full", "recompute.partition_activations=true")).sent,
                (6.5 * 2 + 2) * 2 * 0.5 * stream);
    /* One border, forward on the one stage and backward on the other. */
    assert_near(cost(HELP_WORDS(SMALL, "pp=2", "batch.accum=4")).sent, 2 * 0.5 * stream * 4);
    assert_near(cost(HELP_WORDS(SMALL, "pp=2", "batch.accum=4")).idle, 0.25);
    /* Keys and values of 16 tokens once forward, twice backward, over two layers. */
    const uint64_t params = 2 * (4 * 64 * 64 + 2 * 64 * 256 + 2 * 64) + 64 + 2 * 64 * 1000;
    const double ring = 3 * 2 * 16 * 64 * 2 * 2;
    assert_near(cost(HELP_WORDS(SMALL, "cp=2")).sent, ring + 2 * 0.5 * (double)params * 4);
    /* Gradients in fp32; the distributed optimizer gathers 16-bit weights instead of half of them. */
    assert_near(cost(HELP_WORDS(SMALL, "world=4")).sent, 2 * 0.75 * (double)params * 4);
    assert_near(cost(HELP_WORDS(SMALL, "world=4", "zero=1", "optimizer=adam")).sent, 0.75 * (double)params * (4 + 2));
}

/* ---- suggestions ---- */

static void single_changes(void **state)
{
    (void)state;
    ADVISE("framework=megatron", "model.name=llama-3-70b", "precision=bf16", "tp=8", "pp=4", "batch.seq=8192",
           "optimizer=adam", "batch.accum=16", "world=64");
    assert_false(advices.back);
    assert_true(advices.n >= 3);
    for (int i = 0; i < advices.n; i++) assert_int_equal(advices.list[i].n_steps, 1);
    const struct oc_advice *sequence = find("parallel.sp false -> true");
    assert_int_equal(sequence->effect, OC_EFFECT_NONE);
    assert_near(sequence->operations, 0);
    assert_true(sequence->sent > 0);
    const struct oc_advice *full = find("recompute none -> full");
    assert_true(full->operations > 0.31 && full->operations < 1.0 / 3);
}

/* Half the micro-batch goes with twice the accumulation: a step keeps its samples, said or not. */
static void a_step_keeps_its_samples(void **state)
{
    (void)state;
#define RUN "framework=megatron", "model.name=llama-3-8b", "tp=8", "batch.seq=4096", "recompute=full"
    struct oc_config half = help_config(HELP_WORDS(RUN, "batch.micro=4", "batch.accum=2"));
    char capacity[64];
    assert_true(oc_answer(&half, &answer, NULL, alloc, NULL));
    snprintf(capacity, sizeof capacity, "gpu.capacity=%" PRIu64, answer.verdict.device.high);
    ADVISE(RUN, "batch.micro=8", capacity);
    const struct oc_advice *advice = find("batch.micro 8 -> 4, batch.accum 1 -> 2");
    assert_int_equal(advice->cost.samples, 8);
    assert_int_equal(advice->effect, OC_EFFECT_NONE);
    assert_int_equal(advice->verdict.headroom, 0);
    ADVISE(RUN, "batch.micro=8", "batch.global=16", capacity);
    assert_int_equal(find("batch.micro 8 -> 4, batch.accum 2 -> 4")->cost.samples, 16);
#undef RUN
}

static void pairs_where_no_single_change_suffices(void **state)
{
    (void)state;
    ADVISE("framework=megatron", "model.name=llama-3-8b", "precision=bf16", "tp=2", "batch.micro=4", "batch.seq=8192",
           "optimizer=adam");
    bool same = false;
    for (int i = 0; i < advices.n; i++) {
        same = same || (advices.list[i].effect == OC_EFFECT_NONE && advices.list[i].n_steps == 2);
        if (advices.list[i].effect <= OC_EFFECT_ROUNDING) assert_int_equal(advices.list[i].n_steps, 2);
    }
    assert_true(same);
}

static void the_nearest_where_nothing_fits(void **state)
{
    (void)state;
    ADVISE("framework=pytorch", "model.name=llama-3-70b", "gpu=t4");
    assert_int_equal(advices.n, 0);
    assert_true(advices.has_nearest);
    assert_true(advices.nearest.allocated < advices.allocated);
    assert_false(advices.nearest.verdict.fits);
}

static void what_could_be_taken_back(void **state)
{
    (void)state;
    ADVISE("framework=megatron", "model.name=llama-3-8b", "tp=4", "recompute=full", "batch.accum=8", "batch.seq=4096");
    assert_true(advices.back);
    assert_true(find("recompute full -> none")->operations < -0.2);
    find("batch.micro 1 -> 8, batch.accum 8 -> 1");
}

/* What only the framework's own checks refuse: kept inputs split over tp beside sequence parallelism. */
static void what_megatron_refuses(void **state)
{
    (void)state;
#define RUN "framework=megatron", "model.name=llama-3-8b", "tp=8", "batch.seq=4096", "recompute=full"
    static const char *const sequence[] = {"parallel.sp=true", "parallel.sp=false"};
    for (int i = 0; i < 2; i++) {
        struct oc_config half = help_config(HELP_WORDS(RUN, "batch.micro=4", "batch.accum=2", sequence[i]));
        char capacity[64];
        bool partitions = false;
        assert_true(oc_answer(&half, &answer, NULL, alloc, NULL));
        snprintf(capacity, sizeof capacity, "gpu.capacity=%" PRIu64, answer.verdict.device.high);
        ADVISE(RUN, "batch.micro=8", sequence[i], capacity);
        assert_true(advices.n > 0);
        for (int n = 0; n < advices.n; n++) {
            char text[400];
            partitions = partitions || strstr(oc_advice_text(&advices.list[n], text, sizeof text), "partition");
        }
        assert_true(partitions == (i == 1));
    }
#undef RUN
}

static void without_a_gpu_there_is_no_advice(void **state)
{
    (void)state;
    const struct oc_config config = help_config(HELP_WORDS("gpu=none"));
    struct oc_error error;
    assert_false(oc_advise(&config, alloc, &advices, &error));
    assert_non_null(strstr(error.message, "GPU"));
}

/* ---- properties ---- */

static bool dominates(const struct oc_advice *a, const struct oc_advice *b)
{
    const double ours[] = {(double)a->effect,
                           (double)a->n_steps,
                           (double)a->n_changes,
                           a->operations,
                           a->sent,
                           a->host,
                           a->idle,
                           (double)a->cost.ranks,
                           -(double)a->cost.grain,
                           (double)a->verdict.device.high};
    const double theirs[] = {(double)b->effect,
                             (double)b->n_steps,
                             (double)b->n_changes,
                             b->operations,
                             b->sent,
                             b->host,
                             b->idle,
                             (double)b->cost.ranks,
                             -(double)b->cost.grain,
                             (double)b->verdict.device.high};
    if (a->cost.tokens != b->cost.tokens || a->cost.samples != b->cost.samples) return false;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i] > theirs[i]) return false;
    return true;
}

static void check_one(const struct oc_advice *advice, const struct oc_config *config)
{
    struct oc_error error;
    char text[400];
    oc_advice_text(advice, text, sizeof text);
    struct oc_warnings warnings;
    struct oc_plan plan;
    assert_true(oc_resolve(config, &plan, &warnings, NULL));
    const int warned = warnings.n;
    if (!oc_answer(&advice->config, &answer, NULL, alloc, &error)) fail_msg("%s: %s", text, error.message);
    if (!answer.verdict.fits || answer.verdict.device.high != advice->verdict.device.high)
        fail_msg("%s: %" PRIu64 " bytes on the device, said %" PRIu64, text, answer.verdict.device.high,
                 advice->verdict.device.high);
    assert_true(answer.warnings.n <= warned);
    assert_true(advice->n_changes > 0);
    /* Two stages may take the same on the device. */
    assert_int_equal(advice->allocated, answer.ranks[advice->verdict.worst_stage].peak.allocated);
    for (int i = 0; i < advice->n_changes; i++) {
        assert_int_equal(oc_option_get(&answer.plan.c, advice->changes[i].option), advice->changes[i].to);
        assert_int_equal(oc_option_get(&plan.c, advice->changes[i].option), advice->changes[i].from);
    }
    assert_int_equal(advice->cost.samples, answer.plan.c.batch_global);
    assert_true(advice->effect == OC_EFFECT_TRAINING || advice->cost.samples == plan.c.batch_global);
}

/* The same numbers of the same options: one of them is the smaller step. */
static bool same_numbers(const struct oc_advice *a, const struct oc_advice *b)
{
    bool same = a->n_changes == b->n_changes && a->effect == b->effect && a->effect < OC_EFFECT_RANKS;
    for (int i = 0; same && i < a->n_changes; i++)
        same = a->changes[i].option == b->changes[i].option && oc_option(a->changes[i].option)->type == OC_T_INT;
    return same;
}

static void suggestions_hold(void **state)
{
    (void)state;
    uint64_t seed = 20240607;
    int fitting = 0, several = 0;
    for (int n = 0; n < 600 / help_share(); n++) {
        struct oc_config config = help_random_config(&seed);
        config.gpu_context = config.gpu_nccl = 0; /* these runs are small: what lies outside would be most of it */
        oc_set_given(&config, OC_OPT_gpu_context, true);
        oc_set_given(&config, OC_OPT_gpu_nccl, true);
        assert_true(oc_answer(&config, &answer, NULL, alloc, NULL));
        const uint64_t high = answer.verdict.device.high;
        const int64_t capacity = (int64_t)(high / 100 * (40 + help_below(&seed, 80)));
        config.gpu_capacity = capacity;
        oc_set_given(&config, OC_OPT_gpu_capacity, true);
        advise(&config);
        assert_true(oc_advise(&config, alloc, &again, NULL));
        assert_memory_equal(&advices, &again, sizeof advices);
        assert_true(oc_answer(&config, &answer, NULL, alloc, NULL));
        assert_true(advices.back == answer.verdict.fits);
        fitting += advices.n;
        for (int i = 0; i < advices.n; i++) {
            check_one(&advices.list[i], &config);
            several += advices.list[i].n_steps > 1;
            for (int j = 0; j < i; j++) assert_false(same_numbers(&advices.list[i], &advices.list[j]));
            for (int j = 0; j < advices.n; j++)
                if (i != j && dominates(&advices.list[i], &advices.list[j])) {
                    char a[400], b[400];
                    fail_msg("%s makes %s pointless", oc_advice_text(&advices.list[i], a, sizeof a),
                             oc_advice_text(&advices.list[j], b, sizeof b));
                }
        }
    }
    if (fitting < 60 || several < 5) fail_msg("only %d suggestions, %d of several steps", fitting, several);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_with_a_pencil),
        cmocka_unit_test(bytes_with_a_pencil),
        cmocka_unit_test(single_changes),
        cmocka_unit_test(a_step_keeps_its_samples),
        cmocka_unit_test(pairs_where_no_single_change_suffices),
        cmocka_unit_test(the_nearest_where_nothing_fits),
        cmocka_unit_test(what_could_be_taken_back),
        cmocka_unit_test(what_megatron_refuses),
        cmocka_unit_test(without_a_gpu_there_is_no_advice),
        cmocka_unit_test(suggestions_hold),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
