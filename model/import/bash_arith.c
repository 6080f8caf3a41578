/* $(( ... )): C's integer operators, bare names, assignment. A value that is not known makes the result unknown. */
#include <limits.h>
#include <string.h>

#include "model/import/bash_core.h"

struct parser {
    struct bash *script;
    const struct bash_text *text;
    uint32_t at;
    uint32_t offset; /* blamed when the expression itself is wrong */
    int depth;
};

static const struct {
    char name[3];
    int precedence;
} operators[] = {{"||", 1}, {"&&", 2},  {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6},
                 {"<=", 7}, {">=", 7},  {"<<", 8}, {">>", 8}, {"<", 7}, {">", 7},  {"+", 9},
                 {"-", 9},  {"**", 11}, {"*", 10}, {"/", 10}, {"%", 10}};

static struct bash_number parse_expression(struct parser *parser);
static struct bash_number evaluate(struct bash *script, const struct bash_text *text, uint32_t offset, int depth);

static struct bash_number number(int64_t value)
{
    return (struct bash_number){.value = value, .known = true};
}
static struct bash_number unknown(uint32_t cause)
{
    return (struct bash_number){.cause = cause};
}
static struct bash_number wrong(const struct parser *parser)
{
    return unknown(parser->offset);
}

static char peek(struct parser *parser, uint32_t ahead)
{
    uint32_t at = parser->at + ahead;
    return at < parser->text->n ? bash_cell_char(parser->text->cells[at]) : 0;
}

static void skip_space(struct parser *parser)
{
    while (bash_is_space(peek(parser, 0))) parser->at++;
}

static struct bash_number literal(struct parser *parser)
{
    int base = 10;
    if (peek(parser, 0) == '0') {
        base = peek(parser, 1) == 'x' || peek(parser, 1) == 'X' ? 16 : 8;
        parser->at += base == 16 ? 2 : 0;
    }
    int64_t value = 0;
    bool good = true;
    for (; bash_is_name(peek(parser, 0)); parser->at++) {
        char c = peek(parser, 0);
        int digit = bash_is_digit(c)       ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : 99;
        good = good && digit < base && !__builtin_mul_overflow(value, base, &value) &&
               !__builtin_add_overflow(value, digit, &value);
    }
    return good ? number(value) : wrong(parser);
}

static struct bash_number apply(const struct parser *parser, const char *op, struct bash_number a, struct bash_number b)
{
    if (!a.known) return a;
    if (!b.known) return b;
    int64_t x = a.value, y = b.value, result = 0;
    bool overflow = false;
    switch (op[0]) {
    case '+': overflow = __builtin_add_overflow(x, y, &result); break;
    case '-': overflow = __builtin_sub_overflow(x, y, &result); break;
    case '/':
    case '%':
        overflow = y == 0 || (x == INT64_MIN && y == -1);
        if (!overflow) result = op[0] == '/' ? x / y : x % y;
        break;
    case '*':
        if (op[1] != '*') {
            overflow = __builtin_mul_overflow(x, y, &result);
            break;
        }
        overflow = y < 0 || y > 64;
        for (result = 1; y > 0 && !overflow; y--) overflow = __builtin_mul_overflow(result, x, &result);
        break;
    case '^': result = x ^ y; break;
    case '=': result = x == y; break;
    case '!': result = x != y; break;
    case '&': result = op[1] ? x && y : (x & y); break;
    case '|': result = op[1] ? x || y : (x | y); break;
    case '<':
    case '>':
        if (op[1] == op[0]) {
            overflow = y < 0 || y > 62 || x < 0;
            if (!overflow) result = op[0] == '<' ? (int64_t)((uint64_t)x << y & INT64_MAX) : x >> y;
        } else if (op[1] == '=') {
            result = op[0] == '<' ? x <= y : x >= y;
        } else {
            result = op[0] == '<' ? x < y : x > y;
        }
        break;
    default: overflow = true; break;
    }
    return overflow ? wrong(parser) : number(result);
}

static struct bash_number value_of(struct parser *parser, uint32_t name, uint32_t length)
{
    const bash_cell *cells = parser->text->cells + name;
    const struct bash_variable *variable = bash_find(parser->script, cells, length);
    if (!variable || !variable->is_set || !variable->values.n) return unknown(bash_cell_offset(cells[0]));
    if (parser->depth > 8) return wrong(parser);
    return evaluate(parser->script, &variable->values.items[0], bash_cell_offset(cells[0]), parser->depth + 1);
}

static void store(struct parser *parser, uint32_t name, uint32_t length, struct bash_number value)
{
    struct bash *script = parser->script;
    const bash_cell *cells = parser->text->cells + name;
    uint32_t offset = bash_cell_offset(cells[0]);
    bool literal_name = offset + length <= script->size;
    for (uint32_t i = 0; literal_name && i < length; i++)
        literal_name = script->source[offset + i] == bash_cell_char(cells[i]);
    if (script->mode == BASH_KEEP || !literal_name) return;
    struct bash_variable *variable = bash_declare(script, offset, length);
    if (!variable) return;
    struct bash_fields fields = {0};
    struct bash_text *text = bash_fields_add(script, &fields);
    if (text && (!value.known || script->mode == BASH_MAYBE)) {
        bash_push(script, text, bash_cell_unknown(value.known ? script->mode_cause : value.cause));
    } else if (text) {
        char digits[24];
        int n = 0;
        uint64_t rest = value.value < 0 ? 0 - (uint64_t)value.value : (uint64_t)value.value;
        do digits[n++] = (char)('0' + rest % 10);
        while (rest /= 10);
        if (value.value < 0) digits[n++] = '-';
        while (n) bash_push(script, text, bash_cell_make(digits[--n], offset));
    }
    variable->values = fields;
    variable->is_set = true;
    variable->is_array = false;
}

/* A name, and what may follow it: ++, --, =, +=, ... */
static struct bash_number parse_name(struct parser *parser)
{
    uint32_t name = parser->at;
    while (bash_is_name(peek(parser, 0))) parser->at++;
    uint32_t length = parser->at - name;
    skip_space(parser);
    char c = peek(parser, 0), next = peek(parser, 1);
    if ((c == '+' || c == '-') && next == c) {
        parser->at += 2;
        struct bash_number old = value_of(parser, name, length);
        store(parser, name, length, apply(parser, c == '+' ? "+" : "-", old, number(1)));
        return old;
    }
    char op[2] = {0};
    if (c && strchr("+-*/%&|^", c) && next == '=') {
        op[0] = c;
        parser->at++;
    } else if (c != '=' || next == '=') {
        return value_of(parser, name, length);
    }
    parser->at++;
    parser->depth++;
    struct bash_number value = parser->depth > BASH_MAX_DEPTH ? wrong(parser) : parse_expression(parser);
    parser->depth--;
    if (op[0]) value = apply(parser, op, value_of(parser, name, length), value);
    store(parser, name, length, value);
    return value;
}

static struct bash_number parse_unary(struct parser *parser)
{
    struct bash_number result;
    skip_space(parser);
    char c = peek(parser, 0);
    if (parser->depth > BASH_MAX_DEPTH || bash_step(parser->script, 1) || parser->at >= parser->text->n)
        return wrong(parser);
    if (bash_cell_is_unknown(parser->text->cells[parser->at])) {
        result = unknown(bash_cell_offset(parser->text->cells[parser->at++]));
        while (bash_is_name(peek(parser, 0))) parser->at++;
        return result;
    }
    if (bash_is_digit(c)) return literal(parser);
    if (bash_is_name_start(c)) return parse_name(parser);
    parser->at++;
    parser->depth++;
    if (c == '(') {
        result = parse_expression(parser);
        skip_space(parser);
        if (peek(parser, 0) == ')')
            parser->at++;
        else
            result = wrong(parser);
    } else if (c == '-' || c == '+' || c == '!' || c == '~') {
        result = parse_unary(parser);
        if (c == '-') result = apply(parser, "-", number(0), result);
        if (c == '!' && result.known) result.value = !result.value;
        if (c == '~' && result.known) result.value = ~result.value;
    } else {
        result = wrong(parser);
    }
    parser->depth--;
    return result;
}

static struct bash_number parse_binary(struct parser *parser, int lowest)
{
    struct bash_number left = parse_unary(parser);
    while (!bash_step(parser->script, 1)) {
        skip_space(parser);
        const char *op = NULL;
        int precedence = 0;
        for (size_t i = 0; i < sizeof operators / sizeof *operators && !op; i++)
            if (operators[i].name[0] == peek(parser, 0) &&
                (!operators[i].name[1] || operators[i].name[1] == peek(parser, 1)))
                op = operators[i].name, precedence = operators[i].precedence;
        if (!op || precedence < lowest) break;
        parser->at += (uint32_t)strlen(op);
        left = apply(parser, op, left, parse_binary(parser, precedence + (op[1] != '*')));
    }
    return left;
}

static struct bash_number parse_expression(struct parser *parser)
{
    if (parser->depth > BASH_MAX_DEPTH) return wrong(parser);
    struct bash_number condition = parse_binary(parser, 1);
    skip_space(parser);
    if (peek(parser, 0) != '?') return condition;
    parser->at++;
    parser->depth++;
    struct bash_number yes = parse_expression(parser), no = wrong(parser);
    skip_space(parser);
    if (peek(parser, 0) == ':') {
        parser->at++;
        no = parse_expression(parser);
    }
    parser->depth--;
    if (!condition.known) return condition;
    return condition.value ? yes : no;
}

static struct bash_number evaluate(struct bash *script, const struct bash_text *text, uint32_t offset, int depth)
{
    struct parser parser = {.script = script, .text = text, .offset = offset, .depth = depth};
    struct bash_number result = parse_expression(&parser);
    skip_space(&parser);
    if (parser.at < text->n && result.known) result = unknown(offset);
    return result;
}

struct bash_number bash_arithmetic(struct bash *script, const struct bash_text *text, uint32_t offset)
{
    return evaluate(script, text, offset, 0);
}
