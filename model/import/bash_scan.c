/* Where quotes and substitutions end.
 *
 * Prose has apostrophes and unbalanced quotes. In strict mode a quote may therefore not reach over a line that looks
 * like a statement of a script: such a quote is an ordinary character. */
#include <string.h>

#include "model/import/bash_core.h"

/* Whether scanning on over the newline at `at` would swallow a statement. */
static bool blocked(const struct bash *script, uint32_t at, bool strict)
{
    return strict && bash_line_is_statement(script, at + 1);
}

static uint32_t line_indent(const struct bash *script, uint32_t at)
{
    while (script->source[at] == ' ' || script->source[at] == '\t') at++;
    return at;
}

bool bash_line_opens_array(const struct bash *script, uint32_t at)
{
    struct bash_raw raw;
    at = line_indent(script, at);
    return bash_assignment_at(script, at, &raw) && script->source[raw.value] == '(';
}

bool bash_line_is_statement(const struct bash *script, uint32_t at)
{
    static const char *const starts[] = {"export", "python",   "python3", "torchrun", "deepspeed", "srun",
                                         "mpirun", "if",       "fi",      "for",      "done",      "case",
                                         "esac",   "function", "eval",    "source",   "set",       "#SBATCH"};
    at = line_indent(script, at);
    struct bash_raw raw;
    if (bash_assignment_at(script, at, &raw)) return true;
    const char *line = script->source + at;
    if (line[0] == '#' && line[1] == '!') return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t n = strlen(starts[i]);
        if (!strncmp(line, starts[i], n) && (!line[n] || bash_is_space(line[n]) || line[n] == ';')) return true;
    }
    return false;
}

uint32_t bash_skip_single(struct bash *script, uint32_t at, uint32_t limit, bool strict)
{
    const char *source = script->source;
    bool apostrophe = strict && at > 0 && bash_is_name(source[at - 1]); /* don't: never opens a quote over lines */
    for (uint32_t i = at + 1; i < limit; i++) {
        if (bash_step(script, 1)) return 0;
        if (source[i] == '\'') return i + 1;
        if (source[i] == '\n' && (apostrophe || blocked(script, i, strict))) return 0;
    }
    return 0;
}

uint32_t bash_skip_backtick(struct bash *script, uint32_t at, uint32_t limit)
{
    for (uint32_t i = at + 1; i < limit && script->source[i] != '\n'; i++) {
        if (bash_step(script, 1)) return 0;
        if (script->source[i] == '`') return i + 1;
        if (script->source[i] == '\\') i++;
    }
    return 0;
}

/* Steps over one character or one whole quote or substitution inside a quote, parentheses or braces. 0 when that is not
 * closed: then what is around it is not closed either, and nothing is scanned twice. */
static uint32_t skip_inner(struct bash *script, uint32_t at, uint32_t limit, bool strict, int depth, bool in_double)
{
    char c = script->source[at], next = script->source[at + 1];
    if (c == '\\') return at + 2;
    if (c == '$' && (next == '(' || next == '{')) return bash_skip_dollar(script, at, limit, strict, depth + 1);
    if (c == '"' && !in_double) return bash_skip_double(script, at, limit, strict, depth + 1);
    if (c == '\'' && !in_double) return bash_skip_single(script, at, limit, strict);
    uint32_t end = c == '`' ? bash_skip_backtick(script, at, limit) : 0;
    return end ? end : at + 1;
}

uint32_t bash_skip_double(struct bash *script, uint32_t at, uint32_t limit, bool strict, int depth)
{
    if (depth > BASH_MAX_DEPTH) return 0;
    for (uint32_t i = at + 1; i < limit;) {
        if (bash_step(script, 1)) return 0;
        if (script->source[i] == '"') return i + 1;
        if (script->source[i] == '\n' && blocked(script, i, strict)) return 0;
        if (!(i = skip_inner(script, i, limit, strict, depth, true))) return 0;
    }
    return 0;
}

/* From an opening character to the one that closes it. */
static uint32_t skip_pair(struct bash *script, uint32_t at, uint32_t limit, const char pair[2], bool strict, int depth)
{
    if (depth > BASH_MAX_DEPTH) return 0;
    int open = 0;
    for (uint32_t i = at; i < limit;) {
        if (bash_step(script, 1)) return 0;
        char c = script->source[i];
        if (c == '\n' && blocked(script, i, strict)) return 0;
        if (c == pair[0]) {
            open++;
            i++;
        } else if (c == pair[1]) {
            i++;
            if (--open == 0) return i;
        } else {
            i = skip_inner(script, i, limit, strict, depth, false);
            if (!i) return 0;
        }
    }
    return 0;
}

uint32_t bash_skip_parens(struct bash *script, uint32_t at, uint32_t limit, bool strict, int depth)
{
    return skip_pair(script, at, limit, "()", strict, depth);
}

uint32_t bash_skip_dollar(struct bash *script, uint32_t at, uint32_t limit, bool strict, int depth)
{
    if (at + 1 >= limit) return 0;
    if (script->source[at + 1] == '(') return skip_pair(script, at + 1, limit, "()", strict, depth);
    if (script->source[at + 1] == '{') return skip_pair(script, at + 1, limit, "{}", strict, depth);
    return 0;
}

uint32_t bash_skip_placeholder(struct bash *script, uint32_t at, uint32_t limit)
{
    const char *source = script->source;
    if (at + 1 >= limit || !bash_is_name_start(source[at + 1])) return 0;
    for (uint32_t i = at + 1; i < limit && i < at + 120; i++) {
        if (bash_step(script, 1)) return 0;
        if (source[i] == '>') return source[i - 1] == ' ' ? 0 : i + 1;
        if (strchr("<|&;\n$\"'", source[i])) return 0;
    }
    return 0;
}
