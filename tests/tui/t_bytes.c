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

/* The budget of docs/DESIGN.md, 1.5 KB, holds where the same rows are there afterwards. A row that comes, goes or is
 * replaced has to be sent: in the compare view, that of the option that is no longer the base's. */
static const struct {
    const char *view;
    long kept, reworded; /* bytes of the largest change of either kind; 0 = there is none */
    long usual;          /* of the average one */
} budgets[] = {{"Fit", 1050, 1350, 250},   {"Step", 1500, 1800, 330},  {"Pipeline", 700, 650, 150},
               {"Layers", 550, 3600, 600}, {"Compare", 0, 3600, 1000}, {"Lessons", 400, 0, 100}};

struct seen {
    struct help_change most[2]; /* reworded or not */
    long sum;
    int n;
};

static void note(const struct help_change *change, void *user)
{
    struct seen *seen = user;
    struct help_change *most = &seen->most[change->reworded];
    seen->sum += change->bytes;
    seen->n++;
    if (change->bytes > most->bytes) *most = *change;
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
        const struct help_change *most = seen[view].most;
        const long usual = seen[view].sum / seen[view].n;
        assert_string_equal(oc_views[view]->title, budgets[view].view);
        print_message("%s: %d changes, %ld bytes on average; at most %ld with the same rows (%s %s -> %s), %ld with "
                      "others (%s %s -> %s)\n",
                      budgets[view].view, seen[view].n, usual, most[0].bytes, oc_option(most[0].option)->key,
                      most[0].from, most[0].to, most[1].bytes, oc_option(most[1].option)->key, most[1].from,
                      most[1].to);
        assert_true(seen[view].n > 100);
        assert_true(most[0].bytes <= budgets[view].kept);
        assert_true(most[1].bytes <= budgets[view].reworded);
        assert_true(usual <= budgets[view].usual);
    }
    assert_true(seen[0].most[1].bytes > 0 &&
                seen[3].most[1].bytes > 2 * seen[3].most[0].bytes); /* both kinds are met */
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
