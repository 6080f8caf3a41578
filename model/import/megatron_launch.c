/* What stands around the trainer: how many GPUs run it, and the environment that its allocator reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/megatron.h"

/* ---- how many GPUs ---- */

/* What the lines `#SBATCH --name=value` of a Slurm script say; 0 = nothing. */
struct slurm {
    int64_t nodes, tasks, tasks_per_node, gpus_per_node;
    int line;
};

/* "8", "gpu:8", "gpu:h100:8": the last number. */
static int64_t last_number(const char *text, size_t length)
{
    size_t start = length;
    while (start && text[start - 1] >= '0' && text[start - 1] <= '9') start--;
    if (start == length || length - start > 9 || (start && text[start - 1] != ':')) return 0;
    return strtoll(text + start, NULL, 10);
}

static void slurm_option(struct slurm *slurm, const char *name, size_t name_length, const char *value, size_t length)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {{"--nodes", offsetof(struct slurm, nodes)},
                  {"-N", offsetof(struct slurm, nodes)},
                  {"--ntasks", offsetof(struct slurm, tasks)},
                  {"-n", offsetof(struct slurm, tasks)},
                  {"--ntasks-per-node", offsetof(struct slurm, tasks_per_node)},
                  {"--gres", offsetof(struct slurm, gpus_per_node)},
                  {"--gpus-per-node", offsetof(struct slurm, gpus_per_node)}};
    int64_t n = last_number(value, length);
    for (size_t i = 0; i < sizeof fields / sizeof *fields && n; i++)
        if (strlen(fields[i].name) == name_length && !strncmp(fields[i].name, name, name_length))
            memcpy((char *)slurm + fields[i].offset, &n, sizeof n);
}

/* The options of one line: "--name=value", "--name value", up to a comment. */
static void slurm_line(struct slurm *slurm, const char *at, const char *end)
{
    const char *name = NULL;
    size_t name_length = 0;
    while (at < end) {
        size_t length = 0, equals;
        while (at < end && (unsigned char)*at <= ' ') at++;
        while (at + length < end && (unsigned char)at[length] > ' ') length++;
        if (!length || *at == '#') return;
        for (equals = 0; equals < length && at[equals] != '=';) equals++;
        if (*at != '-') {
            slurm_option(slurm, name, name_length, at, length);
            name_length = 0;
        } else if (equals < length) {
            slurm_option(slurm, at, equals, at + equals + 1, length - equals - 1);
            name_length = 0;
        } else {
            name = at;
            name_length = length;
        }
        at += length;
    }
}

static struct slurm read_slurm(const char *text, size_t size)
{
    struct slurm slurm = {0};
    int line = 1;
    for (size_t at = 0; at < size; line++) {
        size_t end = at;
        while (end < size && text[end] != '\n') end++;
        if (end - at > 8 && !strncmp(text + at, "#SBATCH ", 8)) {
            slurm_line(&slurm, text + at + 8, text + end);
            slurm.line = line;
        }
        at = end + 1;
    }
    return slurm;
}

/* A flag's value as a count: 0 when the flag is not there, -1 when its value is not known. */
static int64_t count_of(const struct megatron_seen *seen)
{
    int64_t value;
    if (!seen->flag) return 0;
    if (!seen->text || (seen->value && seen->value->unknown)) return -1;
    return oc_parse_integer(seen->text, false, &value) && value > 0 ? value : -1;
}

/* The value of the first of these variables that is a number. */
static int64_t variable_of(struct megatron *m, const char *const *names, int *line)
{
    struct bash_word word;
    int64_t value;
    for (; *names; names++)
        if (bash_variable(m->script, *names, &word) && !word.unknown && oc_parse_integer(word.text, false, &value) &&
            value > 0) {
            bash_place(m->script, word.offset, line, NULL);
            return value;
        }
    return 0;
}

static bool starts(const struct megatron_command *command, const char *program)
{
    for (int i = 0; i < command->launcher; i++)
        if (!strcmp(command->words[i]->text, program)) return true;
    return false;
}

/* Nothing says how many GPUs there are: so many as the model is split over. */
static void assume_world(struct megatron *m, const struct megatron_seen *seen)
{
    if (seen) {
        megatron_assume(m, OC_OPT_parallel_world, seen);
        return;
    }
    oc_note_add(m->input, OC_NOTE_ASSUMED, OC_OPT_parallel_world, "", m->file, m->line,
                "%s does not say how many GPUs run it", m->name);
    m->input->c.origin[OC_OPT_parallel_world] =
        (struct oc_origin){.from = OC_FROM_ASSUMED, .file = (uint8_t)m->file, .line = m->line};
}

static bool set_world(struct megatron *m, int64_t a, int64_t b, int line)
{
    char text[48];
    int64_t world;
    if (__builtin_mul_overflow(a, b, &world)) world = INT64_MAX;
    snprintf(text, sizeof text, "%lld", (long long)world);
    return megatron_set(m, OC_OPT_parallel_world, text, line);
}

bool megatron_world(struct megatron *m, const struct megatron_command *command, const char *text, size_t size)
{
    static const char *const per_node_names[] = {"GPUS_PER_NODE", "NPROC_PER_NODE", "NUM_GPUS_PER_NODE", NULL};
    static const char *const node_names[] = {"NNODES", "NUM_NODES", "NODES", NULL};
    static const char *const world_names[] = {"WORLD_SIZE", NULL};
    const struct megatron_seen *per_node = &m->facts[FACT_NPROC_PER_NODE], *nodes = &m->facts[FACT_NNODES];
    struct slurm slurm = read_slurm(text, size);
    int64_t a = count_of(per_node), b = count_of(nodes);
    int line = m->line;
    if (a > 0) {
        if (b < 0 && slurm.nodes) b = slurm.nodes;
        if (b < 0) {
            assume_world(m, nodes);
            return true;
        }
        return set_world(m, a, b ? b : 1, per_node->line); /* torchrun's own default is one node */
    }
    if (slurm.tasks && !slurm.tasks_per_node && starts(command, "srun"))
        return set_world(m, slurm.tasks, 1, slurm.line);
    int64_t ranks = slurm.tasks_per_node > 1 ? slurm.tasks_per_node : slurm.gpus_per_node;
    if (ranks && (slurm.nodes || b > 0)) return set_world(m, ranks, slurm.nodes ? slurm.nodes : b, slurm.line);
    a = variable_of(m, per_node_names, &line);
    b = variable_of(m, node_names, &line);
    if (a && b) return set_world(m, a, b, line);
    a = variable_of(m, world_names, &line);
    if (a) return set_world(m, a, 1, line);
    assume_world(m, per_node->flag ? per_node : NULL);
    return true;
}

/* ---- the environment ---- */

/* ":4096:8" and ":4096:2:16:8": pairs of KiB and a count. 0 when it is not that. */
static int64_t workspace_bytes(const char *text)
{
    int64_t bytes = 0;
    while (*text == ':') {
        char *end;
        long long kib = strtoll(text + 1, &end, 10);
        if (end == text + 1 || *end != ':') return 0;
        const char *second = end + 1;
        long long count = strtoll(second, &end, 10);
        if (end == second || kib < 0 || count < 0 || kib > 1 << 24 || count > 1 << 10) return 0;
        bytes += kib * 1024 * count;
        text = end;
    }
    return *text ? 0 : bytes;
}

static bool allocator_conf(struct megatron *m, const struct bash_word *word, int line)
{
    const char *at = word->text;
    while (*at) {
        size_t length = strcspn(at, ",");
        char setting[64];
        snprintf(setting, sizeof setting, "%.*s", (int)(length < 63 ? length : 63), at);
        if (!strncmp(setting, "expandable_segments:", 20)) {
            bool on = !strcmp(setting + 20, "True") || !strcmp(setting + 20, "true") || !strcmp(setting + 20, "1");
            if (!megatron_set(m, OC_OPT_allocator_expandable_segments, on ? "true" : "false", line)) return false;
        } else if (length) {
            oc_note_add(m->input, OC_NOTE_UNMODELLED, OC_OPTIONS, setting, m->file, line,
                        "a setting of PyTorch's allocator");
        }
        at += length + (at[length] == ',');
    }
    return true;
}

bool megatron_environment(struct megatron *m)
{
    static const char *const conf_names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    struct bash_word word;
    int line;
    for (size_t i = 0; i < sizeof conf_names / sizeof *conf_names; i++) {
        if (!bash_variable(m->script, conf_names[i], &word) || word.unknown) continue;
        bash_place(m->script, word.offset, &line, NULL);
        if (!allocator_conf(m, &word, line)) return false;
    }
    if (!bash_variable(m->script, "CUBLAS_WORKSPACE_CONFIG", &word) || word.unknown) return true;
    bash_place(m->script, word.offset, &line, NULL);
    int64_t bytes = workspace_bytes(word.text);
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)bytes);
    if (bytes) return megatron_set(m, OC_OPT_allocator_cublas_workspace, text, line);
    oc_note_add(m->input, OC_NOTE_WARNING, OC_OPT_allocator_cublas_workspace, "CUBLAS_WORKSPACE_CONFIG", m->file, line,
                "'%.60s' is not :KIB:COUNT", word.text);
    return true;
}
