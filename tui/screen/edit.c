#include "tui/screen/edit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomcast/model.h"
#include "tui/report/units.h"

/* A search for the next value goes through at most this many candidates, so that a key press stays instant. */
enum { MOST_CANDIDATES = 64 };

struct search {
    const struct oc_config *config, *resolved;
    enum oc_option_id id;
    const struct oc_option *option;
    bool forward;
    oc_resolves resolves;
    void *user;
    struct oc_config *out;
    struct oc_error *error; /* of the first candidate that failed */
    int tried;
};

/* Tries a configuration in which the option has its new value already. */
static bool try_config(struct search *search, struct oc_config *candidate)
{
    struct oc_error error = {0};
    char asked[OC_NAME_MAX], taken[OC_NAME_MAX];
    oc_set_given(candidate, search->id, true);
    const struct oc_config *resolved = search->resolves(candidate, &error, search->user);
    if (resolved) {
        oc_option_text(candidate, search->id, asked, sizeof asked);
        oc_option_text(resolved, search->id, taken, sizeof taken);
        if (strcmp(asked, taken) == 0) {
            *search->out = *candidate;
            return true;
        }
        oc_fail(&error, OC_E_VALUE, "%s = %s is taken as %s here", search->option->key, asked, taken);
    }
    if (search->tried++ == 0 && search->error) *search->error = error;
    return false;
}

static bool try_number(struct search *search, int64_t value)
{
    struct oc_config candidate = *search->config;
    if (value < search->option->min || value > search->option->max) return false;
    oc_option_put(&candidate, search->id, value);
    return try_config(search, &candidate);
}

static bool try_text(struct search *search, const char *text)
{
    struct oc_config candidate = *search->config;
    if (!oc_option_set(&candidate, search->id, text, NULL)) return false;
    return try_config(search, &candidate);
}

/* Choices in the order of the table; `far` begins at the other end. */
static bool step_choice(struct search *search, bool far)
{
    const struct oc_choice *choices = search->option->choices;
    int n = 0, now = -1;
    int64_t value = oc_option_get(search->resolved, search->id);
    for (; choices[n].name; n++)
        if (choices[n].value == value) now = n;
    int direction = search->forward ? 1 : -1;
    if (!far) {
        for (int i = now + direction; i >= 0 && i < n; i += direction)
            if (try_number(search, choices[i].value)) return true;
        return false;
    }
    for (int i = search->forward ? n - 1 : 0; i != now && i >= 0 && i < n; i -= direction)
        if (try_number(search, choices[i].value)) return true;
    return false;
}

/* Every combination, counted like a binary number: three modules make eight. */
static bool step_set(struct search *search)
{
    int64_t all = 0, value = oc_option_get(search->resolved, search->id);
    for (const struct oc_choice *choice = search->option->choices; choice->name; choice++) all |= choice->value;
    for (int i = 0; i < MOST_CANDIDATES; i++) {
        value += search->forward ? 1 : -1;
        if (value < 0 || value > all) return false;
        if ((value & ~all) == 0 && try_number(search, value)) return true;
    }
    return false;
}

static bool step_scaled(struct search *search)
{
    int64_t value = oc_option_get(search->resolved, search->id);
    for (int i = 0; i < MOST_CANDIDATES; i++) {
        int64_t next = search->forward ? (value > 0 ? value * 2 : 1) : value / 2;
        if (next == value || next > search->option->max || next < search->option->min) return false;
        value = next;
        if (try_number(search, value)) return true;
    }
    return false;
}

/* The numbers written in the option's row, "1 2 4 8". */
static bool step_listed(struct search *search)
{
    int64_t listed[MOST_CANDIDATES], value = oc_option_get(search->resolved, search->id);
    int n = 0;
    for (const char *at = search->option->steps; *at && n < MOST_CANDIDATES;) {
        char *end;
        listed[n++] = strtoll(at, &end, 10);
        at = end == at ? at + strlen(at) : end;
    }
    for (int i = 0; i < n; i++) {
        int64_t candidate = listed[search->forward ? i : n - 1 - i];
        if (search->forward ? candidate <= value : candidate >= value) continue;
        if (try_number(search, candidate)) return true;
    }
    return false;
}

/* Only zero or not matters to memory, so a few values are enough. */
static bool step_fraction(struct search *search)
{
    static const char *const listed[] = {"0", "0.1", "0.5", "0.9", "1"};
    enum { N = sizeof listed / sizeof listed[0] };
    const double now = *(const double *)(const void *)((const char *)search->resolved + search->option->offset);
    for (int i = 0; i < N; i++) {
        const char *text = listed[search->forward ? i : N - 1 - i];
        double value = strtod(text, NULL);
        if (search->forward ? value <= now + 1e-9 : value >= now - 1e-9) continue;
        if (try_text(search, text)) return true;
    }
    return false;
}

static const char *listed_name(enum oc_option_id id, int index)
{
    int n = 0;
    if (id == OC_OPT_model_name) {
        const struct oc_model_row *models = oc_models(&n);
        return index < n ? models[index].name : NULL;
    }
    const struct oc_gpu_row *gpus = oc_gpus(&n);
    return index < n ? gpus[index].name : NULL;
}

/* Known models and GPUs; other strings can only be typed. */
static bool step_name(struct search *search)
{
    const char *value = (const char *)search->resolved + search->option->offset, *name;
    if (search->id != OC_OPT_model_name && search->id != OC_OPT_gpu) return false;
    int now = -1, n = 0, direction = search->forward ? 1 : -1;
    for (; (name = listed_name(search->id, n)); n++)
        if (strcmp(name, value) == 0) now = n;
    if (now < 0 && !search->forward) now = n;
    for (int i = now + direction; i >= 0 && i < n; i += direction)
        if (try_text(search, listed_name(search->id, i))) return true;
    return false;
}

bool oc_edit_step(const struct oc_config *config, const struct oc_config *resolved, enum oc_option_id id,
                  enum oc_step step, oc_resolves resolves, void *user, struct oc_config *out, struct oc_error *error)
{
    const struct oc_option *option = oc_option(id);
    bool forward = step == OC_STEP_NEXT || step == OC_STEP_DOUBLE,
         far = step == OC_STEP_HALVE || step == OC_STEP_DOUBLE;
    struct search search = {config, resolved, id, option, forward, resolves, user, out, error, 0};
    bool found = false;
    switch (option->type) {
    case OC_T_BOOL: found = try_number(&search, !oc_option_get(resolved, id)); break;
    case OC_T_ENUM: found = step_choice(&search, far); break;
    case OC_T_SET: found = step_set(&search); break;
    case OC_T_INT: found = option->steps && !far ? step_listed(&search) : step_scaled(&search); break;
    case OC_T_FLOAT: found = step_fraction(&search); break;
    case OC_T_STRING: found = step_name(&search); break;
    }
    if (!found && search.tried == 0) {
        oc_fail(error, OC_E_VALUE, "%s has no further value in this direction", option->key);
        oc_hint(error, "Enter types any value");
    }
    return found;
}

const char *oc_edit_text(const struct oc_config *resolved, enum oc_option_id id, bool given, char *text, size_t size)
{
    const struct oc_option *option = oc_option(id);
    int64_t value = option->type == OC_T_FLOAT || option->type == OC_T_STRING ? 1 : oc_option_get(resolved, id);
    if (option->type == OC_T_BOOL)
        snprintf(text, size, "%s", value ? "[x]" : "[ ]");
    else if (option->type == OC_T_INT && value == 0 && !given && option->def == 0 && !option->steps)
        snprintf(text, size, "auto");
    else if (option->is_bytes)
        oc_format_bytes((uint64_t)value, value < 1 << 28 ? OC_UNIT_MIB : OC_UNIT_GIB, text, size);
    else
        oc_option_text(resolved, id, text, size);
    if (!text[0]) snprintf(text, size, "none");
    return text;
}

static void add(char *text, size_t size, const char *before, const char *word, const char *after)
{
    size_t used = strlen(text);
    if (used < size) snprintf(text + used, size - used, "%s%s%s%s", used ? " " : "", before, word, after);
}

const char *oc_edit_choices(const struct oc_config *resolved, enum oc_option_id id, char *text, size_t size)
{
    const struct oc_option *option = oc_option(id);
    text[0] = '\0';
    if (option->type == OC_T_ENUM || option->type == OC_T_SET) {
        int64_t value = oc_option_get(resolved, id);
        for (const struct oc_choice *choice = option->choices; choice->name; choice++) {
            bool on = option->type == OC_T_ENUM ? value == choice->value : (value & choice->value) != 0;
            add(text, size, on ? "[" : "", choice->name, on ? "]" : "");
        }
    } else if (option->type == OC_T_INT && option->steps) {
        int64_t value = oc_option_get(resolved, id);
        for (const char *at = option->steps; *at;) {
            char *end, number[24];
            long long step = strtoll(at, &end, 10);
            if (end == at) break;
            snprintf(number, sizeof number, "%lld", step);
            add(text, size, step == value ? "[" : "", number, step == value ? "]" : "");
            at = end;
        }
    }
    return text;
}
