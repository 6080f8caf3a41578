/* The report as CSV, Markdown and SVG, of a run made by hand (help_report.c) whose figures are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_report.h"

typedef void (*writer)(const struct oc_report *report, struct oc_buffer *out);

/* The report as text; the caller frees it. */
static char *write_report(writer write, void (*change)(struct help_run *run))
{
    struct help_run *run = help_run();
    struct oc_buffer out = {0};
    if (change) change(run);
    write(&run->report, &out);
    assert_false(out.failed);
    help_run_free(run);
    return out.data;
}

static void assert_part(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* ---- CSV ---- */

static void without_ledgers(struct help_run *run)
{
    run->report.ledgers = NULL;
}

/* Fields of the line at `text`; quotes may hold commas and doubled quotes. Returns where the next line begins. */
static const char *count_fields(const char *text, int *n)
{
    bool quoted = false;
    for (*n = 1; *text && (quoted || *text != '\n'); text++) {
        if (*text == '"') quoted = !quoted;
        if (*text == ',' && !quoted) ++*n;
    }
    assert_false(quoted);
    return *text ? text + 1 : text;
}

static void assert_rectangular(const char *text, int rows)
{
    int first, n, lines = 0;
    count_fields(text, &first);
    for (; *text; lines++) {
        text = count_fields(text, &n);
        assert_int_equal(n, first);
    }
    assert_int_equal(lines, rows);
}

static void csv_of_moments(void **state)
{
    (void)state;
    char *text = write_report(oc_report_csv, without_ledgers);
    assert_part(text, "stage,ranks,params,iteration,moment,in,where,requested,allocated,weights,");
    assert_rectangular(text, 1 + 8 + 7 + 1); /* the head, init and seven moments, the seven again, the peak */
    assert_part(text, "0,2,1000000,steady,peak,");
    assert_part(text, ",25000000,26000000,27000003,40000000\n");
    assert_part(text, "\"layer 3, micro-batch 1\"");
    free(text);
}

static void csv_of_entries(void **state)
{
    (void)state;
    char *text = write_report(oc_report_csv, NULL);
    assert_part(text, "stage,class,name,copy,elements,dtype,bytes,count,birth,death,at_peak,why,source\n");
    assert_part(text, "0,activations,layers.saved,,1500000,fp16,3000001,4,forward,backward,");
    assert_part(text, ",\"a \"\"rule\"\"\",tests\n");
    assert_rectangular(text, 1 + 5 + 1); /* the head, five entries, the rounding */
    free(text);
}

/* ---- Markdown ---- */

static void with_marks(struct help_run *run)
{
    snprintf(run->reason.sentence[0], sizeof run->reason.sentence[0], "a | b, *c* and <d>");
}

static void markdown(void **state)
{
    (void)state;
    char *text = write_report(oc_report_markdown, NULL);
    assert_part(text, "# oomcast " OOMCAST_VERSION ": run.sh\n");
    assert_part(text, "FITS: up to");
    assert_part(text, "| allocated, GB | forward |");
    assert_part(text, "after\\_step");
    assert_part(text, "## Why\n\n- Half of it is activations.\n");
    assert_part(text, "## Entries\n");
    assert_part(text, "layers.saved | fp16 | 4 | a \"rule\" |");
    assert_part(text, "- batch.micro: $MBS is not set in run.sh\n");
    assert_null(strstr(text, "answered by --set since"));
    assert_part(text, "- --use-cpu-initialization\n");
    assert_part(text, "`gpu=h100-80g`");
    free(text);
    text = write_report(oc_report_markdown, with_marks);
    assert_part(text, "a \\| b, \\*c\\* and \\<d\\>");
    free(text);
}

/* Every row of a table has as many cells as its head. */
static void markdown_tables_are_rectangular(void **state)
{
    (void)state;
    char *text = write_report(oc_report_markdown, with_marks);
    int cells = 0, tables = 0;
    for (const char *line = text; *line;) {
        const size_t size = strcspn(line, "\n");
        int bars = 0;
        for (size_t i = 0; i < size; i++) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
        if (*line == '|') {
            tables += !cells;
            if (!cells) cells = bars;
            assert_int_equal(bars, cells);
        } else {
            cells = 0;
        }
        line += size + (line[size] == '\n');
    }
    assert_true(tables >= 2);
    free(text);
}

/* ---- SVG ---- */

/* Every element that opens closes, in order; no bare markup in text. */
static void assert_well_formed(const char *text)
{
    char open[16][16];
    int depth = 0;
    for (const char *at = text; (at = strchr(at, '<'));) {
        const char *end = strchr(++at, '>');
        char name[16] = "";
        assert_non_null(end);
        sscanf(*at == '/' ? at + 1 : at, "%15[a-z]", name);
        if (*at == '/') {
            assert_true(depth > 0);
            assert_string_equal(open[--depth], name);
        } else if (end[-1] != '/') {
            assert_true(depth < 16);
            strcpy(open[depth++], name);
        }
        at = end;
    }
    assert_int_equal(depth, 0);
    for (const char *at = text; (at = strchr(at, '&')); at++)
        assert_true(!strncmp(at, "&amp;", 5) || !strncmp(at, "&lt;", 4) || !strncmp(at, "&gt;", 4));
}

static void with_many_stages(struct help_run *run)
{
    for (int i = 1; i < 70; i++) run->answer.ranks[i] = run->answer.ranks[0];
    run->answer.n_ranks = 70;
    snprintf(run->answer.plan.c.gpu, OC_NAME_MAX, "a<b>&c");
}

static void svg(void **state)
{
    (void)state;
    char *text = write_report(oc_report_svg, NULL);
    assert_well_formed(text);
    assert_part(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    assert_part(text, "FITS: up to");
    assert_part(text, ">stage 0</text>");
    assert_part(text, "capacity");
    assert_part(text, "A activations");
    free(text);
    text = write_report(oc_report_svg, with_many_stages);
    assert_well_formed(text);
    assert_part(text, "and 6 more stages");
    assert_part(text, "a&lt;b&gt;&amp;c");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_of_moments),
        cmocka_unit_test(csv_of_entries),
        cmocka_unit_test(markdown),
        cmocka_unit_test(markdown_tables_are_rectangular),
        cmocka_unit_test(svg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
