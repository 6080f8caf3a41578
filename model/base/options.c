/* The options table and everything that reads or writes a single option. */
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomcast/config.h"
#include "oomcast/dtype.h"
#include "model/base/choices.h"
#include "model/base/names.h"

/* Range of each type where its row names none. A row's own members override these. */
#define DEFAULTS_INT    .max = INT64_MAX,
#define DEFAULTS_BOOL   .max = 1,
#define DEFAULTS_ENUM   .max = INT64_MAX,
#define DEFAULTS_SET    .max = INT64_MAX,
#define DEFAULTS_FLOAT  .fmax = 1e300,
#define DEFAULTS_STRING .max = 0,

static const struct oc_option table[OC_OPTIONS] = {
#define OC_OPTION(t, field, ...)                                                                                       \
    [OC_OPT_##field] = {.type = OC_T_##t, .offset = offsetof(struct oc_config, field), DEFAULTS_##t __VA_ARGS__},
#include "oomcast/options.def"
#undef OC_OPTION
};

_Static_assert(OC_OPTIONS <= 256, "struct oc_config has 256 given bits");

const struct oc_option *oc_option(enum oc_option_id id)
{
    return &table[id];
}

/* ---- finding ---- */

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

static void hint_nearest(const char *name, struct oc_error *error)
{
    int best = INT_MAX;
    const char *nearest = NULL;
    for (int i = 0; i < OC_OPTIONS; i++) {
        int whole = oc_name_distance(name, table[i].key), part = oc_name_distance(name, last_part(table[i].key));
        int near = whole < part ? whole : part;
        if (near < best) best = near, nearest = table[i].key;
    }
    if (nearest && best <= 4)
        oc_hint(error, "did you mean %s? `oomcast options` lists all", nearest);
    else
        oc_hint(error, "`oomcast options` lists all");
}

bool oc_option_find(const char *name, enum oc_option_id *id, struct oc_error *error)
{
    int found = -1, matches = 0;
    char candidates[200] = "";
    for (int i = 0; i < OC_OPTIONS; i++) {
        if (!strcmp(table[i].key, name)) {
            *id = (enum oc_option_id)i;
            return true;
        }
        if (!strcmp(last_part(table[i].key), name)) {
            if (table[i].owns_last_part) {
                *id = (enum oc_option_id)i;
                return true;
            }
            size_t used = strlen(candidates);
            snprintf(candidates + used, sizeof candidates - used, "%s%s", matches ? " or " : "", table[i].key);
            found = i;
            matches++;
        }
    }
    if (matches == 1) {
        *id = (enum oc_option_id)found;
        return true;
    }
    if (matches > 1) {
        oc_fail(error, OC_E_KEY, "the short name '%s' is ambiguous", name);
        return oc_hint(error, "write %s", candidates);
    }
    oc_fail(error, OC_E_KEY, "there is no option '%.60s'", name);
    hint_nearest(name, error);
    return false;
}

/* Whether `word` is one of the space-separated words of `list`. */
static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at && n && (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

enum oc_option_id oc_option_by_flag(const char *flag)
{
    for (int i = 0; i < OC_OPTIONS; i++)
        if (list_has(table[i].flags, flag)) return (enum oc_option_id)i;
    return OC_OPTIONS;
}

/* ---- reading values ---- */

static const struct {
    const char *name;
    double scale;
} suffixes[] = {{"k", 1e3}, {"K", 1e3},  {"m", 1e6},   {"M", 1e6},      {"b", 1e9},
                {"B", 1e9}, {"T", 1e12}, {"Ki", 1024}, {"Mi", 1048576}, {"Gi", 1073741824}},
  byte_suffixes[] = {{"B", 1},      {"KB", 1e3},      {"MB", 1e6},         {"GB", 1e9},           {"TB", 1e12},
                     {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}};

static double suffix_scale(const char *text, bool bytes)
{
    if (!*text) return 1;
    if (bytes)
        for (size_t i = 0; i < sizeof byte_suffixes / sizeof *byte_suffixes; i++)
            if (!strcmp(text, byte_suffixes[i].name)) return byte_suffixes[i].scale;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && !bytes; i++)
        if (!strcmp(text, suffixes[i].name)) return suffixes[i].scale;
    return 0;
}

bool oc_parse_integer(const char *text, bool unit_bytes, int64_t *value)
{
    char digits[64];
    size_t n = 0;
    bool plain = true, seen = false;
    const char *at = text;
    if (*at == '-' || *at == '+') digits[n++] = *at++;
    for (; *at && n < sizeof digits - 1; at++) {
        bool exponent =
            (*at == 'e' || *at == 'E') && seen &&
            (isdigit((unsigned char)at[1]) || ((at[1] == '+' || at[1] == '-') && isdigit((unsigned char)at[2])));
        if (*at == '_' && seen && isdigit((unsigned char)at[1])) continue;
        if (isdigit((unsigned char)*at)) {
            seen = true;
        } else if (*at == '.' || exponent) {
            plain = false;
            if (exponent && !isdigit((unsigned char)at[1])) digits[n++] = *at++;
        } else {
            break;
        }
        digits[n++] = *at;
    }
    digits[n] = 0;
    while (unit_bytes && *at == ' ') at++;
    double scale = suffix_scale(at, unit_bytes);
    if (!seen || scale == 0 || n >= sizeof digits - 1) return false;
    char *end;
    if (plain && scale == 1) {
        long long whole = strtoll(digits, &end, 10);
        if (*end || whole == LLONG_MAX || whole == LLONG_MIN) return false;
        *value = whole;
        return true;
    }
    double number = strtod(digits, &end) * scale;
    if (*end || !(fabs(number) < 9.2e18) || number != floor(number)) return false;
    *value = (int64_t)number;
    return true;
}

static bool parse_bool(const char *text, int64_t *value)
{
    static const char *const yes = "true 1 yes on True TRUE", *const no = "false 0 no off False FALSE";
    bool is = list_has(yes, text);
    *value = is;
    return is || list_has(no, text);
}

/* "a, b or c" for the hint. */
static void hint_choices(const struct oc_option *option, struct oc_error *error)
{
    char list[300] = "";
    for (const struct oc_choice *choice = option->choices; choice->name; choice++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", choice->name);
    }
    oc_hint(error, "one of: %s", list);
}

static const struct oc_choice *find_choice(const struct oc_option *option, const char *name, size_t length)
{
    for (const struct oc_choice *choice = option->choices; choice->name; choice++)
        if (strlen(choice->name) == length && !strncmp(choice->name, name, length)) return choice;
    return NULL;
}

static bool parse_set(const struct oc_option *option, const char *text, int64_t *value)
{
    *value = 0;
    if (!strcmp(text, "none")) return true;
    while (*text) {
        size_t length = strcspn(text, ", ");
        if (length) {
            const struct oc_choice *choice = find_choice(option, text, length);
            if (!choice) return false;
            *value |= choice->value;
        }
        text += length + (text[length] != 0);
    }
    return true;
}

static bool bad(const struct oc_option *option, const char *text, const char *wanted, struct oc_error *error)
{
    return oc_fail(error, OC_E_VALUE, "%s: '%.60s' is not %s", option->key, text, wanted);
}

static bool set_integer(struct oc_config *config, const struct oc_option *option, const char *text,
                        struct oc_error *error)
{
    int64_t value;
    if (!oc_parse_integer(text, option->is_bytes, &value)) {
        bad(option, text, option->is_bytes ? "a byte count" : "an integer that can be counted", error);
        return oc_hint(error, option->is_bytes ? "80GiB, 80GB and 85899345920 are" : "4096, 7e9 and 7B are");
    }
    if (value < option->min || value > option->max) {
        oc_fail(error, OC_E_VALUE, "%s: %lld is out of range", option->key, (long long)value);
        return oc_hint(error, "it must be between %lld and %lld", (long long)option->min, (long long)option->max);
    }
    *(int64_t *)(void *)((char *)config + option->offset) = value;
    return true;
}

static bool set_float(struct oc_config *config, const struct oc_option *option, const char *text,
                      struct oc_error *error)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= option->fmin && value <= option->fmax)) {
        bad(option, text, "a number in its range", error);
        return oc_hint(error, "it must be between %g and %g", option->fmin, option->fmax);
    }
    *(double *)(void *)((char *)config + option->offset) = value;
    return true;
}

static bool set_named(struct oc_config *config, const struct oc_option *option, const char *text,
                      struct oc_error *error)
{
    int64_t value = 0;
    bool good;
    if (option->type == OC_T_ENUM) {
        const struct oc_choice *choice = find_choice(option, text, strlen(text));
        good = choice != NULL;
        if (choice) value = choice->value;
    } else {
        good = parse_set(option, text, &value);
    }
    if (!good) {
        bad(option, text, "one of its values", error);
        hint_choices(option, error);
        return false;
    }
    *(int64_t *)(void *)((char *)config + option->offset) = value;
    return true;
}

static bool set_string(struct oc_config *config, const struct oc_option *option, const char *text,
                       struct oc_error *error)
{
    if (strlen(text) >= OC_NAME_MAX) {
        oc_fail(error, OC_E_VALUE, "%s: the name is too long", option->key);
        return oc_hint(error, "at most %d characters", OC_NAME_MAX - 1);
    }
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) return bad(option, "...", "printable text", error);
    char *field = (char *)config + option->offset;
    memset(field, 0, OC_NAME_MAX); /* equal configurations have equal bytes */
    memcpy(field, text, strlen(text));
    return true;
}

bool oc_option_set(struct oc_config *config, enum oc_option_id id, const char *text, struct oc_error *error)
{
    const struct oc_option *option = &table[id];
    int64_t value;
    bool good = false;
    switch (option->type) {
    case OC_T_INT: good = set_integer(config, option, text, error); break;
    case OC_T_FLOAT: good = set_float(config, option, text, error); break;
    case OC_T_ENUM:
    case OC_T_SET: good = set_named(config, option, text, error); break;
    case OC_T_STRING: good = set_string(config, option, text, error); break;
    case OC_T_BOOL:
        good = parse_bool(text, &value);
        if (good)
            oc_option_put(config, id, value);
        else
            bad(option, text, "true or false", error);
        break;
    }
    if (good) oc_set_given(config, id, true);
    return good;
}

bool oc_config_assign(struct oc_config *config, const char *assignment, enum oc_option_id *id, struct oc_error *error)
{
    const char *equals = strchr(assignment, '=');
    char key[OC_NAME_MAX];
    if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof key) {
        oc_fail(error, OC_E_USAGE, "'%.60s' is not KEY=VALUE", assignment);
        return oc_hint(error, "for example precision=bf16");
    }
    snprintf(key, sizeof key, "%.*s", (int)(equals - assignment), assignment);
    enum oc_option_id found;
    if (!oc_option_find(key, &found, error)) return false;
    if (id) *id = found;
    return oc_option_set(config, found, equals + 1, error);
}

/* ---- writing values ---- */

static void set_text(const struct oc_option *option, int64_t value, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (const struct oc_choice *choice = option->choices; choice->name; choice++)
        if ((value & choice->value) && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", choice->name);
    if (!used) snprintf(text, size, "none");
}

const char *oc_option_text(const struct oc_config *config, enum oc_option_id id, char *text, size_t size)
{
    const struct oc_option *option = &table[id];
    const void *field = (const char *)config + option->offset;
    int64_t value;
    switch (option->type) {
    case OC_T_STRING: snprintf(text, size, "%s", (const char *)field); return text;
    case OC_T_FLOAT: snprintf(text, size, "%g", *(const double *)field); return text;
    case OC_T_BOOL: snprintf(text, size, "%s", *(const int64_t *)field ? "true" : "false"); return text;
    case OC_T_INT: snprintf(text, size, "%lld", (long long)*(const int64_t *)field); return text;
    case OC_T_SET: set_text(option, *(const int64_t *)field, text, size); return text;
    case OC_T_ENUM: break;
    }
    value = *(const int64_t *)field;
    snprintf(text, size, "%lld", (long long)value);
    for (const struct oc_choice *choice = option->choices; choice->name; choice++)
        if (choice->value == value) {
            snprintf(text, size, "%s", choice->name);
            break;
        }
    return text;
}

int64_t oc_option_get(const struct oc_config *config, enum oc_option_id id)
{
    return *(const int64_t *)(const void *)((const char *)config + table[id].offset);
}

void oc_option_put(struct oc_config *config, enum oc_option_id id, int64_t value)
{
    *(int64_t *)(void *)((char *)config + table[id].offset) = value;
}

bool oc_given(const struct oc_config *config, enum oc_option_id id)
{
    return config->given[id / 64] >> (id % 64) & 1;
}

void oc_set_given(struct oc_config *config, enum oc_option_id id, bool given)
{
    uint64_t bit = (uint64_t)1 << (id % 64);
    if (given)
        config->given[id / 64] |= bit;
    else
        config->given[id / 64] &= ~bit;
}

/* ---- whole configurations ---- */

static void put_default(struct oc_config *config, enum oc_option_id id)
{
    const struct oc_option *option = &table[id];
    void *field = (char *)config + option->offset;
    if (option->type == OC_T_STRING)
        memset(field, 0, OC_NAME_MAX);
    else if (option->type == OC_T_FLOAT)
        *(double *)field = option->fdef;
    else
        *(int64_t *)field = option->def;
}

void oc_option_reset(struct oc_config *config, enum oc_option_id id)
{
    put_default(config, id);
    oc_set_given(config, id, false);
}

struct oc_config oc_config_default(void)
{
    struct oc_config config;
    memset(&config, 0, sizeof config);
    for (int i = 0; i < OC_OPTIONS; i++) put_default(&config, (enum oc_option_id)i);
    return config;
}

void oc_config_merge(struct oc_config *config, const struct oc_config *later)
{
    for (int i = 0; i < OC_OPTIONS; i++) {
        enum oc_option_id id = (enum oc_option_id)i;
        if (oc_given(config, id) || !oc_given(later, id)) continue;
        size_t size = table[i].type == OC_T_STRING ? OC_NAME_MAX : sizeof(int64_t);
        memcpy((char *)config + table[i].offset, (const char *)later + table[i].offset, size);
        oc_set_given(config, id, true);
    }
}
