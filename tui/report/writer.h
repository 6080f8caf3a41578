/* Writes JSON in order into a buffer. Integers are written digit by digit, never through a double: bytes stay exact.
 *
 * Every call takes the member's key, or NULL inside an array. An object or array that is opened with `inline` set stays
 * on one line, and so does everything in it.
 *
 * Ownership: the buffer is the caller's; the writer itself owns nothing. */
#ifndef OC_TUI_REPORT_WRITER_H
#define OC_TUI_REPORT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/report/buffer.h"

enum { OC_JSON_DEPTH = 16 };

struct oc_json {
    struct oc_buffer *out;
    bool inline_all; /* the whole document on one line */
    int depth;
    struct {
        char close; /* '}' or ']' */
        bool is_inline, has_members;
    } level[OC_JSON_DEPTH];
};

void oc_json_object(struct oc_json *json, const char *key, bool is_inline);
void oc_json_array(struct oc_json *json, const char *key, bool is_inline);
void oc_json_close(struct oc_json *json); /* the innermost object or array; the last one ends the line */

void oc_json_string(struct oc_json *json, const char *key,
                    const char *text); /* bytes that are not UTF-8 become U+FFFD */
void oc_json_unsigned(struct oc_json *json, const char *key, uint64_t value);
void oc_json_signed(struct oc_json *json, const char *key, int64_t value);
void oc_json_number(struct oc_json *json, const char *key, double value); /* null when it is not finite */
void oc_json_bool(struct oc_json *json, const char *key, bool value);
void oc_json_null(struct oc_json *json, const char *key);

#endif
