/* Which command of the script starts the trainer. */
#include <stdlib.h>
#include <string.h>

#include "model/import/megatron.h"

/* A list of words that flags are read from. */
struct words {
    const struct bash_word **items;
    int n, capacity;
    bool failed;
};

static void add(struct words *words, const struct bash_word *word)
{
    if (words->n == words->capacity) {
        int room = words->capacity ? words->capacity * 2 : 64;
        const struct bash_word **items = realloc(words->items, (size_t)room * sizeof *items);
        if (!items) {
            words->failed = true;
            return;
        }
        words->items = items;
        words->capacity = room;
    }
    words->items[words->n++] = word;
}

/* Words of a command; one that holds several ("bash -c '...'", a quoted "--flag value") is taken apart. */
static void add_all(struct bash *script, struct words *words, const struct bash_command *command)
{
    for (int i = 0; i < command->n; i++) {
        const struct bash_word *word = &command->words[i];
        if (!strpbrk(word->text, " \t\n") || !strstr(word->text, "--")) {
            add(words, word);
            continue;
        }
        int n;
        const struct bash_word *parts = bash_split(script, word, &n);
        for (int k = 0; k < n; k++) add(words, &parts[k]);
    }
}

static size_t flag_length(const struct bash_word *word)
{
    return strcspn(word->text, "=");
}

static bool is_megatron_flag(const struct bash_word *word)
{
    if (strncmp(word->text, "--", 2) != 0) return false;
    return megatron_flag_find(word->text, flag_length(word)).action != MEGATRON_UNKNOWN;
}

static int count_flags(const struct words *words)
{
    int n = 0;
    for (int i = 0; i < words->n; i++) n += is_megatron_flag(words->items[i]);
    return n;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Index of the Python program, or -1. */
static int program_of(const struct words *words)
{
    for (int i = 0; i < words->n; i++)
        if (ends_with(words->items[i]->text, ".py") && strncmp(words->items[i]->text, "--", 2) != 0) return i;
    return -1;
}

/* Where the first flag of the trainer is written: the same for `echo $CMD` and `eval $LAUNCHER $CMD`. */
static uint32_t first_flag(const struct words *words)
{
    for (int i = program_of(words) + 1; i < words->n; i++)
        if (is_megatron_flag(words->items[i])) return words->items[i]->offset;
    return UINT32_MAX;
}

struct choice {
    struct words words;
    int flags, rank, program, line, others;
    uint32_t first;
};

/* A sentence that mentions a flag is no command: a command names a program, or begins with a flag of its own. */
static bool is_command(const struct words *words, int flags)
{
    if (!words->n || !flags) return false;
    return program_of(words) >= 0 || flags >= 4 || (is_megatron_flag(words->items[0]) && flags >= 2);
}

static void choose(struct megatron *m, struct choice *best)
{
    int n;
    const struct bash_command *commands = bash_commands(m->script, &n);
    for (int i = 0; i < n; i++) {
        if (commands[i].assignment) continue;
        struct words words = {0};
        add_all(m->script, &words, &commands[i]);
        int flags = count_flags(&words);
        bool is = is_command(&words, flags);
        if (is && best->flags && flags >= 5 && first_flag(&words) != best->first) best->others++;
        /* Of two that are alike, the one that is not merely printed. */
        int rank = 2 * flags +
                   !(words.n && (!strcmp(words.items[0]->text, "echo") || !strcmp(words.items[0]->text, "printf")));
        if (is && rank > best->rank) {
            free(best->words.items);
            best->words = words;
            best->flags = flags;
            best->rank = rank;
            best->program = program_of(&words);
            best->first = first_flag(&words);
            bash_place(m->script, commands[i].offset, &best->line, NULL);
        } else {
            free(words.items);
        }
    }
}

static bool is_listed(const struct words *words, uint32_t offset)
{
    for (int i = words->n - 1; i >= 0 && i > words->n - 4096; i--)
        if (words->items[i]->offset == offset) return true;
    return false;
}

/* Every flag that is assigned to a variable or stands at the start of a line: a part of a script, without its command.
 */
static void gather(struct megatron *m, struct choice *all)
{
    int n;
    const struct bash_command *commands = bash_commands(m->script, &n);
    for (int i = 0; i < n; i++) {
        struct words words = {0};
        add_all(m->script, &words, &commands[i]);
        bool listed = words.n && strncmp(words.items[0]->text, "--", 2) == 0;
        if (count_flags(&words) && (commands[i].assignment || listed) &&
            !is_listed(&all->words, words.items[0]->offset)) {
            if (!all->words.n) bash_place(m->script, commands[i].offset, &all->line, NULL);
            for (int k = 0; k < words.n; k++) add(&all->words, words.items[k]);
        }
        free(words.items);
    }
    all->flags = count_flags(&all->words);
    all->program = -1;
}

bool megatron_command_find(struct megatron *m, struct megatron_command *command)
{
    struct choice best = {.program = -1};
    choose(m, &best);
    struct choice all = {0};
    /* A command that sees few of the flags is not the one that they are for. */
    if (best.flags < 5) gather(m, &all);
    if (all.flags > best.flags) {
        free(best.words.items);
        best = all;
    } else {
        free(all.words.items);
    }
    if (!best.flags || best.words.failed) {
        free(best.words.items);
        return false;
    }
    if (best.others)
        oc_note_add(m->input, OC_NOTE_WARNING, OC_OPTIONS, "", m->file, best.line,
                    "%s starts more than one training; the one with the most settings is read, line %d", m->name,
                    best.line);
    const char *program = best.program >= 0 ? best.words.items[best.program]->text : NULL;
    *command = (struct megatron_command){.words = best.words.items,
                                         .n = best.words.n,
                                         .launcher = best.program + 1,
                                         .line = best.line,
                                         .trainer = program};
    return true;
}

void megatron_command_free(struct megatron_command *command)
{
    free(command->words);
}
