#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/report/writer.h"

/* Length of the UTF-8 sequence that starts here, or 0 when it is malformed (overlong, surrogate, cut short). */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0; /* the NUL at the end stops here too */
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
    bool too_large = s[0] == 0xf4 && s[1] >= 0x90;
    return overlong || surrogate || too_large ? 0 : n;
}

static void put_quoted(struct oc_buffer *out, const char *text)
{
    oc_put(out, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_length(s);
        if (*s == '"' || *s == '\\')
            oc_putf(out, "\\%c", *s);
        else if (*s == '\n')
            oc_put(out, "\\n");
        else if (*s == '\t')
            oc_put(out, "\\t");
        else if (*s < 0x20 || *s == 0x7f)
            oc_putf(out, "\\u%04x", *s);
        else if (n == 0)
            oc_put(out, "\\ufffd");
        else
            oc_put_bytes(out, (const char *)s, n);
        s += n ? n : 1;
    }
    oc_put(out, "\"");
}

static bool is_inline(const struct oc_json *json)
{
    return json->inline_all || (json->depth > 0 && json->level[json->depth - 1].is_inline);
}

/* Comma, line break and key: what stands before any value. */
static void begin(struct oc_json *json, const char *key)
{
    if (json->depth > 0) {
        if (json->level[json->depth - 1].has_members)
            oc_put(json->out, is_inline(json) && !json->inline_all ? ", " : ",");
        json->level[json->depth - 1].has_members = true;
        if (!is_inline(json)) oc_putf(json->out, "\n%*s", 2 * json->depth, "");
    }
    if (key) {
        put_quoted(json->out, key);
        oc_put(json->out, json->inline_all ? ":" : ": ");
    }
}

static void open_level(struct oc_json *json, const char *key, const char *brackets, bool stays_inline)
{
    begin(json, key);
    oc_put_bytes(json->out, brackets, 1);
    bool inherits = is_inline(json);
    if (json->depth == OC_JSON_DEPTH) {
        json->out->failed = true; /* a defect of the caller: no document of ours is that deep */
        return;
    }
    json->level[json->depth].close = brackets[1];
    json->level[json->depth].is_inline = stays_inline || inherits;
    json->level[json->depth].has_members = false;
    json->depth++;
}

void oc_json_object(struct oc_json *json, const char *key, bool is_inline_too)
{
    open_level(json, key, "{}", is_inline_too);
}

void oc_json_array(struct oc_json *json, const char *key, bool is_inline_too)
{
    open_level(json, key, "[]", is_inline_too);
}

void oc_json_close(struct oc_json *json)
{
    if (json->depth == 0) return;
    bool stays = is_inline(json);
    json->depth--;
    if (!stays && json->level[json->depth].has_members) oc_putf(json->out, "\n%*s", 2 * json->depth, "");
    oc_put_bytes(json->out, &json->level[json->depth].close, 1);
    if (json->depth == 0) oc_put(json->out, "\n");
}

void oc_json_string(struct oc_json *json, const char *key, const char *text)
{
    begin(json, key);
    put_quoted(json->out, text);
}

void oc_json_unsigned(struct oc_json *json, const char *key, uint64_t value)
{
    begin(json, key);
    oc_putf(json->out, "%" PRIu64, value);
}

void oc_json_signed(struct oc_json *json, const char *key, int64_t value)
{
    begin(json, key);
    oc_putf(json->out, "%" PRId64, value);
}

void oc_json_number(struct oc_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        oc_json_null(json, key);
        return;
    }
    char text[40];
    for (int digits = 6; digits <= 17; digits++) { /* the shortest that reads back as the same number */
        snprintf(text, sizeof text, "%.*g", digits, value);
        double again = strtod(text, NULL);
        if (again >= value && again <= value) break;
    }
    begin(json, key);
    oc_put(json->out, text);
}

void oc_json_bool(struct oc_json *json, const char *key, bool value)
{
    begin(json, key);
    oc_put(json->out, value ? "true" : "false");
}

void oc_json_null(struct oc_json *json, const char *key)
{
    begin(json, key);
    oc_put(json->out, "null");
}
