/* What an assignment does to a variable. In a branch that may or may not be taken the new value is not known; in a loop
 * nothing changes. */
#include "model/import/bash_core.h"

static bool same_characters(const bash_cell *a, const bash_cell *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (bash_cell_char(a[i]) != bash_cell_char(b[i])) return false;
    return true;
}

/* A text that may or may not have become `value`. What it had before and still would have stays known:
 * OPTIONS="$OPTIONS --more" keeps OPTIONS, with something unknown after it. */
static void assign_maybe(struct bash *script, struct bash_text *text, const struct bash_text *value)
{
    bool kept = text->n && value->n >= text->n &&
                (same_characters(text->cells, value->cells, text->n) ||
                 same_characters(text->cells, value->cells + (value->n - text->n), text->n));
    if (kept && value->n == text->n) return;
    if (kept)
        bash_push(script, text, bash_cell_make(' ', script->mode_cause));
    else
        *text = (struct bash_text){0};
    bash_push(script, text, bash_cell_unknown(script->mode_cause));
}

/* The same for all values of a variable. */
static void assign_all_maybe(struct bash *script, struct bash_variable *variable, const struct bash_fields *values,
                             bool append, bool array)
{
    struct bash_fields *old = &variable->values;
    bool scalar = !array && old->n == 1 && values->n == 1;
    if (scalar && !append) {
        assign_maybe(script, &old->items[0], &values->items[0]);
        return;
    }
    int kept = append ? old->n : 0;
    while (!append && kept < old->n && kept < values->n && old->items[kept].n == values->items[kept].n &&
           same_characters(old->items[kept].cells, values->items[kept].cells, old->items[kept].n))
        kept++;
    if (!append && kept < old->n) old->n = 0;
    if (scalar) {
        bash_push(script, &old->items[0], bash_cell_make(' ', script->mode_cause));
        bash_push(script, &old->items[0], bash_cell_unknown(script->mode_cause));
    } else {
        struct bash_text *text = bash_fields_add(script, old);
        if (text) bash_push(script, text, bash_cell_unknown(script->mode_cause));
    }
}

static void record_assignment(struct bash *script, const struct bash_raw *raw, const struct bash_fields *values)
{
    if (!bash_grow(script, &script->commands, script->n_commands, &script->commands_capacity, sizeof *script->commands))
        return;
    struct bash_fields parts = {0};
    struct bash_builder builder = {.script = script, .fields = &parts, .split = true};
    for (int i = 0; i < values->n; i++) {
        bash_build_break(&builder);
        bash_build_text(&builder, &values->items[i], false);
    }
    struct bash_word *words = bash_alloc(script, (size_t)(parts.n + 1) * sizeof *words);
    if (!words) return;
    for (int i = 0; i < parts.n; i++) words[i] = bash_word_of(script, &parts.items[i], raw->start);
    script->commands[script->n_commands++] =
        (struct bash_command){.words = words, .n = parts.n, .offset = raw->start, .assignment = true};
}

void bash_assign(struct bash *script, const struct bash_raw *raw)
{
    bool append = raw->kind == BASH_APPEND || raw->kind == BASH_ARRAY_APPEND;
    bool array = raw->kind == BASH_ARRAY || raw->kind == BASH_ARRAY_APPEND;
    uint32_t length = 0;
    while (bash_is_name(script->source[raw->start + length])) length++;
    struct bash_fields values = {0};
    if (array) {
        for (int i = 1; i <= raw->elements && !script->spent; i++)
            bash_expand(script, raw[i].start, raw[i].end, true, &values);
    } else {
        struct bash_text *text = bash_fields_add(script, &values);
        if (text) *text = bash_expand_text(script, raw->value, raw->end, 0);
    }
    if (script->mode == BASH_KEEP || script->spent) return;
    record_assignment(script, raw, &values);
    struct bash_variable *variable = bash_declare(script, raw->start, length);
    if (!variable) return;
    bool maybe = script->mode == BASH_MAYBE;
    if (!variable->is_set || (!append && !maybe)) variable->values = (struct bash_fields){0};
    if (maybe) {
        assign_all_maybe(script, variable, &values, append, array);
    } else if (append && !array && variable->is_set && variable->values.n) {
        bash_push_text(script, &variable->values.items[0], &values.items[0]);
    } else {
        for (int i = 0; i < values.n && !script->spent; i++) {
            struct bash_text *item = bash_fields_add(script, &variable->values);
            if (item) *item = values.items[i];
        }
    }
    variable->is_array = array || (append && variable->is_array);
    variable->is_set = true;
}
