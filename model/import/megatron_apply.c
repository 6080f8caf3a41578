/* From the words of the training command to options. */
#include <stdio.h>
#include <string.h>

#include "model/import/megatron.h"

/* What Megatron calls the values that we name otherwise. */
static const struct {
    enum oc_option_id option;
    const char *theirs, *ours;
} names[] = {
    {OC_OPT_model_norm, "LayerNorm", "layernorm"},
    {OC_OPT_model_norm, "RMSNorm", "rmsnorm"},
    {OC_OPT_kernels_transformer, "inference_optimized", "te"},
    {OC_OPT_optimizer, "dist_muon", "muon"},
};

struct reader {
    struct megatron *m;
    const struct megatron_command *command;
    int at;        /* the next word */
    uint32_t said; /* the last unknown word that was warned about */
};

static int line_of(const struct megatron *m, const struct bash_word *word)
{
    int line;
    bash_place(m->script, word->offset, &line, NULL);
    return line;
}

static bool is_flag(const struct bash_word *word)
{
    return word->text[0] == '-' && word->text[1] == '-' && word->text[2];
}

/* The values after a flag: as many as it takes. */
static const struct bash_word *take_values(struct reader *reader, const struct megatron_flag *flag, int *n)
{
    const struct megatron_command *command = reader->command;
    int first = reader->at;
    int most = flag->arity == ARITY_NONE ? 0 : flag->arity == ARITY_ONE ? 1 : command->n;
    while (reader->at < command->n && reader->at - first < most && !is_flag(command->words[reader->at])) reader->at++;
    *n = reader->at - first;
    return *n ? command->words[first] : NULL;
}

/* "core_attn mlp", "[core_attn,mlp]" and "'core_attn'" all become "core_attn mlp". */
static const char *join_values(const struct reader *reader, int first, int n)
{
    char text[256];
    size_t used = 0;
    for (int i = 0; i < n; i++)
        for (const char *at = reader->command->words[first + i]->text; used + 2 < sizeof text; at++) {
            bool space = !*at || *at == ',';
            if (space || !strchr("[]'\"", *at)) text[used++] = space ? ' ' : *at;
            if (!*at) break;
        }
    while (used && text[used - 1] == ' ') used--;
    return bash_keep(reader->m->script, text, used);
}

static void remember(struct megatron *m, struct megatron_seen *slot, struct megatron_seen seen, int option)
{
    bool differs = slot->flag && seen.text && slot->text && strcmp(slot->text, seen.text) != 0;
    if (differs && !strcmp(slot->flag, seen.flag))
        oc_note_add(m->input, OC_NOTE_WARNING, option, seen.flag, m->file, seen.line,
                    "%s is given twice: %s in line %d, %s in line %d; the last counts", seen.flag, slot->text,
                    slot->line, seen.text, seen.line);
    else if (differs)
        oc_note_add(m->input, OC_NOTE_WARNING, option, seen.flag, m->file, seen.line,
                    "%s in line %d contradicts %s in line %d; the last counts", seen.flag, seen.line, slot->flag,
                    slot->line);
    *slot = seen;
}

/* A word where a flag should be. Only one that is not known matters: it may be more flags. */
static void stray(struct reader *reader, const struct bash_word *word)
{
    struct megatron *m = reader->m;
    if (!word->unknown || word->cause == reader->said) return;
    reader->said = word->cause;
    if (!m->hidden) m->hidden = word;
    char why[160];
    bash_cause(m->script, word->cause, m->name, why, sizeof why);
    oc_note_add(m->input, OC_NOTE_WARNING, OC_OPTIONS, "", m->file, line_of(m, word), "%s: flags in it are not seen",
                why);
}

static void unmodelled(struct megatron *m, const struct megatron_flag *flag, const struct megatron_seen *seen)
{
    if (flag->harmless && seen->text && !strcmp(seen->text, flag->harmless)) return;
    oc_note_add(m->input, OC_NOTE_UNMODELLED, OC_OPTIONS, seen->flag, m->file, seen->line, "%s", flag->text);
}

/* "--flag", "--flag value" or "--flag=value". */
static void read_flag(struct reader *reader, const struct bash_word *word)
{
    struct megatron *m = reader->m;
    size_t length = strcspn(word->text, "=");
    struct megatron_flag flag = megatron_flag_find(word->text, length);
    struct megatron_seen seen = {.flag = bash_keep(m->script, word->text, length), .line = line_of(m, word)};
    int first = reader->at, n = 0;
    if (word->text[length]) {
        seen.value = word;
        seen.text = word->text + length + 1;
    } else if ((seen.value = take_values(reader, &flag, &n))) {
        seen.text = flag.arity == ARITY_LIST ? join_values(reader, first, n) : seen.value->text;
    }
    switch (flag.action) {
    case MEGATRON_SWITCH:
        seen.text = flag.text;
        seen.value = NULL;
        remember(m, &m->options[flag.option], seen, flag.option);
        break;
    case MEGATRON_VALUE: remember(m, &m->options[flag.option], seen, flag.option); break;
    case MEGATRON_NOTED:
        if (flag.arity == ARITY_NONE) seen.text = "";
        remember(m, &m->facts[flag.fact], seen, OC_OPTIONS);
        break;
    case MEGATRON_UNMODELLED: unmodelled(m, &flag, &seen); break;
    case MEGATRON_SILENT: break;
    case MEGATRON_UNKNOWN:
        oc_note_add(m->input, OC_NOTE_WARNING, OC_OPTIONS, seen.flag, m->file, seen.line,
                    "%s is not a flag that oomcast knows", seen.flag);
        break;
    }
}

void megatron_collect(struct megatron *m, const struct megatron_command *command)
{
    struct reader reader = {.m = m, .command = command, .said = UINT32_MAX};
    while (reader.at < command->n) {
        const struct bash_word *word = command->words[reader.at++];
        if (is_flag(word))
            read_flag(&reader, word);
        else if (reader.at > command->launcher)
            stray(&reader, word);
    }
}

/* ---- to the configuration ---- */

void megatron_assume(struct megatron *m, enum oc_option_id option, const struct megatron_seen *seen)
{
    char why[160] = "";
    if (seen->value && seen->value->unknown)
        bash_cause(m->script, seen->value->cause, m->name, why, sizeof why);
    else
        snprintf(why, sizeof why, "%s has no value in %s", seen->flag, m->name);
    oc_note_add(m->input, OC_NOTE_ASSUMED, (int)option, seen->flag, m->file, seen->line, "%s", why);
    m->input->c.origin[option] =
        (struct oc_origin){.from = OC_FROM_ASSUMED, .file = (uint8_t)m->file, .line = seen->line};
}

bool megatron_set(struct megatron *m, enum oc_option_id option, const char *text, int line)
{
    if (!oc_option_set(&m->input->c.config, option, text, m->error)) return oc_at(m->error, m->path, line, 0);
    m->input->c.origin[option] = (struct oc_origin){.from = OC_FROM_FILE, .file = (uint8_t)m->file, .line = line};
    return true;
}

static const char *translated(enum oc_option_id option, const char *text)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].option == option && !strcmp(names[i].theirs, text)) return names[i].ours;
    return text;
}

/* A set of names, of which some may not be ours: the others count. */
static bool apply_set(struct megatron *m, enum oc_option_id option, const struct megatron_seen *seen)
{
    char kept[160] = "";
    struct oc_config trial = m->input->c.config;
    struct oc_error why;
    for (const char *at = seen->text; *at;) {
        size_t length = strcspn(at, " "), used = strlen(kept);
        char name[64];
        snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : (int)sizeof name - 1, at);
        if (length && oc_option_set(&trial, option, name, &why))
            snprintf(kept + used, sizeof kept - used, "%s%s", used ? "," : "", name);
        else if (length)
            oc_note_add(m->input, OC_NOTE_UNMODELLED, (int)option, seen->flag, m->file, seen->line,
                        "%s is not modelled", name);
        at += length + (at[length] == ' ');
    }
    return kept[0] ? megatron_set(m, option, kept, seen->line) : true;
}

static bool apply(struct megatron *m, enum oc_option_id option, const struct megatron_seen *seen)
{
    if (!seen->text || (seen->value && seen->value->unknown)) {
        megatron_assume(m, option, seen);
        return true;
    }
    if (oc_option(option)->type == OC_T_SET) return apply_set(m, option, seen);
    struct oc_config trial = m->input->c.config;
    struct oc_error why;
    const char *text = translated(option, seen->text);
    const bool named = oc_option(option)->type == OC_T_ENUM || oc_option(option)->type == OC_T_STRING;
    if (named && !oc_option_set(&trial, option, text, &why)) {
        oc_note_add(m->input, OC_NOTE_UNMODELLED, (int)option, seen->flag, m->file, seen->line,
                    "%s %.60s is not modelled", seen->flag, seen->text);
        return true;
    }
    return megatron_set(m, option, text, seen->line);
}

bool megatron_apply(struct megatron *m)
{
    for (int i = 0; i < OC_OPTIONS; i++)
        if (m->options[i].flag && !apply(m, (enum oc_option_id)i, &m->options[i])) return false;
    return true;
}
