/* Variables: a hash table that points into the source for names. */
#include <string.h>

#include "model/import/bash_core.h"

static uint32_t hash(uint32_t so_far, char c)
{
    return (so_far ^ (unsigned char)c) * 16777619u;
}

struct bash_variable *bash_find(struct bash *script, const bash_cell *name, uint32_t length)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < length; i++) h = hash(h, bash_cell_char(name[i]));
    for (int32_t i = script->buckets[h % BASH_BUCKETS]; i >= 0; i = script->variables[i].next) {
        struct bash_variable *variable = &script->variables[i];
        if (bash_step(script, 1)) return NULL;
        uint32_t same = 0;
        while (variable->name_length == length && same < length &&
               script->source[variable->name + same] == bash_cell_char(name[same]))
            same++;
        if (variable->name_length == length && same == length) return variable;
    }
    return NULL;
}

struct bash_variable *bash_find_source(struct bash *script, uint32_t name, uint32_t length)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < length; i++) h = hash(h, script->source[name + i]);
    for (int32_t i = script->buckets[h % BASH_BUCKETS]; i >= 0; i = script->variables[i].next) {
        struct bash_variable *variable = &script->variables[i];
        if (bash_step(script, 1)) return NULL;
        if (variable->name_length == length && !memcmp(script->source + variable->name, script->source + name, length))
            return variable;
    }
    return NULL;
}

struct bash_variable *bash_declare(struct bash *script, uint32_t name, uint32_t length)
{
    struct bash_variable *found = bash_find_source(script, name, length);
    if (found || script->spent) return found;
    if (!bash_grow(script, &script->variables, script->n_variables, &script->variables_capacity,
                   sizeof *script->variables))
        return NULL;
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < length; i++) h = hash(h, script->source[name + i]);
    int32_t *bucket = &script->buckets[h % BASH_BUCKETS];
    script->variables[script->n_variables] =
        (struct bash_variable){.name = name, .name_length = length, .next = *bucket};
    *bucket = script->n_variables;
    return &script->variables[script->n_variables++];
}

void bash_unset(struct bash *script, const struct bash_text *name)
{
    struct bash_variable *variable = bash_find(script, name->cells, name->n);
    if (variable) variable->is_set = false;
}

struct bash_text bash_joined_value(struct bash *script, const struct bash_variable *variable)
{
    struct bash_text joined = {0};
    for (int i = 0; i < variable->values.n; i++) {
        const struct bash_text *value = &variable->values.items[i];
        if (i && joined.n)
            bash_push(script, &joined, bash_cell_make(' ', bash_cell_offset(joined.cells[joined.n - 1])));
        bash_push_text(script, &joined, value);
    }
    return joined;
}

bool bash_variable(struct bash *script, const char *name, struct bash_word *value)
{
    bash_cell cells[64];
    uint32_t n = 0;
    for (; name[n] && n < 64; n++) cells[n] = bash_cell_make(name[n], 0);
    const struct bash_variable *variable = bash_find(script, cells, n);
    if (!variable || !variable->is_set || !variable->values.n) return false;
    *value = bash_word_of(script, &variable->values.items[0], variable->name);
    return true;
}
