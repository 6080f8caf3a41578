/* Text in, case out. Nothing in an input is ever executed.
 *
 * Ownership: the caller owns the oc_input; importers allocate for themselves and free before they return. */
#ifndef OOMCAST_IMPORT_H
#define OOMCAST_IMPORT_H

#include "oomcast/case.h"

/* Reads a file ("-" = standard input) of any kind that an importer knows and merges it into `input`: what is given
 * already stays ("between files the earlier wins") and a conflict becomes a warning. On failure nothing of `input` is
 * changed. Errors: OC_E_IO for a missing file, a directory, more than OC_MAX_INPUT bytes, a binary file; OC_E_PARSE. */
bool oc_import_file(struct oc_input *input, const char *path, struct oc_error *error);

/* The same for text in memory; `name` is what errors and origins call it. */
bool oc_import_text(struct oc_input *input, const char *name, const char *text, size_t size, struct oc_error *error);

/* One kind of input: a row of the const table that importers are found by. */
struct oc_importer {
    const char *name; /* "Megatron-LM launch script" */
    /* How sure this importer is that the text is its own: 0 (not) to 100 (a magic key). Must be cheap. */
    int (*detect)(const char *text, size_t size);
    /* Fills `input->c` and notes; `file` is the index of the input's name in input->files. */
    bool (*read)(struct oc_input *input, int file, const char *text, size_t size, struct oc_error *error);
};

/* Writes the given options of a case as a JSON session, which oc_import_text() reads back to the same case:
 * {"oomcast":1,"set":{"key":value,...}}. Returns a string that the caller frees, or NULL when out of memory. */
char *oc_export_session(const struct oc_case *c);

#endif
