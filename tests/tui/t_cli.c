/* The command line, through the real program: what it prints, where, and how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "help_cli.h"

#define EXAMPLE OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh"
#define SHARED  OOMCAST_SOURCE "/examples/llama3-8b-adam-distopt-bf16.sh"

static void assert_done(const struct help_output *run)
{
    if (run->status || run->err[0]) fail_msg("exit status %d: %s", run->status, run->err);
}

static void assert_part(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in: %s", part, text);
}

/* ---- help and lists ---- */

static size_t widest(const char *text)
{
    size_t widest = 0;
    while (*text) {
        size_t size = strcspn(text, "\n");
        if (size > widest) widest = size;
        text += size + (text[size] == '\n');
    }
    return widest;
}

static void every_command_has_help(void **state)
{
    (void)state;
    static const char *const commands[] = {"report", "check",   "advise", "compare", "sweep",
                                           "probe",  "options", "models", "gpus",    "themes"};
    struct help_output all = HELP_CLI("--help");
    assert_done(&all);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char usage[64];
        struct help_output run = HELP_CLI(commands[i], "--help");
        snprintf(usage, sizeof usage, "usage: oomcast %s", commands[i]);
        assert_done(&run);
        assert_part(run.out, usage);
        assert_part(all.out, commands[i]);
        assert_true(widest(run.out) <= 80);
        help_cli_free(&run);
    }
    assert_true(widest(all.out) <= 80);
    help_cli_free(&all);
}

static void version(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("--version");
    assert_done(&run);
    assert_string_equal(run.out, "oomcast " OOMCAST_VERSION "\n");
    help_cli_free(&run);
}

static void lists(void **state)
{
    (void)state;
    static const struct {
        const char *command, *has;
    } cases[] = {{"options", "parallel.tp"}, {"models", "llama-3-8b"}, {"gpus", "h100-80g"}, {"themes", "default"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct help_output run = HELP_CLI(cases[i].command);
        assert_done(&run);
        assert_part(run.out, cases[i].has);
        assert_true(widest(run.out) <= 80);
        help_cli_free(&run);
    }
    struct help_output run = HELP_CLI("options", "parallel.vpp");
    assert_done(&run);
    assert_part(run.out, "parallel.vpp");
    assert_null(strstr(run.out, "parallel.tp"));
    help_cli_free(&run);
}

/* ---- where values come from ---- */

/* The report as JSON with these arguments. */
static cJSON *report(const char *input, const char *const argv[])
{
    const char *args[HELP_ARGS + 1] = {"report", "--format", "json"};
    int n = 3;
    for (int i = 0; argv[i]; i++) args[n++] = argv[i];
    args[n] = NULL;
    struct help_output run = help_cli(input, args);
    assert_done(&run);
    cJSON *json = cJSON_Parse(run.out);
    if (!json) fail_msg("not JSON: %s", run.out);
    help_cli_free(&run);
    return json;
}
#define REPORT(input, ...) report(input, (const char *const[]){__VA_ARGS__, NULL})

static const cJSON *member(const cJSON *json, const char *outer, const char *inner)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, outer), inner);
    if (!item) fail_msg("there is no %s in %s", inner, outer);
    return item;
}

static void the_last_set_wins(void **state)
{
    (void)state;
    cJSON *json = REPORT("", "--set", "precision=fp32", EXAMPLE, "--set=precision=bf16", "--set", "tp=4");
    assert_string_equal(member(json, "config", "precision")->valuestring, "bf16");
    assert_int_equal(member(json, "config", "parallel.tp")->valueint, 4);
    assert_string_equal(cJSON_GetObjectItem(member(json, "origin", "precision"), "from")->valuestring, "set");
    assert_string_equal(cJSON_GetObjectItem(member(json, "origin", "model.layers"), "from")->valuestring, "file");
    cJSON_Delete(json);
}

/* tp=3 alone cannot be; what stands after all --set counts. */
static void sets_are_validated_together(void **state)
{
    (void)state;
    cJSON *json = REPORT("", EXAMPLE, "--set", "tp=3", "--set", "tp=2");
    assert_int_equal(member(json, "config", "parallel.tp")->valueint, 2);
    cJSON_Delete(json);
}

static void between_files_the_earlier_wins(void **state)
{
    (void)state;
    cJSON *one = REPORT("", EXAMPLE, SHARED, "--set", "optimizer=adam");
    cJSON *two = REPORT("", SHARED, EXAMPLE, "--set", "optimizer=adam");
    assert_string_equal(member(one, "config", "precision")->valuestring, "fp16");
    assert_string_equal(member(two, "config", "precision")->valuestring, "bf16");
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(one, "warnings")) > 0);
    cJSON_Delete(one);
    cJSON_Delete(two);
}

static void a_dash_is_standard_input(void **state)
{
    (void)state;
    cJSON *json =
        REPORT("python pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 128 "
               "--micro-batch-size 1 --vocab-size 1000 --fp16\n",
               "-");
    assert_int_equal(member(json, "config", "model.layers")->valueint, 4);
    assert_string_equal(cJSON_GetObjectItem(member(json, "origin", "model.layers"), "file")->valuestring, "-");
    cJSON_Delete(json);
}

/* The built-in example is the file in examples/, read from any directory. */
static void without_a_file_the_example_opens(void **state)
{
    (void)state;
    cJSON *alone = REPORT("", "--set", "batch.micro=2"), *file = REPORT("", EXAMPLE, "--set", "batch.micro=2");
    static const char *const keys[] = {"params", "ranks", "worst_stage", "unmodelled"};
    for (int i = 0; i < 4; i++)
        assert_true(cJSON_Compare(cJSON_GetObjectItem(alone, keys[i]), cJSON_GetObjectItem(file, keys[i]), true));
    cJSON_Delete(alone);
    cJSON_Delete(file);
}

/* A --set that names a model stands alone. */
static void sets_alone_are_enough(void **state)
{
    (void)state;
    cJSON *json =
        REPORT("", "--set", "framework=article", "--set", "model.params=7000000000", "--set", "optimizer=adamw");
    assert_int_equal(member(json, "config", "model.layers")->valueint, 0);
    assert_true((int64_t)member(json, "params", "total")->valuedouble == INT64_C(7000000000));
    cJSON_Delete(json);
}

static void a_double_dash_ends_options(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("report", "--", "--set");
    assert_int_equal(run.status, 2);
    assert_part(run.err, "--set");
    help_cli_free(&run);
}

/* No launch script names the GPU: that it was assumed is said, until somebody names it. */
static void the_gpu_is_assumed(void **state)
{
    (void)state;
    struct help_output assumed = HELP_CLI("report", EXAMPLE), named = HELP_CLI("report", EXAMPLE, "--set", "gpu=l4");
    assert_part(assumed.out, "gpu=h100-80g: nothing names the GPU");
    assert_null(strstr(named.out, "assumed"));
    help_cli_free(&assumed);
    help_cli_free(&named);

    struct help_output check = HELP_CLI("check", EXAMPLE);
    assert_part(check.out, "h100-80g (assumed)");
    help_cli_free(&check);
}

/* ---- how it ends ---- */

static void without_a_terminal_the_text_report(void **state)
{
    (void)state;
    struct help_output plain = HELP_CLI("--plain", EXAMPLE), none = HELP_CLI(EXAMPLE),
                       text = HELP_CLI("report", EXAMPLE);
    assert_done(&none);
    assert_string_equal(none.out, text.out);
    assert_string_equal(plain.out, text.out);
    assert_true(widest(text.out) <= 80);
    assert_part(text.out, "938,741,760 parameters");
    help_cli_free(&plain);
    help_cli_free(&none);
    help_cli_free(&text);
}

static void check_says_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *set, *margin, *says;
        int status;
    } cases[] = {
        {"gpu=h100-80g", "0", "FITS", 0},
        {"gpu.capacity=8GiB", "0", "DOES NOT FIT", 1},
        {"gpu=h100-80g", "70GiB", "less than the margin of 70.00 GiB", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct help_output run = HELP_CLI("check", EXAMPLE, "--set", cases[i].set, "--margin", cases[i].margin);
        assert_int_equal(run.status, cases[i].status);
        assert_string_equal(run.err, "");
        assert_part(run.out, cases[i].says);
        assert_part(run.out, "stage 0, in ");
        assert_ptr_equal(strchr(run.out, '\n'), run.out + strlen(run.out) - 1);
        help_cli_free(&run);
    }
}

/* Runs a shell line about the program, "$1". */
static int shell(const char *line)
{
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, "sh", OOMCAST_BIN, EXAMPLE, (char *)NULL);
        _exit(127);
    }
    int status;
    if (waitpid(child, &status, 0) != child) abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void output_that_cannot_be_written(void **state)
{
    (void)state;
    assert_int_equal(shell("\"$1\" report \"$2\" >&- 2>/dev/null"), 70);
    assert_int_equal(shell("test -w /dev/full || exit 70; \"$1\" report \"$2\" >/dev/full 2>/dev/null"), 70);
}

/* A reader that went away: quietly, with the command's own status. */
static void a_reader_that_went_away(void **state)
{
    (void)state;
    static const struct {
        const char *command, *file, *set;
        int status;
    } cases[] = {{"report", EXAMPLE, "gpu.capacity=8GiB", 0}, {"check", EXAMPLE, "gpu.capacity=8GiB", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int ends[2], status;
        assert_int_equal(pipe(ends), 0);
        close(ends[0]);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGPIPE, SIG_DFL);
            dup2(ends[1], 1);
            execl(OOMCAST_BIN, "oomcast", cases[i].command, cases[i].file, "--set", cases[i].set, (char *)NULL);
            _exit(127);
        }
        close(ends[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), cases[i].status);
    }
}

static void a_closed_standard_input_is_empty(void **state)
{
    (void)state;
    assert_int_equal(shell("\"$1\" report \"$2\" <&- >/dev/null 2>&1"), 0);
}

/* ---- the probe ---- */

#define TINY                                                                                                           \
    "--set", "framework=pytorch", "--set", "model.layers=2", "--set", "model.hidden=64", "--set", "model.heads=4",     \
        "--set", "model.vocab=256", "--set", "batch.seq=32", "--set", "precision=fp32"

static void probe_ends_with_one_result(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("probe", "--json", "--device", "host", "--steps", "3", TINY);
    assert_done(&run);
    int results = 0;
    for (char *line = strtok(run.out, "\n"); line; line = strtok(NULL, "\n")) {
        cJSON *json = cJSON_Parse(line);
        if (!json) fail_msg("not JSON: %s", line);
        assert_int_equal(results, 0); /* nothing follows the result */
        const char *event = cJSON_GetObjectItem(json, "event")->valuestring;
        if (!strcmp(event, "progress")) {
            double fraction = cJSON_GetObjectItem(json, "fraction")->valuedouble;
            assert_true(cJSON_IsString(cJSON_GetObjectItem(json, "phase")) && fraction >= 0 && fraction <= 1);
        } else {
            assert_string_equal(event, "done");
            assert_int_equal(strlen(cJSON_GetObjectItem(json, "plan")->valuestring), 16);
            assert_string_equal(cJSON_GetObjectItem(json, "device")->valuestring, "host");
            assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "losses")), 3);
            assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(json, "entries")) > 0);
            assert_string_equal(member(member(json, "rank", "peak"), "by", "allocated")->valuestring, "measured");
            results++;
        }
        cJSON_Delete(json);
    }
    assert_int_equal(results, 1);
    help_cli_free(&run);
}

static void probe_compares_with_the_model(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("probe", "--device", "host", TINY);
    assert_done(&run);
    assert_part(run.out, "W weights");
    assert_part(run.out, "difference, B");
    assert_null(strstr(run.out, " -")); /* no difference, in any class, at any moment */
    assert_null(strstr(run.out, " +"));
    assert_part(run.out, "loss");
    assert_true(widest(run.out) <= 80);
    help_cli_free(&run);
}

static void a_probe_that_fails_says_why(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("probe", "--json", "--full", "--device", "host", "--limit", "1MiB", TINY);
    assert_int_equal(run.status, 3);
    assert_part(run.out, "\"event\":\"oom\"");
    assert_part(run.out, "\"why\":\"");
    help_cli_free(&run);
}

static void a_probe_does_not_outlive_its_parent(void **state)
{
    (void)state;
    struct help_output run = HELP_CLI("probe", "--json", "--ppid", "1999999999", TINY);
    assert_int_equal(run.status, 3);
    assert_string_equal(run.out, "");
    help_cli_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_has_help),
        cmocka_unit_test(version),
        cmocka_unit_test(lists),
        cmocka_unit_test(the_last_set_wins),
        cmocka_unit_test(sets_are_validated_together),
        cmocka_unit_test(between_files_the_earlier_wins),
        cmocka_unit_test(a_dash_is_standard_input),
        cmocka_unit_test(without_a_file_the_example_opens),
        cmocka_unit_test(sets_alone_are_enough),
        cmocka_unit_test(the_gpu_is_assumed),
        cmocka_unit_test(a_double_dash_ends_options),
        cmocka_unit_test(without_a_terminal_the_text_report),
        cmocka_unit_test(check_says_one_line),
        cmocka_unit_test(output_that_cannot_be_written),
        cmocka_unit_test(a_reader_that_went_away),
        cmocka_unit_test(a_closed_standard_input_is_empty),
        cmocka_unit_test(probe_ends_with_one_result),
        cmocka_unit_test(probe_compares_with_the_model),
        cmocka_unit_test(a_probe_that_fails_says_why),
        cmocka_unit_test(a_probe_does_not_outlive_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
