/* What the parts of the evaluator share. Scanning and lexing see the source; everything after them sees cells:
 * characters that carry the offset at which they were written, so that a flag in a string keeps its line through any
 * expansion. */
#ifndef OC_MODEL_IMPORT_BASH_CORE_H
#define OC_MODEL_IMPORT_BASH_CORE_H

#include "model/import/bash.h"

/* A cell: bits 0-7 the character, 8-29 the offset (inputs are at most 4 MiB), 30 set for an unknown value. */
typedef uint32_t bash_cell;

enum {
    BASH_MAX_DEPTH = 32,   /* nesting of quotes, substitutions and expressions */
    BASH_MAX_FRAMES = 256, /* nesting of if, case, loops and calls */
    BASH_MAX_FUNCTIONS = 256,
    BASH_MAX_WORDS = 1 << 20, /* in the source */
    BASH_MAX_BROKEN = 8,
    BASH_MAX_MEMORY = 96 << 20, /* bytes of expanded text */
    BASH_MAX_WORK = 96 << 20    /* characters looked at */
};

static inline bash_cell bash_cell_make(char c, uint32_t offset)
{
    return (uint32_t)(unsigned char)c | offset << 8;
}
static inline bash_cell bash_cell_unknown(uint32_t offset)
{
    return (uint32_t)'?' | offset << 8 | 1u << 30;
}
static inline char bash_cell_char(bash_cell cell)
{
    return (char)(cell & 255);
}
static inline uint32_t bash_cell_offset(bash_cell cell)
{
    return cell >> 8 & 0x3fffff;
}
static inline bool bash_cell_is_unknown(bash_cell cell)
{
    return cell >> 30 & 1;
}

struct bash_text {
    bash_cell *cells;
    uint32_t n, capacity;
};

/* Fields that a word expands to. */
struct bash_fields {
    struct bash_text *items;
    int n, capacity;
};

enum bash_word_kind { BASH_WORD, BASH_ASSIGN, BASH_APPEND, BASH_ARRAY, BASH_ARRAY_APPEND, BASH_ELEMENT };

/* A word of the source, not yet expanded. */
struct bash_raw {
    uint32_t start, end;
    uint32_t value;   /* assignments: where the value starts; the name ends before '=' or '+=' */
    int32_t elements; /* arrays: how many BASH_ELEMENT words follow */
    uint8_t kind;
};

enum bash_kind {
    BASH_SIMPLE,
    BASH_TEST,
    BASH_ARITH,
    BASH_IF,
    BASH_THEN,
    BASH_ELIF,
    BASH_ELSE,
    BASH_FI,
    BASH_FOR,
    BASH_WHILE,
    BASH_DO,
    BASH_DONE,
    BASH_CASE,
    BASH_PATTERN,
    BASH_ESAC,
    BASH_FUNCTION,
    BASH_OPEN,
    BASH_CLOSE
};
enum bash_joined { BASH_ALWAYS, BASH_AND, BASH_OR };

/* A command of the source, or one word of the grammar (then, fi, ...). */
struct bash_parsed {
    uint32_t offset;
    int32_t first, n; /* its raw words */
    int32_t link;     /* set by bash_shape(): THEN, PATTERN: the next branch; openers: their closer; -1 = none */
    int32_t opener;   /* set by bash_shape(): THEN, ELIF, ELSE, PATTERN: the command they belong to; -1 = none */
    uint8_t kind;     /* enum bash_kind */
    uint8_t joined;   /* how it hangs on the command before it */
    bool negated;
};

struct bash_variable {
    uint32_t name, name_length; /* in the source */
    int32_t next;               /* in its hash bucket, -1 = none */
    struct bash_fields values;  /* one for a scalar; n = 0 for an empty array */
    bool is_array, is_set;
};

enum { BASH_BUCKETS = 1024 };
enum bash_mode {
    BASH_RUN,
    BASH_MAYBE, /* under a condition that is not known: assigned values become unknown */
    BASH_KEEP   /* in a loop: assigned values are ignored */
};

struct bash_chunk;

struct bash {
    char *source; /* a normalised copy: no CR, no NUL, no byte order mark; NUL-terminated */
    uint32_t size;
    uint32_t *lines; /* offsets of line starts */
    int n_lines;

    struct bash_raw *raw;
    int n_raw, raw_capacity;
    struct bash_parsed *parsed;
    int n_parsed, parsed_capacity;

    struct bash_variable *variables;
    int n_variables, variables_capacity;
    int32_t buckets[BASH_BUCKETS];

    struct bash_command *commands;
    int n_commands, commands_capacity;
    uint32_t broken[BASH_MAX_BROKEN];
    int n_broken;

    enum bash_mode mode;
    uint32_t mode_cause;

    struct bash_chunk *chunks;
    uint64_t memory, work;
    bool spent; /* a limit was reached: everything stops */
};

/* ---- bash_text.c: memory, texts, places ---- */

/* Counts work; true once a limit is reached. */
bool bash_step(struct bash *script, uint64_t characters);
/* Memory that lives as long as the script; NULL when the limit is reached. */
void *bash_alloc(struct bash *script, size_t size);
/* Makes room for one more item in an array that bash_free() releases. */
bool bash_grow(struct bash *script, void *items, int n, int *capacity, size_t size);
void bash_push(struct bash *script, struct bash_text *text, bash_cell cell);
void bash_push_text(struct bash *script, struct bash_text *text, const struct bash_text *more);
struct bash_text *bash_fields_add(struct bash *script, struct bash_fields *fields);
/* The first unknown cell, or NULL. */
const bash_cell *bash_first_unknown(const struct bash_text *text);
bool bash_text_is(const struct bash_text *text, const char *string);
struct bash_word bash_word_of(struct bash *script, const struct bash_text *text, uint32_t offset);
/* Whether the unknown value at this place is a variable or argument that is not set, rather than, say, output of a
 * command. */
bool bash_is_unset(const struct bash *script, uint32_t offset);
static inline bool bash_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}
static inline bool bash_is_name_start(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool bash_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool bash_is_name(char c)
{
    return bash_is_name_start(c) || bash_is_digit(c);
}

/* ---- bash_scan.c: where quotes and substitutions end ---- */

/* All return the offset after the closing character, or 0 when it is not found before `limit`. */
uint32_t bash_skip_single(struct bash *script, uint32_t at, uint32_t limit, bool strict);
uint32_t bash_skip_double(struct bash *script, uint32_t at, uint32_t limit, bool strict, int depth);
uint32_t bash_skip_dollar(struct bash *script, uint32_t at, uint32_t limit, bool strict, int depth);
uint32_t bash_skip_backtick(struct bash *script, uint32_t at, uint32_t limit);
uint32_t bash_skip_parens(struct bash *script, uint32_t at, uint32_t limit, bool strict, int depth);
/* "<path to data>": something to fill in, not a redirection. */
uint32_t bash_skip_placeholder(struct bash *script, uint32_t at, uint32_t limit);
/* Whether the line that starts at `at` begins like a statement of a script, so that no quote opened in prose may
 * swallow it. */
bool bash_line_is_statement(const struct bash *script, uint32_t at);
/* Whether it opens an array: NAME=( or NAME+=(. */
bool bash_line_opens_array(const struct bash *script, uint32_t at);

/* ---- bash_lex.c, bash_words.c, bash_shape.c: source -> raw words -> commands -> structure ---- */

void bash_lex(struct bash *script);
/* Offset after the word at `at`. In an array only white space and ')' end a word. `trusted`: quotes may span lines. */
uint32_t bash_word_end(struct bash *script, uint32_t at, bool in_array, bool trusted);
/* Whether NAME= or NAME+= stands at `at`; fills kind and value. */
bool bash_assignment_at(const struct bash *script, uint32_t at, struct bash_raw *raw);
/* Reads the elements of an array whose '(' is at `at`; returns the offset after its ')'. */
uint32_t bash_lex_array(struct bash *script, uint32_t at);
/* White space without newlines, continued lines included. */
uint32_t bash_skip_blanks(struct bash *script, uint32_t at);
struct bash_raw *bash_raw_add(struct bash *script, enum bash_word_kind kind, uint32_t start, uint32_t end);
void bash_shape(struct bash *script);

/* ---- bash_vars.c ---- */

struct bash_variable *bash_find(struct bash *script, const bash_cell *name, uint32_t length);
struct bash_variable *bash_find_source(struct bash *script, uint32_t name, uint32_t length);
/* Finds or makes the variable named at a place in the source. NULL when out of memory. */
struct bash_variable *bash_declare(struct bash *script, uint32_t name, uint32_t length);
void bash_unset(struct bash *script, const struct bash_text *name);
/* The value as one text: all elements, separated by spaces. */
struct bash_text bash_joined_value(struct bash *script, const struct bash_variable *variable);

/* ---- bash_expand.c, bash_param.c ---- */

/* Expands source text; `split` as an argument, otherwise as one text (a value, a pattern, a subject). */
void bash_expand(struct bash *script, uint32_t start, uint32_t end, bool split, struct bash_fields *fields);
struct bash_text bash_expand_text(struct bash *script, uint32_t start, uint32_t end, int depth);

struct bash_builder {
    struct bash *script;
    struct bash_fields *fields;
    struct bash_text *current; /* the field being built, NULL between fields */
    bool split;
    int depth;
};
void bash_build(struct bash_builder *builder, uint32_t start, uint32_t end);
void bash_build_text(struct bash_builder *builder, const struct bash_text *text, bool quoted);
void bash_build_unknown(struct bash_builder *builder, uint32_t offset);
void bash_build_break(struct bash_builder *builder);
/* ${...} whose braces enclose start..end; `dollar` is the place of the '$'. */
void bash_build_parameter(struct bash_builder *builder, uint32_t dollar, uint32_t start, uint32_t end, bool quoted);

/* ---- bash_arith.c, bash_pattern.c, bash_test.c ---- */

struct bash_number {
    int64_t value;
    uint32_t cause; /* when it is not known: why */
    bool known;
};
struct bash_number bash_arithmetic(struct bash *script, const struct bash_text *text, uint32_t offset);

/* Whether the text matches a pattern with * ? [...] from `from`, over its whole rest. */
bool bash_matches(struct bash *script, const bash_cell *pattern, uint32_t n_pattern, const bash_cell *text,
                  uint32_t n_text);

enum bash_truth {
    BASH_NO,
    BASH_YES,
    BASH_UNSURE, /* a condition that depends on something unknown */
    BASH_RAN     /* a command: taken as success, but not as the answer to a condition */
};
struct bash_status {
    enum bash_truth truth;
    uint32_t cause; /* UNSURE: why */
};
/* `[ ... ]`, `test ...` and `[[ ... ]]`, without the brackets; `patterns` for the last. */
struct bash_status bash_test(struct bash *script, const struct bash_text *words, int n, bool patterns, uint32_t offset);

/* ---- bash_assign.c, bash_run.c ---- */

void bash_interpret(struct bash *script);
void bash_assign(struct bash *script, const struct bash_raw *raw);

#endif
