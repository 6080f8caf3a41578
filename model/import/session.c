/* JSON sessions: {"oomcast":1,"set":{"key":value,...}}. What is saved is what is read: nothing unknown is skipped. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/import.h"

enum { SESSION_VERSION = 1 };

struct session {
    struct oc_input *input;
    int file;
    const char *text;
    size_t size;
    struct oc_error *error;
};

/* Puts line and column of an offset into the error. */
static bool at_offset(const struct session *session, size_t offset)
{
    int line = 1, column = 1;
    for (size_t i = 0; i < offset && i < session->size; i++) {
        column++;
        if (session->text[i] == '\n') line++, column = 1;
    }
    return oc_at(session->error, session->input->files[session->file], line, column);
}

/* Where "key": stands; cJSON does not say. The last such place counts: errors are about what was read last. */
static size_t find_key(const struct session *session, const char *key)
{
    size_t n = strlen(key), found = 0;
    for (size_t i = 0; i + n + 2 <= session->size; i++) {
        if (session->text[i] != '"' || memcmp(session->text + i + 1, key, n) != 0 || session->text[i + n + 1] != '"')
            continue;
        size_t after = i + n + 2;
        while (after < session->size && strchr(" \t\r\n", session->text[after])) after++;
        if (after < session->size && session->text[after] == ':') found = i;
    }
    return found;
}

static int line_of(const struct session *session, size_t offset)
{
    int line = 1;
    for (size_t i = 0; i < offset; i++) line += session->text[i] == '\n';
    return line;
}

int session_detect(const char *text, size_t size)
{
    static const char key[] = "\"oomcast\"";
    size_t at = size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (at < size && strchr(" \t\r\n", text[at])) at++;
    if (at == size || text[at] != '{') return 0;
    for (size_t i = at; i + sizeof key - 1 <= size; i++)
        if (!memcmp(text + i, key, sizeof key - 1)) return 100;
    return 0;
}

/* A value as oc_option_set() reads it. */
static bool value_text(const struct session *session, const cJSON *item, char *text, size_t size)
{
    const char *key = item->string;
    if (cJSON_IsBool(item)) {
        snprintf(text, size, "%s", cJSON_IsTrue(item) ? "true" : "false");
    } else if (cJSON_IsNumber(item)) {
        double value = item->valuedouble;
        bool whole = value == floor(value);
        if (!isfinite(value) || (whole && fabs(value) > 9007199254740992.0)) {
            oc_fail(session->error, OC_E_VALUE, "%.60s: the number is too large to be exact in JSON", key);
            return oc_hint(session->error, "write it as a string");
        }
        snprintf(text, size, whole ? "%.0f" : "%.17g", value);
    } else if (cJSON_IsString(item) && strlen(item->valuestring) < size) {
        snprintf(text, size, "%s", item->valuestring);
    } else {
        oc_fail(session->error, OC_E_VALUE, "%.60s: the value must be a number, true, false or a short string", key);
        return oc_hint(session->error, "sets are one string: \"core_attn,mlp\"");
    }
    return true;
}

static bool read_option(struct session *session, const cJSON *item)
{
    enum oc_option_id option;
    char text[256];
    size_t offset = find_key(session, item->string);
    struct oc_case *c = &session->input->c;
    if (!oc_option_find(item->string, &option, session->error)) return at_offset(session, offset);
    if (oc_given(&c->config, option)) {
        oc_fail(session->error, OC_E_PARSE, "%s is set twice", oc_option(option)->key);
        return at_offset(session, offset);
    }
    if (!value_text(session, item, text, sizeof text) || !oc_option_set(&c->config, option, text, session->error))
        return at_offset(session, offset);
    c->origin[option] =
        (struct oc_origin){.from = OC_FROM_FILE, .file = (uint8_t)session->file, .line = line_of(session, offset)};
    return true;
}

static bool read_member(struct session *session, const cJSON *member, bool *has_version, bool *has_set)
{
    bool version = !strcmp(member->string, "oomcast"), set = !strcmp(member->string, "set");
    size_t offset = find_key(session, member->string);
    if ((version && *has_version) || (set && *has_set)) {
        oc_fail(session->error, OC_E_PARSE, "\"%s\" stands twice in the session", member->string);
        return at_offset(session, offset);
    }
    if (version) {
        *has_version = true;
        if (cJSON_IsNumber(member) && member->valuedouble == SESSION_VERSION) return true;
        oc_fail(session->error, OC_E_PARSE, "this session is of a version that this oomcast does not know");
        oc_hint(session->error, "\"oomcast\": %d is", SESSION_VERSION);
        return at_offset(session, offset);
    }
    if (!set || !cJSON_IsObject(member)) {
        oc_fail(session->error, OC_E_PARSE, set ? "\"set\" must be an object" : "a session has no member \"%.60s\"",
                member->string);
        oc_hint(session->error, "{\"oomcast\":%d,\"set\":{\"precision\":\"bf16\"}}", SESSION_VERSION);
        return at_offset(session, offset);
    }
    *has_set = true;
    for (const cJSON *item = member->child; item; item = item->next)
        if (!read_option(session, item)) return false;
    return true;
}

static bool read_root(struct session *session, const cJSON *root)
{
    bool has_version = false, has_set = false;
    if (cJSON_IsObject(root))
        for (const cJSON *member = root->child; member; member = member->next)
            if (!read_member(session, member, &has_version, &has_set)) return false;
    if (has_version) return true;
    oc_fail(session->error, OC_E_PARSE, "this JSON is not a session");
    oc_hint(session->error, "a session begins {\"oomcast\":%d", SESSION_VERSION);
    return at_offset(session, 0);
}

/* cJSON ends strings at \u0000 without a word. */
static size_t find_escaped_nul(const struct session *session)
{
    for (size_t i = 0; i + 6 <= session->size; i++) {
        if (session->text[i] != '\\') continue;
        if (!memcmp(session->text + i, "\\u0000", 6)) return i;
        i++;
    }
    return session->size;
}

bool session_read(struct oc_input *input, int file, const char *text, size_t size, struct oc_error *error)
{
    struct session session = {.input = input, .file = file, .text = text, .size = size, .error = error};
    const char *end = text;
    size_t nul = find_escaped_nul(&session);
    if (nul < size) {
        oc_fail(error, OC_E_PARSE, "\\u0000 has no place in a session");
        return at_offset(&session, nul);
    }
    cJSON *root = cJSON_ParseWithLengthOpts(text, size, &end, false);
    size_t offset = end >= text && end <= text + size ? (size_t)(end - text) : 0;
    if (!root) {
        oc_fail(error, OC_E_PARSE, "the session is not valid JSON");
        return at_offset(&session, offset);
    }
    while (offset < size && strchr(" \t\r\n", text[offset]) && text[offset]) offset++;
    bool good = offset == size;
    if (!good) {
        oc_fail(error, OC_E_PARSE, "something follows the end of the session");
        at_offset(&session, offset);
    }
    good = good && read_root(&session, root);
    cJSON_Delete(root);
    return good;
}

/* Numbers and booleans stay what they are in JSON; what a double cannot hold becomes a string. */
static cJSON *value_item(const struct oc_config *config, enum oc_option_id id)
{
    const struct oc_option *option = oc_option(id);
    char text[256];
    if (option->type == OC_T_BOOL) return cJSON_CreateBool(oc_option_get(config, id) != 0);
    oc_option_text(config, id, text, sizeof text);
    bool exact = option->type == OC_T_INT && llabs((long long)oc_option_get(config, id)) < 9007199254740992LL;
    if (exact) return cJSON_CreateNumber((double)oc_option_get(config, id));
    if (option->type == OC_T_FLOAT) {
        double value;
        memcpy(&value, (const char *)config + option->offset, sizeof value);
        return cJSON_CreateNumber(value);
    }
    return cJSON_CreateString(text);
}

char *oc_export_session(const struct oc_case *c)
{
    cJSON *root = cJSON_CreateObject(), *set = cJSON_CreateObject();
    bool good = root && set && cJSON_AddNumberToObject(root, "oomcast", SESSION_VERSION);
    for (int i = 0; i < OC_OPTIONS && good; i++) {
        if (!oc_given(&c->config, (enum oc_option_id)i)) continue;
        cJSON *item = value_item(&c->config, (enum oc_option_id)i);
        good = item && cJSON_AddItemToObject(set, oc_option((enum oc_option_id)i)->key, item);
    }
    good = good && cJSON_AddItemToObject(root, "set", set);
    if (!good) cJSON_Delete(set);
    char *printed = good ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    char *copy = printed ? strdup(printed) : NULL; /* the caller frees it with free(), whatever cJSON allocates with */
    cJSON_free(printed);
    return copy;
}
