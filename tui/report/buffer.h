/* A growing text: what a command has to say is collected here and printed at the end, so that a command which fails has
 * printed nothing.
 *
 * Ownership: oc_buffer_free() releases the text. Running out of memory sets `failed`, and everything after it is
 * ignored. */
#ifndef OC_TUI_REPORT_BUFFER_H
#define OC_TUI_REPORT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct oc_buffer {
    char *data; /* ends with a NUL; NULL while empty */
    size_t size, capacity;
    bool failed;
};

void oc_buffer_free(struct oc_buffer *buffer);

/* Appends text as it is. */
void oc_put(struct oc_buffer *buffer, const char *text);
void oc_put_bytes(struct oc_buffer *buffer, const char *bytes, size_t size);

/* Appends printf-formatted text. */
void oc_putf(struct oc_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends `text` broken between words into lines of at most `width` columns, each ended by a newline. The cursor stands
 * at column `at`; the lines after the first begin with `indent` spaces. A word that is longer than a line stands alone
 * on one. */
void oc_put_wrapped(struct oc_buffer *buffer, const char *text, int at, int indent, int width);

#endif
