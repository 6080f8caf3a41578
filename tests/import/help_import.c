#include "help_import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct oc_input *help_input(void)
{
    struct oc_input *input = calloc(1, sizeof *input);
    assert_non_null(input);
    input->c.config = oc_config_default();
    return input;
}

struct oc_input *help_import(const char *name, const char *text)
{
    struct oc_input *input = help_input();
    struct oc_error error = {0};
    if (!oc_import_text(input, name, text, strlen(text), &error)) {
        free(input);
        fail_msg("%s: %s (%s)", name, error.message, error.hint);
    }
    return input;
}

const char *help_value(const struct oc_input *input, enum oc_option_id id)
{
    static char text[256];
    return oc_given(&input->c.config, id) ? oc_option_text(&input->c.config, id, text, sizeof text) : "-";
}

void help_is(const struct oc_input *input, enum oc_option_id id, const char *value, int line)
{
    const char *got = help_value(input, id);
    if (strcmp(got, value) != 0) fail_msg("%s is %s, not %s", oc_option(id)->key, got, value);
    if (input->c.origin[id].line != line)
        fail_msg("%s comes from line %d, not %d", oc_option(id)->key, input->c.origin[id].line, line);
}

const struct oc_note *help_note(const struct oc_input *input, enum oc_note_kind kind, const char *name, int option)
{
    for (int i = 0; i < input->n_notes; i++) {
        const struct oc_note *note = &input->notes[i];
        if (note->kind == kind && (!name || !strcmp(note->name, name)) &&
            (option == OC_OPTIONS || note->option == option))
            return note;
    }
    return NULL;
}

int help_count(const struct oc_input *input, enum oc_note_kind kind)
{
    int n = 0;
    for (int i = 0; i < input->n_notes; i++) n += input->notes[i].kind == kind;
    return n;
}
