/* Reads a Megatron-LM launch script: the evaluator finds the words of the training command, tables say what they mean.
 */
#include <stdlib.h>
#include <string.h>

#include "model/import/import.h"
#include "model/import/megatron.h"

/* Programs of Megatron-LM that train something else than a decoder. */
static const struct {
    const char *part, *what;
} trainers[] = {{"bert", "an encoder"}, {"t5", "an encoder and a decoder"}, {"mamba", "a Mamba model"},
                {"retro", "Retro"},     {"vision", "a vision model"},       {"vlm", "a vision-language model"},
                {"ict", "a biencoder"}};

int megatron_detect(const char *text, size_t size)
{
    static const char *const telling[] = {"--num-layers",
                                          "--hidden-size",
                                          "--num-attention-heads",
                                          "--micro-batch-size",
                                          "--global-batch-size",
                                          "--tensor-model-parallel-size",
                                          "--seq-length",
                                          "--max-position-embeddings",
                                          "--pipeline-model-parallel-size",
                                          "--ffn-hidden-size"};
    enum { N = sizeof telling / sizeof *telling };
    bool seen[N] = {0};
    int n = 0;
    for (size_t at = 0; at + 2 < size; at++) {
        if (text[at] != '-' || text[at + 1] != '-' || (at && text[at - 1] == '-')) continue;
        size_t length = 2;
        while (at + length < size &&
               ((text[at + length] >= 'a' && text[at + length] <= 'z') || text[at + length] == '-'))
            length++;
        bool ends = at + length == size || strchr(" \t\r\n=\\", text[at + length]);
        for (int i = 0; i < N && ends; i++)
            if (!seen[i] && strlen(telling[i]) == length && !memcmp(telling[i], text + at, length)) seen[i] = true, n++;
        at += length - 1;
    }
    return n >= 3 ? 90 : n == 2 ? 70 : n ? 40 : 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !strcmp(path, "-") ? "the input" : slash && slash[1] ? slash + 1 : path;
}

static void warn_of_trainer(struct megatron *m, const struct megatron_command *command)
{
    if (!command->trainer) return;
    const char *base = last_part(command->trainer);
    for (size_t i = 0; i < sizeof trainers / sizeof *trainers; i++)
        if (strstr(base, trainers[i].part)) {
            oc_note_add(m->input, OC_NOTE_UNMODELLED, OC_OPT_model_kind, base, m->file, m->line,
                        "it trains %s: counted as a decoder", trainers[i].what);
            return;
        }
}

/* Backslashes that no longer continue their line: bash ends the command there. */
static void warn_of_continuations(struct megatron *m)
{
    int n, line;
    const uint32_t *broken = bash_broken_continuations(m->script, &n);
    for (int i = 0; i < n; i++) {
        bash_place(m->script, broken[i], &line, NULL);
        oc_note_add(m->input, OC_NOTE_WARNING, OC_OPTIONS, "\\", m->file, line,
                    "spaces after the backslash: bash would end the command here; it is read on");
    }
}

static bool read_command(struct megatron *m, const char *text, size_t size)
{
    struct megatron_command command;
    if (!megatron_command_find(m, &command)) {
        oc_fail(m->error, OC_E_PARSE, "%s mentions flags of Megatron-LM, but no command or variable holds them",
                m->name);
        oc_hint(m->error, "a launch script, or the part of it with --num-layers and its like");
        return oc_at(m->error, m->path, 0, 0);
    }
    m->line = command.line;
    megatron_collect(m, &command);
    bool good = megatron_apply(m) && megatron_world(m, &command, text, size) && megatron_rules(m) &&
                megatron_vocab(m) && megatron_environment(m);
    warn_of_trainer(m, &command);
    warn_of_continuations(m);
    megatron_command_free(&command);
    return good;
}

bool megatron_read(struct oc_input *input, int file, const char *text, size_t size, struct oc_error *error)
{
    struct megatron *m = calloc(1, sizeof *m);
    if (!m) return oc_fail(error, OC_E_LIMIT, "out of memory");
    *m = (struct megatron){.input = input, .file = file, .path = input->files[file], .error = error};
    m->name = last_part(m->path);
    m->script = bash_run(text, size, error);
    bool good = m->script ? read_command(m, text, size) : oc_at(error, m->path, 0, 0);
    bash_free(m->script);
    free(m);
    return good;
}
