/* Byte counts as text, the same for the report and the screen. No result is ever wider than its field: a number that
 * does not fit loses decimals first, and is replaced by '#' last, so that columns never shift.
 *
 * Ownership: text is written into the caller's buffer and always ends with a NUL; every function returns that buffer.
 */
#ifndef OOMCAST_UNITS_H
#define OOMCAST_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oc_unit { OC_UNIT_GIB, OC_UNIT_GB, OC_UNIT_BYTES, OC_UNIT_MIB };

enum { OC_BYTES_TEXT = 32 }; /* large enough for any result below */

/* "GiB", "GB", "B", "MiB". */
const char *oc_unit_name(enum oc_unit unit);

/* Finds a unit as --units names it: gib, gb or bytes (mib is for the probe's small shapes). */
bool oc_unit_find(const char *name, enum oc_unit *unit);

/* "11.25 GiB", "12.08 GB", "15,019,868,160 B". What is not zero but would round to 0.00 is written "<0.01 GiB". */
const char *oc_format_bytes(uint64_t bytes, enum oc_unit unit, char *text, size_t size);

/* The number alone, in at most `width` columns (0 = as many as it takes), for columns whose head names the unit. */
const char *oc_format_amount(uint64_t bytes, enum oc_unit unit, int width, char *text, size_t size);

/* to - from with its sign, "+3.65" or "-1.75", in at most `width` columns; "0" when both are the same. */
const char *oc_format_change(uint64_t from, uint64_t to, enum oc_unit unit, int width, char *text, size_t size);

/* The same for a change that is known as such. */
const char *oc_format_signed(int64_t change, enum oc_unit unit, int width, char *text, size_t size);

/* A count with thousands separated: "938,741,760". */
const char *oc_format_count(uint64_t count, char *text, size_t size);

#endif
