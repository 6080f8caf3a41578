/* Any bytes may be imported: the answer is an input within its bounds, or an error and no change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomcast/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "fuzz_import: %s\n", what);
    abort();
}

/* Everything given can be written, and reads back as the same. */
static void check_values(const struct oc_input *input)
{
    struct oc_config again = oc_config_default();
    for (int i = 0; i < OC_OPTIONS; i++) {
        enum oc_option_id id = (enum oc_option_id)i;
        char text[256], same[256];
        if (!oc_given(&input->c.config, id)) continue;
        oc_option_text(&input->c.config, id, text, sizeof text);
        must(oc_option_set(&again, id, text, NULL), "a value that its option refuses");
        must(!strcmp(text, oc_option_text(&again, id, same, sizeof same)), "a value that changes when it is read back");
        must(input->c.origin[i].from != OC_FROM_DEFAULT, "a value from nowhere");
        must(input->c.origin[i].line >= 1 && input->c.origin[i].file < input->n_files, "a place that does not exist");
    }
}

static void check_notes(const struct oc_input *input)
{
    must(input->n_notes >= 0 && input->n_notes <= OC_MAX_NOTES, "notes out of bounds");
    for (int i = 0; i < input->n_notes; i++) {
        const struct oc_note *note = &input->notes[i];
        must(note->text[0] && memchr(note->text, 0, sizeof note->text) && memchr(note->name, 0, sizeof note->name),
             "a note without text");
        must(note->option >= 0 && note->option <= OC_OPTIONS && note->line >= 0, "a note about nothing");
    }
}

static void check_session(const struct oc_input *input)
{
    char *session = oc_export_session(&input->c);
    struct oc_input *again = calloc(1, sizeof *again);
    must(session && again, "out of memory");
    again->c.config = oc_config_default();
    must(oc_import_text(again, "session", session, strlen(session), NULL), "a session that cannot be read back");
    must(!memcmp(&again->c.config.given, &input->c.config.given, sizeof again->c.config.given),
         "a session that loses values");
    free(session);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oc_input *input = calloc(1, sizeof *input), *before = calloc(1, sizeof *before);
    must(input && before, "out of memory");
    input->c.config = before->c.config = oc_config_default();
    struct oc_error error = {0};
    if (oc_import_text(input, "fuzz", (const char *)data, size, &error)) {
        check_values(input);
        check_notes(input);
        check_session(input);
    } else {
        must(error.code != OC_OK && error.message[0], "a failure without an error");
        must(!memcmp(input, before, sizeof *input), "a failure that changes the input");
    }
    free(input);
    free(before);
    return 0;
}
