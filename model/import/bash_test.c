/* Conditions: [ ... ], test and [[ ... ]]. */
#include <string.h>

#include "model/import/bash_core.h"

struct tester {
    struct bash *script;
    const struct bash_text *words;
    int n, at, depth;
    bool patterns;
    uint32_t offset;
};

static struct bash_status either(struct tester *tester);

static struct bash_status known(bool yes)
{
    return (struct bash_status){.truth = yes ? BASH_YES : BASH_NO};
}
static struct bash_status unsure(uint32_t cause)
{
    return (struct bash_status){.truth = BASH_UNSURE, .cause = cause};
}

static bool is(const struct tester *tester, int at, const char *string)
{
    return at < tester->n && bash_text_is(&tester->words[at], string);
}

static struct bash_status not(struct bash_status status)
{
    if (status.truth == BASH_YES || status.truth == BASH_NO)
        status.truth = status.truth == BASH_YES ? BASH_NO : BASH_YES;
    return status;
}

/* Whether a text is empty. A variable that the script does not set, nor its arguments, counts as empty. */
static struct bash_status is_empty(const struct bash *script, const struct bash_text *text)
{
    bool has_text = false;
    const bash_cell *open = NULL; /* unknown, and not merely unset */
    for (uint32_t i = 0; i < text->n; i++) {
        if (!bash_cell_is_unknown(text->cells[i]))
            has_text = true;
        else if (!bash_is_unset(script, bash_cell_offset(text->cells[i])))
            open = &text->cells[i];
    }
    if (has_text || !open) return known(!has_text);
    return unsure(bash_cell_offset(*open));
}

static struct bash_status compare_numbers(const struct tester *tester, const char *op, const struct bash_text *a,
                                          const struct bash_text *b)
{
    struct bash_number x = bash_arithmetic(tester->script, a, tester->offset);
    struct bash_number y = bash_arithmetic(tester->script, b, tester->offset);
    if (!x.known || !y.known) return unsure(x.known ? y.cause : x.cause);
    static const char names[] = "eqnegtltgele";
    switch ((strstr(names, op + 1) - names) / 2) {
    case 0: return known(x.value == y.value);
    case 1: return known(x.value != y.value);
    case 2: return known(x.value > y.value);
    case 3: return known(x.value < y.value);
    case 4: return known(x.value >= y.value);
    default: return known(x.value <= y.value);
    }
}

static struct bash_status compare_texts(const struct tester *tester, const struct bash_text *a,
                                        const struct bash_text *b)
{
    if (!b->n) return is_empty(tester->script, a);
    const bash_cell *open = bash_first_unknown(a);
    if (!open) open = bash_first_unknown(b);
    if (open) return unsure(bash_cell_offset(*open));
    if (tester->patterns) return known(bash_matches(tester->script, b->cells, b->n, a->cells, a->n));
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) same = bash_cell_char(a->cells[i]) == bash_cell_char(b->cells[i]);
    return known(same);
}

/* The operator at a word: "-eq", "=", ... or NULL. */
static const char *comparison(const struct tester *tester, int at)
{
    static const char *const all[] = {"-eq", "-ne", "-gt", "-lt", "-ge", "-le", "=", "==", "!=", "=~", "<", ">"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is(tester, at, all[i])) return all[i];
    return NULL;
}

static struct bash_status primary(struct tester *tester)
{
    const struct bash_text *word = &tester->words[tester->at];
    const char *op = comparison(tester, tester->at + 1);
    if (op && tester->at + 2 < tester->n) {
        const struct bash_text *other = &tester->words[tester->at + 2];
        tester->at += 3;
        if (op[0] == '-') return compare_numbers(tester, op, word, other);
        if (!strcmp(op, "!=")) return not(compare_texts(tester, word, other));
        return op[0] == '=' && op[1] != '~' ? compare_texts(tester, word, other) : unsure(tester->offset);
    }
    if (word->n == 2 && bash_cell_char(word->cells[0]) == '-' && tester->at + 1 < tester->n) {
        const struct bash_text *operand = &tester->words[tester->at + 1];
        tester->at += 2;
        switch (bash_cell_char(word->cells[1])) {
        case 'z': return is_empty(tester->script, operand);
        case 'n': return not(is_empty(tester->script, operand));
        case 'v': {
            const struct bash_variable *variable = bash_find(tester->script, operand->cells, operand->n);
            return known(variable && variable->is_set);
        }
        default: return unsure(tester->offset); /* files are not looked at */
        }
    }
    tester->at++;
    /* An unquoted empty value leaves only its operator behind: [ -z $X ]. */
    if (bash_text_is(word, "-z")) return known(true);
    if (bash_text_is(word, "-n")) return known(false);
    return not(is_empty(tester->script, word));
}

static struct bash_status negated(struct tester *tester)
{
    bool flip = false;
    while (is(tester, tester->at, "!") && tester->at + 1 < tester->n) {
        flip = !flip;
        tester->at++;
    }
    struct bash_status status;
    if (is(tester, tester->at, "(") && tester->depth < BASH_MAX_DEPTH) {
        tester->at++;
        tester->depth++;
        status = either(tester);
        tester->depth--;
        if (is(tester, tester->at, ")")) tester->at++;
    } else if (tester->at < tester->n) {
        status = primary(tester);
    } else {
        status = known(false);
    }
    return flip ? not(status) : status;
}

static struct bash_status both(struct tester *tester)
{
    struct bash_status left = negated(tester);
    while (is(tester, tester->at, "&&") || is(tester, tester->at, "-a")) {
        tester->at++;
        struct bash_status right = negated(tester);
        if (left.truth == BASH_YES || (left.truth == BASH_UNSURE && right.truth == BASH_NO)) left = right;
    }
    return left;
}

static struct bash_status either(struct tester *tester)
{
    struct bash_status left = both(tester);
    while (is(tester, tester->at, "||") || is(tester, tester->at, "-o")) {
        tester->at++;
        struct bash_status right = both(tester);
        if (left.truth == BASH_NO || (left.truth == BASH_UNSURE && right.truth == BASH_YES)) left = right;
    }
    return left;
}

struct bash_status bash_test(struct bash *script, const struct bash_text *words, int n, bool patterns, uint32_t offset)
{
    struct tester tester = {.script = script, .words = words, .n = n, .patterns = patterns, .offset = offset};
    struct bash_status status = either(&tester);
    return tester.at == n ? status : unsure(offset);
}
