/* Files of all kinds, and what happens when there are several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "help_import.h"

#define RUN                                                                                                            \
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "         \
    "--seq-length 128 "

static char folder[] = "/tmp/oomcast-import-XXXXXX";

static const char *write_file(const char *name, const char *bytes, size_t size)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

static void refuse(const char *path, enum oc_code code, const char *says)
{
    struct oc_input *input = help_input(), *before = help_input();
    struct oc_error error = {0};
    assert_false(oc_import_file(input, path, &error));
    assert_int_equal(error.code, code);
    if (!strstr(error.message, says)) fail_msg("'%s' does not say '%s'", error.message, says);
    assert_string_equal(error.file, path);
    assert_memory_equal(input, before, sizeof *input);
    free(input);
    free(before);
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    refuse("/tmp/there/is/no/such/file.sh", OC_E_IO, "No such file");
    refuse(folder, OC_E_IO, "directory");
    refuse(write_file("binary",
                      "\x7F"
                      "ELF\0\1 --num-layers 2",
                      20),
           OC_E_IO, "binary");
    refuse(write_file("empty", "", 0), OC_E_PARSE, "nothing that oomcast can read");
    refuse(write_file("prose", "Hello there.\n", 13), OC_E_PARSE, "nothing that oomcast can read");
    refuse(write_file("other.json", "{\"model_type\": \"llama\"}", 23), OC_E_PARSE, "nothing that oomcast can read");
    size_t size = (4 << 20) + 1;
    char *large = malloc(size);
    memset(large, 'a', size);
    refuse(write_file("large", large, size), OC_E_IO, "larger than 4 MiB");
    memcpy(large, RUN, sizeof RUN - 1);
    large[sizeof RUN - 1] = '\n';
    struct oc_input *input = help_input();
    struct oc_error error = {0};
    assert_true(oc_import_file(input, write_file("just", large, size - 1), &error)); /* exactly 4 MiB may be */
    free(input);
    free(large);
}

static void standard_input(void **state)
{
    (void)state;
    const char *path = write_file("stdin", RUN "\n", sizeof RUN);
    assert_non_null(freopen(path, "rb", stdin));
    struct oc_input *input = help_input();
    assert_true(oc_import_file(input, "-", NULL));
    assert_string_equal(input->files[0], "-");
    help_is(input, OC_OPT_model_layers, "24", 1);
    assert_string_equal(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_batch_micro)->text,
                        "the input does not set --micro-batch-size");
    free(input);
}

static void add(struct oc_input *input, const char *name, const char *text)
{
    struct oc_error error = {0};
    if (!oc_import_text(input, name, text, strlen(text), &error)) fail_msg("%s: %s", name, error.message);
}

static void the_earlier_wins(void **state)
{
    (void)state;
    struct oc_input *input = help_input();
    add(input, "a.json", "{\"oomcast\":1,\"set\":{\"precision\":\"bf16\",\"model.layers\":24}}");
    add(input, "b.sh", "\n" RUN "--fp16 --micro-batch-size 4 --vocab-size 100\n");
    assert_int_equal(input->n_files, 2);
    help_is(input, OC_OPT_precision, "bf16", 1);
    help_is(input, OC_OPT_batch_micro, "4", 2);
    assert_int_equal(input->c.origin[OC_OPT_precision].file, 0);
    assert_int_equal(input->c.origin[OC_OPT_batch_micro].file, 1);
    assert_int_equal(help_count(input, OC_NOTE_WARNING), 1); /* layers agree: no conflict */
    const struct oc_note *note = help_note(input, OC_NOTE_WARNING, NULL, OC_OPT_precision);
    assert_string_equal(note->text, "a.json says bf16 and b.sh says fp16; the first counts");
    assert_int_equal(note->file, 1);
    assert_int_equal(note->line, 2);
    free(input);
}

/* What is said beats what was taken, in either order. */
static void assumptions_give_way(void **state)
{
    (void)state;
    const char *script = RUN "--micro-batch-size $MBS --tokenizer-type HuggingFaceTokenizer\n";
    const char *session = "{\"oomcast\":1,\"set\":{\"batch.micro\":2,\"model.vocab\":1234}}";
    for (int order = 0; order < 2; order++) {
        struct oc_input *input = help_input();
        add(input, order ? "s.json" : "run.sh", order ? session : script);
        add(input, order ? "run.sh" : "s.json", order ? script : session);
        assert_string_equal(help_value(input, OC_OPT_batch_micro), "2");
        assert_string_equal(help_value(input, OC_OPT_model_vocab), "1234");
        assert_int_equal(input->c.origin[OC_OPT_model_vocab].from, OC_FROM_FILE);
        assert_int_equal(input->c.origin[OC_OPT_batch_micro].from, OC_FROM_FILE);
        assert_int_equal(input->n_notes, 0);
        free(input);
    }
    struct oc_input *input = help_input(); /* two that do not know: said once */
    add(input, "a.sh", script);
    add(input, "b.sh", script);
    assert_int_equal(help_count(input, OC_NOTE_ASSUMED), 2);
    assert_int_equal(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_batch_micro)->file, 0);
    free(input);
}

static void too_much(void **state)
{
    (void)state;
    struct oc_input *input = help_input();
    for (int i = 0; i < OC_MAX_FILES; i++) add(input, "a.json", "{\"oomcast\":1}");
    struct oc_error error = {0};
    assert_false(oc_import_text(input, "a.json", "{\"oomcast\":1}", 13, &error));
    assert_int_equal(error.code, OC_E_LIMIT);
    free(input);
    char text[8192] = RUN "--micro-batch-size 1 --vocab-size 100 ";
    for (int i = 0; i < 200; i++) sprintf(text + strlen(text), "--unheard-of-%d ", i);
    input = help_import("run.sh", text);
    assert_int_equal(input->n_notes, OC_MAX_NOTES);
    assert_int_equal(input->notes_lost, 200 - OC_MAX_NOTES);
    free(input);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"binary", "empty", "prose", "other.json", "large", "just", "stdin"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_that_cannot_be_read), cmocka_unit_test(standard_input),
                                       cmocka_unit_test(the_earlier_wins), cmocka_unit_test(assumptions_give_way),
                                       cmocka_unit_test(too_much)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
