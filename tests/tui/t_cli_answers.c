/* advise, compare and sweep through the real program: what they say, in 80 columns of ASCII, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help_cli.h"

#define EXAMPLE OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh"
#define SHARED  OOMCAST_SOURCE "/examples/llama3-8b-adam-distopt-bf16.sh"

static void assert_part(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* 80 columns, ASCII, no blanks at the end of a line, nothing on standard error. */
static void assert_tidy(const struct help_output *run)
{
    if (run->status || run->err[0]) fail_msg("exit status %d: %s", run->status, run->err);
    for (const char *line = run->out; *line;) {
        const size_t size = strcspn(line, "\n");
        if (size > 80) fail_msg("%zu columns: %.*s", size, (int)size, line);
        for (size_t i = 0; i < size; i++)
            if ((unsigned char)line[i] < ' ' || (unsigned char)line[i] > '~')
                fail_msg("not ASCII: %.*s", (int)size, line);
        line += size + (line[size] == '\n');
    }
}

static void assert_refused(struct help_output run, const char *why)
{
    assert_int_equal(run.status, 2);
    assert_string_equal(run.out, "");
    assert_part(run.err, why);
    help_cli_free(&run);
}

/* ---- advise ---- */

static void advise_what_makes_it_fit(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("advise", "--set", "framework=megatron", "--set", "model.name=llama-3-70b",
                                      "--set", "precision=bf16", "--set", "tp=8", "--set", "pp=4", "--set",
                                      "batch.seq=8192", "--set", "batch.accum=16", "--set", "world=64");
    assert_tidy(&run);
    assert_part(run.out, "DOES NOT FIT");
    assert_part(run.out, "Single changes that make it fit");
    assert_part(run.out, "parallel.sp false -> true");
    assert_part(run.out, "+32.9 %");
    help_cli_free(&run);
}

static void advise_several_changes(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("advise", "--set", "framework=megatron", "--set", "model.name=llama-3-8b",
                                      "--set", "tp=2", "--set", "batch.micro=4", "--set", "batch.seq=8192");
    assert_tidy(&run);
    assert_part(run.out, "No single change suffices");
    assert_part(run.out, "With more GPUs");
    help_cli_free(&run);
}

static void advise_what_could_be_taken_back(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("advise", EXAMPLE, "--units", "gb");
    assert_tidy(&run);
    assert_part(run.out, "What could be taken back");
    assert_part(run.out, "recompute full -> none");
    help_cli_free(&run);
}

static void advise_where_nothing_helps(void **state)
{
    (void)state;
    struct help_output run =
        HELP_CLI("advise", "--set", "framework=pytorch", "--set", "model.name=llama-3-70b", "--set", "gpu=t4");
    assert_tidy(&run);
    assert_part(run.out, "do not make it fit. The nearest to it:");
    help_cli_free(&run);
    assert_refused(HELP_CLI("advise", "--set", "gpu=none"), "no GPU is named");
    assert_refused(HELP_CLI("advise", "no-such-file.sh"), "no-such-file.sh");
}

/* ---- compare ---- */

static void compare_one_file_with_itself_changed(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("compare", EXAMPLE, "--against", "precision=fp32");
    assert_tidy(&run);
    assert_part(run.out, "precision                              fp16           fp32             -2.33");
    assert_part(run.out, "only in A: param.detach().clone().float():");
    assert_part(run.out, "M master              3.50      0.00     +3.50");
    assert_part(run.out, "(--entries lists them)");
    help_cli_free(&run);
    run = HELP_CLI("compare", EXAMPLE, "--set", "precision=bf16", "--against", "precision=fp32", "--entries",
                   "--moment", "idle", "--units", "bytes");
    assert_tidy(&run);
    assert_part(run.out, "idle, B");
    assert_null(strstr(run.out, "(--entries lists them)"));
    help_cli_free(&run);
}

static void compare_two_files(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("compare", EXAMPLE, SHARED);
    assert_tidy(&run);
    assert_part(run.out, "parallel.tp                               8              2");
    assert_part(run.out, "tp 8 against 2");
    help_cli_free(&run);
    run = HELP_CLI("compare", EXAMPLE);
    assert_tidy(&run);
    assert_part(run.out, "No option differs.");
    assert_part(run.out, "Every entry takes the same.");
    help_cli_free(&run);
}

static void compare_refuses(void **state)
{
    (void)state;
    assert_refused(HELP_CLI("compare", EXAMPLE, SHARED, EXAMPLE), "one file or two");
    assert_refused(HELP_CLI("compare", "-"), "standard input can be read once");
    assert_refused(HELP_CLI("compare", EXAMPLE, "--against", "parallel.tp=3"), "parallel.world=8");
    assert_refused(HELP_CLI("compare", EXAMPLE, "--moment", "lunch"), "lunch");
    assert_refused(HELP_CLI("report", EXAMPLE, "--against", "tp=4"), "does not take --against");
}

/* ---- sweep ---- */

static void sweep_one_option(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("sweep", EXAMPLE, "tp=1,3,8");
    assert_tidy(&run);
    assert_part(run.out, "  3                                  -  parallel.world=8 is no multiple");
    assert_part(run.out, "14.16");
    assert_part(run.out, "114.45!");
    assert_part(run.out, "! does not fit");
    assert_part(run.out, "- is refused");
    help_cli_free(&run);
}

static void sweep_two_options(void **state)
{
    (void)state;
    struct help_output run =
        HELP_CLI("sweep", EXAMPLE, "batch.micro=1,2,4,8", "precision=fp32,fp16,bf16,pure-bf16,fp8,amp-bf16,amp-fp16");
    assert_tidy(&run);
    assert_part(run.out, "batch.micro down, precision across");
    assert_part(run.out, "14.16");
    help_cli_free(&run);
    run = HELP_CLI("sweep", "recompute.modules=core_attn,core_attn+mlp", "--set", "framework=megatron", "--set",
                   "model.name=llama-3-8b", "--set", "tp=8", "--set", "recompute=selective");
    assert_tidy(&run);
    assert_part(run.out, "core_attn,mlp ");
    help_cli_free(&run);
}

static void sweep_refuses(void **state)
{
    (void)state;
    assert_refused(HELP_CLI("sweep", EXAMPLE), "needs the values of an option");
    assert_refused(HELP_CLI("sweep", EXAMPLE, "tp=1", "pp=1", "cp=1"), "one option or two");
    assert_refused(HELP_CLI("sweep", EXAMPLE, "tp=1", "parallel.tp=1"), "stands twice");
    assert_refused(HELP_CLI("sweep", EXAMPLE, "tp=1,x"), "x");
    assert_refused(HELP_CLI("sweep", EXAMPLE, "nonsense=1"), "nonsense");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advise_what_makes_it_fit),
        cmocka_unit_test(advise_several_changes),
        cmocka_unit_test(advise_what_could_be_taken_back),
        cmocka_unit_test(advise_where_nothing_helps),
        cmocka_unit_test(compare_one_file_with_itself_changed),
        cmocka_unit_test(compare_two_files),
        cmocka_unit_test(compare_refuses),
        cmocka_unit_test(sweep_one_option),
        cmocka_unit_test(sweep_two_options),
        cmocka_unit_test(sweep_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
