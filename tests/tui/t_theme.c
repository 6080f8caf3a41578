/* Themes: the built-in one is whole and readable, and a wrong one says what and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "help_fake.h"

static void the_built_in_theme_is_whole(void **state)
{
    (void)state;
    struct oc_theme theme = oc_fake_theme();
    for (int i = 0; i < OC_CLASSES; i++) {
        assert_int_equal(theme.classes[i].letter, oc_class_letter((enum oc_class)i));
        assert_true(theme.classes[i].colour > 0 && theme.classes[i].text > 0);
        for (int j = 0; j < i; j++) {
            const struct oc_colour *a = &theme.colours[theme.classes[i].colour],
                                   *b = &theme.colours[theme.classes[j].colour];
            assert_true(a->xterm != b->xterm && a->ansi != b->ansi);
        }
    }
    assert_true(theme.roles[OC_ROLE_BAD].attr & OC_ATTR_REVERSE); /* over capacity is no hue */
}

static double linear(uint8_t value)
{
    double v = value / 255.0;
    return v <= 0.03928 ? v / 12.92 : v * v * v * 0.305306011 + v * v * 0.682171111 + v * 0.012522878;
}

static double luminance(const struct oc_colour *c)
{
    return 0.2126 * linear(c->red) + 0.7152 * linear(c->green) + 0.0722 * linear(c->blue);
}

/* WCAG contrast of the text on each class's fill, and of basic colours: never the same on itself. */
static void text_is_readable_on_every_fill(void **state)
{
    (void)state;
    struct oc_theme theme = oc_fake_theme();
    for (int i = 0; i < OC_CLASSES; i++) {
        const struct oc_colour *fill = &theme.colours[theme.classes[i].colour],
                               *text = &theme.colours[theme.classes[i].text];
        double a = luminance(fill) + 0.05, b = luminance(text) + 0.05;
        assert_true((a > b ? a / b : b / a) >= 4.4);
        assert_true(fill->ansi != text->ansi);
        assert_true(fill->xterm != text->xterm);
    }
}

static void assert_error(const char *text, const char *message, int line, int column)
{
    struct oc_theme theme = oc_fake_theme(), before = theme;
    struct oc_error error = {0};
    assert_false(oc_theme_parse(&theme, "my.json", text, strlen(text), &error));
    if (!strstr(error.message, message)) fail_msg("\"%s\" does not say \"%s\"", error.message, message);
    assert_string_equal(error.file, "my.json");
    if (error.line != line || error.column != column)
        fail_msg("\"%s\" is placed at %d:%d, not %d:%d", error.message, error.line, error.column, line, column);
    assert_memory_equal(&theme, &before, sizeof theme);
}

static void errors_say_what_and_where(void **state)
{
    (void)state;
    assert_error("", "not a JSON object", 1, 1);
    assert_error("[1]", "not a JSON object", 1, 4);
    assert_error("{\"theme\": 1,\n \"name\": }", "not a JSON object", 2, 10);
    assert_error("{\"theme\": 1} x", "not a JSON object", 1, 13);
    assert_error("{\"name\": \"x\"}", "not a theme", 1, 1);
    assert_error("{\"theme\": 2}", "not a theme", 1, 1);
    assert_error("{\"theme\": 1,\n\"colour\": {}}", "\"colour\" is not a key of a theme", 2, 1);
    assert_error("{\"theme\": 1, \"palette\": 3}", "must be an object", 1, 14);
    assert_error("{\"theme\": 1, \"palette\": {\"a\": [\"#12345\", 1, \"red\"]}}",
                 "\"#12345\" is not written as #rrggbb", 1, 32);
    assert_error("{\"theme\": 1, \"palette\": {\"a\": [\"#12345g\", 1, \"red\"]}}", "is not written as #rrggbb", 1, 32);
    assert_error("{\"theme\": 1, \"palette\": {\"a\": [\"#123456\", 256, \"red\"]}}", "from 0 to 255", 1, 26);
    assert_error("{\"theme\": 1, \"palette\": {\"a\": [\"#123456\", 1.5, \"red\"]}}", "from 0 to 255", 1, 26);
    assert_error("{\"theme\": 1, \"palette\": {\"a\": [\"#123456\", 1, \"pink\"]}}", "8 basic colours", 1, 46);
    assert_error("{\"theme\": 1, \"palette\": {\"a\": [\"#123456\"]}}", "is not a colour", 1, 26);
    assert_error("{\"theme\": 1, \"palette\": {\"default\": [\"#123456\", 1, \"red\"]}}", "cannot be defined", 1, 26);
    assert_error("{\"theme\": 1, \"class\": {\"weight\": {}}}", "not a class", 1, 24);
    assert_error("{\"theme\": 1, \"class\": {\"weights\": {\"color\": \"nosuch\"}}}", "not in the palette", 1, 45);
    assert_error("{\"theme\": 1, \"class\": {\"weights\": {\"hue\": 3}}}", "not a key of a class", 1, 36);
    assert_error("{\"theme\": 1, \"class\": {\"weights\": {\"letter\": \"ww\"}}}", "one capital letter", 1, 36);
    assert_error("{\"theme\": 1, \"class\": {\"weights\": {\"letter\": \"M\"}}}", "letter of another class", 0, 0);
    assert_error("{\"theme\": 1, \"ui\": {\"focuss\": {}}}", "not a role", 1, 21);
    assert_error("{\"theme\": 1, \"ui\": {\"focus\": {\"attr\": [\"blink\"]}}}", "not an attribute", 1, 40);
    assert_error("{\"theme\": 1, \"ui\": {\"focus\": {\"attr\": \"bold\"}}}", "must be a list", 1, 31);
    assert_error("{\"theme\": 1, \"ui\": {\"focus\": {\"fg\": 7}}}", "must name a colour", 1, 31);
    assert_error("{\"theme\": 1, \"ui\": {\"focus\": []}}", "must be an object", 1, 21);
}

static void a_theme_states_only_what_differs(void **state)
{
    (void)state;
    static const char text[] =
        "{\"theme\": 1, \"name\": \"mine\", \"palette\": {\"rose\": [\"#ff8080\", 210, \"red\"]},"
        "\"class\": {\"weights\": {\"color\": \"rose\"}}, \"ui\": {\"focus\": {\"attr\": [\"bold\", \"underline\"]}}}";
    struct oc_theme theme = oc_fake_theme(), before = theme;
    assert_true(oc_theme_parse(&theme, "my.json", text, sizeof text - 1, NULL));
    assert_string_equal(theme.name, "mine");
    assert_int_equal(theme.colours[theme.classes[OC_WEIGHTS].colour].xterm, 210);
    assert_int_equal(theme.classes[OC_WEIGHTS].text, before.classes[OC_WEIGHTS].text);
    assert_int_equal(theme.roles[OC_ROLE_FOCUS].attr, OC_ATTR_BOLD | OC_ATTR_UNDERLINE);
    assert_int_equal(theme.roles[OC_ROLE_FOCUS].bg, 0);
    assert_memory_equal(&theme.roles[OC_ROLE_OK], &before.roles[OC_ROLE_OK], sizeof before.roles[0]);
}

static void a_colour_too_many_is_refused(void **state)
{
    (void)state;
    char text[4096];
    int used = snprintf(text, sizeof text, "{\"theme\": 1, \"palette\": {");
    for (int i = 0; i < OC_MAX_COLOURS; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s\"c%d\": [\"#000000\", 0, \"black\"]",
                         i ? ", " : "", i);
    snprintf(text + used, sizeof text - (size_t)used, "}}");
    struct oc_theme theme = oc_fake_theme();
    struct oc_error error;
    assert_false(oc_theme_parse(&theme, "my.json", text, strlen(text), &error));
    assert_non_null(strstr(error.message, "one colour too many"));
}

static void files_that_cannot_be_read_are_errors(void **state)
{
    (void)state;
    struct oc_theme theme;
    struct oc_error error;
    assert_false(oc_theme_load(&theme, "/nonexistent/theme.json", &error));
    assert_int_equal(error.code, OC_E_IO);
    assert_false(oc_theme_load(&theme, OOMCAST_SOURCE, &error)); /* a directory */
    assert_int_equal(error.code, OC_E_IO);
    assert_true(oc_theme_load(&theme, OOMCAST_SOURCE "/themes/default.json", &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_built_in_theme_is_whole),  cmocka_unit_test(text_is_readable_on_every_fill),
        cmocka_unit_test(errors_say_what_and_where),    cmocka_unit_test(a_theme_states_only_what_differs),
        cmocka_unit_test(a_colour_too_many_is_refused), cmocka_unit_test(files_that_cannot_be_read_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
