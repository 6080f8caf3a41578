/* Known GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "oomcast/model.h"

/* The names of the `gpu` option in docs/DESIGN.md, with their memory in GB as sold and their compute capability. */
static const struct {
    const char *name;
    int sold_gb, sm;
} documented[] = {
    {"a100-40g", 40, 80},  {"a100-80g", 80, 80}, {"h100-80g", 80, 90}, {"h100-96g", 96, 90}, {"h200", 141, 90},
    {"b200", 180, 100},    {"gb200", 186, 100},  {"v100-16g", 16, 70}, {"v100-32g", 32, 70}, {"a10g", 24, 86},
    {"l4", 24, 89},        {"l40s", 48, 89},     {"t4", 16, 75},       {"rtx-3090", 24, 86}, {"rtx-4090", 24, 89},
    {"rtx-5090", 32, 120}, {"mi300x", 192, 0},
};

static void documented_names_are_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof documented / sizeof *documented; i++) {
        const struct oc_gpu_row *row = oc_gpu_find(documented[i].name);
        if (!row) fail_msg("%s is not in the table", documented[i].name);
        assert_string_equal(row->name, documented[i].name);
        assert_int_equal(row->sm, documented[i].sm);
        double gb = (double)row->total / 1e9;
        if (gb < 0.95 * documented[i].sold_gb || gb > 1.08 * documented[i].sold_gb)
            fail_msg("%s: %.1f GB is not the %d GB it is sold with", row->name, gb, documented[i].sold_gb);
    }
}

/* Figures from nvidia-smi listings and from PyTorch's out-of-memory messages, see the sources in model/data/gpus.json.
 */
static void figures_to_the_byte(void **state)
{
    (void)state;
    const struct oc_gpu_row *row = oc_gpu_find("h100-80g");
    assert_true(row->total == 81559ull << 20);
    assert_true(row->capacity == 84932978278ull); /* 79.10 GiB, rounded down */
    assert_true(row->verified);
    assert_true(oc_gpu_find("a100-80g")->total == 81920ull << 20);
    assert_true(oc_gpu_find("h200")->total == 143771ull << 20);
    assert_false(oc_gpu_find("v100-16g")->verified);
}

static void every_row_is_plausible(void **state)
{
    (void)state;
    int n = 0;
    const struct oc_gpu_row *rows = oc_gpus(&n);
    assert_true(n >= 17);
    for (int i = 0; i < n; i++) {
        /* The driver and ECC take some of the total, never more than 6 %. */
        assert_true(rows[i].capacity < rows[i].total);
        assert_true((double)rows[i].capacity > 0.94 * (double)rows[i].total);
        assert_true(rows[i].title[0] != '\0' && rows[i].source[0] != '\0');
        assert_ptr_equal(oc_gpu_find(rows[i].name), &rows[i]);
    }
}

static void names_are_found_as_people_type_them(void **state)
{
    (void)state;
    assert_non_null(oc_gpu_find("H100_80G"));
    assert_ptr_equal(oc_gpu_find("H100_80G"), oc_gpu_find("h100-80g"));
    assert_null(oc_gpu_find("h100"));
    assert_null(oc_gpu_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_names_are_there),
        cmocka_unit_test(figures_to_the_byte),
        cmocka_unit_test(every_row_is_plausible),
        cmocka_unit_test(names_are_found_as_people_type_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
