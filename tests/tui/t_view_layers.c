/* The layers view on the real model: what it lists adds up, and can be sorted, filtered, grouped and opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_screen.h"
#include "tui/views/layers.h"

static struct help_screen *open_view(int width, int height)
{
    struct help_screen *screen =
        HELP_SCREEN(width, height, "framework=megatron", "model.name=llama-3-8b", "precision=bf16", "tp=4", "sp=true",
                    "pp=2", "batch.seq=4096", "batch.accum=4", "optimizer=adam");
    help_keys(screen, "4");
    return screen;
}

static struct oc_layers_state *state_of(struct help_screen *screen)
{
    return oc_view_state(&screen->app, &oc_view_layers);
}

static const struct oc_entry *entry_at(struct help_screen *screen, int row)
{
    const struct oc_layers_state *state = state_of(screen);
    return oc_layers_entry(state, oc_app_ledger(&screen->app, screen->app.answer, oc_app_stage(&screen->app)),
                           state->rows[row].entry);
}

static uint64_t sum_of(const struct oc_layers_state *state)
{
    uint64_t sum = 0;
    for (int i = 0; i < state->n_rows; i++)
        if (state->rows[i].entry >= 0) sum += state->rows[i].bytes;
    return sum;
}

/* At the peak and at every other moment, on both stages, every entry together is what the fit view says. */
static void entries_add_up(void **state)
{
    (void)state;
    struct help_screen *screen = open_view(160, 48);
    struct oc_layers_state *layers = state_of(screen);
    for (int stage = 0; stage < 2; stage++) {
        const struct oc_rank *rank = &screen->app.answer->ranks[stage];
        screen->app.stage = stage;
        help_keys(screen, "k");
        assert_int_equal(layers->moment, OC_AT_PEAK);
        assert_int_equal(sum_of(layers), rank->peak.allocated);
        assert_int_equal(layers->bytes, rank->peak.allocated);
        for (help_keys(screen, "n"); layers->moment != OC_AT_PEAK; help_keys(screen, "n"))
            assert_int_equal(layers->alive.allocated, rank->moments[OC_STEADY][layers->moment].allocated);
    }
    help_keys(screen, "N");
    assert_int_equal(layers->moment, OC_M_IDLE);
    help_screen_free(screen);
}

static void sorted(void **state)
{
    (void)state;
    struct help_screen *screen = open_view(160, 48);
    const struct oc_layers_state *layers = state_of(screen);
    for (int i = 1; i < layers->n_rows; i++) assert_true(layers->rows[i - 1].bytes >= layers->rows[i].bytes);
    help_keys(screen, "l");
    for (int i = 1; i < layers->n_rows; i++) assert_true(entry_at(screen, i - 1)->class <= entry_at(screen, i)->class);
    help_keys(screen, "l");
    for (int i = 1; i < layers->n_rows; i++)
        assert_true(strcmp(entry_at(screen, i - 1)->name, entry_at(screen, i)->name) <= 0);
    help_drawn(screen, "by name", true);
    help_keys(screen, "l");
    assert_int_equal(layers->sort, OC_SORT_SIZE);
    help_screen_free(screen);
}

static void the_cursor_stays_on_its_entry(void **state)
{
    (void)state;
    struct help_screen *screen = open_view(160, 48);
    const struct oc_layers_state *layers = state_of(screen);
    help_keys(screen, "jjj");
    const int entry = layers->rows[layers->focus].entry;
    help_keys(screen, "llL");
    assert_int_equal(layers->rows[layers->focus].entry, entry);
    help_keys(screen, "g");
    assert_int_equal(layers->focus, 0);
    help_keys(screen, "G");
    assert_int_equal(layers->focus, layers->n_rows - 1);
    help_screen_free(screen);
}

static void grouped(void **state)
{
    (void)state;
    struct help_screen *screen = open_view(160, 48);
    const struct oc_layers_state *layers = state_of(screen);
    const uint64_t whole = screen->app.answer->ranks[oc_app_stage(&screen->app)].peak.allocated;
    help_keys(screen, "L");
    uint64_t headings = 0, members = 0;
    for (int i = 0; i < layers->n_rows; i++) {
        if (layers->rows[i].entry >= 0) continue;
        const struct oc_rank *rank = &screen->app.answer->ranks[oc_app_stage(&screen->app)];
        assert_int_equal(layers->rows[i].bytes, rank->peak.classes[layers->rows[i].class]);
        headings += layers->rows[i].bytes;
        members += (uint64_t)layers->rows[i].members;
    }
    assert_int_equal(headings, whole);
    assert_int_equal(members, layers->n_entries);
    help_keys(screen, "L");
    help_drawn(screen, "layers.mlp, ", true);
    help_drawn(screen, "in each part", true);
    help_keys(screen, "L");
    assert_int_equal(layers->n_rows, layers->n_entries);
    help_screen_free(screen);
}

static void filtered(void **state)
{
    (void)state;
    struct help_screen *screen = open_view(160, 48);
    const struct oc_layers_state *layers = state_of(screen);
    const int all = layers->n_entries;
    help_keys(screen, "/FC1 grad");
    assert_true(layers->n_entries > 0 && layers->n_entries < all); /* while it is typed */
    for (int i = 0; i < layers->n_rows; i++) assert_non_null(strstr(entry_at(screen, i)->name, "fc1"));
    help_keys(screen, "\n");
    help_drawn(screen, "with \"FC1 grad\"", true);
    help_keys(screen, "\033");
    assert_int_equal(layers->n_entries, all);
    help_keys(screen, "/no such thing\n");
    help_drawn(screen, "no entry has \"no such thing\" in it", true);
    help_keys(screen, "jkG\n/\033");
    assert_int_equal(layers->n_entries, all);
    help_screen_free(screen);
}

static void what_is_not_alive_is_left_out(void **state)
{
    (void)state;
    struct help_screen *screen = open_view(160, 48);
    const struct oc_layers_state *layers = state_of(screen);
    const int alive = layers->n_entries, hidden = layers->n_hidden;
    assert_true(hidden > 0);
    help_keys(screen, " ");
    assert_int_equal(layers->n_entries, alive + hidden);
    assert_int_equal(layers->n_hidden, 0);
    help_screen_free(screen);
}

static void opened(void **state)
{
    (void)state;
    struct help_screen *screen = open_view(80, 24);
    help_keys(screen, "/master\n"); /* a word of the class */
    help_drawn(screen, "param.detach()", true);
    help_drawn(screen, "Source: ", false);
    help_keys(screen, "\n");
    help_drawn(screen, "Source: ", true);
    help_drawn(screen, " B (fp32)", true);
    help_keys(screen, "\033");
    help_drawn(screen, "Source: ", false);
    help_screen_free(screen);
}

/* Any keys in any order at any size. */
static void keys_at_random(void **state)
{
    (void)state;
    static const char letters[] = "jkhlHLnN /gG[]\n\033fx q4b5";
    uint64_t seed = 5;
    struct help_screen *screen = open_view(80, 24);
    for (int i = 0; i < 3000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (seed >> 60 == 0)
            assert_true(oc_canvas_resize(&screen->canvas, 40 + (int)(seed >> 40 & 127), 10 + (int)(seed >> 50 & 63)));
        const char key[2] = {letters[(seed >> 33) % (sizeof letters - 1)], '\0'};
        help_keys(screen, key);
        screen->app.quit = false;
    }
    help_screen_free(screen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_add_up),
        cmocka_unit_test(sorted),
        cmocka_unit_test(the_cursor_stays_on_its_entry),
        cmocka_unit_test(grouped),
        cmocka_unit_test(filtered),
        cmocka_unit_test(what_is_not_alive_is_left_out),
        cmocka_unit_test(opened),
        cmocka_unit_test(keys_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
