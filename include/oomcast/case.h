/* A case: a configuration, where each of its values comes from, and what the importers had to say.
 *
 * Ownership: plain values, copied by assignment. Undo is an array of cases; notes and file names are shared by all of
 * them. */
#ifndef OOMCAST_CASE_H
#define OOMCAST_CASE_H

#include "oomcast/config.h"

enum oc_from {
    OC_FROM_DEFAULT, /* follows from the framework, the model or another option */
    OC_FROM_ASSUMED, /* the input names it but leaves its value open; see the note */
    OC_FROM_FILE,
    OC_FROM_SET,   /* --set on the command line */
    OC_FROM_EDITED /* on the screen */
};

struct oc_origin {
    uint8_t from; /* enum oc_from */
    uint8_t file; /* index in struct oc_input's files, for OC_FROM_FILE and OC_FROM_ASSUMED */
    uint16_t pad;
    int32_t line; /* 1-based; 0 = unknown */
};

struct oc_case {
    struct oc_config config;
    struct oc_origin origin[OC_OPTIONS];
};

enum { OC_MAX_FILES = 16, OC_MAX_NOTES = 96, OC_MAX_INPUT = 4 << 20 };

enum oc_note_kind {
    OC_NOTE_ASSUMED,    /* a value had to be taken; `option` says of what */
    OC_NOTE_UNMODELLED, /* it changes memory and the model does not know it; `name` is what the input calls it */
    OC_NOTE_WARNING     /* contradictions, what the framework would rewrite, conflicts between files */
};

struct oc_note {
    uint8_t kind;   /* enum oc_note_kind */
    uint8_t file;   /* index in files; 255 = none */
    int16_t option; /* enum oc_option_id, or OC_OPTIONS when it concerns none */
    int32_t line;   /* 1-based; 0 = unknown */
    char name[64];  /* "--use-cpu-initialization", or "" */
    char text[224]; /* "$MICRO_BATCH_SIZE is not set in run.sh" */
};

/* What reading all inputs gave. */
struct oc_input {
    struct oc_case c;
    char files[OC_MAX_FILES][192]; /* as named by the user; "-" is standard input */
    int n_files;
    struct oc_note notes[OC_MAX_NOTES];
    int n_notes;
    int notes_lost; /* how many did not fit */
};

/* Adds a note with a printf-formatted text; counts it as lost when there is no room. `file` 255 and `line` 0 = no
 * place. */
void oc_note_add(struct oc_input *input, enum oc_note_kind kind, int option, const char *name, int file, int line,
                 const char *format, ...) __attribute__((format(printf, 7, 8)));

const char *oc_from_name(enum oc_from from); /* "default", "assumed", "file", "set", "edited" */

#endif
