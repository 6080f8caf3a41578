#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/report/buffer.h"

void oc_buffer_free(struct oc_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct oc_buffer){0};
}

/* Makes room for `more` bytes and a NUL. */
static bool reserve(struct oc_buffer *buffer, size_t more)
{
    if (buffer->failed) return false;
    size_t need = buffer->size + more + 1;
    if (need <= more) return !(buffer->failed = true); /* wrapped */
    if (need <= buffer->capacity) return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 1024;
    while (capacity < need) {
        if (capacity > (size_t)-1 / 2) return !(buffer->failed = true);
        capacity *= 2;
    }
    char *data = realloc(buffer->data, capacity);
    if (!data) return !(buffer->failed = true);
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void oc_put_bytes(struct oc_buffer *buffer, const char *bytes, size_t size)
{
    if (!reserve(buffer, size)) return;
    memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void oc_put(struct oc_buffer *buffer, const char *text)
{
    oc_put_bytes(buffer, text, strlen(text));
}

void oc_putf(struct oc_buffer *buffer, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size < 0) {
        buffer->failed = true;
    } else if (reserve(buffer, (size_t)size)) {
        vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, again);
        buffer->size += (size_t)size;
    }
    va_end(again);
}

void oc_put_wrapped(struct oc_buffer *buffer, const char *text, int at, int indent, int width)
{
    bool line_is_empty = true;
    while (*text == ' ') text++;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (!line_is_empty && at + 1 + (int)word > width) {
            oc_putf(buffer, "\n%*s", indent, "");
            at = indent;
        } else if (!line_is_empty) {
            oc_put(buffer, " ");
            at++;
        }
        oc_put_bytes(buffer, text, word);
        at += (int)word;
        line_is_empty = false;
        text += word;
        while (*text == ' ') text++;
    }
    oc_put(buffer, "\n");
}
