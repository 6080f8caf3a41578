/* What everyone reads of a plan, number formats, and distances between names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/base/names.h"
#include "oomcast/plan.h"

static struct oc_plan plan_of(int64_t layers, int64_t pp, int64_t vpp)
{
    struct oc_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.c = oc_config_default();
    plan.c.model_layers = layers;
    plan.c.parallel_pp = pp;
    plan.c.parallel_vpp = vpp;
    return plan;
}

static void layers_are_dealt_out_evenly(void **state)
{
    (void)state;
    const struct oc_plan plan = plan_of(24, 4, 3);
    for (int stage = 0; stage < 4; stage++)
        for (int chunk = 0; chunk < 3; chunk++) {
            assert_int_equal(oc_plan_layers(&plan, stage, chunk), 2);
            assert_int_equal(oc_plan_has_embedding(&plan, stage, chunk), stage == 0 && chunk == 0);
            assert_int_equal(oc_plan_has_head(&plan, stage, chunk), stage == 3 && chunk == 2);
        }
}

static void first_and_last_stage_have_what_they_are_given(void **state)
{
    (void)state;
    struct oc_plan plan = plan_of(20, 4, 1);
    plan.c.parallel_first_stage_layers = 2;
    assert_int_equal(oc_plan_layers(&plan, 0, 0), 2);
    for (int stage = 1; stage < 4; stage++) assert_int_equal(oc_plan_layers(&plan, stage, 0), 6);
    plan.c.parallel_last_stage_layers = 4;
    assert_int_equal(oc_plan_layers(&plan, 1, 0), 7);
    assert_int_equal(oc_plan_layers(&plan, 3, 0), 4);
    plan = plan_of(6, 2, 1);
    plan.c.parallel_first_stage_layers = 4;
    plan.c.parallel_last_stage_layers = 2;
    assert_int_equal(oc_plan_layers(&plan, 0, 0) + oc_plan_layers(&plan, 1, 0), 6);
}

static void embedding_and_loss_may_count_as_layers(void **state)
{
    (void)state;
    struct oc_plan plan = plan_of(14, 4, 2);
    plan.c.parallel_embedding_in_split = plan.c.parallel_loss_in_split = 1;
    int64_t layers = 0;
    for (int stage = 0; stage < 4; stage++)
        for (int chunk = 0; chunk < 2; chunk++) layers += oc_plan_layers(&plan, stage, chunk);
    assert_int_equal(layers, 14);
    assert_int_equal(oc_plan_layers(&plan, 0, 0), 1);
    assert_int_equal(oc_plan_layers(&plan, 0, 1), 2);
    assert_int_equal(oc_plan_layers(&plan, 3, 1), 1);
}

static void tokens_are_split_over_ranks(void **state)
{
    (void)state;
    struct oc_plan plan = plan_of(1, 1, 1);
    plan.c.batch_micro = 3;
    plan.c.batch_seq = 4096;
    plan.c.parallel_cp = 2;
    plan.c.parallel_tp = 8;
    assert_int_equal(oc_plan_tokens(&plan), 3 * 2048);
    assert_int_equal(oc_plan_tokens_sp(&plan), 3 * 2048); /* without sequence parallelism every rank has all */
    plan.c.parallel_sp = 1;
    assert_int_equal(oc_plan_tokens_sp(&plan), 3 * 256);
}

static void a_state_exists_where_it_has_a_type(void **state)
{
    (void)state;
    struct oc_plan plan = plan_of(1, 1, 1);
    assert_false(oc_plan_has_moment1(&plan));
    plan.dt.moment1 = OC_BF16;
    assert_true(oc_plan_has_moment1(&plan));
    assert_false(oc_plan_has_moment2(&plan));
    plan.dt.moment2 = OC_FP32;
    assert_true(oc_plan_has_moment2(&plan));
}

/* Another value of an option's type; a string gets a character more. */
static void change(struct oc_config *config, enum oc_option_id id)
{
    char *field = (char *)config + oc_option(id)->offset;
    switch (oc_option(id)->type) {
    case OC_T_STRING: memset(field + strlen(field), 'x', 1); break;
    case OC_T_FLOAT: *(double *)(void *)field += 0.5; break;
    default: *(int64_t *)(void *)field += 1;
    }
}

static void every_value_counts_in_the_hash(void **state)
{
    (void)state;
    const struct oc_plan plan = plan_of(4, 1, 1);
    uint64_t seen[OC_OPTIONS + 1] = {[OC_OPTIONS] = oc_plan_hash(&plan)};
    for (int i = 0; i < OC_OPTIONS; i++) {
        struct oc_plan other = plan;
        change(&other.c, (enum oc_option_id)i);
        seen[i] = oc_plan_hash(&other);
        for (int j = 0; j < i; j++) assert_true(seen[i] != seen[j]);
        assert_true(seen[i] != seen[OC_OPTIONS]);
    }
}

static void the_hash_does_not_ask_who_gave_a_value(void **state)
{
    (void)state;
    struct oc_plan plan = plan_of(4, 1, 1), same = plan;
    for (int i = 0; i < OC_OPTIONS; i++) oc_set_given(&same.c, (enum oc_option_id)i, true);
    memset(same.c.model_name + strlen(same.c.model_name) + 1, 'x', 8); /* what lies behind a string's end */
    same.c.model_dropout = -0.0;
    assert_int_equal(oc_plan_hash(&plan), oc_plan_hash(&same));
    assert_true(plan.c.model_dropout == 0);
}

static void long_names_count_to_their_end(void **state)
{
    (void)state;
    struct oc_plan a = plan_of(4, 1, 1), b = a;
    memset(a.c.model_name, 'm', OC_NAME_MAX - 1);
    memset(b.c.model_name, 'm', OC_NAME_MAX - 1);
    assert_int_equal(oc_plan_hash(&a), oc_plan_hash(&b));
    b.c.model_name[OC_NAME_MAX - 2] = 'n';
    assert_true(oc_plan_hash(&a) != oc_plan_hash(&b));
}

static void bytes_are_rounded_up_and_stop_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(oc_bytes(3, OC_FP32), 12);
    assert_int_equal(oc_bytes(3, OC_BF16), 6);
    assert_int_equal(oc_bytes(3, OC_BOOL), 3);
    assert_int_equal(oc_bytes(3, OC_INT4), 2);
    assert_int_equal(oc_bytes(4, OC_INT4), 2);
    assert_int_equal(oc_bytes(3, OC_NONE), 0);
    assert_true(oc_bytes(UINT64_MAX / 2, OC_FP32) == UINT64_MAX);
    assert_true(oc_mul(UINT64_MAX / 2, 3) == UINT64_MAX);
    assert_true(oc_add(UINT64_MAX - 1, 2) == UINT64_MAX);
    assert_true(oc_add(UINT64_MAX - 1, 1) == UINT64_MAX);
}

static void names_differ_by_edits(void **state)
{
    (void)state;
    assert_int_equal(oc_name_distance("", ""), 0);
    assert_int_equal(oc_name_distance("parallel.tp", "parallel.tp"), 0);
    assert_int_equal(oc_name_distance("", "abc"), 3);
    assert_int_equal(oc_name_distance("abc", ""), 3);
    assert_int_equal(oc_name_distance("layers", "layer"), 1);
    assert_int_equal(oc_name_distance("recompute", "recomptue"), 2);
    assert_int_equal(oc_name_distance("kitten", "sitting"), 3);
    char a[128], b[128];
    memset(a, 'a', 127), memset(b, 'b', 127);
    a[127] = b[127] = 0;
    assert_int_equal(oc_name_distance(a, b), 47); /* of long names only the beginnings are compared */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_dealt_out_evenly),
        cmocka_unit_test(first_and_last_stage_have_what_they_are_given),
        cmocka_unit_test(embedding_and_loss_may_count_as_layers),
        cmocka_unit_test(tokens_are_split_over_ranks),
        cmocka_unit_test(a_state_exists_where_it_has_a_type),
        cmocka_unit_test(every_value_counts_in_the_hash),
        cmocka_unit_test(the_hash_does_not_ask_who_gave_a_value),
        cmocka_unit_test(long_names_count_to_their_end),
        cmocka_unit_test(bytes_are_rounded_up_and_stop_at_the_end),
        cmocka_unit_test(names_differ_by_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
