/* What the probe keeps for backward against what PyTorch kept, to the byte: the rows of tests/data/saved_tensors.txt
 * whose kernels are the probe's. The others were measured with a CPU's kernels or torch 1.13's, which keep more (the
 * switches of tests/model/t_saved_tensors.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "oomcast/model.h"
#include "tests/model/help_fixture.h"
#include "tests/probes/help_train.h"

struct sums {
    const struct oc_books *books;
    long long saved, casts;
    bool taken;
};

/* At the beginning of backward: everything that the graph holds. Masks and rope's tables are constants to it; indices
 * of positions, which the probe's kernels need not read, it keeps. */
static bool take(void *user, const char *phase, int step, int steps)
{
    (void)step, (void)steps;
    struct sums *sums = user;
    if (sums->taken || strcmp(phase, "backward") != 0) return true;
    const struct oc_tensor *end = &sums->books->live;
    for (const struct oc_tensor *tensor = end->next; tensor != end; tensor = tensor->next) {
        const struct oc_book_row *row = &sums->books->rows[tensor->row];
        const bool positions = !strcmp(row->name, "position_ids");
        if (!(tensor->saved || positions) || !strcmp(row->block, "rope") || !strcmp(row->block, "attention_mask"))
            continue;
        if (row->class == OC_ACTIVATIONS) sums->saved += (long long)tensor->bytes;
        if (row->class == OC_BUFFERS) sums->casts += (long long)tensor->bytes;
    }
    sums->taken = true;
    return true;
}

/* Whether what was run is what the probe runs. */
static bool is_ours(const struct help_row *r)
{
    const bool gpt = help_is_gpt(r), masks = r->attention_dropout > 0 || r->dropout > 0;
    if (help_is(r->recompute, "attn") || (masks && !help_is(r->masks, "cuda"))) return false;
    if (gpt && (help_is(r->mode, "amp_cpu") || help_is(r->mode, "bf16"))) return false;
    if (!gpt && !help_is(r->mean, "torch2")) return false;
    return gpt || r->kv != 1 || r->a == 1 || r->b != 1; /* expand() of one key head is a view */
}

static void compare(int line, const struct help_row *run, long long saved, long long casts)
{
    static struct help_train help;
    struct oc_config config = help_row_config(run);
    struct oc_plan plan;
    struct oc_error error = {0};
    help_assign(&config, "kernels.norm", "eager");
    if (!oc_resolve(&config, &plan, NULL, &error)) fail_msg("line %d: %s", line, error.message);
    memset(&help, 0, sizeof help);
    struct sums sums = {.books = &help.books};
    help.options = (struct oc_probe_options){.device = OC_DEVICE_DRY, .steps = 2, .progress = take, .user = &sums};
    oc_backend_dry(&help.backend, 0);
    assert_true(oc_books_open(&help.books, &help.backend, false, false, &help.rank));
    assert_true(oc_train_open(&help.train, &plan, &help.options, &help.backend, &help.books));
    oc_micro_batch(&help.train);
    help_train_close(&help);
    if (sums.saved != saved || sums.casts != casts)
        fail_msg("line %d: saved %lld, PyTorch %lld; copies of weights %lld, PyTorch %lld", line, sums.saved, saved,
                 sums.casts, casts);
}

static void what_is_kept_is_what_pytorch_kept(void **state)
{
    (void)state;
    FILE *file = fopen(OOMCAST_SOURCE "/tests/data/saved_tensors.txt", "r");
    assert_non_null(file);
    char line[512];
    int number = 0, compared = 0;
    while (fgets(line, sizeof line, file)) {
        struct help_row run;
        const char *rest;
        long long saved, casts;
        number++;
        if (!help_read_row(line, &run, &rest) || sscanf(rest, "%lld %lld", &saved, &casts) != 2 || !is_ours(&run))
            continue;
        compare(number, &run, saved, casts);
        compared++;
    }
    fclose(file);
    assert_true(compared > 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept_is_what_pytorch_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
