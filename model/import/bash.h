/* The bash that launch scripts really use, evaluated and never executed: assignments, arrays, quotes, expansions,
 * arithmetic, if, case, loops and functions. Anything that only running the script could tell (arguments, the
 * environment, output of commands) is an unknown value that remembers where it was written.
 *
 * A script may be surrounded by prose: what does not parse is skipped, and reading goes on at the next line.
 *
 * Ownership: bash_run() allocates everything; bash_free() releases it. Words and texts live until then. */
#ifndef OC_MODEL_IMPORT_BASH_H
#define OC_MODEL_IMPORT_BASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomcast/error.h"

struct bash;

/* An argument after expansion. Places are byte offsets in the script; bash_place() turns them into line and column. */
struct bash_word {
    const char *text;      /* NUL-terminated; an unknown part is one '?' */
    const uint32_t *cells; /* the same with the place of every character (see bash_core.h) */
    uint32_t length;
    uint32_t offset; /* where its first character is written: in the array or string, not where that is expanded */
    uint32_t cause;  /* when unknown: where the first unknown part is written */
    bool unknown;
};

/* A command that the script would run, or a value that it assigns. */
struct bash_command {
    const struct bash_word *words; /* of an assignment: the value, split at white space */
    int n;
    uint32_t offset;
    bool assignment;
};

/* Evaluates a script of at most OC_MAX_INPUT bytes. NULL with OC_E_LIMIT when it is larger than this evaluator counts,
 * or when it expands without bound. */
struct bash *bash_run(const char *text, size_t size, struct oc_error *error);
void bash_free(struct bash *script);

/* Everything that was run or assigned, in that order. */
const struct bash_command *bash_commands(const struct bash *script, int *count);

/* The last value of a variable (an array: its first element). False when the script never assigns it. */
bool bash_variable(struct bash *script, const char *name, struct bash_word *value);

/* The white-space separated parts of a word, as `eval` or `bash -c` would read it; quotes are taken off. */
const struct bash_word *bash_split(struct bash *script, const struct bash_word *word, int *count);

/* A copy of a text that lives as long as the script; "" when out of memory. */
const char *bash_keep(struct bash *script, const char *text, size_t length);

/* 1-based line and column of an offset. */
void bash_place(const struct bash *script, uint32_t offset, int *line, int *column);

/* Why a word is unknown: "$MICRO_BATCH_SIZE is not set in run.sh". Returns `text`. */
const char *bash_cause(const struct bash *script, uint32_t cause, const char *file, char *text, size_t size);

/* Offsets of backslashes that were meant to continue a line but are followed by spaces. */
const uint32_t *bash_broken_continuations(const struct bash *script, int *count);

#endif
