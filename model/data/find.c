#include "model/data/tables.h"

static char fold(char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return c == '.' || c == '_' ? '-' : c;
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (fold(*a) != fold(*b)) return false;
    return *a == *b;
}

const struct oc_model_row *oc_models(int *count)
{
    *count = oc_model_count;
    return oc_model_rows;
}

const struct oc_gpu_row *oc_gpus(int *count)
{
    *count = oc_gpu_count;
    return oc_gpu_rows;
}

const struct oc_model_row *oc_model_find(const char *name)
{
    for (int i = 0; i < oc_model_count; i++)
        if (same_name(oc_model_rows[i].name, name)) return &oc_model_rows[i];
    return NULL;
}

const struct oc_gpu_row *oc_gpu_find(const char *name)
{
    for (int i = 0; i < oc_gpu_count; i++)
        if (same_name(oc_gpu_rows[i].name, name)) return &oc_gpu_rows[i];
    return NULL;
}
