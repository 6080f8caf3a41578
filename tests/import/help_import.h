/* Importing a text, and looking at what came of it. */
#ifndef OC_TESTS_HELP_IMPORT_H
#define OC_TESTS_HELP_IMPORT_H

#include "oomcast/import.h"

/* An empty input; the test frees it with free(). */
struct oc_input *help_input(void);

/* Imports a text that must be readable. */
struct oc_input *help_import(const char *name, const char *text);

/* The value as text, or "-" when it is not given. In a static buffer. */
const char *help_value(const struct oc_input *input, enum oc_option_id id);

/* Fails the test unless the option has this value from this line. */
void help_is(const struct oc_input *input, enum oc_option_id id, const char *value, int line);

/* The first note of a kind with this name or this option (OC_OPTIONS: any), or NULL. */
const struct oc_note *help_note(const struct oc_input *input, enum oc_note_kind kind, const char *name, int option);

/* How many notes of a kind there are. */
int help_count(const struct oc_input *input, enum oc_note_kind kind);

#endif
