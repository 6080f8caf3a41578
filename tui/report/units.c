#include "tui/report/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *option;
    uint64_t bytes;
    int decimals;
} units[] = {
    [OC_UNIT_GIB] = {"GiB", "gib", 1u << 30, 2},
    [OC_UNIT_GB] = {"GB", "gb", 1000000000u, 2},
    [OC_UNIT_BYTES] = {"B", "bytes", 1, 0},
    [OC_UNIT_MIB] = {"MiB", "mib", 1u << 20, 2},
};

enum { N_UNITS = sizeof units / sizeof units[0] };

const char *oc_unit_name(enum oc_unit unit)
{
    return units[unit].name;
}

bool oc_unit_find(const char *name, enum oc_unit *unit)
{
    for (int i = 0; i < N_UNITS; i++) {
        if (strcasecmp(name, units[i].option) == 0) {
            *unit = (enum oc_unit)i;
            return true;
        }
    }
    return false;
}

const char *oc_format_count(uint64_t count, char *text, size_t size)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count), used = 0;
    char grouped[OC_BYTES_TEXT];
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) grouped[used++] = ',';
        grouped[used++] = digits[i];
    }
    grouped[used] = '\0';
    snprintf(text, size, "%s", grouped);
    return text;
}

/* `bytes` over the unit with so many decimals, rounded to nearest. Integers only: no value loses its last digit, and no
 * locale turns the point into a comma. */
static void write_decimal(uint64_t bytes, enum oc_unit unit, int decimals, char text[OC_BYTES_TEXT])
{
    uint64_t divisor = units[unit].bytes, scale = 1;
    for (int i = 0; i < decimals; i++) scale *= 10;
    uint64_t whole = bytes / divisor, part = (bytes % divisor * scale + divisor / 2) / divisor;
    if (part >= scale) {
        whole++;
        part = 0;
    }
    if (decimals == 0)
        snprintf(text, OC_BYTES_TEXT, "%" PRIu64, whole);
    else
        snprintf(text, OC_BYTES_TEXT, "%" PRIu64 ".%0*" PRIu64, whole, decimals, part);
}

/* A positive amount with a sign before it ("" for none), never wider than `width`. */
static const char *write_amount(const char *sign, uint64_t bytes, enum oc_unit unit, int width, char *text, size_t size)
{
    char number[OC_BYTES_TEXT], signed_text[OC_BYTES_TEXT + 4];
    int most = units[unit].decimals;
    bool tiny = bytes > 0 && most > 0 && bytes < (units[unit].bytes + 199) / 200;
    if (tiny && (width == 0 || width >= 5 + (int)strlen(sign))) {
        snprintf(text, size, "%s<0.01", sign);
        return text;
    }
    if (unit == OC_UNIT_BYTES) {
        oc_format_count(bytes, number, sizeof number);
        snprintf(signed_text, sizeof signed_text, "%s%s", sign, number);
        if (width == 0 || (int)strlen(signed_text) <= width) {
            snprintf(text, size, "%s", signed_text);
            return text;
        }
    }
    for (int decimals = most; decimals >= 0; decimals--) {
        write_decimal(bytes, unit, decimals, number);
        snprintf(signed_text, sizeof signed_text, "%s%s", sign, number);
        if (width == 0 || (int)strlen(signed_text) <= width) {
            snprintf(text, size, "%s", signed_text);
            return text;
        }
    }
    snprintf(text, size, "%.*s", width > 0 ? width : 0, "################################");
    return text;
}

const char *oc_format_amount(uint64_t bytes, enum oc_unit unit, int width, char *text, size_t size)
{
    return write_amount("", bytes, unit, width, text, size);
}

const char *oc_format_change(uint64_t from, uint64_t to, enum oc_unit unit, int width, char *text, size_t size)
{
    if (from == to) {
        snprintf(text, size, "0");
        return text;
    }
    return write_amount(to > from ? "+" : "-", to > from ? to - from : from - to, unit, width, text, size);
}

const char *oc_format_signed(int64_t change, enum oc_unit unit, int width, char *text, size_t size)
{
    return oc_format_change(change < 0 ? (uint64_t)-change : 0, change < 0 ? 0 : (uint64_t)change, unit, width, text,
                            size);
}

const char *oc_format_bytes(uint64_t bytes, enum oc_unit unit, char *text, size_t size)
{
    char number[OC_BYTES_TEXT];
    oc_format_amount(bytes, unit, 0, number, sizeof number);
    snprintf(text, size, "%s %s", number, units[unit].name);
    return text;
}
