/* Themes: the built-in one is whole and readable, and a wrong one says what and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "help_fake.h"
#include "tui/screen/theme_check.h"

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

/* Every theme that is built in: text on the fills can be read, fills that touch are told apart by everyone, words stand
 * out, and over capacity is no hue. */
static void built_in_themes_are_for_everyone(void **state)
{
    (void)state;
    static char names[32][256];
    int n = oc_theme_names(names, 32), seen = 0;
    static const char *const expected[] = {"default", "light", "high-contrast", "colour-blind", "monochrome"};
    for (int i = 0; i < n; i++) {
        struct oc_theme theme;
        struct oc_error error = {0};
        for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) seen += strcmp(names[i], expected[k]) == 0;
        if (!oc_theme_open(&theme, names[i], &error)) fail_msg("%s: %s", names[i], error.message);
        assert_string_equal(theme.name, names[i]);
        assert_true(theme.roles[OC_ROLE_BAD].attr & OC_ATTR_REVERSE);
        assert_true(theme.light == (strcmp(names[i], "light") == 0));
        assert_true(theme.mono == (strcmp(names[i], "monochrome") == 0));
        static const enum oc_depth depths[] = {OC_DEPTH_RGB, OC_DEPTH_256};
        for (int d = 0; d < 2; d++) {
            struct oc_theme_check check;
            oc_theme_measure(&theme, depths[d], &check);
            if (check.text_contrast < 4 || check.adjacent < 45 || check.pairs < 22 || check.ground_contrast < 1.7 ||
                check.ui_contrast < 4.5 || !check.good)
                fail_msg("%s: text %.1f, adjacent %.1f, pairs %.1f, ground %.1f, words %.1f", names[i],
                         check.text_contrast, check.adjacent, check.pairs, check.ground_contrast, check.ui_contrast);
        }
    }
    assert_int_equal(seen, 5);
}

/* Figures that can be looked up: black on white is 21 to 1; red against green is far apart for most, and near for a
 * deuteranope; blue and green are what a tritanope mixes up. */
static void contrast_and_distance_are_those_of_the_books(void **state)
{
    (void)state;
    const struct oc_rgb black = {0, 0, 0}, white = {255, 255, 255}, grey = {119, 119, 119}, red = {255, 0, 0},
                        green = {0, 255, 0};
    assert_true(oc_contrast(black, white) > 20.99 && oc_contrast(black, white) < 21.01);
    assert_true(oc_contrast(grey, white) > 4.47 && oc_contrast(grey, white) < 4.49); /* #777 on white, WCAG's example */
    assert_true(oc_distance(black, white, OC_VISION_NORMAL) > 99.9 &&
                oc_distance(black, white, OC_VISION_NORMAL) < 100.1);
    double normal = oc_distance(red, green, OC_VISION_NORMAL);
    assert_true(normal > 170 && normal < 171); /* L*a*b* of red 53 80 67, of green 88 -86 83 */
    for (int vision = 0; vision < OC_VISIONS; vision++)
        assert_true(oc_distance(red, red, (enum oc_vision)vision) < 1e-9);
    assert_true(oc_distance(red, green, OC_VISION_DEUTAN) < normal / 2);
    assert_true(oc_distance(red, green, OC_VISION_TRITAN) > normal / 2);
}

/* The user's folder: its themes are found by name, and go before built-in ones of the same name. */
static void users_themes_are_found(void **state)
{
    (void)state;
    char folder[] = "/tmp/oomcast-themes-XXXXXX", path[128], names[32][256];
    struct oc_theme theme;
    struct oc_error error = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/oomcast", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/oomcast/themes", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/oomcast/themes/mine.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(
        "{\"theme\": 1, \"name\": \"mine\", \"inherits\": \"light\", \"ui\": {\"delta\": {\"attr\": [\"underline\"]}}}",
        file);
    fclose(file);
    setenv("XDG_CONFIG_HOME", folder, 1);
    int n = oc_theme_names(names, 32);
    assert_string_equal(names[n - 1], "mine");
    assert_true(oc_theme_open(&theme, "mine", &error));
    assert_true(theme.light);
    assert_int_equal(theme.roles[OC_ROLE_DELTA_UP].attr, OC_ATTR_UNDERLINE); /* a prefix stands for both */
    assert_int_equal(theme.roles[OC_ROLE_DELTA_DOWN].attr, OC_ATTR_UNDERLINE);
    assert_true(oc_theme_open(&theme, path, &error)); /* by its path as well */
    assert_false(oc_theme_open(&theme, "nosuch", &error));
    assert_non_null(strstr(error.message, "no theme nosuch"));
    unsetenv("XDG_CONFIG_HOME");
    unlink(path);
    for (int i = 0; i < 3; i++) { /* mine.json's folder, and the two above it */
        *strrchr(path, '/') = '\0';
        rmdir(path);
    }
}

static void roles_take_after_the_role_before_the_dot(void **state)
{
    (void)state;
    static const char text[] = "{\"theme\": 1, \"ui\": {\"hint.key\": {\"attr\": [\"bold\"]}, \"hint\": {\"attr\": "
                               "[\"underline\"]}, \"focus\": {\"attr\": [\"reverse\"]}}}";
    struct oc_theme theme = oc_fake_theme();
    assert_true(oc_theme_parse(&theme, "my.json", text, sizeof text - 1, NULL));
    assert_int_equal(theme.roles[OC_ROLE_HINT].attr, OC_ATTR_UNDERLINE);
    assert_int_equal(theme.roles[OC_ROLE_HINT_KEY].attr, OC_ATTR_BOLD); /* stated: it keeps its own */
    assert_int_equal(theme.roles[OC_ROLE_FOCUS_OUT].attr, OC_ATTR_REVERSE);
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
    assert_error("{\"theme\": 1, \"inherits\": \"nosuch\"}", "must name a theme that is built in", 1, 14);
    assert_error("{\"theme\": 1, \"background\": \"blue\"}", "must be dark or light", 1, 14);
    assert_error("{\"theme\": 1, \"monochrome\": 1}", "must be true or false", 1, 14);
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
        cmocka_unit_test(the_built_in_theme_is_whole),
        cmocka_unit_test(built_in_themes_are_for_everyone),
        cmocka_unit_test(contrast_and_distance_are_those_of_the_books),
        cmocka_unit_test(users_themes_are_found),
        cmocka_unit_test(roles_take_after_the_role_before_the_dot),
        cmocka_unit_test(errors_say_what_and_where),
        cmocka_unit_test(a_theme_states_only_what_differs),
        cmocka_unit_test(a_colour_too_many_is_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
