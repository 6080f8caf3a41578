/* advise, compare and sweep for programs: what they say is what `report` says of the same configuration, to the byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "help_cli.h"

#define EXAMPLE OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh"

static cJSON *parse(struct help_output run)
{
    if (run.status || run.err[0]) fail_msg("exit status %d: %s", run.status, run.err);
    cJSON *json = cJSON_Parse(run.out);
    if (!json) fail_msg("not JSON: %s", run.out);
    help_cli_free(&run);
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(json, "schema")->valueint, 1);
    return json;
}

static const cJSON *at(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!item) fail_msg("there is no \"%s\"", name);
    return item;
}

static double number(const cJSON *json, const char *name)
{
    assert_true(cJSON_IsNumber(at(json, name)));
    return at(json, name)->valuedouble;
}

static const char *text(const cJSON *json, const char *name)
{
    assert_true(cJSON_IsString(at(json, name)));
    return at(json, name)->valuestring;
}

/* "key=value" as --set takes it. */
static void write_set(char *out, size_t size, const char *key, const cJSON *value)
{
    if (cJSON_IsString(value))
        snprintf(out, size, "%s=%s", key, value->valuestring);
    else if (cJSON_IsBool(value))
        snprintf(out, size, "%s=%s", key, cJSON_IsTrue(value) ? "true" : "false");
    else
        snprintf(out, size, "%s=%.0f", key, value->valuedouble);
}

/* The report on the example with these settings: its fullest stage must have the same peak, and the verdict the same
 * figures. */
static void assert_reported(const cJSON *said, char (*sets)[96], int n)
{
    const char *args[HELP_ARGS + 1] = {"report", "--format", "json", EXAMPLE};
    for (int i = 0; i < n; i++) args[4 + 2 * i] = "--set", args[5 + 2 * i] = sets[i];
    cJSON *report = parse(help_cli("", args));
    const cJSON *rank = cJSON_GetArrayItem(at(report, "ranks"), (int)number(report, "worst_stage"));
    const cJSON *peak = at(rank, "peak");
    assert_true(number(peak, "allocated") == number(said, "allocated"));
    assert_true(number(peak, "device") == number(said, "device"));
    assert_true(number(report, "headroom") == number(said, "headroom"));
    assert_int_equal(cJSON_IsTrue(at(report, "fits")), cJSON_IsTrue(at(said, "fits")));
    cJSON_Delete(report);
}

static void what_is_advised_can_be_set(void **state)
{
    (void)state;
    cJSON *json = parse(HELP_CLI("advise", "--json", EXAMPLE));
    const cJSON *advice;
    int n = 0;
    assert_string_equal(text(json, "gpu"), "h100-80g");
    assert_string_equal(text(json, "about"), "taking back");
    assert_true(cJSON_IsNull(at(json, "nearest")));
    assert_reported(at(json, "now"), NULL, 0);
    cJSON_ArrayForEach(advice, at(json, "advice"))
    {
        char sets[8][96];
        int n_sets = 0;
        const cJSON *change;
        cJSON_ArrayForEach(change, at(advice, "changes"))
        {
            assert_true(n_sets < 8);
            write_set(sets[n_sets++], sizeof sets[0], text(change, "key"), at(change, "to"));
            assert_non_null(at(change, "from"));
        }
        assert_true(n_sets > 0 && text(advice, "effect")[0] && cJSON_GetArraySize(at(advice, "notes")) > 0);
        assert_true(cJSON_IsNumber(at(at(advice, "costs"), "operations")));
        assert_reported(advice, sets, n_sets);
        n++;
    }
    assert_true(n >= 2);
    cJSON_Delete(json);
}

static void what_comes_nearest_is_said(void **state)
{
    (void)state;
    cJSON *json = parse(HELP_CLI("advise", "--json", "--set", "framework=pytorch", "--set", "model.name=llama-3.1-405b",
                                 "--set", "gpu=t4"));
    assert_string_equal(text(json, "about"), "making it fit");
    assert_int_equal(cJSON_IsTrue(at(at(json, "now"), "fits")), 0);
    assert_true(number(at(json, "now"), "headroom") < 0);
    assert_true((cJSON_GetArraySize(at(json, "advice")) == 0) != (bool)cJSON_IsNull(at(json, "nearest")));
    cJSON_Delete(json);
}

static void a_comparison_adds_up(void **state)
{
    (void)state;
    cJSON *json = parse(HELP_CLI("compare", EXAMPLE, "--against", "precision=fp32", "--json"));
    const cJSON *a = at(json, "a"), *b = at(json, "b"), *option, *entry;
    double sum = 0;
    bool precision = false;
    assert_string_equal(text(json, "at"), "peak");
    assert_reported(a, NULL, 0);
    char set[1][96] = {"precision=fp32"};
    assert_reported(b, set, 1);
    assert_string_equal(cJSON_GetArrayItem(at(b, "set"), 0)->valuestring, "precision=fp32");
    cJSON_ArrayForEach(option, at(json, "options"))
    {
        if (strcmp(text(option, "key"), "precision") != 0) continue;
        precision = true;
        assert_string_equal(text(option, "a"), "fp16");
        assert_string_equal(text(option, "b"), "fp32");
        assert_true(cJSON_IsTrue(at(option, "given")));
        const double whole = number(b, "allocated") - number(a, "allocated");
        assert_true(whole < 0 && number(option, "alone") < whole * 0.99 && number(option, "alone") > whole * 1.01);
    }
    assert_true(precision);
    cJSON_ArrayForEach(entry, at(json, "entries"))
    {
        sum += number(entry, "difference");
        assert_true(number(entry, "difference") == number(entry, "a") - number(entry, "b"));
        assert_true(text(entry, "why")[0] && text(entry, "class")[0] && text(entry, "name")[0]);
    }
    assert_true(sum == number(a, "allocated") - number(b, "allocated"));
    cJSON_Delete(json);
}

static void a_sweep_is_one_point_after_another(void **state)
{
    (void)state;
    cJSON *json = parse(HELP_CLI("sweep", "--json", EXAMPLE, "batch.micro=1,2", "tp=8,3"));
    const cJSON *point;
    int n = 0, refused = 0;
    assert_string_equal(cJSON_GetArrayItem(at(json, "options"), 1)->valuestring, "parallel.tp");
    cJSON_ArrayForEach(point, at(json, "points"))
    {
        char sets[2][96];
        const cJSON *values = at(point, "values");
        assert_true(number(values, "batch.micro") == 1 + n / 2);
        assert_true(number(values, "parallel.tp") == (n % 2 ? 3 : 8));
        n++;
        if (cJSON_HasObjectItem(point, "refused")) {
            assert_non_null(strstr(text(point, "refused"), "parallel.world=8"));
            refused++;
            continue;
        }
        write_set(sets[0], sizeof sets[0], "batch.micro", at(values, "batch.micro"));
        write_set(sets[1], sizeof sets[1], "parallel.tp", at(values, "parallel.tp"));
        assert_reported(point, sets, 2);
    }
    assert_int_equal(n, 4);
    assert_int_equal(refused, 2);
    cJSON_Delete(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_advised_can_be_set),
        cmocka_unit_test(what_comes_nearest_is_said),
        cmocka_unit_test(a_comparison_adds_up),
        cmocka_unit_test(a_sweep_is_one_point_after_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
