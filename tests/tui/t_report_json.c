/* Schema 1: the names are a contract, bytes are exact integers, and the entries add up to the peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "help_report.h"

static cJSON *report_of(const struct help_run *run)
{
    struct oc_buffer out = {0};
    oc_report_json(&run->report, &out);
    assert_false(out.failed);
    cJSON *json = cJSON_Parse(out.data);
    if (!json) fail_msg("not JSON: %s", out.data);
    oc_buffer_free(&out);
    return json;
}

static const cJSON *at(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!item) fail_msg("there is no \"%s\"", key);
    return item;
}

static uint64_t bytes(const cJSON *json, const char *key)
{
    return (uint64_t)at(json, key)->valuedouble;
}

/* "a b c": exactly these members, in this order. */
static void assert_keys(const cJSON *json, const char *keys)
{
    char have[600] = "";
    const cJSON *item;
    cJSON_ArrayForEach(item, json)
    {
        if (have[0]) strcat(have, " ");
        strcat(have, item->string);
    }
    assert_string_equal(have, keys);
}

static void names_are_the_contract(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    cJSON *json = report_of(run);
    assert_keys(json, "schema tool config origin assumed params ranks worst_stage gpu capacity fits tight headroom "
                      "unmodelled warnings");
    assert_int_equal(at(json, "schema")->valueint, 1);
    const cJSON *rank = cJSON_GetArrayItem(at(json, "ranks"), 0);
    assert_keys(rank, "stage ranks params moments after_step idle first_iteration_peak peak entries");
    assert_keys(at(rank, "peak"), "moment where requested allocated reserved device outside classes by");
    assert_keys(at(at(rank, "peak"), "outside"), "context nccl");
    assert_keys(at(at(rank, "peak"), "classes"), "weights master gradients optimizer activations buffers");
    assert_keys(at(rank, "after_step"), "allocated classes");
    assert_keys(at(rank, "first_iteration_peak"), "moment allocated classes");
    assert_keys(cJSON_GetArrayItem(at(rank, "moments"), 0), "iteration name allocated classes");
    assert_keys(cJSON_GetArrayItem(at(rank, "entries"), 0),
                "class name elements dtype bytes count birth death at_peak why source");
    cJSON_Delete(json);
    help_run_free(run);
}

static void values_and_where_they_are_from(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    cJSON *json = report_of(run);
    const cJSON *config = at(json, "config"), *origin = at(json, "origin");
    assert_int_equal(cJSON_GetArraySize(config), OC_OPTIONS);
    assert_string_equal(at(config, "framework")->valuestring, "megatron");
    assert_int_equal(at(config, "parallel.tp")->valueint, 2);
    assert_true(cJSON_IsFalse(at(config, "parallel.sp")));
    assert_true(fabs(at(config, "model.dropout")->valuedouble) < 1e-300);
    assert_keys(origin, "precision parallel.tp batch.micro");
    assert_string_equal(at(at(origin, "parallel.tp"), "from")->valuestring, "file");
    assert_string_equal(at(at(origin, "parallel.tp"), "file")->valuestring, "run.sh");
    assert_int_equal(at(at(origin, "parallel.tp"), "line")->valueint, 41);
    assert_keys(at(origin, "precision"), "from");

    const cJSON *assumed = at(json, "assumed"); /* what --set has answered is not assumed */
    assert_int_equal(cJSON_GetArraySize(assumed), 1);
    assert_keys(cJSON_GetArrayItem(assumed, 0), "key value why file line");
    assert_string_equal(at(cJSON_GetArrayItem(assumed, 0), "key")->valuestring, "batch.micro");
    assert_int_equal(at(cJSON_GetArrayItem(assumed, 0), "value")->valueint, 1);
    assert_keys(cJSON_GetArrayItem(at(json, "unmodelled"), 0), "name file line");
    assert_string_equal(cJSON_GetArrayItem(at(json, "warnings"), 0)->valuestring, "run.sh:7: --fp16 is given twice");
    cJSON_Delete(json);
    help_run_free(run);
}

static void moments_and_peaks(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    cJSON *json = report_of(run);
    const cJSON *rank = cJSON_GetArrayItem(at(json, "ranks"), 0), *item;
    char names[400] = "";
    cJSON_ArrayForEach(item, at(rank, "moments"))
    {
        strcat(names, at(item, "iteration")->valuestring);
        strcat(names, ".");
        strcat(names, at(item, "name")->valuestring);
        strcat(names, " ");
    }
    assert_string_equal(names, "first.init first.forward first.backward first.reduce first.clip first.step "
                               "first.after_step first.idle steady.forward steady.backward steady.reduce "
                               "steady.clip steady.step steady.after_step steady.idle ");
    /* 2 weights + 4 x 3.000001 activations + a gradient, MB; the second iteration has the optimizer's 8 as well */
    const cJSON *first = at(rank, "first_iteration_peak"), *peak = at(rank, "peak");
    assert_string_equal(at(first, "moment")->valuestring, "step");
    assert_int_equal(bytes(at(first, "classes"), "optimizer"), 8000000);
    assert_string_equal(at(peak, "moment")->valuestring, "backward");
    assert_string_equal(at(peak, "where")->valuestring, "layer 3, micro-batch 1");
    assert_int_equal(bytes(peak, "requested"), 2000000 + 4 * 3000001 + 1000000 + 8000000);
    assert_int_equal(bytes(peak, "reserved"), 25000000);
    assert_int_equal(bytes(peak, "device"), 25000000 + 1500000 + 1);
    uint64_t sum = 0;
    cJSON_ArrayForEach(item, at(peak, "classes")) sum += (uint64_t)item->valuedouble;
    assert_int_equal(sum, bytes(peak, "allocated"));
    assert_true(bytes(peak, "allocated") > bytes(peak, "requested"));
    assert_string_equal(at(at(peak, "by"), "allocated")->valuestring, "modelled");
    assert_string_equal(at(at(peak, "by"), "reserved")->valuestring, "simulated");
    cJSON_Delete(json);
    help_run_free(run);
}

static void entries_add_up_to_the_peak(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    cJSON *json = report_of(run);
    const cJSON *rank = cJSON_GetArrayItem(at(json, "ranks"), 0), *entry, *saved = NULL;
    uint64_t sum = 0;
    cJSON_ArrayForEach(entry, at(rank, "entries"))
    {
        sum += bytes(entry, "at_peak");
        if (!strcmp(at(entry, "name")->valuestring, "layers.saved")) saved = entry;
    }
    assert_int_equal(sum, bytes(at(rank, "peak"), "allocated"));
    assert_non_null(saved);
    assert_int_equal(bytes(saved, "bytes"), 3000001); /* of one instance */
    assert_int_equal(bytes(saved, "count"), 4);
    assert_int_equal(bytes(saved, "at_peak"), 4 * 3000001);
    assert_string_equal(at(saved, "birth")->valuestring, "forward");
    assert_string_equal(at(saved, "death")->valuestring, "backward");
    assert_string_equal(at(saved, "why")->valuestring, "a \"rule\"");
    cJSON_Delete(json);

    run->report.ledgers = NULL;
    json = report_of(run);
    assert_null(cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(at(json, "ranks"), 0), "entries"));
    cJSON_Delete(json);
    help_run_free(run);
}

/* Larger than a double can hold to the last digit. */
static void bytes_stay_exact(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    struct oc_buffer out = {0};
    run->answer.ranks[0].peak.allocated = (UINT64_C(1) << 62) - 1;
    run->answer.verdict.headroom = -((INT64_C(1) << 62) - 1);
    oc_report_json(&run->report, &out);
    assert_non_null(strstr(out.data, "\"allocated\": 4611686018427387903,"));
    assert_non_null(strstr(out.data, "\"headroom\": -4611686018427387903,"));
    oc_buffer_free(&out);
    help_run_free(run);
}

static void unknown_is_null(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    run->answer.verdict.known = false;
    run->answer.plan.c.gpu[0] = '\0';
    run->answer.ranks[0].reserved = 0;
    cJSON *json = report_of(run);
    static const char *const keys[] = {"gpu", "capacity", "fits", "tight", "headroom"};
    for (int i = 0; i < 5; i++) assert_true(cJSON_IsNull(at(json, keys[i])));
    assert_true(cJSON_IsNull(at(at(cJSON_GetArrayItem(at(json, "ranks"), 0), "peak"), "reserved")));
    cJSON_Delete(json);
    help_run_free(run);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"tab\tline\nbell\a", "\"tab\\tline\\nbell\\u0007\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff|\xc3|\xe2\x82|\xc0\x80|\xed\xa0\x80|\xf5\x80\x80\x80",
         "\"\\ufffd|\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"", "\"\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct oc_buffer out = {0};
        struct oc_json json = {.out = &out};
        oc_json_string(&json, NULL, cases[i].text);
        assert_string_equal(out.data, cases[i].json);
        oc_buffer_free(&out);
    }
}

static void numbers_read_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *json;
    } cases[] = {{0.9, "0.9"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1e300, "1e+300"},
                 {(double)INFINITY, "null"},
                 {(double)NAN, "null"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct oc_buffer out = {0};
        struct oc_json json = {.out = &out};
        oc_json_number(&json, NULL, cases[i].value);
        assert_string_equal(out.data, cases[i].json);
        oc_buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_contract), cmocka_unit_test(values_and_where_they_are_from),
        cmocka_unit_test(moments_and_peaks),      cmocka_unit_test(entries_add_up_to_the_peak),
        cmocka_unit_test(bytes_stay_exact),       cmocka_unit_test(unknown_is_null),
        cmocka_unit_test(strings_are_escaped),    cmocka_unit_test(numbers_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
