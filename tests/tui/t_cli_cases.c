/* The questions that this program was built for, asked as a user asks them. The figures are worked out by hand:
 * parameters on the rank times bytes of each copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_cli.h"

#define SGD  OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh"
#define ADAM OOMCAST_SOURCE "/examples/llama3-8b-adam-distopt-bf16.sh"

static cJSON *report(const char *const argv[])
{
    struct help_output run = help_cli("", argv);
    if (run.status) fail_msg("exit status %d: %s", run.status, run.err);
    cJSON *json = cJSON_Parse(run.out);
    if (!json) fail_msg("not JSON: %s", run.out);
    help_cli_free(&run);
    return json;
}
#define REPORT(...) report((const char *const[]){"report", "--format", "json", __VA_ARGS__, NULL})

static const cJSON *rank(const cJSON *json, int stage)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItem(json, "ranks"), stage);
}

static uint64_t number(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(json, key);
    if (!cJSON_IsNumber(item)) fail_msg("no number \"%s\"", key);
    return (uint64_t)item->valuedouble;
}

/* The classes of a steady moment. */
static const cJSON *classes(const cJSON *ranks, const char *moment)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(ranks, "moments"))
    {
        if (strcmp(cJSON_GetObjectItem(item, "iteration")->valuestring, "steady")) continue;
        if (!strcmp(cJSON_GetObjectItem(item, "name")->valuestring, moment))
            return cJSON_GetObjectItem(item, "classes");
    }
    fail_msg("no steady %s", moment);
    return NULL;
}

/* W + M + G + O. */
static uint64_t states(const cJSON *ranks, const char *moment)
{
    const cJSON *of = classes(ranks, moment);
    return number(of, "weights") + number(of, "master") + number(of, "gradients") + number(of, "optimizer");
}

static void assert_bytes(uint64_t have, uint64_t want, const char *what)
{
    if (have != want) fail_msg("%s: %" PRIu64 ", not %" PRIu64, what, have, want);
}

/* Half precision takes more: 16 and 14 bytes a parameter at the step against 12, and the same 12 in backward. */
static void half_precision_takes_more(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        uint64_t at_step, in_backward; /* bytes a parameter */
    } cases[] = {{"precision=fp16", 16, 12}, {"precision=fp32", 12, 12}, {"precision=bf16", 14, 14}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *json = REPORT(SGD, "--set", cases[i].set);
        const uint64_t params = number(rank(json, 0), "params");
        assert_bytes(params, 938741760, "parameters");
        assert_bytes(states(rank(json, 0), "step"), cases[i].at_step * params, cases[i].set);
        assert_bytes(states(rank(json, 0), "backward"), cases[i].in_backward * params, cases[i].set);
        cJSON_Delete(json);
    }
}

static void the_reason_is_said(void **state)
{
    (void)state;
    static const char *const parts[] = {"detach().clone().float()", "main_grad.float()", "recompute",
                                        "From micro-batch"};
    struct help_output run = HELP_CLI("report", SGD);
    const char *why = strstr(run.out, "\nWhy\n");
    assert_non_null(why);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(why, parts[i])) fail_msg("\"%s\" is not in: %s", parts[i], why);
    help_cli_free(&run);
}

/* 7B under AdamW, as an article counts it: 28 + 28 + 56 GB in fp32, (14 + 28) + (14 + 28) in fp16. */
static void the_article_counts_84(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        uint64_t weights, master, gradients, optimizer; /* GB */
    } cases[] = {{"precision=fp32", 28, 0, 28, 56}, {"precision=fp16", 14, 28, 14, 28}};
    const uint64_t gb = 1000000000;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *json = REPORT("--set", "framework=article", "--set", "model.params=7000000000", "--set",
                             "optimizer=adamw", "--set", cases[i].set);
        const cJSON *of = classes(rank(json, 0), "step");
        assert_bytes(number(of, "weights"), cases[i].weights * gb, "weights");
        assert_bytes(number(of, "master"), cases[i].master * gb, "master");
        assert_bytes(number(of, "gradients"), cases[i].gradients * gb, "gradients");
        assert_bytes(number(of, "optimizer"), cases[i].optimizer * gb, "optimizer");
        cJSON_Delete(json);
    }
}

/* Megatron's bytes per parameter with the optimizer shared by d ranks: bf16 6 + 12/d, whatever the stage. */
static void the_shared_optimizer_shrinks(void **state)
{
    (void)state;
    static const struct {
        const char *world, *batch;
        uint64_t d;
    } cases[] = {
        {"world=4", "batch.global=8", 1}, {"world=32", "batch.global=64", 8}, {"world=256", "batch.global=512", 64}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *json = REPORT(ADAM, "--set", cases[i].world, "--set", cases[i].batch);
        for (int stage = 0; stage < 2; stage++) {
            const uint64_t params = number(rank(json, stage), "params"), sum = states(rank(json, stage), "step");
            const uint64_t exact = 6 * params + 12 * params / cases[i].d, padding = 12 * 512 * 64;
            if (sum < exact || sum > exact + padding)
                fail_msg("%s stage %d: %" PRIu64 ", not %" PRIu64, cases[i].world, stage, sum, exact);
        }
        cJSON_Delete(json);
    }
}

/* Every stage's entries add up to its peak, to the byte. */
static void entries_add_up(void **state)
{
    (void)state;
    static const char *const files[] = {SGD, ADAM};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        cJSON *json = REPORT(files[i], "--entries");
        const cJSON *each, *entry;
        cJSON_ArrayForEach(each, cJSON_GetObjectItem(json, "ranks"))
        {
            uint64_t sum = 0;
            cJSON_ArrayForEach(entry, cJSON_GetObjectItem(each, "entries"))
            {
                sum += number(entry, "at_peak");
                assert_true(cJSON_GetObjectItem(entry, "why")->valuestring[0]);
                assert_true(cJSON_GetObjectItem(entry, "source")->valuestring[0]);
            }
            assert_bytes(sum, number(cJSON_GetObjectItem(each, "peak"), "allocated"), files[i]);
        }
        cJSON_Delete(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_precision_takes_more),
        cmocka_unit_test(the_reason_is_said),
        cmocka_unit_test(the_article_counts_84),
        cmocka_unit_test(the_shared_optimizer_shrinks),
        cmocka_unit_test(entries_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
