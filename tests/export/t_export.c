/* A configuration written out and read back is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "oomcast/export.h"
#include "oomcast/import.h"
#include "oomcast/model.h"

static void make(const char *settings, struct oc_case *c, struct oc_plan *plan)
{
    char text[1024];
    struct oc_error error = {0};
    enum oc_option_id id;
    memset(c, 0, sizeof *c);
    c->config = oc_config_default();
    snprintf(text, sizeof text, "%s", settings);
    for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!oc_config_assign(&c->config, word, &id, &error)) fail_msg("%s: %s", word, error.message);
    if (!oc_resolve(&c->config, plan, NULL, &error)) fail_msg("%s: %s (%s)", settings, error.message, error.hint);
}

static const char *const megatron[] = {
    "framework=megatron model.layers=32 model.hidden=4096 model.heads=32 model.vocab=50257 batch.seq=2048",
    "framework=megatron model.name=llama-3-8b parallel.tp=8 parallel.sp=true precision=fp16 optimizer=sgd "
    "recompute=full",
    "framework=megatron model.name=llama-3-70b parallel.tp=8 parallel.pp=4 parallel.vpp=5 parallel.world=64 "
    "parallel.zero=1 parallel.sp=true batch.global=256 batch.seq=8192 parallel.overlap_grad_reduce=true "
    "parallel.overlap_param_gather=true",
    "framework=megatron model.name=gpt2 precision=fp32 optimizer=sgd optimizer.momentum=0 model.dropout=0.1",
    "framework=megatron model.name=llama-3-8b recompute=selective recompute.modules=core_attn,layernorm "
    "kernels.loss=te-fused parallel.cp=2 parallel.world=4",
    "framework=megatron model.name=mixtral-8x7b parallel.ep=8 parallel.world=8 moe.grouped_gemm=true "
    "moe.dispatcher=alltoall parallel.zero=1",
    "framework=megatron model.name=llama-3-8b recompute=full recompute.method=block recompute.layers=4 "
    "kernels.transformer=local megatron.masked_softmax_fusion=false batch.micro=4 batch.global=64 parallel.world=8",
    "framework=megatron model.name=llama-3-8b parallel.zero=1 parallel.world=8 optimizer.precision_aware=true "
    "precision.moment1=bf16 precision.moment2=bf16",
};

/* What the flags of a trainer do not hold. */
static bool is_ours(enum oc_option_id id)
{
    return id == OC_OPT_model_name || id == OC_OPT_gpu || id == OC_OPT_model_kind || id == OC_OPT_batch_accum;
}

static void megatron_reads_what_was_written(void **state)
{
    (void)state;
    struct oc_input *input = malloc(sizeof *input);
    static struct oc_case c;
    static struct oc_plan plan, again;
    for (size_t i = 0; i < sizeof megatron / sizeof megatron[0]; i++) {
        struct oc_error error = {0};
        make(megatron[i], &c, &plan);
        char *text = oc_export_megatron(&c, &plan);
        memset(input, 0, sizeof *input);
        input->c.config = oc_config_default();
        if (!oc_import_text(input, "run.sh", text, strlen(text), &error)) fail_msg("%s\n%s", error.message, text);
        if (!oc_resolve(&input->c.config, &again, NULL, &error)) fail_msg("%s\n%s", error.message, text);
        for (int id = 0; id < OC_OPTIONS; id++) {
            char before[256], after[256];
            oc_option_text(&plan.c, (enum oc_option_id)id, before, sizeof before);
            oc_option_text(&again.c, (enum oc_option_id)id, after, sizeof after);
            const char *off = oc_option((enum oc_option_id)id)->inapplicable
                                  ? oc_option((enum oc_option_id)id)->inapplicable(&plan.c)
                                  : NULL;
            if (strcmp(before, "adamw") == 0) snprintf(before, sizeof before, "adam"); /* Megatron's adam is AdamW */
            if (!is_ours((enum oc_option_id)id) && !off && strcmp(before, after) != 0)
                fail_msg("%s is %s, read back as %s:\n%s", oc_option((enum oc_option_id)id)->key, before, after, text);
        }
        assert_true(oc_model_params(&plan, NULL) == oc_model_params(&again, NULL));
        assert_int_equal(plan.dp, again.dp);
        assert_int_equal(plan.accum, again.accum);
        for (int k = 0; k < input->n_notes; k++)
            if (input->notes[k].kind != OC_NOTE_ASSUMED) fail_msg("%s: %s", input->notes[k].name, input->notes[k].text);
        free(text);
    }
    free(input);
}

static void what_megatron_cannot_say_is_listed(void **state)
{
    (void)state;
    static struct oc_case c;
    static struct oc_plan plan;
    make("framework=fsdp2 model.name=llama-3-8b parallel.world=8 fsdp.reshard_after_forward=false gpu=h100-80g", &c,
         &plan);
    char *text = oc_export_megatron(&c, &plan);
    assert_non_null(strstr(text, "The configuration is not of Megatron-LM"));
    assert_non_null(strstr(text, "#   fsdp.reshard_after_forward = false\n"));
    assert_non_null(strstr(text, "#   gpu = h100-80g\n"));
    assert_null(strstr(text, "#   parallel.world"));
    free(text);
}

/* The words of a shell command, as a shell would split them. */
static int split(const char *command, char words[64][300])
{
    char line[8192];
    int n = 0;
    snprintf(line, sizeof line, "set -- %s; for word; do printf '%%s\\n' \"$word\"; done", command);
    char path[] = "/tmp/oomcast-export-XXXXXX", shell[600];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    char *newline = strchr(line, '\n'); /* the text ends in one, which would end the command */
    if (newline) *newline = ' ';
    fputs(line, file);
    fclose(file);
    snprintf(shell, sizeof shell, "sh %s", path);
    FILE *out = popen(shell, "r");
    while (n < 64 && fgets(words[n], 300, out)) words[n][strcspn(words[n], "\n")] = '\0', n++;
    pclose(out);
    remove(path);
    return n;
}

static void set_arguments_are_read_back_through_a_shell(void **state)
{
    (void)state;
    static struct oc_case c, again;
    static struct oc_plan plan;
    static char words[64][300];
    make("framework=megatron model.name=llama-3-8b parallel.pp=2 recompute=selective recompute.modules=core_attn,mlp "
         "lora.dropout=0.1 kernels.stack=ngc-25.09",
         &c, &plan);
    assert_true(oc_option_set(&c.config, OC_OPT_megatron_pipeline_layout, "Et*3|(t|)*2'L", NULL));
    char *text = oc_export_set(&c, &plan);
    int n = split(text, words);
    again.config = oc_config_default();
    assert_true(n > 0 && n % 2 == 0);
    for (int i = 0; i < n; i += 2) {
        enum oc_option_id id;
        assert_string_equal(words[i], "--set");
        assert_true(oc_config_assign(&again.config, words[i + 1], &id, NULL));
    }
    assert_memory_equal(&again.config, &c.config, sizeof c.config);
    free(text);
}

static const cJSON *at(const cJSON *root, const char *a, const char *b)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, a);
    return b ? cJSON_GetObjectItemCaseSensitive(item, b) : item;
}

static void deepspeed_is_json_with_deepspeeds_names(void **state)
{
    (void)state;
    static struct oc_case c;
    static struct oc_plan plan;
    make("framework=deepspeed model.name=llama-3-8b precision=bf16 parallel.world=8 parallel.zero=3 batch.micro=2 "
         "batch.global=64 offload.optimizer=cpu zero.live_params=1000 recompute=full optimizer=sgd "
         "optimizer.momentum=0.9",
         &c, &plan);
    char *text = oc_export_deepspeed(&c, &plan);
    cJSON *root = cJSON_Parse(text);
    if (!root) fail_msg("%s", text);
    assert_int_equal(at(root, "train_batch_size", NULL)->valueint, 64);
    assert_int_equal(at(root, "gradient_accumulation_steps", NULL)->valueint, 4);
    assert_int_equal(at(root, "zero_optimization", "stage")->valueint, 3);
    assert_int_equal(at(root, "zero_optimization", "stage3_max_live_parameters")->valueint, 1000);
    assert_true(cJSON_IsTrue(at(root, "bf16", "enabled")));
    assert_true(cJSON_IsFalse(at(root, "fp16", "enabled")));
    assert_string_equal(at(at(root, "zero_optimization", "offload_optimizer"), "device", NULL)->valuestring, "cpu");
    assert_string_equal(at(root, "optimizer", "type")->valuestring, "SGD");
    assert_true(cJSON_IsFalse(at(root, "activation_checkpointing", "cpu_checkpointing")));
    cJSON_Delete(root);
    free(text);
    make("framework=deepspeed model.name=gpt2 precision=fp32", &c, &plan);
    text = oc_export_deepspeed(&c, &plan);
    root = cJSON_Parse(text);
    assert_non_null(root);
    assert_null(at(root, "zero_optimization", "reduce_bucket_size"));
    assert_null(at(root, "activation_checkpointing", NULL));
    cJSON_Delete(root);
    free(text);
}

static void exporters_are_found_by_name(void **state)
{
    (void)state;
    int n;
    const struct oc_exporter *rows = oc_exporters(&n);
    static struct oc_case c;
    static struct oc_plan plan;
    make("model.name=gpt2", &c, &plan);
    for (int i = 0; i < n; i++) {
        assert_ptr_equal(oc_exporter_find(rows[i].name), &rows[i]);
        char *text = rows[i].write(&c, &plan);
        assert_non_null(text);
        assert_true(strlen(text) > 2);
        free(text);
    }
    assert_null(oc_exporter_find("csv"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(megatron_reads_what_was_written),
        cmocka_unit_test(what_megatron_cannot_say_is_listed),
        cmocka_unit_test(set_arguments_are_read_back_through_a_shell),
        cmocka_unit_test(deepspeed_is_json_with_deepspeeds_names),
        cmocka_unit_test(exporters_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
