/* The generator of the tables stops the build on a bad row, and says which one and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOOD_MODEL                                                                                                     \
    "{\"name\": \"m-1\", \"family\": \"f\", \"params\": 9, \"source\": \"s\", \"layers\": 1, \"hidden\": 8, "          \
    "\"heads\": 4, \"kv_heads\": 2, \"head_dim\": 2, \"ffn\": 8, \"vocab\": 9"
#define FAMILY                                                                                                         \
    "{\"families\": {\"f\": {\"positions\": \"rope\", \"norm\": \"rmsnorm\", \"norms_per_layer\": 2, "                 \
    "\"activation\": \"swiglu\"}}, \"models\": ["
#define GOOD_GPU                                                                                                       \
    "{\"name\": \"g-1\", \"title\": \"G\", \"total_mib\": 1024, \"cuda_gib\": 0.5, \"sm\": 90, \"source\": \"s\"}"

static char directory[] = "/tmp/oomcast_generate_XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

/* Runs the generator, which is built beside the program; its messages into `said`. Returns its exit status. */
static int generate(const char *models, const char *gpus, char *said, size_t size)
{
    write_file("models.json", models);
    write_file("gpus.json", gpus);
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && $(dirname %s)/model/data/oc_generate models.json gpus.json tables.c 2>&1", directory,
             OOMCAST_BIN);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    said[fread(said, 1, size - 1, pipe)] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool made_tables(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/tables.c", directory);
    return access(path, R_OK) == 0;
}

static void good_rows_pass(void **state)
{
    (void)state;
    char said[2048];
    assert_int_equal(generate(FAMILY GOOD_MODEL "}]}", "{\"gpus\": [" GOOD_GPU "]}", said, sizeof said), 0);
    assert_string_equal(said, "");
    assert_true(made_tables());
}

static void bad_rows_stop_the_build(void **state)
{
    (void)state;
    static const char gpu[] = "{\"gpus\": [" GOOD_GPU "]}", model[] = FAMILY GOOD_MODEL "}]}";
    static const struct {
        const char *models, *gpus, *say;
    } bad[] = {
        {FAMILY GOOD_MODEL ", \"head_bais\": true}]}", gpu, "row 1 (m-1): there is no field \"head_bais\""},
        {FAMILY GOOD_MODEL ", \"ffn\": 9}]}", gpu, "row 1 (m-1): \"ffn\" stands twice"},
        {FAMILY GOOD_MODEL ", \"norm\": \"batchnorm\"}]}", gpu, "row 1 (m-1): \"norm\" must be one of"},
        {FAMILY GOOD_MODEL ", \"tied\": 1}]}", gpu, "row 1 (m-1): \"tied\" must be true or false"},
        {FAMILY GOOD_MODEL ", \"positions\": \"learned\"}]}", gpu, "\"max_positions\" goes with learned positions"},
        {FAMILY GOOD_MODEL ", \"norms_per_layer\": 3}]}", gpu, "must be 1, 2 or 4"},
        {FAMILY GOOD_MODEL "}, " GOOD_MODEL "}]}", gpu, "row 2 (m-1): this name is taken already"},
        {FAMILY "{\"name\": \"m-1\", \"family\": \"f\"}]}", gpu, "row 1 (m-1): \"params\" must be a number"},
        {FAMILY "{\"name\": \"M 1\"}]}", gpu, "row 1 (M 1): \"name\" must be"},
        {FAMILY "{\"name\": \"m-1\", \"family\": \"x\"}]}", gpu, "its family does not stand"},
        {FAMILY "7]}", gpu, "row 1 (no name)"},
        {"{\"models\": []}", gpu, "at least one row"},
        {"{\n\"models\":\n[}", gpu, "models.json:3: this is not JSON"},
        {"", gpu, "models.json:1: this is not JSON"},
        {model, "{\"gpus\": [{\"name\": \"g\", \"title\": \"G\", \"total_mib\": 1.5}]}",
         "\"total_mib\" must be a whole"},
        {model, "{\"gpus\": [{\"name\": \"g\", \"title\": \"\"}]}", "row 1 (g): \"title\" must be a text"},
        {model, "{\"gpus\": [{\"name\": \"g\", \"title\": \"G\", \"total_mib\": 1e300}]}",
         "\"total_mib\" must be a number"},
        {model,
         "{\"gpus\": [{\"name\": \"g\", \"title\": \"G\", \"total_mib\": 1024, \"cuda_gib\": 2, \"sm\": 0, \"source\": "
         "\"s\"}]}",
         "CUDA cannot report more"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char said[2048];
        int status = generate(bad[i].models, bad[i].gpus, said, sizeof said);
        if (status != 1 || !strstr(said, bad[i].say))
            fail_msg("expected: %s\nsaid (status %d): %s", bad[i].say, status, said);
        assert_false(made_tables());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_rows_pass),
        cmocka_unit_test(bad_rows_stop_the_build),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
