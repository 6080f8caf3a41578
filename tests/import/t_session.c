/* JSON sessions: strict to read, the same after a round trip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_import.h"

static void values_and_places(void **state)
{
    (void)state;
    struct oc_input *input =
        help_import("a.json", "{\n \"oomcast\": 1,\n \"set\": {\n  \"precision\": \"bf16\",\n"
                              "  \"parallel.tp\": 4, \"sp\": true,\n  \"model.dropout\": 0.1,\n"
                              "  \"model.params\": \"7B\",\n  \"recompute.modules\": \"core_attn,mlp\"\n }\n}\n");
    help_is(input, OC_OPT_precision, "bf16", 4);
    help_is(input, OC_OPT_parallel_tp, "4", 5);
    help_is(input, OC_OPT_parallel_sp, "true", 5);
    help_is(input, OC_OPT_model_params, "7000000000", 7);
    help_is(input, OC_OPT_recompute_modules, "core_attn,mlp", 8);
    assert_true(input->c.config.model_dropout == 0.1);
    assert_int_equal(input->c.origin[OC_OPT_model_dropout].from, OC_FROM_FILE);
    assert_false(oc_given(&input->c.config, OC_OPT_parallel_pp));
    free(input);
    input = help_import("empty.json", "\xEF\xBB\xBF {\"oomcast\":1}");
    assert_int_equal(memcmp(input->c.config.given, (uint64_t[4]){0}, sizeof input->c.config.given), 0);
    free(input);
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum oc_code code;
        int line, column; /* column 0: where cJSON stops, near enough */
    } cases[] = {
        {"{\"oomcast\":1,\n\"set\":{\"precision\":\"bf16\",}}", OC_E_PARSE, 2, 0},
        {"{\"oomcast\":1,\n \"set\":{\"nothing.here\":1}}", OC_E_KEY, 2, 9},
        {"{\"oomcast\":1,\"set\":{\n\"dropout\":0.1}}", OC_E_KEY, 2, 1},
        {"{\"oomcast\":1,\"set\":{\n\"Parallel.TP\":1}}", OC_E_KEY, 2, 1},
        {"{\"oomcast\":1,\"set\":{\n\n \"parallel.tp\":0}}", OC_E_VALUE, 3, 2},
        {"{\"oomcast\":1,\"set\":{\"parallel.tp\":1.5}}", OC_E_VALUE, 1, 21},
        {"{\"oomcast\":1,\"set\":{\"parallel.tp\":[4]}}", OC_E_VALUE, 1, 21},
        {"{\"oomcast\":1,\"set\":{\"parallel.tp\":null}}", OC_E_VALUE, 1, 21},
        {"{\"oomcast\":1,\"set\":{\"gpu.capacity\":1e300}}", OC_E_VALUE, 1, 21},
        {"{\"oomcast\":1,\"set\":{\"gpu.capacity\":9007199254740993000}}", OC_E_VALUE, 1, 21},
        {"{\"oomcast\":1,\"set\":{\"model.dropout\":1e999}}", OC_E_VALUE, 1, 21},
        {"{\"oomcast\":1,\"set\":{\"precision\":\"fp17\"}}", OC_E_VALUE, 1, 21},
        {"{\"oomcast\":1,\"set\":{\"precision\":\"bf16\\u0000x\"}}", OC_E_PARSE, 1, 38},
        {"{\"oomcast\":1,\"set\":{\"parallel.tp\":2,\n\"parallel.tp\":4}}", OC_E_PARSE, 2, 1},
        {"{\"oomcast\":1,\"set\":{\"parallel.tp\":2,\n\"tp\":4}}", OC_E_PARSE, 2, 1},
        {"{\"oomcast\":1,\"set\":{},\n\"set\":{}}", OC_E_PARSE, 2, 1},
        {"{\"oomcast\":1,\"set\":[]}", OC_E_PARSE, 1, 14},
        {"{\"oomcast\":1,\"sets\":{}}", OC_E_PARSE, 1, 14},
        {"{\"oomcast\":2}", OC_E_PARSE, 1, 2},
        {"{\"oomcast\":\"1\"}", OC_E_PARSE, 1, 2},
        {"{\"Oomcast\":1,\"x\":\"oomcast\"}", OC_E_PARSE, 1, 2},
        {"{\"oomcast\":1} {}", OC_E_PARSE, 1, 15},
        {"{\"oomcast\":1", OC_E_PARSE, 1, 0},
        {"{\"oomcast\":1,", OC_E_PARSE, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct oc_input *input = help_input(), *before = help_input();
        struct oc_error error = {0};
        bool good = oc_import_text(input, "a.json", cases[i].text, strlen(cases[i].text), &error);
        if (good || error.code != cases[i].code || error.line != cases[i].line ||
            (cases[i].column && error.column != cases[i].column) || strcmp(error.file, "a.json") != 0)
            fail_msg("%s: code %d at %d:%d, %s", cases[i].text, error.code, error.line, error.column, error.message);
        assert_memory_equal(input, before, sizeof *input); /* nothing is changed */
        free(input);
        free(before);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A value of the option that its row allows. */
static void set_random(struct oc_config *config, enum oc_option_id id, uint64_t *state)
{
    const struct oc_option *option = oc_option(id);
    char text[64] = "";
    int64_t value = option->min;
    switch (option->type) {
    case OC_T_INT: {
        uint64_t span = (uint64_t)option->max - (uint64_t)option->min;
        uint64_t shift = next_random(state) % 64;
        value += (int64_t)(span == UINT64_MAX ? 0 : (next_random(state) >> shift) % (span + 1));
        break;
    }
    case OC_T_BOOL: value = (int64_t)(next_random(state) % 2); break;
    case OC_T_ENUM: {
        int n = 0;
        while (option->choices[n].name) n++;
        value = option->choices[next_random(state) % (uint64_t)n].value;
        break;
    }
    case OC_T_SET: value = (int64_t)(next_random(state) % 8); break;
    case OC_T_FLOAT:
        snprintf(text, sizeof text, "%.17g", (double)(next_random(state) % 1000) / 1000 * option->fmax);
        break;
    case OC_T_STRING:
        snprintf(text, sizeof text, "a \"%llu\" \\ \xC3\xA9", (unsigned long long)next_random(state));
        break;
    }
    if (text[0]) {
        assert_true(oc_option_set(config, id, text, NULL));
    } else {
        oc_option_put(config, id, value);
        oc_set_given(config, id, true);
    }
}

static void round_trip(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        struct oc_case c = {.config = oc_config_default()};
        for (int i = 0; i < OC_OPTIONS; i++)
            if (next_random(&random) % 3 == 0) set_random(&c.config, (enum oc_option_id)i, &random);
        char *text = oc_export_session(&c);
        assert_non_null(text);
        struct oc_input *input = help_import("s.json", text);
        for (int i = 0; i < OC_OPTIONS; i++) {
            enum oc_option_id id = (enum oc_option_id)i;
            char mine[128], theirs[128];
            assert_int_equal(oc_given(&c.config, id), oc_given(&input->c.config, id));
            if (!oc_given(&c.config, id)) continue;
            assert_string_equal(oc_option_text(&c.config, id, mine, sizeof mine),
                                oc_option_text(&input->c.config, id, theirs, sizeof theirs));
            if (oc_option(id)->type == OC_T_FLOAT)
                assert_memory_equal((const char *)&c.config + oc_option(id)->offset,
                                    (const char *)&input->c.config + oc_option(id)->offset, sizeof(double));
        }
        char *again = oc_export_session(&input->c);
        assert_string_equal(text, again);
        free(again);
        free(text);
        free(input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_and_places), cmocka_unit_test(errors),
                                       cmocka_unit_test(round_trip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
