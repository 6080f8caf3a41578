/* The evaluator as a whole: a clean copy of the text, then commands, then their structure, then one pass over them. */
#include <stdlib.h>
#include <string.h>

#include "oomcast/case.h"
#include "model/import/bash_core.h"

/* A copy that the scanner need not be careful with: no CR LF, no NUL, no byte order mark, no no-break spaces. */
static bool normalise(struct bash *script, const char *text, size_t size)
{
    script->source = malloc(size + 8);
    script->lines = NULL;
    int capacity = 0;
    if (!script->source || !bash_grow(script, &script->lines, 0, &capacity, sizeof *script->lines)) return false;
    script->lines[script->n_lines++] = 0;
    uint32_t n = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool mark = i == 0 && size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3);
        bool no_break = i + 1 < size && !memcmp(text + i, "\xC2\xA0", 2);
        if (c == '\r' && i + 1 < size && text[i + 1] == '\n') continue;
        if (mark || no_break) {
            for (int k = 0; k < 2 + mark; k++) script->source[n++] = ' ';
            i += 1 + mark;
            continue;
        }
        script->source[n++] = c ? c : ' ';
        if (c != '\n') continue;
        if (!bash_grow(script, &script->lines, script->n_lines, &capacity, sizeof *script->lines)) return false;
        script->lines[script->n_lines++] = n;
    }
    memset(script->source + n, 0, size + 8 - n);
    script->size = n;
    return true;
}

struct bash *bash_run(const char *text, size_t size, struct oc_error *error)
{
    struct bash *script = size <= OC_MAX_INPUT ? calloc(1, sizeof *script) : NULL;
    if (!script) {
        oc_fail(error, OC_E_LIMIT, "the script is too large");
        return NULL;
    }
    for (int i = 0; i < BASH_BUCKETS; i++) script->buckets[i] = -1;
    if (normalise(script, text, size)) {
        bash_lex(script);
        bash_shape(script);
        bash_interpret(script);
    }
    if (!script->spent) return script;
    bash_free(script);
    oc_fail(error, OC_E_LIMIT, "the script is too large to read, or its variables grow without bound");
    return NULL;
}
