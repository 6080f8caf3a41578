/* Words and arrays of the source, before any expansion. */
#include <string.h>

#include "model/import/bash_core.h"

struct bash_raw *bash_raw_add(struct bash *script, enum bash_word_kind kind, uint32_t start, uint32_t end)
{
    if (script->n_raw >= BASH_MAX_WORDS) script->spent = true;
    if (script->spent || !bash_grow(script, &script->raw, script->n_raw, &script->raw_capacity, sizeof *script->raw))
        return NULL;
    script->raw[script->n_raw] = (struct bash_raw){.start = start, .end = end, .kind = (uint8_t)kind};
    return &script->raw[script->n_raw++];
}

bool bash_assignment_at(const struct bash *script, uint32_t at, struct bash_raw *raw)
{
    const char *source = script->source;
    uint32_t i = at;
    if (!bash_is_name_start(source[i])) return false;
    while (bash_is_name(source[i])) i++;
    bool append = source[i] == '+';
    if (source[i + append] != '=' || source[i + append + 1] == '=') return false;
    raw->kind = append ? BASH_APPEND : BASH_ASSIGN;
    raw->start = at;
    raw->value = i + append + 1;
    return true;
}

/* A backslash followed by spaces and the end of the line was meant to continue it. */
static uint32_t broken_continuation(struct bash *script, uint32_t at)
{
    uint32_t end = at + 1;
    while (script->source[end] == ' ' || script->source[end] == '\t') end++;
    if (end == at + 1 || script->source[end] != '\n') return 0;
    bool seen = false;
    for (int i = 0; i < script->n_broken; i++) seen = seen || script->broken[i] == at;
    if (script->n_broken < BASH_MAX_BROKEN && !seen) script->broken[script->n_broken++] = at;
    return end + 1;
}

uint32_t bash_skip_blanks(struct bash *script, uint32_t at)
{
    const char *source = script->source;
    while (at < script->size) {
        uint32_t broken;
        if (bash_step(script, 1)) return script->size;
        if (source[at] == ' ' || source[at] == '\t')
            at++;
        else if (source[at] == '\\' && source[at + 1] == '\n')
            at += 2;
        else if (source[at] == '\\' && (broken = broken_continuation(script, at)))
            at = broken;
        else
            break;
    }
    return at;
}

/* Whether `c` ends an unquoted word. */
static bool ends_word(char c, bool in_array)
{
    if (bash_is_space(c) || c == ')') return true;
    return !in_array && strchr(";&|<>(", c);
}

/* Parentheses inside a word: ([0]*3+[1]*58) in an array is meant as a value. Only on one line. */
static uint32_t inner_parens(struct bash *script, uint32_t at)
{
    uint32_t line = at;
    while (line < script->size && script->source[line] != '\n' && !bash_step(script, 1)) line++;
    return bash_skip_parens(script, at, line, true, 0);
}

uint32_t bash_word_end(struct bash *script, uint32_t at, bool in_array, bool trusted)
{
    const char *source = script->source;
    uint32_t limit = script->size, end;
    while (at < limit && !bash_step(script, 1)) {
        char c = source[at];
        end = 0;
        if (c == '\\')
            end = source[at + 1] == '\n' && at + 1 < limit ? at + 2 : at + 1 + (at + 1 < limit);
        else if (c == '\'')
            end = bash_skip_single(script, at, limit, !trusted);
        else if (c == '"')
            end = bash_skip_double(script, at, limit, !trusted, 0);
        else if (c == '$')
            end = bash_skip_dollar(script, at, limit, !trusted, 0);
        else if (c == '`')
            end = bash_skip_backtick(script, at, limit);
        else if (c == '<')
            end = bash_skip_placeholder(script, at, limit);
        else if (c == '(' && in_array)
            end = inner_parens(script, at);
        if (!end && ends_word(c, in_array)) break;
        at = end ? end : at + 1;
    }
    return at < limit ? at : limit;
}

uint32_t bash_lex_array(struct bash *script, uint32_t at)
{
    const char *source = script->source;
    at++;
    while (at < script->size && !script->spent) {
        at = bash_skip_blanks(script, at);
        if (source[at] == ')') return at + 1;
        if (source[at] == '\n') {
            /* An array that is not closed ends where the next one begins. */
            if (bash_line_opens_array(script, ++at)) return at;
        } else if (source[at] == '#') {
            while (at < script->size && source[at] != '\n' && !bash_step(script, 1)) at++;
        } else if (at < script->size) {
            uint32_t end = bash_word_end(script, at, true, false);
            bash_raw_add(script, BASH_ELEMENT, at, end);
            at = end;
        }
    }
    return script->size;
}
