/* Case out, text in: a configuration as others write it down.
 *
 * Ownership: every text is the caller's, to be freed with free(); NULL when out of memory. */
#ifndef OOMCAST_EXPORT_H
#define OOMCAST_EXPORT_H

#include "oomcast/case.h"
#include "oomcast/plan.h"

/* One form; a row of a const table. */
struct oc_exporter {
    const char *name;      /* "megatron", as `:export` and --as take it */
    const char *title;     /* "Megatron-LM launch command" */
    const char *extension; /* of a file of it, "sh" */
    /* `c` is what was given, `plan` what follows from it. */
    char *(*write)(const struct oc_case *c, const struct oc_plan *plan);
};

const struct oc_exporter *oc_exporters(int *count);

/* NULL when there is none of that name. */
const struct oc_exporter *oc_exporter_find(const char *name);

/* What is given, as arguments of this program: "--set framework=megatron --set ...", quoted for a shell. */
char *oc_export_set(const struct oc_case *c, const struct oc_plan *plan);

/* A torchrun command with Megatron-LM's flags: the whole resolved configuration where it is not Megatron's default.
 * What is given and no flag can say follows in comments. oc_import_text() reads it back to the same plan. */
char *oc_export_megatron(const struct oc_case *c, const struct oc_plan *plan);

/* A DeepSpeed configuration. It says nothing of the model, which DeepSpeed's file does not hold. */
char *oc_export_deepspeed(const struct oc_case *c, const struct oc_plan *plan);

#endif
