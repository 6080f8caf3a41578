/* The model and the probe, written apart from docs/step-pytorch.md, agree to the byte: 20 fixed configurations, every
 * moment of the first and the steady iteration, every class. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/model.h"
#include "oomcast/probe.h"

/* What differs from the base: a small Llama with grouped queries, as --set takes it. */
static const char *const base[] = {
    "framework=pytorch",      "kernels.transformer=hf", "kernels.norm=eager", "kernels.loss=eager", "model.layers=3",
    "model.hidden=32",        "model.heads=4",          "model.kv_heads=2",   "model.head_dim=8",   "model.ffn=48",
    "model.vocab=67",         "batch.seq=12",           "batch.micro=2",      "precision=fp32",     "optimizer=adamw",
    "optimizer.impl=foreach", "kernels.attention=flash"};

static const char *const configurations[][8] = {
    {"batch.micro=2"},
    {"kernels.attention=eager"},
    {"recompute=full", "optimizer.impl=fused"},
    {"kernels.attention=eager", "recompute=full"},
    {"precision=amp-bf16"},
    {"precision=amp-bf16", "kernels.attention=eager", "optimizer.impl=loop"},
    {"precision=amp-fp16", "recompute=full", "optimizer.impl=fused"},
    {"precision=amp-fp16", "kernels.attention=eager", "recompute=full", "optimizer=sgd"},
    {"precision=pure-bf16"},
    {"precision=pure-bf16", "kernels.attention=eager"},
    {"precision=pure-fp16", "recompute=full", "optimizer=sgd", "optimizer.momentum=0.9"},
    {"precision=pure-fp16", "kernels.attention=eager", "recompute=full", "kernels.logits_fp32=false"},
    {"precision=bf16", "precision.master=fp32", "optimizer.impl=loop"},
    {"precision=fp16", "precision.master=fp32", "kernels.attention=eager", "batch.accum=2", "optimizer=sgd"},
    {"batch.accum=3", "run.zero_grad_to_none=false", "model.tied=true"},
    {"precision=amp-bf16", "batch.accum=2", "model.tied=true", "kernels.attention=eager"},
    {"batch.micro=1", "kernels.attention=eager", "model.kv_heads=4", "precision=pure-bf16"},
    {"batch.micro=3", "kernels.attention=eager", "model.kv_heads=4", "precision=amp-fp16", "batch.accum=2"},
    {"batch.micro=1", "model.kv_heads=4", "recompute=full", "model.vocab=3001", "precision=amp-bf16", "batch.accum=2"},
    {"batch.micro=1", "kernels.attention=eager", "model.hidden=128", "model.head_dim=16", "batch.seq=40",
     "model.layers=1", "run.zero_grad_to_none=false", "batch.accum=2"},
};

static void assign(struct oc_config *config, const char *assignment)
{
    struct oc_error error = {0};
    char text[512];
    if (!oc_config_assign(config, assignment, NULL, &error)) fail_msg("%s", oc_error_text(&error, text, sizeof text));
}

static struct oc_config base_config(void)
{
    struct oc_config config = oc_config_default();
    for (size_t s = 0; s < sizeof base / sizeof base[0]; s++) assign(&config, base[s]);
    return config;
}

/* Prints what differs; returns whether anything does. */
static bool differs(int i, const char *what, const struct oc_instant *model, const struct oc_instant *probe)
{
    /* A loss that works in place allocates nothing, and to the model is no moment of its own. */
    if (!model->exists && probe->exists && probe->place.moment == OC_M_LOSS) return false;
    /* Of scratch tensors that round to one size (a loop has two at a time) the model has the largest, the books have
     * the first. */
    const bool step = model->place.moment == OC_M_STEP && probe->place.moment == OC_M_STEP;
    bool same = model->exists == probe->exists && model->requested - probe->requested < (step ? 2 * 512 : 1) &&
                model->allocated == probe->allocated &&
                memcmp(model->classes, probe->classes, sizeof model->classes) == 0 &&
                model->place.micro_batch == probe->place.micro_batch && model->place.layer == probe->place.layer;
    if (same) return false;
    char a[64], b[64];
    print_error("configuration %d, %s: model %" PRIu64 " (%s), probe %" PRIu64 " (%s)\n", i, what, model->requested,
                oc_place_text(&model->place, a, sizeof a), probe->requested, oc_place_text(&probe->place, b, sizeof b));
    for (int class = 0; class < OC_CLASSES; class ++)
        if (model->classes[class] != probe->classes[class])
            print_error("  %c: model %" PRIu64 ", probe %" PRIu64 "\n", oc_class_letter((enum oc_class) class),
                        model->classes[class], probe->classes[class]);
    return true;
}

/* The settings of a configuration that differs, as --set takes them. */
static void print_settings(const struct oc_config *config)
{
    for (int id = 0; id < OC_OPTIONS; id++) {
        char text[OC_NAME_MAX];
        if (!oc_given(config, (enum oc_option_id)id)) continue;
        print_error(" %s=%s", oc_option((enum oc_option_id)id)->key,
                    oc_option_text(config, (enum oc_option_id)id, text, sizeof text));
    }
    print_error("\n");
}

/* How many moments and peaks differ between the two, on one stage of the pipeline. */
static int compare_stage(int i, const struct oc_config *config, int stage, enum oc_device device)
{
    static struct oc_ledger ledger;
    static struct oc_probe_result result;
    struct oc_plan plan;
    struct oc_rank model = {0};
    struct oc_error error = {0};
    char text[512];
    if (!oc_resolve(config, &plan, NULL, &error) || !oc_estimate(&plan, stage, &ledger, &error))
        fail_msg("configuration %d: %s", i, oc_error_text(&error, text, sizeof text));
    oc_sweep(&ledger, &model);
    struct oc_probe_options options = {.device = device, .stage = stage, .steps = 3};
    if (!oc_probe_run(&plan, &options, &result)) fail_msg("configuration %d: %s", i, result.why);
    assert_int_equal(model.params, result.rank.params);
    int different = 0;
    for (int it = 0; it < OC_ITERATIONS; it++)
        for (int m = 0; m < OC_MOMENTS; m++) {
            snprintf(text, sizeof text, "%s %s", oc_iteration_name((enum oc_iteration)it),
                     oc_moment_name((enum oc_moment)m));
            different += differs(i, text, &model.moments[it][m], &result.rank.moments[it][m]);
        }
    different += differs(i, "first peak", &model.first_peak, &result.rank.first_peak);
    different += differs(i, "steady peak", &model.peak, &result.rank.peak);
    if (different) print_error("stage %d of", stage);
    if (different) print_settings(config);
    return different;
}

static int compare(int i, const struct oc_config *config, enum oc_device device)
{
    return compare_stage(i, config, 0, device);
}

static void the_model_is_the_probe(void **state)
{
    (void)state;
    int different = 0;
    for (int i = 0; i < (int)(sizeof configurations / sizeof configurations[0]); i++) {
        struct oc_config config = base_config();
        for (int s = 0; s < 8 && configurations[i][s]; s++) assign(&config, configurations[i][s]);
        different += compare(i, &config, OC_DEVICE_HOST);
    }
    assert_int_equal(different, 0);
}

/* ---- And on whatever else is drawn ---- */

static uint32_t seed = 20240607;

static int draw(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)n);
}

static void assign_number(struct oc_config *config, const char *key, int value)
{
    char text[96];
    snprintf(text, sizeof text, "%s=%d", key, value);
    assign(config, text);
}

static void assign_one_of(struct oc_config *config, const char *key, const char *const *values, int n)
{
    char text[96];
    snprintf(text, sizeof text, "%s=%s", key, values[draw(n)]);
    assign(config, text);
}

/* What makes it another model than a Llama. */
static void draw_family(struct oc_config *config)
{
    static const char *const norms[] = {"layernorm", "rmsnorm"}, *const kernels[] = {"eager", "fused"};
    static const char *const activations[] = {"gelu", "relu", "squared-relu", "swiglu", "geglu"};
    static const char *const positions[] = {"rope", "learned", "none"}, *const rates[] = {"0", "0.1"};
    static const char *const biases[] = {"model.linear_bias", "model.qkv_bias", "model.head_bias", "model.mlp_bias"};
    assign_one_of(config, "model.norm", norms, 2);
    assign_one_of(config, "kernels.norm", kernels, 2);
    assign_one_of(config, "kernels.loss", kernels, 2);
    assign_one_of(config, "model.activation", activations, 5);
    assign_one_of(config, "model.positions", positions, 3);
    assign_one_of(config, "model.dropout", rates, 2);
    assign_one_of(config, "model.attention_dropout", rates, 2);
    for (size_t b = 0; b < sizeof biases / sizeof biases[0]; b++) assign_number(config, biases[b], draw(3) == 0);
    if (draw(2)) assign_number(config, "model.max_positions", (int)config->batch_seq + draw(100));
}

static struct oc_config drawn_config(void)
{
    static const char *const precisions[] = {"fp32", "amp-bf16", "amp-fp16", "pure-bf16", "pure-fp16", "bf16", "fp16"};
    static const char *const optimizers[] = {"adamw", "adam", "sgd"}, *const impls[] = {"fused", "foreach", "loop"};
    static const char *const attentions[] = {"eager", "flash"}, *const recomputes[] = {"none", "full"};
    static const char *const momenta[] = {"0", "0.9"}, *const types[] = {"fp32", "bf16"};
    static const char *const switches[] = {"model.tied", "run.zero_grad_to_none", "kernels.logits_fp32", "run.resume"};
    struct oc_config config = base_config();
    const int kv_heads = 1 + draw(3);
    assign_number(&config, "model.kv_heads", kv_heads);
    assign_number(&config, "model.heads", kv_heads * (1 + draw(3)));
    assign_number(&config, "model.head_dim", 2 + 2 * draw(16));
    assign_number(&config, "model.layers", 1 + draw(4));
    assign_number(&config, "model.hidden", 1 + draw(250));
    assign_number(&config, "model.ffn", 1 + draw(400));
    assign_number(&config, "model.vocab", 1 + draw(2000));
    assign_number(&config, "batch.seq", 1 + draw(64));
    assign_number(&config, "batch.micro", 1 + draw(3));
    assign_number(&config, "batch.accum", 1 + draw(4));
    assign_one_of(&config, "precision", precisions, 7);
    if ((config.precision == OC_PREC_FP16 || config.precision == OC_PREC_BF16) && draw(2))
        assign(&config, "precision.master=fp32");
    if (draw(4) == 0) assign_one_of(&config, "precision.moment2", types, 2);
    assign_one_of(&config, "optimizer", optimizers, 3);
    assign_one_of(&config, "optimizer.impl", impls, 3);
    assign_one_of(&config, "optimizer.momentum", momenta, 2);
    assign_one_of(&config, "kernels.attention", attentions, 2);
    assign_one_of(&config, "recompute", recomputes, 2);
    for (size_t s = 0; s < sizeof switches / sizeof switches[0]; s++) assign_number(&config, switches[s], draw(2));
    if (draw(2)) assign_number(&config, "allocator.cublas_workspace", 1000 * draw(3));
    if (draw(2)) draw_family(&config);
    if (draw(3) == 0) assign_number(&config, "parallel.world", 2 + draw(3));
    if (config.parallel_world > 1) assign_number(&config, "parallel.bucket_view", draw(2));
    if (config.parallel_world > 1) assign_number(&config, "parallel.no_sync", draw(3) > 0);
    return config;
}

/* Every stage of `wanted` drawn configurations that the probe covers: at least one in `share` of those drawn. */
static void compare_drawn(struct oc_config (*next)(void), int wanted, int share)
{
    int different = 0, compared = 0, drawn = 0;
    for (; compared < wanted && different < 20; drawn++) {
        struct oc_config config = next();
        struct oc_plan plan;
        struct oc_error error = {0};
        if (!oc_resolve(&config, &plan, NULL, &error)) fail_msg("configuration %d: %s", drawn, error.message);
        if (oc_probe_covers(&plan)) continue;
        for (int stage = 0; stage < (int)plan.c.parallel_pp; stage++)
            different += compare_stage(drawn, &config, stage, OC_DEVICE_DRY);
        compared++;
    }
    assert_int_equal(different, 0);
    assert_true(drawn < share * compared);
}

static void so_it_is_on_drawn_configurations(void **state)
{
    (void)state;
    compare_drawn(drawn_config, getenv("OOMCAST_LONG") ? 2000 : 600, 2);
}

/* ---- One rank of FSDP2 ---- */

static struct oc_config drawn_fsdp2(void)
{
    static const char *const types[] = {"fp32", "bf16"}, *const zero[] = {"2", "3"};
    static const char *const switches[] = {"fsdp.reshard_after_forward", "fsdp.forward_prefetch",
                                           "fsdp.backward_prefetch", "fsdp.upcast"};
    struct oc_config config = drawn_config();
    assign(&config, "framework=fsdp2");
    assign(&config, "run.zero_grad_to_none=true");
    const int ranks = 2 + draw(7), groups = 1 + draw(2);
    assign_number(&config, "parallel.world", ranks * groups);
    if (groups > 1) assign_number(&config, "parallel.shard_group", ranks);
    assign_one_of(&config, "parallel.zero", zero, 2);
    for (size_t s = 0; s < sizeof switches / sizeof switches[0]; s++) assign_number(&config, switches[s], draw(2));
    if (draw(2)) assign_one_of(&config, "precision.reduce", types, 2);
    assign_number(&config, "parallel.no_sync", draw(2));
    return config;
}

static void so_is_a_rank_of_fsdp2(void **state)
{
    (void)state;
    compare_drawn(drawn_fsdp2, getenv("OOMCAST_LONG") ? 1000 : 300, 3);
}

/* ---- One rank of Megatron ---- */

static void draw_megatron_model(struct oc_config *config, int tp)
{
    static const char *const norms[] = {"layernorm", "rmsnorm"}, *const rates[] = {"0", "0.1"};
    static const char *const activations[] = {"gelu", "relu", "squared-relu", "swiglu", "geglu"};
    static const char *const positions[] = {"rope", "rope", "learned", "none"};
    static const char *const biases[] = {"model.linear_bias", "model.qkv_bias", "model.head_bias", "model.tied"};
    const int kv_heads = tp * (1 + draw(2));
    assign_number(config, "model.kv_heads", kv_heads);
    assign_number(config, "model.heads", kv_heads * (1 + draw(3)));
    assign_number(config, "model.head_dim", 2 + 2 * draw(16));
    assign_number(config, "model.hidden", tp * (16 + draw(100)));
    assign_number(config, "model.ffn", tp * (1 + draw(200)));
    assign_number(config, "model.vocab", 1 + draw(2000));
    assign_number(config, "model.vocab_multiple", 1 + draw(40));
    assign_one_of(config, "model.norm", norms, 2);
    assign_one_of(config, "model.activation", activations, 5);
    assign_one_of(config, "model.positions", positions, 4);
    assign_one_of(config, "model.attention_dropout", rates, 2);
    assign_one_of(config, "model.dropout", rates, 2);
    for (size_t b = 0; b < sizeof biases / sizeof biases[0]; b++) assign_number(config, biases[b], draw(3) == 0);
    if (draw(2)) assign_number(config, "model.max_positions", (int)config->batch_seq + draw(100));
}

static void draw_megatron_ranks(struct oc_config *config, int tp, int pp)
{
    static const char *const exchanges[] = {"p2p", "a2a", "allgather"};
    const int vpp = pp > 1 && draw(3) == 0 ? 2 : 1, dp = 1 << draw(3), cp = draw(3) ? 1 : 2 << draw(2);
    assign_number(config, "parallel.tp", tp);
    assign_number(config, "parallel.pp", pp);
    assign_number(config, "parallel.vpp", vpp);
    assign_number(config, "parallel.sp", draw(2));
    assign_number(config, "parallel.cp", cp);
    if (cp > 1) assign_one_of(config, "parallel.cp_comm", exchanges, 3);
    assign_number(config, "parallel.world", tp * pp * cp * dp);
    assign_number(config, "model.layers", pp * vpp * (1 + draw(2)));
    assign_number(config, "batch.seq", cp * 4 * (1 + draw(16)));
    assign_number(config, "batch.micro", 1 + draw(3));
    assign_number(config, "batch.accum", vpp > 1 ? pp * (1 + draw(3)) : 1 + draw(2 * pp));
    assign_number(config, "parallel.overlap_grad_reduce", draw(2));
}

static void draw_megatron_types(struct oc_config *config)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"}, *const optimizers[] = {"adam", "adamw", "sgd"};
    static const char *const attentions[] = {"flash", "unfused"}, *const losses[] = {"eager", "fused", "te-fused"};
    static const char *const recomputes[] = {"none", "selective", "full"}, *const gpus[] = {"none", "a100-80g",
                                                                                            "h100-80g"};
    static const char *const switches[] = {"megatron.accumulate_allreduce_grads_in_fp32",
                                           "megatron.grad_reduce_in_bf16",
                                           "megatron.dataloader_mask",
                                           "megatron.masked_softmax_fusion",
                                           "megatron.softmax_in_fp32",
                                           "megatron.pad_buckets",
                                           "run.resume"};
    assign_one_of(config, "precision", precisions, 3);
    assign_one_of(config, "optimizer", optimizers, 3);
    assign_one_of(config, "kernels.attention", attentions, 2);
    assign_one_of(config, "kernels.loss", losses, 3);
    assign_one_of(config, "recompute", recomputes, 3);
    if (config->recompute == OC_RECOMPUTE_FULL && draw(2)) {
        assign(config, "recompute.method=block");
        assign_number(config, "recompute.layers", 1 + draw(2));
    }
    assign_one_of(config, "gpu", gpus, 3);
    for (size_t s = 0; s < sizeof switches / sizeof switches[0]; s++) assign_number(config, switches[s], draw(2));
    if (config->optimizer != OC_OPTIM_SGD) assign_number(config, "parallel.zero", draw(2));
}

static struct oc_config drawn_megatron(void)
{
    struct oc_config config = oc_config_default();
    const int tp = 1 << draw(3), pp = 1 << draw(3);
    assign(&config, "framework=megatron");
    draw_megatron_ranks(&config, tp, pp);
    draw_megatron_model(&config, tp);
    draw_megatron_types(&config);
    return config;
}

/* Every stage of the pipeline, one rank of it. */
static void so_is_a_rank_of_megatron(void **state)
{
    (void)state;
    compare_drawn(drawn_megatron, getenv("OOMCAST_LONG") ? 1000 : 200, 4);
}

/* In real memory, where kernels run over what is allocated (the sanitizers look on). */
static void so_it_is_in_real_memory(void **state)
{
    (void)state;
    int compared = 0;
    while (compared < 12) {
        struct oc_config config = compared % 3 == 2 ? drawn_fsdp2() : drawn_megatron();
        struct oc_plan plan;
        struct oc_error error = {0};
        assign_number(&config, "model.vocab", 100);
        assign_number(&config, "batch.seq", 16);
        assert_true(oc_resolve(&config, &plan, NULL, &error));
        if (oc_probe_covers(&plan) || plan.c.model_hidden > 300) continue;
        const int stage = draw((int)plan.c.parallel_pp);
        assert_int_equal(compare_stage(compared, &config, stage, OC_DEVICE_HOST), 0);
        compared++;
    }
}

/* ---- A plan cut for the probe ---- */

/* Whatever the framework was: the options of the cut plan, resolved again, are the cut plan, and the probe covers it.
 */
static void a_cut_plan_resolves_to_itself(void **state)
{
    (void)state;
    static const char *const frameworks[] = {"pytorch", "megatron", "article"}, *const optimizers[] = {"adamw", "sgd"};
    static const char *const precisions[] = {"fp32", "amp-bf16", "amp-fp16", "bf16", "fp16", "pure-bf16"};
    for (int i = 0; i < 36; i++) {
        const bool shared = i % 6 == 5;
        const char *framework = shared ? "fsdp2" : frameworks[i % 3];
        struct oc_config config = oc_config_default();
        struct oc_error error = {0};
        struct oc_plan plan, again;
        assign_one_of(&config, "framework", &framework, 1);
        static const char *const named[] = {"model.name=llama-3-8b"}, *const spelt[] = {
                                                                          "model.layers=32", "model.hidden=4096",
                                                                          "model.heads=32",  "model.kv_heads=8",
                                                                          "model.ffn=14336", "model.vocab=128256"};
        for (int k = 0; k < (i % 4 < 2 ? 1 : 6); k++) assign(&config, i % 4 < 2 ? named[k] : spelt[k]);
        assign_one_of(&config, "optimizer", &optimizers[i / 3 % 2], 1);
        assign_one_of(&config, "precision", &precisions[i / 6], 1);
        if (i % 3 == 1) assign(&config, "parallel.tp=8");
        if (i % 3 == 1) assign(&config, "parallel.world=64");
        if (i % 6 == 1) assign(&config, "kernels.loss=te-fused");
        if (i % 3 == 1) assign(&config, "parallel.pp=2");
        if (i % 3 == 1) assign(&config, "parallel.sp=true");
        const bool context = i % 6 == 1 && i / 6 > 0; /* flash attention, which it runs over, is for 16 bits */
        if (context) assign(&config, "parallel.cp=3");
        if (context) assign(&config, "parallel.world=96");
        if (context) assign(&config, "batch.seq=6144");
        if (shared) assign(&config, "parallel.world=8");
        assign(&config, "batch.global=64");
        assert_true(oc_resolve(&config, &plan, NULL, &error));
        const bool slice = i % 3 == 1 && !oc_probe_covers(&plan); /* a rank that the probe knows stays one */
        assert_true(slice || i % 6 != 1);
        oc_probe_fit(&plan, 256u << 20, 3, NULL, 0);
        assert_null(oc_probe_covers(&plan));
        struct oc_config told = oc_config_default(); /* what a child is told: options that are given, and no more */
        oc_config_merge(&told, &plan.c);
        if (!oc_resolve(&told, &again, NULL, &error)) fail_msg("%s: %s", framework, error.message);
        assert_int_equal(again.hash, plan.hash);
        assert_memory_equal(&again.dt, &plan.dt, sizeof plan.dt);
        assert_int_equal(again.vocab, plan.vocab);
        assert_int_equal(again.accum, plan.accum);
        assert_int_equal(compare(i, &plan.c, OC_DEVICE_DRY), 0);
        assert_int_equal(plan.c.framework == OC_FW_FSDP2 && plan.shard == 8, shared);
        assert_int_equal(plan.c.parallel_tp, slice ? 8 : 1);
        assert_int_equal(plan.c.parallel_cp, slice && context ? 3 : 1);
        if (slice) assert_int_equal(compare_stage(i, &plan.c, 1, OC_DEVICE_DRY), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_is_the_probe),  cmocka_unit_test(so_it_is_on_drawn_configurations),
        cmocka_unit_test(so_is_a_rank_of_fsdp2),   cmocka_unit_test(so_is_a_rank_of_megatron),
        cmocka_unit_test(so_it_is_in_real_memory), cmocka_unit_test(a_cut_plan_resolves_to_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
