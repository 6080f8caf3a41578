/* The options table: finding, reading, writing, refusing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/config.h"

static void every_row_is_complete(void **state)
{
    (void)state;
    for (int i = 0; i < OC_OPTIONS; i++) {
        const struct oc_option *o = oc_option((enum oc_option_id)i);
        assert_non_null(o->key);
        assert_non_null(o->group);
        assert_true(o->label && strlen(o->label) <= 16);
        assert_true(o->help && strlen(o->help) > 10);
        assert_int_equal(o->choices != NULL, o->type == OC_T_ENUM || o->type == OC_T_SET);
        if (o->type == OC_T_INT) assert_true(o->def == 0 || (o->def >= o->min && o->def <= o->max));
        for (int j = 0; j < i; j++) assert_string_not_equal(o->key, oc_option((enum oc_option_id)j)->key);
    }
}

static void names_are_found(void **state)
{
    (void)state;
    enum oc_option_id id;
    struct oc_error error;
    assert_true(oc_option_find("parallel.tp", &id, &error));
    assert_int_equal(id, OC_OPT_parallel_tp);
    assert_true(oc_option_find("tp", &id, &error));
    assert_int_equal(id, OC_OPT_parallel_tp);
    assert_true(oc_option_find("precision", &id, &error)); /* a full name, though precision.* exist */
    assert_int_equal(id, OC_OPT_precision);
    assert_true(oc_option_find("layers", &id, &error)); /* not recompute.layers */
    assert_int_equal(id, OC_OPT_model_layers);
    assert_false(oc_option_find("dropout", &id, &error));
    assert_non_null(strstr(error.message, "ambiguous"));
    assert_non_null(strstr(error.hint, "model.dropout or lora.dropout"));
    assert_false(oc_option_find("paralel.tp", &id, &error));
    assert_non_null(strstr(error.hint, "parallel.tp"));
    assert_int_equal(oc_option_by_flag("--tensor-model-parallel-size"), OC_OPT_parallel_tp);
    assert_int_equal(oc_option_by_flag("--tensor-model"), OC_OPTIONS);
    assert_int_equal(oc_option_by_flag(""), OC_OPTIONS);
}

static void integers_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool bytes, good;
        int64_t value;
    } cases[] = {
        {"4096", false, true, 4096},
        {"220_000_000", false, true, 220000000},
        {"7e9", false, true, 7000000000},
        {"7B", false, true, 7000000000},
        {"1.5k", false, true, 1500},
        {"2Ki", false, true, 2048},
        {"-1", false, true, -1},
        {"5e8", false, true, 500000000},
        {"1.5", false, false, 0},
        {"", false, false, 0},
        {"_1", false, false, 0},
        {"1_", false, false, 0},
        {"seven", false, false, 0},
        {"7Q", false, false, 0},
        {"99999999999999999999", false, false, 0},
        {"1e300", false, false, 0},
        {"nan", false, false, 0},
        {"inf", false, false, 0},
        {"0x10", false, false, 0},
        {"80GiB", true, true, 85899345920},
        {"80GB", true, true, 80000000000},
        {"80 GB", true, true, 80000000000},
        {"512", true, true, 512},
        {"80GiB", false, false, 0},
        {"7B", true, true, 7},
        {"1e3", true, true, 1000},
        {"9223372036854775807", false, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        const bool good = oc_parse_integer(cases[i].text, cases[i].bytes, &value);
        if (good != cases[i].good || (good && value != cases[i].value))
            fail_msg("'%s' gave %d, %lld", cases[i].text, good, (long long)value);
    }
}

static void refused(const char *assignment, const char *message, const char *hint)
{
    struct oc_config config = oc_config_default();
    const struct oc_config before = config;
    struct oc_error error;
    if (oc_config_assign(&config, assignment, NULL, &error)) fail_msg("%s was taken", assignment);
    if (!strstr(error.message, message) || !strstr(error.hint, hint))
        fail_msg("%s: %s (%s)", assignment, error.message, error.hint);
    assert_memory_equal(&config, &before, sizeof config); /* nothing is half set */
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    refused("model.layers=99999999999", "out of range", "between 1 and 10000");
    refused("model.layers=0", "out of range", "between");
    refused("parallel.tp=-8", "out of range", "between");
    refused("precision=fp12", "not one of its values", "amp-bf16");
    refused("recompute.modules=core_attn,nothing", "not one of its values", "core_attn");
    refused("model.tied=perhaps", "not true or false", "");
    refused("model.dropout=2", "not a number in its range", "between 0 and 1");
    refused("model.dropout=nan", "not a number in its range", "");
    refused("nonsense", "not KEY=VALUE", "precision=bf16");
    refused("=5", "not KEY=VALUE", "");
    refused("model.name=0123456789012345678901234567890123456789012345678901234567890123456789", "too long", "63");
    refused("gpu.capacity=80 parsecs", "not a byte count", "80GiB");
}

/* Text that oc_option_text() writes reads back to the same value. */
static void values_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < OC_OPTIONS; i++) {
        const enum oc_option_id id = (enum oc_option_id)i;
        const struct oc_option *o = oc_option(id);
        struct oc_config config = oc_config_default(), copy = config;
        struct oc_error error;
        char text[256], again[256];
        if (o->type == OC_T_STRING || o->type == OC_T_FLOAT) continue;
        for (const struct oc_choice *choice = o->choices; choice && choice->name; choice++) {
            oc_option_put(&config, id, choice->value);
            oc_option_text(&config, id, text, sizeof text);
            if (!oc_option_set(&copy, id, text, &error)) fail_msg("%s", error.message);
            assert_int_equal(oc_option_get(&copy, id), choice->value);
        }
        oc_option_put(&config, id, o->max < INT64_MAX ? o->max : o->def);
        assert_true(oc_option_set(&copy, id, oc_option_text(&config, id, text, sizeof text), &error));
        assert_string_equal(oc_option_text(&copy, id, again, sizeof again), text);
    }
}

static void what_is_given_is_remembered(void **state)
{
    (void)state;
    struct oc_config a = oc_config_default(), b = oc_config_default();
    struct oc_error error;
    assert_true(oc_config_assign(&a, "tp=8", NULL, &error));
    assert_true(oc_config_assign(&b, "tp=4", NULL, &error) && oc_config_assign(&b, "pp=2", NULL, &error));
    assert_true(oc_config_assign(&b, "gpu=h200", NULL, &error));
    oc_config_merge(&a, &b); /* the earlier wins */
    assert_int_equal(a.parallel_tp, 8);
    assert_int_equal(a.parallel_pp, 2);
    assert_string_equal(a.gpu, "h200");
    assert_true(oc_given(&a, OC_OPT_parallel_pp));
    assert_false(oc_given(&a, OC_OPT_parallel_cp));
    oc_option_reset(&a, OC_OPT_parallel_tp);
    assert_false(oc_given(&a, OC_OPT_parallel_tp));
    assert_int_equal(a.parallel_tp, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(integers_are_read_as_people_write_them),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(values_round_trip),
        cmocka_unit_test(what_is_given_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
