#include "corpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LETS = 64, MOST_FILES = 64 };

/* A file being read: its named blocks, and the block that lines are added to. */
struct reader {
    struct corpus *corpus;
    struct corpus_case lets[MOST_LETS];
    int n_lets;
    struct corpus_case *block;
    const char *path, *bad; /* `bad`: what is wrong, NULL while nothing is */
};

static const struct {
    const char *key, *short_form;
} quantities[QUANTITIES] = {
    {"after_step_allocated", "after_step_allocated"},
    {"first_iteration_peak_allocated", "first_peak"},
    {"peak_allocated", "peak_allocated"},
    {"idle_allocated", "idle_allocated"},
    {"peak_reserved", "peak_reserved"},
    {"device_used", "device_used"},
};

const char *quantity_key(enum quantity quantity)
{
    return quantities[quantity].key;
}

const char *quantity_short(enum quantity quantity)
{
    return quantities[quantity].short_form;
}

/* Takes the next word off `rest` in place; double quotes hold spaces, and a backslash a quote. NULL at the end. */
static char *next_word(char **rest)
{
    char *at = *rest, *to;
    while (*at == ' ' || *at == '\n') at++;
    if (!*at) return NULL;
    char *word = to = at;
    bool quoted = false;
    for (; *at && (quoted || (*at != ' ' && *at != '\n')); at++) {
        if (*at == '"') {
            quoted = !quoted;
            continue;
        }
        if (*at == '\\' && at[1]) at++;
        *to++ = *at;
    }
    *rest = *at ? at + 1 : at;
    *to = 0;
    return word;
}

/* ---- the lines of a block ---- */

static void add_sets(struct reader *r, char *rest)
{
    for (char *word; (word = next_word(&rest));) {
        if (r->block->n_sets == MOST_SETS)
            r->bad = "too many keys in one block";
        else
            r->block->sets[r->block->n_sets++] = word;
    }
}

/* Lays the named blocks under this one: its own lines, which come later, win. */
static void add_like(struct reader *r, char *rest)
{
    for (char *word; (word = next_word(&rest));) {
        const struct corpus_case *let = NULL;
        for (int i = 0; i < r->n_lets; i++)
            if (!strcmp(r->lets[i].id, word)) let = &r->lets[i];
        if (!let || r->block->n_sets + let->n_sets > MOST_SETS) {
            r->bad = let ? "too many keys in one block" : "like: no such block above";
            return;
        }
        memcpy(r->block->sets + r->block->n_sets, let->sets, (size_t)let->n_sets * sizeof *let->sets);
        r->block->n_sets += let->n_sets;
        if (let->source) r->block->source = let->source;
        if (let->tier) r->block->tier = let->tier;
        if (let->env) r->block->env = let->env;
    }
}

static void measured_word(struct reader *r, struct measurement *run, char *word)
{
    char *value = strchr(word, '=');
    if (!value) {
        r->bad = "measured: a word without =";
        return;
    }
    *value++ = 0;
    if (!strcmp(word, "rank")) run->rank = value;
    if (!strcmp(word, "gpu")) run->gpu = value;
    if (!strcmp(word, "stack")) run->stack = value;
    for (int q = 0; q < QUANTITIES; q++)
        if (!strcmp(word, quantities[q].key)) run->bytes[q] = strtoull(value, NULL, 10);
}

static void add_measured(struct reader *r, char *rest)
{
    if (r->block->n_runs == MOST_RUNS) {
        r->bad = "too many measurements of one case";
        return;
    }
    struct measurement *run = &r->block->runs[r->block->n_runs++];
    for (char *word; (word = next_word(&rest));) measured_word(r, run, word);
    if (!run->rank && !r->bad) r->bad = "measured: no rank";
}

/* Facts that no program reads: how sure the source is, and what it left open. */
static bool is_remark(const char *name)
{
    return !strcmp(name, "confidence") || !strcmp(name, "assumed");
}

static void add_line(struct reader *r, char *line)
{
    char *rest = line;
    const char *name = next_word(&rest);
    if (!r->block) {
        r->bad = "a line before the first block";
        return;
    }
    const struct {
        const char *name;
        const char **field;
    } fields[] = {{"source", &r->block->source}, {"tier", &r->block->tier},   {"pair", &r->block->pair},
                  {"doubt", &r->block->doubt},   {"world", &r->block->world}, {"env", &r->block->env},
                  {"launch", &r->block->launch}, {"flags", &r->block->flags}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!strcmp(name, fields[i].name)) {
            *fields[i].field = rest;
            return;
        }
    if (!strcmp(name, "set"))
        add_sets(r, rest);
    else if (!strcmp(name, "like"))
        add_like(r, rest);
    else if (!strcmp(name, "measured"))
        add_measured(r, rest);
    else if (!is_remark(name))
        r->bad = "a line of an unknown kind";
}

/* ---- files ---- */

static void end_block(struct reader *r)
{
    const struct corpus_case *block = r->block;
    if (block && block >= r->lets && block < r->lets + MOST_LETS) return;
    if (block && (!block->source || !block->tier || !block->n_runs))
        r->bad = "the case above lacks source, tier or measured";
}

static void begin_block(struct reader *r, char *line)
{
    char *rest = line;
    const char *kind = next_word(&rest), *name = next_word(&rest);
    end_block(r);
    if (r->bad) return;
    if (name && !strcmp(kind, "let") && r->n_lets < MOST_LETS) {
        r->block = &r->lets[r->n_lets++];
    } else if (name && !strcmp(kind, "case")) {
        struct corpus *corpus = r->corpus;
        struct corpus_case *more = realloc(corpus->cases, ((size_t)corpus->n_cases + 1) * sizeof *more);
        if (!more) {
            r->bad = "out of memory";
            return;
        }
        corpus->cases = more;
        r->block = &corpus->cases[corpus->n_cases++];
    } else {
        r->bad = "neither `case NAME` nor `let NAME`, or too many";
        return;
    }
    memset(r->block, 0, sizeof *r->block);
    r->block->id = name;
}

/* Joins continuation lines (indented deeper than two columns) to the line that they belong to. */
static char *end_of_line(char *line)
{
    char *end = line + strcspn(line, "\n");
    while (*end && !strncmp(end + 1, "   ", 3)) {
        *end = ' ';
        end += strcspn(end, "\n");
    }
    return end;
}

static bool read_lines(struct reader *r, char *text)
{
    for (char *line = text; *line && !r->bad;) {
        char *end = end_of_line(line);
        const bool last = !*end;
        *end = 0;
        if (*line == ' ')
            add_line(r, line);
        else if (*line && *line != '#')
            begin_block(r, line);
        if (last) break;
        line = end + 1;
    }
    if (!r->bad) end_block(r);
    return !r->bad;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = NULL;
    long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    if (size >= 0 && !fseek(file, 0, SEEK_SET)) text = calloc((size_t)size + 1, 1);
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool read_one(struct corpus *corpus, const char *path, char *why, size_t size)
{
    struct reader *r = calloc(1, sizeof *r);
    char *text = read_file(path);
    char **texts = realloc(corpus->texts, ((size_t)corpus->n_texts + 1) * sizeof *texts);
    if (texts) corpus->texts = texts;
    const char *bad = !r || !text || !texts ? "cannot be read" : NULL;
    if (texts && text)
        texts[corpus->n_texts++] = text;
    else
        free(text);
    if (!bad) {
        r->corpus = corpus;
        if (!read_lines(r, text)) bad = r->bad;
    }
    if (bad) snprintf(why, size, "%s: %s: %s", path, !r || !r->block ? "" : r->block->id, bad);
    free(r);
    return !bad;
}

/* The *.txt files of a folder, sorted; at most `most`. The caller frees the names. */
static int list(const char *folder, char **paths, int most)
{
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    int n = 0;
    for (struct dirent *entry; n < most && (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".txt")) continue;
        const size_t size = strlen(folder) + strlen(entry->d_name) + 2;
        if (!(paths[n] = malloc(size))) break;
        snprintf(paths[n++], size, "%s/%s", folder, entry->d_name);
    }
    closedir(dir);
    qsort(paths, (size_t)n, sizeof *paths, by_name);
    return n;
}

bool corpus_read(struct corpus *corpus, const char *folder, char *why, size_t size)
{
    char *paths[MOST_FILES];
    memset(corpus, 0, sizeof *corpus);
    const int n = list(folder, paths, MOST_FILES);
    bool good = n > 0;
    if (!good) snprintf(why, size, "%s: no *.txt file there", folder);
    for (int i = 0; i < n; i++) {
        good = good && read_one(corpus, paths[i], why, size);
        free(paths[i]);
    }
    return good;
}

void corpus_free(struct corpus *corpus)
{
    for (int i = 0; i < corpus->n_texts; i++) free(corpus->texts[i]);
    free(corpus->texts);
    free(corpus->cases);
}
