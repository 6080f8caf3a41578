#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/bash_core.h"

struct bash_chunk {
    struct bash_chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

bool bash_step(struct bash *script, uint64_t characters)
{
    script->work += characters;
    if (script->work > BASH_MAX_WORK) script->spent = true;
    return script->spent;
}

void *bash_alloc(struct bash *script, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct bash_chunk *chunk = script->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = size > 64 * 1024 ? size : 64 * 1024;
        script->memory += room;
        chunk = script->memory > BASH_MAX_MEMORY ? NULL : malloc(sizeof *chunk + room);
        if (!chunk) {
            script->spent = true;
            return NULL;
        }
        *chunk = (struct bash_chunk){.next = script->chunks, .size = room};
        script->chunks = chunk;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += size;
    return memory;
}

bool bash_grow(struct bash *script, void *items, int n, int *capacity, size_t size)
{
    if (n < *capacity) return true;
    void *old, *grown;
    memcpy(&old, items, sizeof old);
    int room = *capacity ? *capacity * 2 : 64;
    grown = room > 4 * BASH_MAX_WORDS ? NULL : realloc(old, (size_t)room * size);
    if (!grown) {
        script->spent = true;
        return false;
    }
    memcpy(items, &grown, sizeof grown);
    *capacity = room;
    return true;
}

void bash_push(struct bash *script, struct bash_text *text, bash_cell cell)
{
    if (bash_step(script, 1)) return;
    if (text->n == text->capacity) {
        uint32_t room = text->capacity ? text->capacity * 2 : 16;
        bash_cell *cells = bash_alloc(script, room * sizeof *cells);
        if (!cells) return;
        if (text->n) memcpy(cells, text->cells, text->n * sizeof *cells);
        text->cells = cells;
        text->capacity = room;
    }
    text->cells[text->n++] = cell;
}

void bash_push_text(struct bash *script, struct bash_text *text, const struct bash_text *more)
{
    for (uint32_t i = 0; i < more->n && !script->spent; i++) bash_push(script, text, more->cells[i]);
}

struct bash_text *bash_fields_add(struct bash *script, struct bash_fields *fields)
{
    if (fields->n == fields->capacity) {
        int room = fields->capacity ? fields->capacity * 2 : 4;
        struct bash_text *items = bash_alloc(script, (size_t)room * sizeof *items);
        if (!items) return NULL;
        if (fields->n) memcpy(items, fields->items, (size_t)fields->n * sizeof *items);
        fields->items = items;
        fields->capacity = room;
    }
    fields->items[fields->n] = (struct bash_text){0};
    return &fields->items[fields->n++];
}

const bash_cell *bash_first_unknown(const struct bash_text *text)
{
    for (uint32_t i = 0; i < text->n; i++)
        if (bash_cell_is_unknown(text->cells[i])) return &text->cells[i];
    return NULL;
}

bool bash_text_is(const struct bash_text *text, const char *string)
{
    uint32_t i = 0;
    for (; i < text->n && string[i]; i++)
        if (bash_cell_char(text->cells[i]) != string[i] || bash_cell_is_unknown(text->cells[i])) return false;
    return i == text->n && !string[i];
}

struct bash_word bash_word_of(struct bash *script, const struct bash_text *text, uint32_t offset)
{
    struct bash_word word = {.text = "", .cells = text->cells, .offset = offset};
    char *characters = bash_alloc(script, (size_t)text->n + 1);
    if (!characters) return word;
    for (uint32_t i = 0; i < text->n; i++) characters[i] = bash_cell_char(text->cells[i]);
    characters[text->n] = 0;
    word.text = characters;
    word.length = text->n;
    if (text->n) word.offset = bash_cell_offset(text->cells[0]);
    const bash_cell *unknown = bash_first_unknown(text);
    word.unknown = unknown != NULL;
    word.cause = unknown ? bash_cell_offset(*unknown) : 0;
    return word;
}

bool bash_is_unset(const struct bash *script, uint32_t offset)
{
    const char *at = script->source + offset;
    if (*at == '$') return at[1] != '(';
    return bash_is_name_start(*at);
}

void bash_place(const struct bash *script, uint32_t offset, int *line, int *column)
{
    int low = 0, high = script->n_lines;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (script->lines[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    if (line) *line = low + 1;
    if (column) *column = (int)(offset - script->lines[low]) + 1;
}

const char *bash_cause(const struct bash *script, uint32_t cause, const char *file, char *text, size_t size)
{
    const char *at = script->source + cause;
    int length = 0, most = 40;
    if (*at == '[' || (*at == '(' && at[1] == '(')) {
        int line;
        bash_place(script, cause, &line, NULL);
        snprintf(text, size, "the condition in line %d of %s is not known", line, file);
    } else if (*at == '$' && at[1] == '(' && at[2] == '(') {
        snprintf(text, size, "$((...)) in %s cannot be computed", file);
    } else if (*at == '$' && bash_is_digit(at[at[1] == '{' ? 2 : 1])) {
        at += at[1] == '{' ? 2 : 1;
        while (length < 4 && bash_is_digit(at[length])) length++;
        snprintf(text, size, "$%.*s is an argument of %s", length, at, file);
    } else if (*at == '$' && at[1] == '{') {
        at += 2;
        while (length < most && bash_is_name(at[length])) length++;
        snprintf(text, size, "$%.*s is not set in %s", length ? length : 1, at, file);
    } else if (*at == '$' && (at[1] == '@' || at[1] == '*' || at[1] == '#')) {
        snprintf(text, size, "$%c, the arguments of %s, are not known", at[1], file);
    } else if (*at == '$' && bash_is_name_start(at[1])) {
        while (length < most && bash_is_name(at[1 + length])) length++;
        snprintf(text, size, "$%.*s is not set in %s", length, at + 1, file);
    } else if (bash_is_name_start(*at)) {
        while (length < most && bash_is_name(at[length])) length++;
        snprintf(text, size, "%.*s is not set in %s", length, at, file);
    } else {
        while (length < most && (unsigned char)at[length] >= ' ') length++;
        const char *what = *at == '<' ? "is left to fill in" : "is not run";
        snprintf(text, size, "%.*s%s in %s %s", length, at, (unsigned char)at[length] >= ' ' ? "..." : "", file, what);
    }
    return text;
}

const char *bash_keep(struct bash *script, const char *text, size_t length)
{
    char *copy = bash_alloc(script, length + 1);
    if (!copy) return "";
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

const struct bash_command *bash_commands(const struct bash *script, int *count)
{
    *count = script->n_commands;
    return script->commands;
}

const uint32_t *bash_broken_continuations(const struct bash *script, int *count)
{
    *count = script->n_broken;
    return script->broken;
}

const struct bash_word *bash_split(struct bash *script, const struct bash_word *word, int *count)
{
    struct bash_fields fields = {0};
    struct bash_text *current = NULL;
    for (uint32_t i = 0; i < word->length; i++) {
        char c = bash_cell_char(word->cells[i]);
        if (bash_is_space(c)) {
            current = NULL;
        } else if (c != '"' && c != '\'') {
            if (!current) current = bash_fields_add(script, &fields);
            if (!current) break;
            bash_push(script, current, word->cells[i]);
        }
    }
    struct bash_word *words = bash_alloc(script, (size_t)(fields.n + 1) * sizeof *words);
    *count = words ? fields.n : 0;
    for (int i = 0; i < *count; i++) words[i] = bash_word_of(script, &fields.items[i], word->offset);
    return words;
}

void bash_free(struct bash *script)
{
    if (!script) return;
    while (script->chunks) {
        struct bash_chunk *next = script->chunks->next;
        free(script->chunks);
        script->chunks = next;
    }
    free(script->source);
    free(script->lines);
    free(script->raw);
    free(script->parsed);
    free(script->variables);
    free(script->commands);
    free(script);
}
