/* `oomcast options`, `models`, `gpus`: the tables, as they stand. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tui/cli/cli.h"

static bool contains(const char *text, const char *part)
{
    const size_t size = strlen(part);
    for (; strlen(text) >= size; text++)
        if (!strncasecmp(text, part, size)) return true;
    return false;
}

/* Whether the user asked for this row: no names, or one that is part of its name. */
static bool wanted(const struct oc_args *args, const char *name)
{
    for (int i = 0; i < args->n_words; i++)
        if (contains(name, args->words[i])) return true;
    return args->n_words == 0;
}

/* A list that came out empty because no row has the names that were asked for. */
static enum oc_exit finish(const struct oc_args *args, const struct oc_buffer *out, struct oc_error *error)
{
    if (out->size > 0) return OC_EXIT_DONE;
    oc_fail(error, OC_E_KEY, "none of them has '%.80s' in its name", args->words[0]);
    oc_hint(error, "`oomcast %s` lists all", args->command->name);
    return OC_EXIT_USAGE;
}

/* ---- options ---- */

/* "integer", "true or false", or the names that it takes. */
static void put_values(const struct oc_option *option, struct oc_buffer *out)
{
    static const char *const types[] = {[OC_T_INT] = "integer", [OC_T_BOOL] = "true or false", [OC_T_ENUM] = "",
                                        [OC_T_SET] = "",        [OC_T_FLOAT] = "number",       [OC_T_STRING] = "name"};
    oc_put(out, option->is_bytes ? "bytes" : types[option->type]);
    if (!option->choices) return;
    if (option->type == OC_T_SET) oc_put(out, "any of ");
    for (const struct oc_choice *choice = option->choices; choice->name; choice++)
        oc_putf(out, "%s%s", choice == option->choices ? "" : " ", choice->name);
}

static void put_option(enum oc_option_id id, struct oc_buffer *out)
{
    const struct oc_option *option = oc_option(id);
    const struct oc_config defaults = oc_config_default();
    struct oc_buffer text = {0};
    char def[OC_NAME_MAX];
    oc_putf(out, "  %s\n      ", option->key);
    put_values(option, &text);
    oc_option_text(&defaults, id, def, sizeof def);
    const bool derived = option->type == OC_T_INT && option->def == 0; /* its help says from what */
    if (def[0] && !derived) oc_putf(&text, "; %s unless given", def);
    oc_putf(&text, ": %s", option->help);
    if (option->flags && option->flags[0]) oc_putf(&text, " (%s)", option->flags);
    if (text.data) oc_put_wrapped(out, text.data, 6, 6, 79);
    out->failed |= text.failed;
    oc_buffer_free(&text);
}

enum oc_exit oc_cli_options(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    const char *group = "";
    for (int id = 0; id < OC_OPTIONS; id++) {
        const struct oc_option *option = oc_option((enum oc_option_id)id);
        if (!wanted(args, option->key)) continue;
        if (strcmp(group, option->group)) oc_putf(out, "%s%s\n", out->size ? "\n" : "", option->group);
        group = option->group;
        put_option((enum oc_option_id)id, out);
    }
    return finish(args, out, error);
}

/* ---- models and GPUs ---- */

enum oc_exit oc_cli_models(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    int count;
    const struct oc_model_row *rows = oc_models(&count);
    for (int i = 0; i < count; i++) {
        const struct oc_model_row *row = &rows[i];
        char params[OC_BYTES_TEXT];
        if (!wanted(args, row->name)) continue;
        if (out->size == 0)
            oc_putf(out, "%-22s%17s%8s%8s%7s%9s%9s\n", "model.name", "parameters", "layers", "hidden", "heads",
                    "kv heads", "vocab");
        oc_putf(out, "%-22s%17s%8" PRId64 "%8" PRId64 "%7" PRId64 "%9" PRId64 "%9" PRId64 "\n", row->name,
                oc_format_count(row->params, params, sizeof params), row->layers, row->hidden, row->heads,
                row->kv_heads, row->vocab);
    }
    return finish(args, out, error);
}

enum oc_exit oc_cli_gpus(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    int count;
    const struct oc_gpu_row *rows = oc_gpus(&count);
    bool any_derived = false;
    for (int i = 0; i < count; i++) {
        const struct oc_gpu_row *row = &rows[i];
        char total[OC_BYTES_TEXT], capacity[OC_BYTES_TEXT];
        if (!wanted(args, row->name) && !wanted(args, row->title)) continue;
        any_derived |= !row->verified;
        if (out->size == 0) oc_putf(out, "%-15s%15s%15s\n", "gpu", "nvidia-smi", "PyTorch");
        oc_putf(out, "%-15s%15s%15s  %s%s\n", row->name, oc_format_bytes(row->total, args->unit, total, sizeof total),
                oc_format_bytes(row->capacity, args->unit, capacity, sizeof capacity), row->title,
                row->verified ? "" : " *");
    }
    if (any_derived) oc_put(out, "* derived, not seen in a source\n");
    return finish(args, out, error);
}
