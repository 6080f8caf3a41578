#include "oomcast/export.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomcast/import.h"

static char *export_session(const struct oc_case *c, const struct oc_plan *plan)
{
    (void)plan;
    return oc_export_session(c);
}

static const struct oc_exporter exporters[] = {
    {"session", "session of oomcast", "json", export_session},
    {"set", "--set arguments", "sh", oc_export_set},
    {"megatron", "Megatron-LM launch command", "sh", oc_export_megatron},
    {"deepspeed", "DeepSpeed configuration", "json", oc_export_deepspeed},
};

enum { EXPORTERS = sizeof exporters / sizeof exporters[0] };

const struct oc_exporter *oc_exporters(int *count)
{
    *count = EXPORTERS;
    return exporters;
}

const struct oc_exporter *oc_exporter_find(const char *name)
{
    for (int i = 0; i < EXPORTERS; i++)
        if (strcmp(exporters[i].name, name) == 0) return &exporters[i];
    return NULL;
}

/* A word that a shell takes as it stands. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("-_=.,/+:%@", *text)) return false;
    return true;
}

char *oc_export_set(const struct oc_case *c, const struct oc_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    (void)plan;
    if (!out) return NULL;
    bool first = true;
    for (int i = 0; i < OC_OPTIONS; i++) {
        enum oc_option_id id = (enum oc_option_id)i;
        char value[256];
        if (!oc_given(&c->config, id)) continue;
        oc_option_text(&c->config, id, value, sizeof value);
        fprintf(out, "%s--set %s", first ? "" : " ", is_plain(value) ? "" : "'");
        fprintf(out, "%s=", oc_option(id)->key);
        for (const char *at = value; *at;
             at++) /* a quote inside quotes ends them, stands alone, and begins them again */
            fputs(*at == '\'' ? "'\\''" : (char[]){*at, '\0'}, out);
        if (!is_plain(value)) fputc('\'', out);
        first = false;
    }
    fputc('\n', out);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
