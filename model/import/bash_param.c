/* ${NAME}, ${NAME[@]}, ${#NAME}, ${NAME:-word} and the other forms with braces. */
#include <string.h>

#include "model/import/bash_core.h"

/* A parameter, taken apart. */
struct parameter {
    uint32_t dollar, name, name_length;
    uint32_t rest, end;                   /* what follows the name and its subscript */
    bool all;                             /* [@] or [*] */
    bool star;                            /* [*] */
    bool length;                          /* ${#NAME} */
    int64_t subscript;                    /* [3]; 0 without */
    const struct bash_variable *variable; /* NULL: not set */
};

static const struct bash_text nothing = {0};

static bool parse(struct bash_builder *builder, uint32_t start, uint32_t end, struct parameter *parameter)
{
    struct bash *script = builder->script;
    const char *source = script->source;
    parameter->length = source[start] == '#' && end - start > 1;
    uint32_t at = start + parameter->length;
    parameter->name = at;
    if (!bash_is_name_start(source[at])) return false;
    while (at < end && bash_is_name(source[at])) at++;
    parameter->name_length = at - parameter->name;
    if (at < end && source[at] == '[') {
        uint32_t close = at + 1;
        while (close < end && source[close] != ']') close++;
        if (close == end) return false;
        parameter->star = source[at + 1] == '*';
        parameter->all = close == at + 2 && (source[at + 1] == '@' || parameter->star);
        if (!parameter->all) {
            struct bash_text text = bash_expand_text(script, at + 1, close, builder->depth + 1);
            struct bash_number index = bash_arithmetic(script, &text, parameter->dollar);
            if (!index.known) return false;
            parameter->subscript = index.value;
        }
        at = close + 1;
    }
    parameter->rest = at;
    parameter->end = end;
    parameter->variable = bash_find_source(script, parameter->name, parameter->name_length);
    if (parameter->variable && !parameter->variable->is_set) parameter->variable = NULL;
    return true;
}

/* The element that a parameter without [@] names. */
static const struct bash_text *element(const struct parameter *parameter)
{
    const struct bash_fields *values = &parameter->variable->values;
    int64_t at = parameter->subscript < 0 ? values->n + parameter->subscript : parameter->subscript;
    return at >= 0 && at < values->n ? &values->items[at] : &nothing;
}

/* Whether nothing but an unset variable or argument is in it: then `:-` takes its default. */
static bool is_only_unset(const struct bash *script, const struct bash_text *text)
{
    return text->n == 1 && bash_cell_is_unknown(text->cells[0]) &&
           bash_is_unset(script, bash_cell_offset(text->cells[0]));
}

static void build_value(struct bash_builder *builder, const struct parameter *parameter, bool quoted)
{
    if (!parameter->variable) {
        bash_build_unknown(builder, parameter->dollar);
        return;
    }
    if (!parameter->all) {
        bash_build_text(builder, element(parameter), quoted);
        return;
    }
    const struct bash_fields *values = &parameter->variable->values;
    for (int i = 0; i < values->n && !builder->script->spent; i++) {
        if (i && builder->split && !(quoted && parameter->star))
            bash_build_break(builder);
        else if (i)
            bash_build_text(builder,
                            &(struct bash_text){.cells = (bash_cell[]){bash_cell_make(' ', parameter->dollar)}, .n = 1},
                            true);
        bash_build_text(builder, &values->items[i], quoted);
    }
}

static void build_length(struct bash_builder *builder, const struct parameter *parameter)
{
    if (!parameter->variable || (!parameter->all && bash_first_unknown(element(parameter)))) {
        bash_build_unknown(builder, parameter->dollar);
        return;
    }
    uint32_t n = parameter->all ? (uint32_t)parameter->variable->values.n : element(parameter)->n;
    bash_cell digits[12];
    uint32_t at = 12;
    do digits[--at] = bash_cell_make((char)('0' + n % 10), parameter->dollar);
    while (n /= 10);
    bash_build_text(builder, &(struct bash_text){.cells = digits + at, .n = 12 - at}, true);
}

/* ${x#pattern}, ${x%pattern} and the longest-match forms. */
static void build_trimmed(struct bash_builder *builder, const struct parameter *parameter,
                          const struct bash_text *value, bool quoted)
{
    struct bash *script = builder->script;
    char side = script->source[parameter->rest];
    bool longest = parameter->rest + 1 < parameter->end && script->source[parameter->rest + 1] == side;
    struct bash_text pattern =
        bash_expand_text(script, parameter->rest + 1 + longest, parameter->end, builder->depth + 1);
    uint32_t n = value->n, from = 0, length = n;
    for (uint32_t i = 0; i <= n && !script->spent; i++) {
        uint32_t cut = longest ? n - i : i;
        const bash_cell *start = side == '#' ? value->cells : value->cells + (n - cut);
        if (!bash_matches(script, pattern.cells, pattern.n, start, cut)) continue;
        from = side == '#' ? cut : 0;
        length = n - cut;
        break;
    }
    bash_build_text(builder, &(struct bash_text){.cells = value->cells + from, .n = length}, quoted);
}

/* ${x/from/to} and ${x//from/to}, for a `from` without wildcards. */
static void build_replaced(struct bash_builder *builder, const struct parameter *parameter,
                           const struct bash_text *value, bool quoted)
{
    struct bash *script = builder->script;
    bool every = parameter->rest + 1 < parameter->end && script->source[parameter->rest + 1] == '/';
    uint32_t start = parameter->rest + 1 + every, slash = start;
    while (slash < parameter->end && script->source[slash] != '/') slash++;
    struct bash_text from = bash_expand_text(script, start, slash, builder->depth + 1), to = nothing;
    if (slash < parameter->end) to = bash_expand_text(script, slash + 1, parameter->end, builder->depth + 1);
    struct bash_text result = {0};
    bool done = from.n == 0;
    for (uint32_t i = 0; i < value->n && !script->spent;) {
        if (!done && value->n - i >= from.n && bash_matches(script, from.cells, from.n, value->cells + i, from.n)) {
            bash_push_text(script, &result, &to);
            i += from.n;
            done = !every;
        } else {
            bash_push(script, &result, value->cells[i++]);
        }
    }
    bash_build_text(builder, &result, quoted);
}

/* ${x:offset} and ${x:offset:length}. */
static void build_part(struct bash_builder *builder, const struct parameter *parameter, const struct bash_text *value,
                       bool quoted)
{
    struct bash *script = builder->script;
    uint32_t colon = parameter->rest + 1;
    while (colon < parameter->end && script->source[colon] != ':') colon++;
    struct bash_text text = bash_expand_text(script, parameter->rest + 1, colon, builder->depth + 1);
    struct bash_number from = bash_arithmetic(script, &text, parameter->dollar);
    struct bash_number length = {.value = value->n, .known = true};
    if (colon < parameter->end) {
        text = bash_expand_text(script, colon + 1, parameter->end, builder->depth + 1);
        length = bash_arithmetic(script, &text, parameter->dollar);
    }
    if (!from.known || !length.known) {
        bash_build_unknown(builder, parameter->dollar);
        return;
    }
    int64_t n = value->n, start = from.value < 0 ? n + from.value : from.value;
    if (start < 0 || start > n) start = n;
    int64_t size = length.value < 0 ? n - start + (length.value < -n ? -n : length.value) : length.value;
    if (size < 0) size = 0;
    if (size > n - start) size = n - start;
    bash_build_text(builder, &(struct bash_text){.cells = value->cells + start, .n = (uint32_t)size}, quoted);
}

/* ${x:-word}, ${x:=word}, ${x:+word}, ${x:?word} and the forms without the colon. */
static void build_default(struct bash_builder *builder, const struct parameter *parameter, bool quoted)
{
    struct bash *script = builder->script;
    bool colon = script->source[parameter->rest] == ':';
    char op = script->source[parameter->rest + colon];
    uint32_t word = parameter->rest + colon + 1;
    bool set = parameter->variable != NULL;
    if (set && !parameter->all) {
        const struct bash_text *value = element(parameter);
        set = !is_only_unset(script, value) && !(colon && value->n == 0);
    } else if (set) {
        set = parameter->variable->values.n > 0;
    }
    if (op == '+' ? set : !set && op != '?') {
        if (quoted) {
            struct bash_text text = bash_expand_text(script, word, parameter->end, builder->depth + 1);
            bash_build_text(builder, &text, true);
        } else {
            builder->depth++;
            if (builder->depth <= BASH_MAX_DEPTH) bash_build(builder, word, parameter->end);
            builder->depth--;
        }
        if (op != '=' || script->mode != BASH_RUN) return;
        struct bash_fields fields = {0};
        struct bash_text *value = bash_fields_add(script, &fields);
        if (value) *value = bash_expand_text(script, word, parameter->end, builder->depth + 1);
        struct bash_variable *variable = bash_declare(script, parameter->name, parameter->name_length);
        if (!variable) return;
        variable->values = fields;
        variable->is_set = true;
    } else if (op != '+') {
        build_value(builder, parameter, quoted);
    }
}

static bool is_default(const struct bash *script, const struct parameter *parameter)
{
    const char *at = script->source + parameter->rest;
    if (*at == ':' && parameter->rest + 1 < parameter->end) at++;
    return *at && strchr("-=+?", *at);
}

static void build_operator(struct bash_builder *builder, const struct parameter *parameter, bool quoted)
{
    const struct bash_text *value = element(parameter);
    if (bash_first_unknown(value)) {
        bash_build_text(builder, value, quoted);
        return;
    }
    switch (builder->script->source[parameter->rest]) {
    case '#':
    case '%': build_trimmed(builder, parameter, value, quoted); break;
    case '/': build_replaced(builder, parameter, value, quoted); break;
    case ':': build_part(builder, parameter, value, quoted); break;
    default: bash_build_unknown(builder, parameter->dollar); break; /* case changes, @Q, ... */
    }
}

/* ${1:-word}: an argument takes its default. */
static void build_argument(struct bash_builder *builder, uint32_t dollar, uint32_t start, uint32_t end, bool quoted)
{
    struct parameter parameter = {.dollar = dollar, .name = start, .rest = start, .end = end};
    while (parameter.rest < end && bash_is_digit(builder->script->source[parameter.rest])) parameter.rest++;
    if (parameter.rest == start && start < end &&
        (builder->script->source[start] == '@' || builder->script->source[start] == '*'))
        parameter.rest++;
    bool assigns =
        memchr(builder->script->source + parameter.rest, '=', end - parameter.rest > 2 ? 2 : end - parameter.rest);
    if (parameter.rest > start && parameter.rest < end && is_default(builder->script, &parameter) && !assigns)
        build_default(builder, &parameter, quoted);
    else
        bash_build_unknown(builder, dollar);
}

void bash_build_parameter(struct bash_builder *builder, uint32_t dollar, uint32_t start, uint32_t end, bool quoted)
{
    struct parameter parameter = {.dollar = dollar};
    if (builder->depth > BASH_MAX_DEPTH)
        bash_build_unknown(builder, dollar);
    else if (!parse(builder, start, end, &parameter))
        build_argument(builder, dollar, start, end, quoted);
    else if (parameter.length)
        build_length(builder, &parameter);
    else if (parameter.rest < parameter.end && is_default(builder->script, &parameter))
        build_default(builder, &parameter, quoted);
    else if (parameter.rest == parameter.end || !parameter.variable || parameter.all)
        build_value(builder, &parameter, quoted);
    else
        build_operator(builder, &parameter, quoted);
}
