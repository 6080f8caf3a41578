/* Bad usage and bad input, through the real program: a sentence and a hint on standard error, nothing on standard
 * output, exit status 2, whatever the command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "help_cli.h"

#define EXAMPLE OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh"

static const char *const commands[] = {"report", "check", "probe", "--plain"};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* `says` and `hints` are parts of the two lines. */
static void refuses(const char *const argv[], const char *says, const char *hints)
{
    struct help_output run = help_cli("", argv);
    char command[300] = "";
    for (int i = 0; argv[i]; i++) {
        size_t used = strlen(command);
        snprintf(command + used, sizeof command - used, " %s", argv[i]);
    }
    const char *second = strchr(run.err, '\n');
    if (run.status != 2) fail_msg("oomcast%s: exit status %d, %s", command, run.status, run.err);
    if (run.out[0]) fail_msg("oomcast%s: on standard output: %s", command, run.out);
    if (strncmp(run.err, "oomcast: ", 9)) fail_msg("oomcast%s: %s", command, run.err);
    if (!strstr(run.err, says)) fail_msg("oomcast%s: \"%s\" is not in: %s", command, says, run.err);
    if (!second || !strstr(second, hints))
        fail_msg("oomcast%s: the hint \"%s\" is not in: %s", command, hints, run.err);
    help_cli_free(&run);
}

/* Every command that reads files refuses this one. */
static void refuses_file(const char *path, const char *says, const char *hints)
{
    for (int i = 0; i < COMMANDS; i++) refuses((const char *const[]){commands[i], path, NULL}, says, hints);
}

static void refuses_set(const char *assignment, const char *says, const char *hints)
{
    for (int i = 0; i < COMMANDS; i++)
        refuses((const char *const[]){commands[i], EXAMPLE, "--set", assignment, NULL}, says, hints);
}

static void missing_file(void **state)
{
    (void)state;
    refuses_file("/no/such/run.sh", "/no/such/run.sh", "");
}

static void directory(void **state)
{
    (void)state;
    refuses_file(OOMCAST_SOURCE, "directory", "");
}

static void binary_file(void **state)
{
    (void)state;
    char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7);
    char *path = help_file(bytes, sizeof bytes);
    refuses_file(path, path, "");
    unlink(path);
    free(path);
}

static void too_large_a_file(void **state)
{
    (void)state;
    const size_t size = (4u << 20) + 1;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, '\n', size);
    char *path = help_file(bytes, size);
    refuses_file(path, "4 MiB", "");
    unlink(path);
    free(path);
    free(bytes);
}

static void values_that_cannot_be(void **state)
{
    (void)state;
    refuses_set("tp=3", "tp", "");
    refuses_set("parallel.world=0", "parallel.world", "");
    refuses_set("model.layers=99999999999", "model.layers", "");
    refuses_set("model.layers=-1", "model.layers", "");
    refuses_set("precision=fp12", "precision", "fp16");
    refuses_set("batch.micro=", "batch.micro", "");
}

static void keys_that_do_not_exist(void **state)
{
    (void)state;
    refuses_set("model.layer=3", "model.layer", "model.layers");
    refuses_set("dropout=0.1", "ambiguous", "model.dropout or lora.dropout");
    refuses_set("tp", "tp", "");
    refuses_set("=3", "", "");
}

static void options_that_do_not_exist(void **state)
{
    (void)state;
#define REFUSES(says, hints, ...) refuses((const char *const[]){__VA_ARGS__, NULL}, says, hints)
    REFUSES("there is no option --fromat", "did you mean --format?", "report", "--fromat", "json");
    REFUSES("there is no option --tensor-parallel", "--set", "report", "--tensor-parallel=8");
    REFUSES("oomcast check does not take --format", "--help", "check", "--format", "json");
    REFUSES("--format does not take 'xml'", "text|json", "report", "--format", "xml");
    REFUSES("--format needs a value", "text|json", "report", "--format");
    REFUSES("--units does not take 'kib'", "gib|gb|bytes", "report", "--units=kib");
    REFUSES("--margin does not take '-1'", "BYTES", "check", "--margin", "-1");
    REFUSES("--steps does not take '1'", "--steps N", "probe", "--steps", "1");
    REFUSES("--device does not take 'tpu'", "auto|cuda|host|dry", "probe", "--device", "tpu");
    REFUSES("'reprot' is neither a file nor a command", "oomcast report", "reprot");
    REFUSES("themes takes no names", "oomcast themes --help", "themes", "dark");
    REFUSES("none of them has 'no-such-model'", "oomcast models", "models", "no-such-model");
#undef REFUSES
}

static void check_without_a_gpu(void **state)
{
    (void)state;
    refuses((const char *const[]){"check", EXAMPLE, "--set", "gpu=none", NULL}, "no GPU is named", "--set gpu=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_file),
        cmocka_unit_test(directory),
        cmocka_unit_test(binary_file),
        cmocka_unit_test(too_large_a_file),
        cmocka_unit_test(values_that_cannot_be),
        cmocka_unit_test(keys_that_do_not_exist),
        cmocka_unit_test(options_that_do_not_exist),
        cmocka_unit_test(check_without_a_gpu),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
