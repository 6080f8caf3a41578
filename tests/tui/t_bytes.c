/* What a change of a value sends to a terminal of 160x48 with 256 colours, of every option, in every view: the first
 * seed's run, with a base to compare with. tests/bench measures more of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>

#include "help_bytes.h"
#include "help_screen.h"

enum { VALUES = 1 }; /* of an option, each way */

/* The budget of docs/DESIGN.md holds where the numbers stand still. A chart or a table of which every cell is another
 * one afterwards takes what it takes. */
static const struct {
    const char *view;
    long most, usual; /* bytes of the largest, and of the average one */
} budgets[] = {{"Fit", 1500, 400},    {"Step", 3200, 700},     {"Pipeline", 1500, 250},
               {"Layers", 4000, 800}, {"Compare", 4000, 1200}, {"Lessons", 1500, 150}};

struct seen {
    struct help_change most;
    long sum;
    int n;
};

static void note(const struct help_change *change, void *user)
{
    struct seen *seen = user;
    seen->sum += change->bytes;
    seen->n++;
    if (change->bytes > seen->most.bytes) seen->most = *change;
}

static void a_change_sends_little(void **state)
{
    (void)state;
    struct help_screen *screen =
        HELP_SCREEN(160, 48, "framework=megatron", "model.layers=32", "model.hidden=4096", "model.heads=32",
                    "model.kv_heads=8", "model.ffn=14336", "model.activation=swiglu", "model.norm=rmsnorm",
                    "model.vocab=128256", "parallel.tp=8", "parallel.sp=true", "precision=fp16", "optimizer=sgd",
                    "recompute=full", "parallel.world=8", "batch.global=64", "gpu=h100-80g");
    struct help_bytes bytes;
    struct seen seen[6] = {0};
    long first, again;
    assert_true(help_bytes_open(&bytes, 160, 48));
    first = help_bytes_show(&bytes, &screen->app);
    again = help_bytes_show(&bytes, &screen->app);
    oc_app_request(&screen->app, OC_REQ_BASE);
    for (int view = 0; view < oc_n_views; view++) {
        oc_app_view(&screen->app, view);
        for (int id = 0; id < OC_OPTIONS; id++)
            help_bytes_walk(&bytes, &screen->app, (enum oc_option_id)id, VALUES, note, &seen[view]);
    }
    help_bytes_close(&bytes);
    print_message("first frame %ld bytes\n", first);
    assert_true(first > 3000 && first < 9000);
    assert_int_equal(again, 0);
    for (int view = 0; view < oc_n_views; view++) {
        const struct help_change *most = &seen[view].most;
        assert_string_equal(oc_views[view]->title, budgets[view].view);
        print_message("%s: %d changes, %ld bytes on average, %ld at most (%s %s -> %s)\n", budgets[view].view,
                      seen[view].n, seen[view].sum / seen[view].n, most->bytes, oc_option(most->option)->key,
                      most->from, most->to);
        assert_true(seen[view].n > 100);
        assert_true(most->bytes <= budgets[view].most);
        assert_true(seen[view].sum / seen[view].n <= budgets[view].usual);
    }
    help_screen_free(screen);
}

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_sends_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
