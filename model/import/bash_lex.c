/* The source as a flat list of commands. Nothing here fails: what bash would refuse becomes a command of odd words that
 * nobody recognizes, and reading goes on. */
#include <string.h>

#include "model/import/bash_core.h"

struct lexer {
    struct bash *script;
    uint32_t at;
    struct bash_parsed *command; /* being read, NULL between commands; moves when the list grows */
    enum bash_joined joined;     /* how the next command hangs on the last */
    bool negated;
    bool declares;    /* export, local, ...: assignments among its arguments */
    int cases;        /* case commands that are open */
    bool pattern;     /* a pattern of case comes next */
    uint32_t here[4]; /* delimiters of here-documents that start on the next line */
    int n_here;
};

static const struct {
    const char *word;
    enum bash_kind kind;
} grammar[] = {{"if", BASH_IF},  {"then", BASH_THEN}, {"elif", BASH_ELIF},   {"else", BASH_ELSE},
               {"fi", BASH_FI},  {"for", BASH_FOR},   {"while", BASH_WHILE}, {"until", BASH_WHILE},
               {"do", BASH_DO},  {"done", BASH_DONE}, {"case", BASH_CASE},   {"esac", BASH_ESAC},
               {"{", BASH_OPEN}, {"}", BASH_CLOSE}};

static struct bash_parsed *open_command(struct lexer *lexer, enum bash_kind kind, uint32_t offset)
{
    struct bash *script = lexer->script;
    if (!bash_grow(script, &script->parsed, script->n_parsed, &script->parsed_capacity, sizeof *script->parsed))
        return NULL;
    struct bash_parsed *command = &script->parsed[script->n_parsed++];
    *command = (struct bash_parsed){.offset = offset,
                                    .first = script->n_raw,
                                    .link = -1,
                                    .opener = -1,
                                    .kind = (uint8_t)kind,
                                    .joined = (uint8_t)lexer->joined,
                                    .negated = lexer->negated};
    lexer->joined = BASH_ALWAYS;
    lexer->negated = false;
    lexer->declares = false;
    return lexer->command = command;
}

static void close_command(struct lexer *lexer)
{
    if (lexer->command) lexer->command->n = lexer->script->n_raw - lexer->command->first;
    lexer->command = NULL;
}

static bool same(const struct bash *script, uint32_t start, uint32_t end, const char *word)
{
    return strlen(word) == end - start && !memcmp(script->source + start, word, end - start);
}

/* After the newline at lexer->at: steps over the here-documents that the line announced. */
static void skip_here_documents(struct lexer *lexer)
{
    struct bash *script = lexer->script;
    for (int i = 0; i < lexer->n_here; i++) {
        uint32_t name = lexer->here[i], length = 0;
        while (bash_is_name(script->source[name + length])) length++;
        uint32_t line = lexer->at + 1, limit = line + (256 << 10); /* further away it is no here-document */
        while (line < script->size && line < limit && !bash_step(script, 1)) {
            uint32_t start = line;
            while (script->source[start] == '\t' || script->source[start] == ' ') start++;
            uint32_t end = start;
            while (end < script->size && script->source[end] != '\n' && !bash_step(script, 1)) end++;
            line = end + 1;
            if (end - start == length && !memcmp(script->source + start, script->source + name, length)) {
                lexer->at = end; /* at the newline after the delimiter */
                break;
            }
        }
    }
    lexer->n_here = 0;
}

/* At '<' or '>': steps over the operator and its target. Returns false when it is not a redirection. */
static bool skip_redirection(struct lexer *lexer)
{
    struct bash *script = lexer->script;
    const char *source = script->source;
    uint32_t at = lexer->at;
    if (bash_is_digit(source[at]) && (source[at + 1] == '<' || source[at + 1] == '>')) at++;
    if (source[at] == '&' && source[at + 1] == '>') at++;
    if (source[at] != '<' && source[at] != '>') return false;
    if (source[at] == '<' && bash_skip_placeholder(script, at, script->size)) return false;
    if (source[at + 1] == '(') {
        uint32_t end = bash_skip_parens(script, at + 1, script->size, true, 0);
        lexer->at = end ? end : at + 2;
        return true;
    }
    bool here = source[at] == '<' && source[at + 1] == '<' && source[at + 2] != '<';
    while (source[at] == '<' || source[at] == '>' || source[at] == '&' || source[at] == '|' ||
           (here && source[at] == '-'))
        at++;
    at = bash_skip_blanks(script, at);
    if (here && lexer->n_here < 4) {
        uint32_t name = at + (source[at] == '\'' || source[at] == '"');
        if (bash_is_name_start(source[name])) lexer->here[lexer->n_here++] = name;
    }
    uint32_t end = bash_word_end(script, at, false, false);
    lexer->at = end;
    return true;
}

/* `name()` or `function name`: a command of kind BASH_FUNCTION with the name as its word. */
static bool lex_function(struct lexer *lexer, uint32_t start, uint32_t end)
{
    struct bash *script = lexer->script;
    bool keyword = same(script, start, end, "function");
    if (memchr(script->source + start, '=', end - start)) return false; /* A=() is an empty array */
    if (keyword) {
        start = bash_skip_blanks(script, end);
        end = start;
        while (bash_is_name(script->source[end]) || script->source[end] == '-') end++;
        if (end == start) return false;
    }
    uint32_t open = bash_skip_blanks(script, end);
    bool parens = script->source[open] == '(' && script->source[bash_skip_blanks(script, open + 1)] == ')';
    if (!parens && !keyword) return false;
    open_command(lexer, BASH_FUNCTION, start);
    bash_raw_add(script, BASH_WORD, start, end);
    close_command(lexer);
    lexer->at = parens ? bash_skip_blanks(script, open + 1) + 1 : end;
    return true;
}

/* [[ ... ]]: its operators become words. Returns false when it is not closed nearby. */
static bool lex_test(struct lexer *lexer, uint32_t at)
{
    struct bash *script = lexer->script;
    const char *source = script->source;
    uint32_t offset = at, limit = script->size - at > 4096 ? at + 4096 : script->size;
    int first = script->n_raw;
    at += 2;
    while (at < limit && !script->spent) {
        at = bash_skip_blanks(script, at);
        if (source[at] == '\n' || source[at] == ';') break;
        uint32_t end;
        if ((source[at] == '&' && source[at + 1] == '&') || (source[at] == '|' && source[at + 1] == '|'))
            end = at + 2;
        else if (strchr("()<>&|", source[at]))
            end = at + 1;
        else
            end = bash_word_end(script, at, false, false);
        if (same(script, at, end, "]]")) {
            int n = script->n_raw - first;
            struct bash_parsed *command = open_command(lexer, BASH_TEST, offset);
            if (command) command->first = first, command->n = n;
            lexer->command = NULL;
            lexer->at = end;
            return true;
        }
        bash_raw_add(script, BASH_WORD, at, end > at ? end : at + 1);
        at = end > at ? end : at + 1;
    }
    script->n_raw = first;
    return false;
}

/* (( ... )) as a command. */
static bool lex_arithmetic(struct lexer *lexer, uint32_t at)
{
    struct bash *script = lexer->script;
    uint32_t end = bash_skip_parens(script, at, script->size, true, 0);
    if (end < at + 4 || script->source[end - 2] != ')') return false;
    open_command(lexer, BASH_ARITH, at);
    bash_raw_add(script, BASH_WORD, at + 2, end - 2);
    close_command(lexer);
    lexer->at = end;
    return true;
}

/* A pattern of case: words separated by '|', closed by ')'. On failure the case is no case: it was prose. */
static bool lex_pattern(struct lexer *lexer)
{
    struct bash *script = lexer->script;
    const char *source = script->source;
    uint32_t at = lexer->at;
    if (source[at] == '(') at = bash_skip_blanks(script, at + 1);
    int first = script->n_raw;
    uint32_t offset = at;
    while (at < script->size && !script->spent) {
        uint32_t end = bash_word_end(script, at, false, false);
        if (end == at) break;
        bash_raw_add(script, BASH_WORD, at, end);
        at = bash_skip_blanks(script, end);
        if (source[at] == ')') {
            int n = script->n_raw - first;
            struct bash_parsed *command = open_command(lexer, BASH_PATTERN, offset);
            if (command) command->first = first, command->n = n;
            lexer->command = NULL;
            lexer->at = at + 1;
            return true;
        }
        if (source[at] != '|') break;
        at = bash_skip_blanks(script, at + 1);
    }
    script->n_raw = first;
    return false;
}

/* Words of the grammar end a command by themselves: what follows `then` is a new command. */
static bool lex_grammar(struct lexer *lexer, uint32_t start, uint32_t end)
{
    struct bash *script = lexer->script;
    if (same(script, start, end, "!")) {
        lexer->negated = !lexer->negated;
        lexer->at = end;
        return true;
    }
    for (size_t i = 0; i < sizeof grammar / sizeof *grammar; i++) {
        if (!same(script, start, end, grammar[i].word)) continue;
        enum bash_kind kind = grammar[i].kind;
        open_command(lexer, kind, start);
        if (kind == BASH_ESAC && lexer->cases) lexer->cases--;
        lexer->at = end;
        if (kind == BASH_FOR && !strncmp(script->source + bash_skip_blanks(script, end), "((", 2)) {
            uint32_t close = bash_skip_parens(script, bash_skip_blanks(script, end), script->size, true, 0);
            if (close) lexer->at = close;
        }
        if (kind != BASH_FOR && kind != BASH_CASE) close_command(lexer); /* these two have words */
        return true;
    }
    return false;
}

/* At the first word of a command. */
static bool lex_first_word(struct lexer *lexer)
{
    struct bash *script = lexer->script;
    const char *at = script->source + lexer->at;
    if (at[0] == '[' && at[1] == '[' && bash_is_space(at[2])) return lex_test(lexer, lexer->at);
    if (at[0] == '(' && at[1] == '(') return lex_arithmetic(lexer, lexer->at);
    if (*at == '{' && !bash_is_space(at[1])) return false;
    uint32_t end = bash_word_end(script, lexer->at, false, false);
    if (end == lexer->at) return false;
    return lex_grammar(lexer, lexer->at, end) || lex_function(lexer, lexer->at, end);
}

static bool declares(const struct bash *script, uint32_t start, uint32_t end)
{
    static const char *const words[] = {"export", "declare", "local", "readonly", "typeset", "env"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (same(script, start, end, words[i])) return true;
    return false;
}

/* NAME=value, NAME+=value, NAME=( ... ). */
static void lex_assignment(struct lexer *lexer, const struct bash_raw *shape)
{
    struct bash *script = lexer->script;
    int index = script->n_raw;
    if (!bash_raw_add(script, BASH_ASSIGN, shape->start, shape->value)) return;
    if (script->source[shape->value] == '(') {
        lexer->at = bash_lex_array(script, shape->value);
        script->raw[index].kind = shape->kind == BASH_APPEND ? BASH_ARRAY_APPEND : BASH_ARRAY;
        script->raw[index].elements = script->n_raw - index - 1;
    } else {
        lexer->at = bash_word_end(script, shape->value, false, true);
        script->raw[index].kind = shape->kind;
    }
    script->raw[index].value = shape->value;
    script->raw[index].end = lexer->at;
}

static void lex_word(struct lexer *lexer)
{
    struct bash *script = lexer->script;
    uint32_t start = lexer->at;
    if (!lexer->command) {
        if (lex_first_word(lexer)) return;
        if (!open_command(lexer, BASH_SIMPLE, start)) return;
    }
    int n = script->n_raw - lexer->command->first;
    bool leading = n == 0 || script->raw[script->n_raw - 1].kind != BASH_WORD; /* assignments before a command */
    struct bash_raw shape;
    if (lexer->command->kind == BASH_SIMPLE && (leading || lexer->declares) &&
        bash_assignment_at(script, start, &shape)) {
        lex_assignment(lexer, &shape);
        return;
    }
    const struct bash_raw *last = n ? &script->raw[script->n_raw - 1] : NULL;
    bool code = last && last->kind == BASH_WORD && same(script, last->start, last->end, "-c");
    uint32_t end = bash_word_end(script, start, false, code);
    if (end == start) end = start + 1;
    if (leading && declares(script, start, end)) lexer->declares = true;
    bash_raw_add(script, BASH_WORD, start, end);
    lexer->at = end;
    if (lexer->command->kind == BASH_CASE && same(script, start, end, "in")) {
        close_command(lexer);
        lexer->cases++;
        lexer->pattern = true;
    }
}

/* At a character that ends a command. */
static void lex_separator(struct lexer *lexer)
{
    const char *at = lexer->script->source + lexer->at;
    close_command(lexer);
    if (*at == '\n') {
        if (lexer->n_here) skip_here_documents(lexer);
        lexer->at++;
        return;
    }
    if ((*at == '&' || *at == '|') && at[1] == *at) {
        lexer->joined = *at == '&' ? BASH_AND : BASH_OR;
        lexer->at += 2;
    } else if (*at == ';' && at[1] == ';') {
        if (lexer->cases) lexer->pattern = true;
        lexer->at += 2;
    } else {
        lexer->at++;
    }
}

void bash_lex(struct bash *script)
{
    struct lexer lexer = {.script = script};
    const char *source = script->source;
    while (!script->spent) {
        lexer.at = bash_skip_blanks(script, lexer.at);
        if (lexer.at >= script->size) break;
        char c = source[lexer.at];
        if (c == '#') {
            while (lexer.at < script->size && source[lexer.at] != '\n' && !bash_step(script, 1)) lexer.at++;
        } else if (lexer.pattern && c != '\n') {
            lexer.pattern = false;
            uint32_t end = bash_word_end(script, lexer.at, false, false);
            if (!same(script, lexer.at, end, "esac") && !lex_pattern(&lexer) && lexer.cases) lexer.cases--;
        } else if (c == '\n' || c == ';' || (c == '&' && source[lexer.at + 1] != '>') || c == '|') {
            lex_separator(&lexer);
        } else if (skip_redirection(&lexer)) {
            continue;
        } else if ((c == '(' || c == ')') && !(c == '(' && !lexer.command && source[lexer.at + 1] == '(')) {
            lex_separator(&lexer);
        } else {
            lex_word(&lexer);
        }
    }
    close_command(&lexer);
}
