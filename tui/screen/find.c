#include "tui/screen/find.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { EQUAL, BEGINS, CONTAINS, HELP, NONE, RANKS = NONE };

static bool contains(const char *text, size_t size, const char *part)
{
    size_t length = strlen(part);
    for (size_t i = 0; length && i + length <= size; i++)
        if (strncasecmp(text + i, part, length) == 0) return true;
    return false;
}

static int rank_of_word(const char *word, size_t size, const char *part)
{
    size_t length = strlen(part);
    if (size == length && strncasecmp(word, part, size) == 0) return EQUAL;
    if (size > length && strncasecmp(word, part, length) == 0) return BEGINS;
    return contains(word, size, part) ? CONTAINS : NONE;
}

/* The best rank of the words in a list separated by blanks; leading dashes do not count, and a dotted name counts from
 * each of its parts. */
static int rank_of_list(const char *list, const char *part, char *name, size_t size)
{
    int best = NONE;
    for (const char *at = list; at && *at;) {
        while (*at == ' ') at++;
        size_t length = strcspn(at, " "), skip = strspn(at, "-");
        for (size_t i = skip < length ? skip : 0; i < length; i++) {
            if (i > skip && at[i - 1] != '.') continue;
            int rank = rank_of_word(at + i, length - i, part);
            if (rank >= best) continue;
            best = rank;
            if (name) snprintf(name, size, "%.*s", (int)length, at);
        }
        at += length;
    }
    return best;
}

static int rank_of(enum oc_option_id id, const char *part, char *name, size_t size)
{
    const struct oc_option *option = oc_option(id);
    const char *const lists[] = {option->key, option->flags, option->also};
    int best = NONE;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char matched[80];
        int rank = rank_of_list(lists[i], part, matched, sizeof matched);
        if (rank >= best) continue;
        best = rank;
        if (name) snprintf(name, size, "%s", matched);
    }
    if (best == NONE && contains(option->label, strlen(option->label), part)) best = CONTAINS;
    if (best == NONE && contains(option->help, strlen(option->help), part)) best = HELP;
    return best;
}

int oc_find_options(const char *text, enum oc_option_id found[OC_OPTIONS], char *name, size_t size)
{
    int n = 0;
    while (*text == '-' || *text == ' ') text++;
    if (name && size) name[0] = '\0';
    if (!*text) return 0;
    for (int rank = 0; rank < RANKS; rank++)
        for (int id = 0; id < OC_OPTIONS; id++) {
            if (rank_of((enum oc_option_id)id, text, NULL, 0) != rank) continue;
            if (n == 0 && name) rank_of((enum oc_option_id)id, text, name, size);
            found[n++] = (enum oc_option_id)id;
        }
    return n;
}

/* "parallel.tp, which is --tensor-model-parallel-size: 1 of 3" */
static void say_match(struct oc_app *app, enum oc_option_id id, int at, int n)
{
    char name[80] = "";
    const char *key = oc_option(id)->key;
    rank_of(id, app->searched, name, sizeof name);
    bool other = name[0] && strcmp(name, key) != 0;
    oc_app_say(app, false, "%s%s%s: %d of %d%s", key, other ? ", elsewhere " : "", other ? name : "", at + 1, n,
               n > 1 ? ", n the next" : "");
}

static void typed(struct oc_app *app, const char *text)
{
    enum oc_option_id found[OC_OPTIONS];
    while (*text == '-' || *text == ' ') text++;
    snprintf(app->searched, sizeof app->searched, "%.*s", (int)sizeof app->searched - 1, text);
    app->panel.focus = app->before_search.focus;
    int n = oc_find_options(text, found, NULL, 0);
    if (n > 0) {
        oc_panel_show(&app->panel, found[0]);
        say_match(app, found[0], 0, n);
    } else if (*text) {
        oc_app_say(app, true, "no option is called %s, here or in a launch file", text);
    } else {
        app->message[0] = '\0';
    }
}

static bool done(struct oc_app *app, const char *text)
{
    enum oc_option_id found[OC_OPTIONS];
    app->in_panel = true; /* what was found can be changed at once */
    return !*text || oc_find_options(text, found, NULL, 0) > 0;
}

/* Sections that were unfolded on the way fold again. */
static void left(struct oc_app *app)
{
    app->panel = app->before_search;
}

static const struct oc_question question = {.label = "find",
                                            .hint =
                                                "any name: tp, --tensor-model-parallel-size, zero_optimization.stage",
                                            .done = done,
                                            .typed = typed,
                                            .left = left};

void oc_find_start(struct oc_app *app)
{
    app->before_search = app->panel;
    oc_app_ask(app, &question, "");
}

void oc_find_again(struct oc_app *app, int direction)
{
    enum oc_option_id found[OC_OPTIONS];
    int n = oc_find_options(app->searched, found, NULL, 0), at = -1;
    if (n == 0) {
        oc_app_say(app, false, "/ finds an option first");
        return;
    }
    for (int i = 0; i < n; i++)
        if (found[i] == oc_app_option(app)) at = i;
    at = at < 0 ? 0 : (at + direction + n) % n;
    oc_panel_show(&app->panel, found[at]);
    say_match(app, found[at], at, n);
}
