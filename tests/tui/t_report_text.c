/* The report for people: plain ASCII at 80 columns, units and counters named, nothing left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "help_report.h"

static char *text_of(const struct help_run *run)
{
    struct oc_buffer out = {0};
    oc_report_text(&run->report, &out);
    assert_false(out.failed);
    return out.data;
}

/* Whether `part` is in `text`, wherever its lines were broken. */
static bool has(const char *text, const char *part)
{
    char *flat = malloc(strlen(text) + 1);
    size_t n = 0;
    assert_non_null(flat);
    for (const char *c = text; *c; c++) {
        const bool space = *c == ' ' || *c == '\n';
        if (!space)
            flat[n++] = *c;
        else if (n && flat[n - 1] != ' ')
            flat[n++] = ' ';
    }
    flat[n] = '\0';
    const bool found = strstr(flat, part) != NULL;
    free(flat);
    return found;
}

static void assert_has(const char *text, const char *part)
{
    if (!has(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
    if (has(text, part)) fail_msg("\"%s\" is in:\n%s", part, text);
}

static void assert_fits(const char *text, size_t width)
{
    for (const char *line = text; *line;) {
        size_t size = strcspn(line, "\n");
        if (size > width) fail_msg("%zu columns: %.*s", size, (int)size, line);
        for (size_t i = 0; i < size; i++)
            if (line[i] < ' ' || line[i] > '~') fail_msg("not ASCII: %.*s", (int)size, line);
        if (size && line[size - 1] == ' ') fail_msg("a space ends: %.*s|", (int)size, line);
        line += size + (line[size] == '\n');
    }
}

static void says_everything(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    char *text = text_of(run);
    assert_has(text, "run.sh");
    assert_has(text, "megatron, fp16, sgd with momentum, recompute none");
    assert_has(text, "weights fp16, gradients fp16, master fp32, moment 1 fp32");
    assert_has(text, "2,000,000 parameters");
    assert_has(text, "Stage 0: 1,000,000 parameters on each of 2 ranks");
    assert_has(text, "allocated, GB");
    assert_has(text, "14.00 B in the step (weights 2.00, gradients 4.00, optimizer 8.00)");
    assert_has(text, "; 11.00 B in backward, beside activations");
    assert_has(text, "in the allocator's segments (simulated)");
    assert_has(text, "what nvidia-smi shows: reserved + CUDA context");
    assert_has(text, "FITS: up to 0.03 GB of the 0.04 GB of h100-80g, 0.01 GB to spare");
    assert_has(text, "Half of it is activations.");
    assert_has(text, "batch.micro=1: $MBS is not set in run.sh (run.sh:38)");
    assert_lacks(text, "answered by --set since");
    assert_has(text, "--use-cpu-initialization (run.sh:52)");
    assert_has(text, "--fp16 is given twice (run.sh:7)");
    assert_fits(text, 80);
    free(text);
    help_run_free(run);
}

/* The first step's peak lacks nothing here but comes elsewhere; the steady one has the state in backward as well. */
static void names_the_first_iteration(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    run->report.unit = OC_UNIT_BYTES;
    char *text = text_of(run);
    assert_has(text, "19,002,368 B allocated at the first iteration's peak, in step:");
    assert_has(text, "3,999,744 B less than later ones");
    free(text);
    run->answer.ranks[0].first_peak = run->answer.ranks[0].peak;
    text = text_of(run);
    assert_has(text, "the same 23,002,112 B allocated at the first iteration's peak");
    free(text);
    help_run_free(run);
}

static void bytes_are_exact(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    run->report.unit = OC_UNIT_BYTES;
    char *text = text_of(run);
    assert_has(text, "12,000,004");
    assert_fits(text, 80);
    run->answer.ranks[0].peak.classes[OC_WEIGHTS] = UINT64_C(123456789012);
    free(text);
    text = text_of(run);
    assert_has(text, "123,456,789,012");
    assert_fits(text, 80);
    free(text);
    help_run_free(run);
}

static void verdicts(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    struct oc_verdict *verdict = &run->answer.verdict;
    struct oc_buffer out = {0};
    verdict->tight = true;
    oc_verdict_text(&run->answer, OC_UNIT_BYTES, &out);
    assert_has(out.data,
               "FITS, but tightly: up to 27,000,003 B of the 40,000,000 B of h100-80g, 12,999,997 B to spare");
    oc_buffer_free(&out);

    verdict->fits = verdict->tight = false;
    verdict->headroom = -5;
    oc_verdict_text(&run->answer, OC_UNIT_BYTES, &out);
    assert_has(out.data, "DOES NOT FIT: up to 27,000,003 B of the 40,000,000 B of h100-80g, 5 B too much");
    oc_buffer_free(&out);

    oc_set_given(&run->answer.plan.c, OC_OPT_gpu, false);
    oc_verdict_text(&run->answer, OC_UNIT_BYTES, &out);
    assert_has(out.data, "of h100-80g (assumed), 5 B too much");
    oc_buffer_free(&out);

    oc_set_given(&run->answer.plan.c, OC_OPT_gpu_capacity, true);
    oc_verdict_text(&run->answer, OC_UNIT_BYTES, &out);
    assert_has(out.data, "of the GPU, 5 B too much");
    oc_buffer_free(&out);

    run->answer.plan.has_shape = false;
    oc_verdict_text(&run->answer, OC_UNIT_BYTES, &out);
    assert_has(out.data, "DOES NOT FIT before activations, which are not modelled: up to");
    oc_buffer_free(&out);

    verdict->known = false;
    oc_verdict_text(&run->answer, OC_UNIT_BYTES, &out);
    assert_has(out.data, "No GPU is named");
    oc_buffer_free(&out);
    help_run_free(run);
}

/* Stages that hold the same are told once; beyond a few distinct ones only the fullest has a table. */
static void pipelines(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    struct oc_answer *answer = &run->answer;
    for (int i = 1; i < 8; i++) {
        answer->ranks[i] = answer->ranks[0];
        answer->ranks[i].stage = i;
    }
    answer->n_ranks = 8;
    answer->ranks[0].params = answer->ranks[7].params = 3000000;
    answer->verdict.worst_stage = 7;
    run->report.ledgers = NULL;
    char *text = text_of(run);
    assert_has(text, "peak of each stage");
    assert_has(text, "Stages 0, 7: 3,000,000 parameters on each of 2 ranks");
    assert_has(text, "Stages 1-6: 1,000,000 parameters");
    assert_fits(text, 80);
    free(text);

    for (int i = 0; i < 8; i++) answer->ranks[i].params = 1000000 + (uint64_t)i;
    text = text_of(run);
    assert_has(text, "Stage 7: 1,000,007 parameters on each of 2 ranks, the fullest");
    assert_lacks(text, "Stage 3: ");
    assert_has(text, "Stage 3 ");
    assert_fits(text, 80);
    free(text);
    help_run_free(run);
}

static void without_a_shape(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    run->answer.plan.has_shape = false;
    char *text = text_of(run);
    assert_has(text, "activations are not modelled");
    assert_lacks(text, "micro-batch a step");
    assert_lacks(text, "recompute none");
    free(text);
    help_run_free(run);
}

/* Largest at the peak first; what is not alive there is listed too. */
static void entries_are_listed(void **state)
{
    (void)state;
    struct help_run *run = help_run();
    run->report.unit = OC_UNIT_BYTES;
    char *text = text_of(run);
    assert_has(text, "these add up to 23,002,112 B");
    const char *saved = strstr(text, "12,000,004 A layers.saved, fp16, 4 times, forward to backward");
    const char *optimizer = strstr(text, "8,000,000 O state, fp16, step to end"),
               *scratch = strstr(text, "0 B scratch");
    assert_non_null(strstr(text, "B allocator.rounding, init to end"));
    assert_true(saved && optimizer && scratch && saved < optimizer && optimizer < scratch);
    assert_has(text, "a \"rule\" [tests]");
    free(text);
    run->report.ledgers = NULL;
    text = text_of(run);
    assert_lacks(text, "Entries:");
    free(text);
    help_run_free(run);
}

static void words_wrap(void **state)
{
    (void)state;
    struct oc_buffer out = {0};
    oc_put_wrapped(&out, "one  two three", 0, 2, 8);
    oc_put_wrapped(&out, "a-word-that-is-long b", 4, 4, 8);
    oc_put_wrapped(&out, "", 0, 0, 8);
    assert_string_equal(out.data, "one two\n  three\na-word-that-is-long\n    b\n\n");
    oc_buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_everything),    cmocka_unit_test(names_the_first_iteration),
        cmocka_unit_test(bytes_are_exact),    cmocka_unit_test(verdicts),
        cmocka_unit_test(pipelines),          cmocka_unit_test(without_a_shape),
        cmocka_unit_test(entries_are_listed), cmocka_unit_test(words_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
