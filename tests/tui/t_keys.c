/* The one table of keys: complete, without contradictions, and safe against broken escape sequences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tui/screen/canvas.h"
#include "tui/screen/keys.h"

static void every_key_makes_one_request(void **state)
{
    (void)state;
    for (int i = 0; i < OC_REQUESTS; i++) {
        const struct oc_request_row *row = oc_request_row((enum oc_request)i);
        assert_true(row->keys[0] != 0);
        assert_true(row->help[0] && row->group[0] && row->name[0]);
        for (int k = 0; k < OC_REQUEST_KEYS && row->keys[k]; k++) assert_int_equal(oc_request_of(row->keys[k]), i);
        for (int j = 0; j < i; j++) assert_string_not_equal(row->name, oc_request_row((enum oc_request)j)->name);
    }
    assert_int_equal(oc_request_of('~'), OC_REQUESTS);
    assert_int_equal(oc_request_of(OC_KEY_NONE), OC_REQUESTS);
}

/* A broken arrow key arrives as Esc, [ or O, and a capital letter: none of them may change or leave anything for good.
 */
static void nothing_broken_is_destructive(void **state)
{
    (void)state;
    static const enum oc_request harmless[] = {OC_REQ_CANCEL, OC_REQ_LAST,   OC_REQ_HALVE,     OC_REQ_DOUBLE,
                                               OC_REQ_FOLD,   OC_REQ_UNFOLD, OC_REQ_RESET_ALL, OC_REQ_FIND_PREVIOUS};
    for (int key = 'A'; key <= '['; key++) {
        enum oc_request request = oc_request_of(key);
        bool allowed = request == OC_REQUESTS;
        for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) allowed |= request == harmless[i];
        assert_true(allowed);
    }
    assert_int_equal(oc_request_of(OC_KEY_ESCAPE), OC_REQ_CANCEL);
}

/* Keys that terminals or the line discipline take for themselves. */
static void no_reserved_key_is_used(void **state)
{
    (void)state;
    static const char reserved[] = "SQZJHIMC";
    for (const char *at = reserved; *at; at++) {
        enum oc_request request = oc_request_of(OC_KEY_CTRL(*at));
        bool same_as_named = OC_KEY_CTRL(*at) == OC_KEY_TAB || OC_KEY_CTRL(*at) == OC_KEY_ENTER;
        assert_true(request == OC_REQUESTS || same_as_named);
    }
}

static void names_are_read_back(void **state)
{
    (void)state;
    char text[16];
    static const int keys[] = {OC_KEY_TAB,       OC_KEY_ENTER, OC_KEY_ESCAPE,    OC_KEY_UP,
                               OC_KEY_PAGE_DOWN, ' ',          OC_KEY_CTRL('R'), OC_KEY_DELETE};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(oc_key_find(oc_key_name(keys[i], text)), keys[i]);
    assert_string_equal(oc_key_name('j', text), "j");
    assert_string_equal(oc_key_name(OC_KEY_CTRL('L'), text), "Ctrl-L");
    assert_int_equal(oc_key_find("Hyper"), OC_KEY_NONE);
    assert_int_equal(oc_key_find("Ctrl-"), OC_KEY_NONE);
    char keys_text[64];
    assert_string_equal(oc_request_keys(OC_REQ_NEXT, keys_text, sizeof keys_text), "l Right +");
}

static int columns(const struct oc_hint_item *items, int n)
{
    int width = 0;
    for (int i = 0; i < n; i++) width += (i ? 2 : 0) + oc_text_width(items[i].keys) + 1 + oc_text_width(items[i].word);
    return width;
}

static bool has_word(const struct oc_hint_item *items, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (strcmp(items[i].word, word) == 0) return true;
    return false;
}

static void hints_fit_and_help_is_never_left_out(void **state)
{
    (void)state;
    struct oc_hint_item items[OC_HINTS_MAX];
    int before = 0;
    for (int width = 0; width < 200; width++) {
        int n = oc_hint_row(width, NULL, items);
        assert_true(columns(items, n) <= width);
        assert_true(n >= before);
        if (width >= 15) assert_true(has_word(items, n, "help") && has_word(items, n, "quit"));
        before = n;
    }
    oc_hint_row(78, NULL, items);
    assert_string_equal(items[0].keys, "jk");
    assert_string_equal(items[1].keys, "hl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_makes_one_request),
        cmocka_unit_test(nothing_broken_is_destructive),
        cmocka_unit_test(no_reserved_key_is_used),
        cmocka_unit_test(names_are_read_back),
        cmocka_unit_test(hints_fit_and_help_is_never_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
