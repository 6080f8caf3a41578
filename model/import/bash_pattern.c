/* The patterns of case, [[ == ]] and ${x%pattern}: * ? and [...]. */
#include "model/import/bash_core.h"

/* Whether the bracket expression at pattern[0] == '[' has `c` in it; `*used` is its length, 0 when it is not closed. */
static bool in_bracket(const bash_cell *pattern, uint32_t n, char c, uint32_t *used)
{
    uint32_t i = 1;
    bool negated = n > 1 && (bash_cell_char(pattern[1]) == '!' || bash_cell_char(pattern[1]) == '^');
    bool found = false;
    i += negated;
    for (uint32_t first = i; i < n; i++) {
        char at = bash_cell_char(pattern[i]);
        if (at == ']' && i > first) {
            *used = i + 1;
            return found != negated;
        }
        if (i + 2 < n && bash_cell_char(pattern[i + 1]) == '-' && bash_cell_char(pattern[i + 2]) != ']') {
            found = found || (c >= at && c <= bash_cell_char(pattern[i + 2]));
            i += 2;
        } else {
            found = found || c == at;
        }
    }
    *used = 0;
    return false;
}

/* Whether the first element of the pattern, which is no '*', takes the character; `*used` is its length. */
static bool takes(const bash_cell *pattern, uint32_t n, char c, uint32_t *used)
{
    char at = bash_cell_char(pattern[0]);
    *used = 1;
    if (at == '?') return true;
    if (at == '[') {
        uint32_t length;
        bool in = in_bracket(pattern, n, c, &length);
        if (length) {
            *used = length;
            return in;
        }
    }
    return at == c;
}

bool bash_matches(struct bash *script, const bash_cell *pattern, uint32_t n_pattern, const bash_cell *text,
                  uint32_t n_text)
{
    uint32_t p = 0, t = 0, star = UINT32_MAX, resume = 0, used;
    while (t < n_text) {
        if (bash_step(script, 1)) return false;
        if (p < n_pattern && bash_cell_char(pattern[p]) == '*') {
            star = p++;
            resume = t;
        } else if (p < n_pattern && takes(pattern + p, n_pattern - p, bash_cell_char(text[t]), &used)) {
            p += used;
            t++;
        } else if (star != UINT32_MAX) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < n_pattern && bash_cell_char(pattern[p]) == '*') p++;
    return p == n_pattern;
}
