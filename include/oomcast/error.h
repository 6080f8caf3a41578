/* Errors are values: a function that can fail returns false (or NULL) and fills the caller's oc_error.
 * Nothing below main() exits, and nothing here allocates. */
#ifndef OOMCAST_ERROR_H
#define OOMCAST_ERROR_H

#include <stdbool.h>

enum oc_code {
    OC_OK = 0,
    OC_E_USAGE,    /* the command line itself is wrong */
    OC_E_IO,       /* a file cannot be read, is a directory, is too large */
    OC_E_PARSE,    /* the text of an input is malformed */
    OC_E_KEY,      /* an option does not exist, or its short name is ambiguous */
    OC_E_VALUE,    /* a value is outside its option's type or range */
    OC_E_CONFLICT, /* values that are each valid cannot hold together */
    OC_E_LIMIT,    /* larger than this program can count */
    OC_E_INTERNAL  /* a defect of oomcast */
};

struct oc_error {
    enum oc_code code;
    char message[320]; /* what is wrong, one sentence without a full stop */
    char hint[320];    /* what to do about it, or "" */
    char file[192];    /* where the offending text stands, or "" */
    int line, column;  /* 1-based; 0 = unknown */
};

/* Fills `error` (which may be NULL) with a printf-formatted message, no hint and no place. Always returns false. */
bool oc_fail(struct oc_error *error, enum oc_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Adds a printf-formatted hint to an error already filled. Always returns false. */
bool oc_hint(struct oc_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds the place of the offending text. Always returns false. */
bool oc_at(struct oc_error *error, const char *file, int line, int column);

/* "file:line:column: message (hint)" into `text`, cut to fit; returns `text`. */
const char *oc_error_text(const struct oc_error *error, char *text, int size);

#endif
