/* Words into fields: quotes, escapes, parameters, arithmetic. */
#include <stdio.h>

#include "model/import/bash_core.h"

static void put(struct bash_builder *builder, bash_cell cell)
{
    if (!builder->current) builder->current = bash_fields_add(builder->script, builder->fields);
    if (builder->current) bash_push(builder->script, builder->current, cell);
}

/* A field exists from here on, even if nothing is put into it: "" is an argument. */
static void begin(struct bash_builder *builder)
{
    if (!builder->current) builder->current = bash_fields_add(builder->script, builder->fields);
}

void bash_build_break(struct bash_builder *builder)
{
    builder->current = NULL;
}

void bash_build_text(struct bash_builder *builder, const struct bash_text *text, bool quoted)
{
    if (quoted) begin(builder);
    for (uint32_t i = 0; i < text->n && !builder->script->spent; i++) {
        bash_cell cell = text->cells[i];
        if (builder->split && !quoted && bash_is_space(bash_cell_char(cell)))
            bash_build_break(builder);
        else
            put(builder, cell);
    }
}

void bash_build_unknown(struct bash_builder *builder, uint32_t offset)
{
    put(builder, bash_cell_unknown(offset));
}

static void build_number(struct bash_builder *builder, int64_t value, uint32_t offset)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    for (const char *at = digits; *at; at++) put(builder, bash_cell_make(*at, offset));
}

/* $((...)) between the double parentheses. */
static void build_arithmetic(struct bash_builder *builder, uint32_t dollar, uint32_t start, uint32_t end)
{
    struct bash_text text = bash_expand_text(builder->script, start, end, builder->depth + 1);
    struct bash_number number = bash_arithmetic(builder->script, &text, dollar);
    if (number.known)
        build_number(builder, number.value, dollar);
    else
        bash_build_unknown(builder, number.cause);
}

/* $NAME, $1, $@ and their like: everything but a name is unknown. Returns the offset after it, or 0: a plain '$'. */
static uint32_t build_simple_parameter(struct bash_builder *builder, uint32_t dollar, uint32_t limit, bool quoted)
{
    const char *source = builder->script->source;
    uint32_t end = dollar + 1;
    if (end >= limit) return 0;
    if (bash_is_name_start(source[end])) {
        while (end < limit && bash_is_name(source[end])) end++;
        bash_build_parameter(builder, dollar, dollar + 1, end, quoted);
        return end;
    }
    char c = source[end];
    if (bash_is_digit(c) || c == '@' || c == '*' || c == '#' || c == '?' || c == '$' || c == '!' || c == '-') {
        bash_build_unknown(builder, dollar);
        return end + 1;
    }
    return 0;
}

static uint32_t build_dollar(struct bash_builder *builder, uint32_t at, uint32_t limit, bool quoted)
{
    struct bash *script = builder->script;
    const char *source = script->source;
    uint32_t end = bash_skip_dollar(script, at, limit, false, builder->depth);
    if (!end) {
        end = build_simple_parameter(builder, at, limit, quoted);
        if (!end) put(builder, bash_cell_make('$', at));
        return end ? end : at + 1;
    }
    if (source[at + 1] == '{')
        bash_build_parameter(builder, at, at + 2, end - 1, quoted);
    else if (source[at + 2] == '(' && end - at >= 6 && source[end - 2] == ')')
        build_arithmetic(builder, at, at + 3, end - 2);
    else
        bash_build_unknown(builder, at);
    return end;
}

/* What stands between double quotes. */
static void build_double(struct bash_builder *builder, uint32_t start, uint32_t end)
{
    struct bash *script = builder->script;
    const char *source = script->source;
    uint32_t at = start;
    while (at < end && !bash_step(script, 1)) {
        char c = source[at];
        if (c == '\\' && at + 1 < end) {
            char next = source[at + 1];
            uint32_t blank = next == '\n' ? at + 2 : bash_skip_blanks(script, at);
            if (blank > at) { /* a continued line, or one that was meant to be */
                if (next != '\n') put(builder, bash_cell_make(' ', at));
                at = blank < end ? blank : end;
                continue;
            }
            bool escaped = next == '"' || next == '\\' || next == '$' || next == '`';
            if (!escaped) put(builder, bash_cell_make('\\', at));
            put(builder, bash_cell_make(next, at + 1));
            at += 2;
        } else if (c == '$') {
            at = build_dollar(builder, at, end, true);
        } else if (c == '`') {
            uint32_t close = bash_skip_backtick(script, at, end);
            if (close)
                bash_build_unknown(builder, at);
            else
                put(builder, bash_cell_make(c, at));
            at = close ? close : at + 1;
        } else {
            put(builder, bash_cell_make(c, at++));
        }
    }
}

/* A quote, or a quote character that nothing closes. Returns the offset after it. */
static uint32_t build_quote(struct bash_builder *builder, uint32_t at, uint32_t end)
{
    struct bash *script = builder->script;
    bool twice = script->source[at] == '"';
    uint32_t close =
        twice ? bash_skip_double(script, at, end, false, builder->depth) : bash_skip_single(script, at, end, false);
    if (!close) {
        put(builder, bash_cell_make(script->source[at], at));
        return at + 1;
    }
    bool only_list = close - at > 3 && script->source[at + 1] == '$'; /* "${A[@]}" of an empty array is no argument */
    if (!only_list) begin(builder);
    if (twice)
        build_double(builder, at + 1, close - 1);
    else
        for (uint32_t i = at + 1; i + 1 < close; i++) put(builder, bash_cell_make(script->source[i], i));
    return close;
}

void bash_build(struct bash_builder *builder, uint32_t start, uint32_t end)
{
    struct bash *script = builder->script;
    const char *source = script->source;
    for (uint32_t at = start; at < end && !bash_step(script, 1);) {
        char c = source[at];
        uint32_t skipped = 0;
        if (c == '\\') {
            if (at + 1 < end && source[at + 1] != '\n') put(builder, bash_cell_make(source[at + 1], at + 1));
            at += 2;
        } else if (c == '\'' || c == '"') {
            at = build_quote(builder, at, end);
        } else if (c == '$' && at + 1 < end && (source[at + 1] == '"' || source[at + 1] == '\'')) {
            at = build_quote(builder, at + 1, end);
        } else if (c == '$') {
            at = build_dollar(builder, at, end, false);
        } else if ((c == '`' && (skipped = bash_skip_backtick(script, at, end))) ||
                   (c == '<' && (skipped = bash_skip_placeholder(script, at, end)))) {
            bash_build_unknown(builder, at);
            at = skipped;
        } else {
            put(builder, bash_cell_make(c, at++));
        }
    }
}

void bash_expand(struct bash *script, uint32_t start, uint32_t end, bool split, struct bash_fields *fields)
{
    struct bash_builder builder = {.script = script, .fields = fields, .split = split};
    bash_build(&builder, start, end);
}

struct bash_text bash_expand_text(struct bash *script, uint32_t start, uint32_t end, int depth)
{
    struct bash_fields fields = {0};
    struct bash_builder builder = {.script = script, .fields = &fields, .depth = depth};
    if (depth <= BASH_MAX_DEPTH) bash_build(&builder, start, end);
    return fields.n ? fields.items[0] : (struct bash_text){0};
}
