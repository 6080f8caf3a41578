/* Completion of commands. */
#include "tui/screen/command.h"

#include <string.h>

#include "oomcast/export.h"
#include "tui/screen/host.h"
#include "tui/screen/output.h"
#include "tui/lesson/lesson.h"
#include "tui/views/views.h"

/* Names that begin as the word does: how many, their common beginning, and their list. */
struct offers {
    const char *word;
    int n;
    char common[OC_HOST_NAME], *list;
    size_t size;
};

static void offer(struct offers *offers, const char *name)
{
    if (strncmp(name, offers->word, strlen(offers->word)) != 0) return;
    if (offers->n++ == 0) {
        snprintf(offers->common, sizeof offers->common, "%.*s", (int)sizeof offers->common - 1, name);
    } else {
        size_t same = 0;
        while (offers->common[same] && offers->common[same] == name[same]) same++;
        offers->common[same] = '\0';
    }
    size_t used = strlen(offers->list);
    if (used < offers->size) snprintf(offers->list + used, offers->size - used, "%s%s", used ? "  " : "", name);
}

static void offer_commands(struct offers *offers)
{
    for (const struct oc_command_row *row = oc_command_rows; row->name; row++) offer(offers, row->name);
}

static void offer_options(struct offers *offers, const char *after)
{
    for (int id = 0; id < OC_OPTIONS; id++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", oc_option((enum oc_option_id)id)->key, after);
        offer(offers, name);
    }
}

/* Values of an option, each with the option before it. */
static void offer_values(struct offers *offers)
{
    char key[80], value[160];
    enum oc_option_id id;
    snprintf(key, sizeof key, "%.*s", (int)strcspn(offers->word, "="), offers->word);
    if (!oc_option_find(key, &id, NULL)) return;
    const struct oc_option *option = oc_option(id);
    for (const struct oc_choice *choice = option->choices; choice && choice->name; choice++) {
        snprintf(value, sizeof value, "%s=%s", key, choice->name);
        offer(offers, value);
    }
    for (int i = 0; option->type == OC_T_BOOL && i < 2; i++) {
        snprintf(value, sizeof value, "%s=%s", key, i ? "true" : "false");
        offer(offers, value);
    }
    int n = 0;
    const struct oc_model_row *models = oc_models(&n);
    for (int i = 0; id == OC_OPT_model_name && i < n; i++) {
        snprintf(value, sizeof value, "%s=%s", key, models[i].name);
        offer(offers, value);
    }
    const struct oc_gpu_row *gpus = oc_gpus(&n);
    for (int i = 0; id == OC_OPT_gpu && i < n; i++) {
        snprintf(value, sizeof value, "%s=%s", key, gpus[i].name);
        offer(offers, value);
    }
}

static void offer_exports(struct offers *offers)
{
    int n;
    const struct oc_exporter *rows = oc_exporters(&n);
    for (int i = 0; i < n; i++) offer(offers, rows[i].name);
    for (int i = 0; oc_output_name(i); i++) offer(offers, oc_output_name(i));
}

static void offer_from_host(const struct oc_app *app, struct offers *offers, enum oc_argument kind)
{
    static char names[OC_HOST_NAMES][OC_HOST_NAME];
    if (!app->host) return;
    int n = kind == OC_ARG_THEME ? app->host->themes(app->host->user, names, OC_HOST_NAMES)
                                 : app->host->files(app->host->user, offers->word, names, OC_HOST_NAMES);
    for (int i = 0; i < n; i++) offer(offers, names[i]);
}

static void offer_arguments(const struct oc_app *app, struct offers *offers, enum oc_argument kind, int index)
{
    switch (kind) {
    case OC_ARG_NONE: break;
    case OC_ARG_LESSON:
        for (int i = 0; i < oc_lesson_count(); i++) offer(offers, oc_lesson_name(i));
        break;
    case OC_ARG_SET:
        if (strchr(offers->word, '='))
            offer_values(offers);
        else
            offer_options(offers, "=");
        break;
    case OC_ARG_OPTION: offer_options(offers, ""); break;
    case OC_ARG_EXPORT:
        if (index == 1)
            offer_exports(offers);
        else
            offer_from_host(app, offers, OC_ARG_FILE);
        break;
    case OC_ARG_VIEW:
        for (int i = 0; i < oc_n_views; i++) offer(offers, oc_views[i]->title);
        break;
    case OC_ARG_FILE:
    case OC_ARG_THEME: offer_from_host(app, offers, kind); break;
    }
}

void oc_command_complete(struct oc_app *app, char *line, size_t size, char *list, size_t list_size)
{
    const char *blank = strrchr(line, ' ');
    size_t start = blank ? (size_t)(blank - line) + 1 : 0;
    char word[OC_PROMPT_MAX];
    snprintf(word, sizeof word, "%s", line + start);
    struct offers offers = {.word = word, .list = list, .size = list_size};
    list[0] = '\0';
    if (start == 0) {
        offer_commands(&offers);
    } else {
        int index = 0;
        for (size_t i = 0; i < start; i++) index += line[i] == ' ' && (i == 0 || line[i - 1] != ' ');
        for (const struct oc_command_row *row = oc_command_rows; row->name; row++)
            if (strlen(row->name) == strcspn(line, " ") && strncmp(row->name, line, strlen(row->name)) == 0)
                offer_arguments(app, &offers, row->kind, index);
    }
    if (offers.n == 0) return;
    size_t length = strlen(offers.common);
    bool whole = offers.n == 1 && length && offers.common[length - 1] != '=' && offers.common[length - 1] != '/';
    if (start + length + 2 > size) return;
    snprintf(line + start, size - start, "%s%s", offers.common, whole ? " " : "");
    if (offers.n == 1) list[0] = '\0';
}
