#include "tui/screen/theme.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "tui/screen/embedded.h"

enum { MAX_THEME = 1 << 16 };

static const char *const role_names[OC_ROLES] = {
#define ROLE_NAME(id, name) [OC_ROLE_##id] = name,
    OC_ROLE_TABLE(ROLE_NAME)
#undef ROLE_NAME
};

static const char *const ansi_names[8] = {"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"};

/* What the parser carries along: the text, so that an error can say where its words stand. */
struct source {
    const char *file, *text;
    size_t size;
    struct oc_error *error;
    int depth; /* of themes that this one is inherited by */
};

static void place_of(const struct source *source, size_t offset, int *line, int *column)
{
    *line = 1, *column = 1;
    for (size_t i = 0; i < offset && i < source->size; i++) {
        if (source->text[i] == '\n')
            (*line)++, *column = 1;
        else
            (*column)++;
    }
}

/* Adds the place where the string `word` stands in quotes; cJSON keeps no positions. */
static bool at_word(const struct source *source, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length + 2 <= source->size; i++) {
        if (source->text[i] != '"' || source->text[i + 1 + length] != '"') continue;
        if (memcmp(source->text + i + 1, word, length) != 0) continue;
        int line, column;
        place_of(source, i, &line, &column);
        return oc_at(source->error, source->file, line, column);
    }
    return oc_at(source->error, source->file, 0, 0);
}

static bool fail_at(const struct source *source, const char *word, const char *message)
{
    oc_fail(source->error, OC_E_PARSE, "\"%.60s\" %s", word, message);
    return at_word(source, word);
}

static int find_colour(const struct oc_theme *theme, const char *name)
{
    for (int i = 0; i < theme->n_colours; i++)
        if (strcmp(theme->colours[i].name, name) == 0) return i;
    return -1;
}

static bool read_rgb(const char *text, struct oc_colour *colour)
{
    if (text[0] != '#' || strlen(text) != 7) return false;
    for (int i = 1; i < 7; i++)
        if (!isxdigit((unsigned char)text[i])) return false;
    unsigned long value = strtoul(text + 1, NULL, 16);
    colour->red = (uint8_t)(value >> 16), colour->green = (uint8_t)(value >> 8), colour->blue = (uint8_t)value;
    return true;
}

/* "sky": ["#56B4E9", 74, "cyan"] */
static bool read_colour(struct oc_theme *theme, const cJSON *item, const struct source *source)
{
    struct oc_colour colour = {0};
    const cJSON *rgb = cJSON_GetArrayItem(item, 0), *xterm = cJSON_GetArrayItem(item, 1);
    const cJSON *ansi = cJSON_GetArrayItem(item, 2);
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 3 || !cJSON_IsString(rgb) || !cJSON_IsNumber(xterm) ||
        !cJSON_IsString(ansi)) {
        fail_at(source, item->string, "is not a colour");
        return oc_hint(source->error, "a colour is [\"#rrggbb\", 0..255, \"name of one of the 8 basic colours\"]");
    }
    if (strlen(item->string) >= sizeof colour.name) return fail_at(source, item->string, "is too long a name");
    snprintf(colour.name, sizeof colour.name, "%s", item->string);
    if (!read_rgb(rgb->valuestring, &colour)) return fail_at(source, rgb->valuestring, "is not written as #rrggbb");
    if (!(xterm->valuedouble >= 0 && xterm->valuedouble <= 255) || xterm->valuedouble != (double)xterm->valueint)
        return fail_at(source, item->string, "needs a whole number from 0 to 255 as its second value");
    colour.xterm = (uint8_t)xterm->valueint;
    int basic = 0;
    while (basic < 8 && strcmp(ansi_names[basic], ansi->valuestring) != 0) basic++;
    if (basic == 8) {
        fail_at(source, ansi->valuestring, "is not one of the 8 basic colours");
        return oc_hint(source->error, "black red green yellow blue magenta cyan white");
    }
    colour.ansi = (uint8_t)basic;
    int index = find_colour(theme, colour.name);
    if (index == 0) return fail_at(source, item->string, "is the terminal's own colour and cannot be defined");
    if (index < 0) {
        if (theme->n_colours == OC_MAX_COLOURS) return fail_at(source, item->string, "is one colour too many");
        index = theme->n_colours++;
    }
    theme->colours[index] = colour;
    return true;
}

static bool use_colour(const struct oc_theme *theme, const cJSON *item, const struct source *source, uint8_t *colour)
{
    if (!cJSON_IsString(item))
        return fail_at(source, item->string, "must name a colour of the palette, or \"default\"");
    int index = find_colour(theme, item->valuestring);
    if (index < 0) {
        fail_at(source, item->valuestring, "is not in the palette");
        return oc_hint(source->error, "colours are defined once under \"palette\" and used by name");
    }
    *colour = (uint8_t)index;
    return true;
}

static bool read_attributes(const cJSON *item, const struct source *source, uint8_t *attr)
{
    static const char *const names[] = {"bold", "reverse", "underline"};
    if (!cJSON_IsArray(item)) return fail_at(source, item->string, "must be a list of bold, reverse and underline");
    *attr = 0;
    for (const cJSON *name = item->child; name; name = name->next) {
        int i = 0;
        while (cJSON_IsString(name) && i < 3 && strcmp(names[i], name->valuestring) != 0) i++;
        if (!cJSON_IsString(name) || i == 3) {
            fail_at(source, cJSON_IsString(name) ? name->valuestring : item->string, "is not an attribute");
            return oc_hint(source->error, "bold, reverse or underline");
        }
        *attr |= (uint8_t)(1 << i);
    }
    return true;
}

static bool read_class(struct oc_theme *theme, const cJSON *item, const struct source *source)
{
    int class = 0;
    while (class < OC_CLASSES && strcmp(oc_class_name((enum oc_class) class), item->string) != 0) class ++;
    if (class == OC_CLASSES) return fail_at(source, item->string, "is not a class of memory");
    struct oc_class_look *look = &theme->classes[class];
    for (const cJSON *key = item->child; key; key = key->next) {
        if (strcmp(key->string, "color") == 0) {
            if (!use_colour(theme, key, source, &look->colour)) return false;
        } else if (strcmp(key->string, "text") == 0) {
            if (!use_colour(theme, key, source, &look->text)) return false;
        } else if (strcmp(key->string, "letter") == 0) {
            if (!cJSON_IsString(key) || strlen(key->valuestring) != 1 || !isupper((unsigned char)key->valuestring[0]))
                return fail_at(source, key->string, "must be one capital letter");
            look->letter = key->valuestring[0];
        } else {
            return fail_at(source, key->string, "is not a key of a class: color, text, letter");
        }
    }
    return true;
}

/* Whether `item` is stated before in its section, or after it. */
static bool states(const cJSON *item, const char *name)
{
    const cJSON *first = item;
    while (first->prev && first->prev->next) first = first->prev; /* the first one's prev is the last */
    for (; first; first = first->next)
        if (strcmp(first->string, name) == 0) return true;
    return false;
}

/* Gives a style to the role of a name, and to those with that name and a dot before theirs that are not stated. */
static bool set_roles(struct oc_theme *theme, const cJSON *item, struct oc_style style)
{
    size_t length = strlen(item->string);
    bool any = false;
    for (int role = 0; role < OC_ROLES; role++) {
        bool same = strcmp(role_names[role], item->string) == 0;
        bool below = strncmp(role_names[role], item->string, length) == 0 && role_names[role][length] == '.';
        if (!same && !(below && !states(item, role_names[role]))) continue;
        theme->roles[role] = style;
        any = true;
    }
    return any;
}

static bool read_role(struct oc_theme *theme, const cJSON *item, const struct source *source)
{
    struct oc_style style = {0};
    for (const cJSON *key = item->child; key; key = key->next) {
        bool good;
        if (strcmp(key->string, "fg") == 0)
            good = use_colour(theme, key, source, &style.fg);
        else if (strcmp(key->string, "bg") == 0)
            good = use_colour(theme, key, source, &style.bg);
        else if (strcmp(key->string, "attr") == 0)
            good = read_attributes(key, source, &style.attr);
        else
            return fail_at(source, key->string, "is not a key of a role: fg, bg, attr");
        if (!good) return false;
    }
    return set_roles(theme, item, style) || fail_at(source, item->string, "is not a role of the screen");
}

static bool read_section(struct oc_theme *theme, const cJSON *section, const struct source *source,
                         bool (*read)(struct oc_theme *, const cJSON *, const struct source *))
{
    if (!section) return true;
    if (!cJSON_IsObject(section)) return fail_at(source, section->string, "must be an object");
    for (const cJSON *item = section->child; item; item = item->next) {
        if (read != read_colour && !cJSON_IsObject(item)) return fail_at(source, item->string, "must be an object");
        if (!read(theme, item, source)) return false;
    }
    return true;
}

static bool letters_differ(const struct oc_theme *theme, const struct source *source)
{
    for (int i = 0; i < OC_CLASSES; i++)
        for (int j = 0; j < i; j++)
            if (theme->classes[i].letter == theme->classes[j].letter)
                return fail_at(source, oc_class_name((enum oc_class)i), "has the letter of another class");
    return true;
}

static bool parse(struct oc_theme *theme, const struct source *source);

const struct oc_embedded *oc_theme_builtin(const char *name)
{
    for (const struct oc_embedded *row = oc_embedded_themes; row->name; row++)
        if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

/* What a theme stands on: another one, the background, and whether it has colours at all. */
static bool read_ground(struct oc_theme *theme, const cJSON *root, const struct source *source)
{
    const cJSON *inherits = cJSON_GetObjectItemCaseSensitive(root, "inherits");
    const cJSON *background = cJSON_GetObjectItemCaseSensitive(root, "background");
    const cJSON *mono = cJSON_GetObjectItemCaseSensitive(root, "monochrome");
    if (inherits) {
        const struct oc_embedded *row = cJSON_IsString(inherits) ? oc_theme_builtin(inherits->valuestring) : NULL;
        if (!row || source->depth > 4) return fail_at(source, "inherits", "must name a theme that is built in");
        const struct source below = {row->name, (const char *)row->bytes, *row->size, source->error, source->depth + 1};
        if (!parse(theme, &below)) return false;
    }
    if (background) {
        const char *text = cJSON_IsString(background) ? background->valuestring : "";
        if (strcmp(text, "dark") != 0 && strcmp(text, "light") != 0)
            return fail_at(source, "background", "must be dark or light");
        theme->light = strcmp(text, "light") == 0;
    }
    if (mono && !cJSON_IsBool(mono)) return fail_at(source, "monochrome", "must be true or false");
    if (mono) theme->mono = cJSON_IsTrue(mono);
    return true;
}

static bool read_theme(struct oc_theme *theme, const cJSON *root, const struct source *source)
{
    static const char *const known[] = {"theme",      "name",    "inherits", "background",
                                        "monochrome", "palette", "class",    "ui"};
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "theme");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(root, "name");
    if (!cJSON_IsNumber(version) || version->valueint != 1) {
        oc_fail(source->error, OC_E_PARSE, "this is not a theme");
        oc_hint(source->error, "a theme begins with {\"theme\": 1, \"name\": \"...\"");
        return oc_at(source->error, source->file, 1, 1);
    }
    for (const cJSON *item = root->child; item; item = item->next) {
        size_t i = 0, n = sizeof known / sizeof known[0];
        while (i < n && strcmp(known[i], item->string) != 0) i++;
        if (i == n)
            return fail_at(source, item->string,
                           "is not a key of a theme: theme, name, inherits, background, monochrome, palette, "
                           "class, ui");
    }
    if (name && !cJSON_IsString(name)) return fail_at(source, "name", "must be a string");
    if (!read_ground(theme, root, source)) return false;
    if (name) snprintf(theme->name, sizeof theme->name, "%s", name->valuestring);
    return read_section(theme, cJSON_GetObjectItemCaseSensitive(root, "palette"), source, read_colour) &&
           read_section(theme, cJSON_GetObjectItemCaseSensitive(root, "class"), source, read_class) &&
           read_section(theme, cJSON_GetObjectItemCaseSensitive(root, "ui"), source, read_role) &&
           letters_differ(theme, source);
}

static bool parse(struct oc_theme *theme, const struct source *source)
{
    const char *end = NULL, *text = source->text;
    cJSON *root = cJSON_ParseWithLengthOpts(text, source->size, &end, false);
    size_t stop = end && end >= text && end <= text + source->size ? (size_t)(end - text) : source->size;
    bool whole = root != NULL;
    for (size_t i = stop; whole && i < source->size; i++) whole = isspace((unsigned char)text[i]);
    if (!whole || !cJSON_IsObject(root)) {
        int line, column;
        place_of(source, stop, &line, &column);
        cJSON_Delete(root);
        oc_fail(source->error, OC_E_PARSE, "the theme is not a JSON object");
        return oc_at(source->error, source->file, line, column);
    }
    bool good = read_theme(theme, root, source);
    cJSON_Delete(root);
    return good;
}

bool oc_theme_parse(struct oc_theme *theme, const char *file, const char *text, size_t size, struct oc_error *error)
{
    const struct source source = {file, text, size, error, 0};
    struct oc_theme draft = *theme;
    if (!parse(&draft, &source)) return false;
    *theme = draft;
    return true;
}

bool oc_theme_default(struct oc_theme *theme, struct oc_error *error)
{
    const struct oc_embedded *row = oc_theme_builtin("default");
    memset(theme, 0, sizeof *theme);
    snprintf(theme->colours[0].name, sizeof theme->colours[0].name, "default");
    theme->n_colours = 1;
    for (int i = 0; i < OC_CLASSES; i++) theme->classes[i].letter = oc_class_letter((enum oc_class)i);
    return oc_theme_parse(theme, "themes/default.json", (const char *)row->bytes, *row->size, error);
}

bool oc_theme_load(struct oc_theme *theme, const char *path, struct oc_error *error)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(MAX_THEME + 1);
    bool good = false;
    if (!file || !text) {
        oc_fail(error, OC_E_IO, "the theme cannot be opened");
        oc_at(error, path, 0, 0);
    } else {
        size_t size = fread(text, 1, MAX_THEME + 1, file);
        if (ferror(file)) {
            oc_fail(error, OC_E_IO, "the theme cannot be read");
            oc_at(error, path, 0, 0);
        } else if (size > MAX_THEME) {
            oc_fail(error, OC_E_IO, "the theme is larger than 64 KiB");
            oc_at(error, path, 0, 0);
        } else {
            struct oc_theme draft;
            good = oc_theme_default(&draft, error) && oc_theme_parse(&draft, path, text, size, error);
            if (good) *theme = draft;
        }
    }
    if (file) fclose(file);
    free(text);
    return good;
}

const char *oc_theme_rgb(const struct oc_theme *theme, int colour, char text[8])
{
    if (colour <= 0 || colour >= theme->n_colours) return NULL;
    const struct oc_colour *c = &theme->colours[colour];
    snprintf(text, 8, "#%02x%02x%02x", c->red, c->green, c->blue);
    return text;
}
