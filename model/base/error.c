#include "oomcast/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool oc_fail(struct oc_error *error, enum oc_code code, const char *format, ...)
{
    if (!error) return false;
    memset(error, 0, sizeof *error);
    error->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return false;
}

bool oc_hint(struct oc_error *error, const char *format, ...)
{
    if (!error) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(error->hint, sizeof error->hint, format, args);
    va_end(args);
    return false;
}

bool oc_at(struct oc_error *error, const char *file, int line, int column)
{
    if (!error) return false;
    snprintf(error->file, sizeof error->file, "%s", file ? file : "");
    error->line = line;
    error->column = column;
    return false;
}

const char *oc_error_text(const struct oc_error *error, char *text, int size)
{
    char place[256] = "";
    if (error->file[0] && error->line > 0 && error->column > 0)
        snprintf(place, sizeof place, "%s:%d:%d: ", error->file, error->line, error->column);
    else if (error->file[0] && error->line > 0)
        snprintf(place, sizeof place, "%s:%d: ", error->file, error->line);
    else if (error->file[0])
        snprintf(place, sizeof place, "%s: ", error->file);
    snprintf(text, (size_t)size, "%s%s%s%s%s", place, error->message, error->hint[0] ? " (" : "", error->hint,
             error->hint[0] ? ")" : "");
    return text;
}
