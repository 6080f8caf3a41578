/* The evaluator against tests/data/import/bash.txt, and against what is hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "model/import/bash.h"

enum { LINE = 4096 };

/* Undoes \n \t \r \\ and \xHH. */
static size_t unescape(char *text)
{
    size_t n = 0;
    for (const char *at = text; *at; at++) {
        if (*at != '\\') {
            text[n++] = *at;
            continue;
        }
        at++;
        if (*at == 'x') {
            char hex[3] = {at[1], at[2], 0};
            text[n++] = (char)strtol(hex, NULL, 16);
            at += 2;
        } else {
            text[n++] = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at == 'r' ? '\r' : *at;
        }
    }
    text[n] = 0;
    return n;
}

/* All commands of a script as "word@line word@line | ...". */
static void describe(const struct bash *script, char *text, size_t size)
{
    int n, line;
    size_t used = 0;
    const struct bash_command *commands = bash_commands(script, &n);
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        if (commands[i].assignment) continue;
        for (int k = 0; k < commands[i].n; k++) {
            bash_place(script, commands[i].words[k].offset, &line, NULL);
            used += (size_t)snprintf(text + used, size - used, "%s%s@%d",
                                     k      ? " "
                                     : used ? " | "
                                            : "",
                                     commands[i].words[k].text, line);
        }
    }
}

static bool next_line(FILE *file, char *line)
{
    if (!fgets(line, LINE, file)) return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

static void golden(void **state)
{
    (void)state;
    FILE *file = fopen(OOMCAST_SOURCE "/tests/data/import/bash.txt", "r");
    assert_non_null(file);
    char name[LINE], source[LINE], wanted[LINE], got[2 * LINE];
    int cases = 0, failed = 0;
    while (next_line(file, name)) {
        if (!name[0] || name[0] == '#') continue;
        assert_true(next_line(file, source) && next_line(file, wanted));
        size_t size = unescape(source);
        unescape(wanted);
        struct oc_error error;
        struct bash *script = bash_run(source, size, &error);
        assert_non_null(script);
        describe(script, got, sizeof got);
        if (!strcmp(wanted, "@")) wanted[0] = 0; /* no command at all */
        if (strcmp(got, wanted) != 0) {
            print_error("%s:\n  got    %s\n  wanted %s\n", name, got, wanted);
            failed++;
        }
        bash_free(script);
        cases++;
    }
    fclose(file);
    assert_int_equal(failed, 0);
    assert_true(cases >= 50);
}

static void unknown_words_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *script, *why;
    } cases[] = {
        {"run $MICRO", "$MICRO is not set in a.sh"},
        {"A=$MICRO\nB=x${A}\nrun $B", "$MICRO is not set in a.sh"},
        {"run ${NODES}", "$NODES is not set in a.sh"},
        {"run $3", "$3 is an argument of a.sh"},
        {"run ${12}", "$12 is an argument of a.sh"},
        {"run $@", "$@, the arguments of a.sh, are not known"},
        {"run $((NNODES * 8))", "NNODES is not set in a.sh"},
        {"run $((1 / 0))", "$((...)) in a.sh cannot be computed"},
        {"run $(nproc)", "$(nproc) in a.sh is not run"},
        {"run <path>", "<path> in a.sh is left to fill in"},
        {"A=1\nif [ -f x ]; then A=2; fi\nrun $A", "the condition in line 2 of a.sh is not known"},
        {"A=1\nif [ $SIZE = 7B ]; then A=2; fi\nrun $A", "$SIZE is not set in a.sh"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bash *script = bash_run(cases[i].script, strlen(cases[i].script), NULL);
        int n;
        char text[200];
        const struct bash_command *commands = bash_commands(script, &n);
        assert_true(n > 0 && commands[n - 1].n == 2);
        assert_true(commands[n - 1].words[1].unknown);
        assert_string_equal(bash_cause(script, commands[n - 1].words[1].cause, "a.sh", text, sizeof text),
                            cases[i].why);
        bash_free(script);
    }
}

static void places(void **state)
{
    (void)state;
    const char *source = "A=(\n  --x 1\n)\nrun ${A[@]}\n";
    struct bash *script = bash_run(source, strlen(source), NULL);
    int n, line, column;
    const struct bash_command *commands = bash_commands(script, &n);
    bash_place(script, commands[1].words[2].offset, &line, &column);
    assert_int_equal(line, 2);
    assert_int_equal(column, 7);
    struct bash_word word;
    assert_true(bash_variable(script, "A", &word));
    assert_string_equal(word.text, "--x");
    assert_false(bash_variable(script, "B", &word));
    bash_free(script);
}

/* ---- hostile ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Reads a text of any kind within bounds: it ends soon, with a script or with a limit. */
static void survive(const char *text, size_t size)
{
    struct oc_error error = {0};
    double start = seconds();
    struct bash *script = bash_run(text, size, &error);
    if (!script) assert_int_equal(error.code, OC_E_LIMIT);
    bash_free(script);
    assert_true(seconds() - start < 20); /* sanitizers and a busy machine included */
}

static void repeat(const char *unit, size_t times, const char *end)
{
    size_t n = strlen(unit), m = strlen(end);
    char *text = malloc(n * times + m + 1);
    for (size_t i = 0; i < times; i++) memcpy(text + i * n, unit, n);
    memcpy(text + n * times, end, m + 1);
    survive(text, n * times + m);
    free(text);
}

static void deep_nesting(void **state)
{
    (void)state;
    static const char *const units[] = {"$(",
                                        "${a:-",
                                        "$((",
                                        "((",
                                        "(",
                                        "\"$(",
                                        "\"${x:-",
                                        "if true; then ",
                                        "case x in x) ",
                                        "{ ",
                                        "f() { ",
                                        "while true; do ",
                                        "`",
                                        "'",
                                        "\"",
                                        "A=(",
                                        "[[ ( ",
                                        "! ",
                                        "<(",
                                        "a<<X\n",
                                        "${a[",
                                        "$'",
                                        "\\",
                                        "elif ",
                                        "then\n",
                                        "esac\n",
                                        "a=$((a+",
                                        "<a",
                                        "[ ",
                                        "&& ",
                                        ";;",
                                        "--x "};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        repeat(units[i], 20000, "");
        repeat(units[i], 3000, "x\n'\"))}}}]]\nfi\ndone\nesac\n");
    }
}

static void values_that_double(void **state)
{
    (void)state;
    char text[4096] = "X=aaaaaaaaaaaaaaaa\n";
    for (int i = 0; i < 60; i++) strcat(text, "X=\"$X$X\"\n");
    struct oc_error error = {0};
    assert_null(bash_run(text, strlen(text), &error));
    assert_int_equal(error.code, OC_E_LIMIT);
    strcpy(text, "A=(x y)\n");
    for (int i = 0; i < 60; i++) strcat(text, "A+=(\"${A[@]}\")\n");
    assert_null(bash_run(text, strlen(text), &error));
    strcpy(text, "a0=1\n"); /* names that are expressions of names */
    for (int i = 1; i < 60; i++) sprintf(text + strlen(text), "a%d=a%d+a%d+a%d\n", i, i - 1, i - 1, i - 1);
    strcat(text, "run $((a59))\n");
    survive(text, strlen(text));
    strcpy(text, "f0() { :; }\n"); /* functions that call each other */
    for (int i = 1; i < 40; i++) sprintf(text + strlen(text), "f%d() { f%d; f%d; f%d; }\n", i, i - 1, i - 1, i - 1);
    strcat(text, "f39\n");
    survive(text, strlen(text));
    strcpy(text, "f() { f; g; }\ng() { f; g; }\nf\nX=$X$X\nX=${X:-$X}\n");
    survive(text, strlen(text));
}

static void large_inputs(void **state)
{
    (void)state;
    repeat("x", 4 << 20, "");
    repeat("a ", 2 << 20, "");
    repeat("a\n", 2 << 20, "");
    repeat("A=1\n", 1 << 20, "");
    repeat("don't\n", 600000, "");
    repeat("\"a\n", 1 << 20, "");
    repeat("it's a \"test\" (of $x) `y` <z>\n", 130000, "");
    char *text = malloc(4 << 20);
    size_t n = 0;
    for (int i = 0; n < (4 << 20) - 32; i++) n += (size_t)sprintf(text + n, "v%d=%d\n", i, i);
    survive(text, n);
    free(text);
    survive(NULL, 0);
    struct oc_error error;
    assert_null(bash_run("", (4 << 20) + 1, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),       cmocka_unit_test(unknown_words_say_why), cmocka_unit_test(places),
        cmocka_unit_test(deep_nesting), cmocka_unit_test(values_that_double),    cmocka_unit_test(large_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
