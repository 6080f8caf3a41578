#include "tui/screen/canvas.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

bool oc_canvas_resize(struct oc_canvas *canvas, int width, int height)
{
    width = clamp(width, 0, OC_CANVAS_MAX), height = clamp(height, 0, OC_CANVAS_MAX);
    struct oc_cell *cells = calloc((size_t)width * (size_t)height + 1, sizeof *cells);
    free(canvas->cells);
    canvas->cells = cells;
    canvas->width = cells ? width : 0;
    canvas->height = cells ? height : 0;
    oc_canvas_clear(canvas);
    return cells != NULL;
}

void oc_canvas_free(struct oc_canvas *canvas)
{
    free(canvas->cells);
    canvas->cells = NULL;
    canvas->width = canvas->height = 0;
}

void oc_canvas_clear(struct oc_canvas *canvas)
{
    for (int i = 0; i < canvas->width * canvas->height; i++) canvas->cells[i] = (struct oc_cell){' ', {0, 0, 0}};
    canvas->cursor_x = canvas->cursor_y = -1;
    canvas->n_targets = 0;
}

void oc_canvas_target(struct oc_canvas *canvas, struct oc_rect rect, enum oc_target_kind kind, int index)
{
    if (canvas->n_targets == OC_TARGETS) return;
    canvas->targets[canvas->n_targets++] = (struct oc_target){rect, kind, index};
}

struct oc_cell *oc_canvas_at(const struct oc_canvas *canvas, int x, int y)
{
    if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height) return NULL;
    return &canvas->cells[y * canvas->width + x];
}

struct oc_style oc_canvas_style(const struct oc_canvas *canvas, enum oc_role role)
{
    struct oc_style style = canvas->theme->roles[role];
    if (!canvas->colour) {
        if (style.bg) style.attr |= OC_ATTR_REVERSE; /* a coloured bar is still a bar */
        style.fg = style.bg = 0;
    }
    return style;
}

static uint32_t to_ascii(uint32_t code)
{
    switch (code) {
    case 0x2500: return '-';
    case 0x2502: return '|';
    case 0x253c:
    case 0x252c:
    case 0x2534: return '+';
    case 0x25b8: return '>';
    case 0x25be: return 'v';
    case 0xb7: return '.';
    default: return code < 0x7f ? code : '?';
    }
}

void oc_canvas_put(struct oc_canvas *canvas, int x, int y, struct oc_style style, uint32_t code)
{
    struct oc_cell *cell = oc_canvas_at(canvas, x, y);
    if (!cell) return;
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) code = '?';
    if (canvas->ascii) code = to_ascii(code);
    if (cell->code == 0 && x > 0) cell[-1].code = ' '; /* never leave half of a wide character */
    if (x + 1 < canvas->width && cell[1].code == 0) cell[1].code = ' ';
    *cell = (struct oc_cell){code, style};
}

int oc_canvas_text(struct oc_canvas *canvas, int x, int y, int limit, enum oc_role role, const char *text)
{
    struct oc_style style = oc_canvas_style(canvas, role);
    size_t size = strlen(text);
    bool cut = limit > 0 && oc_text_width(text) > limit;
    int used = 0, length, room = cut ? limit - 1 : limit;
    uint32_t code;
    while ((length = oc_utf8_read(text, size, &code)) > 0) {
        int width = oc_code_width(code);
        text += length, size -= (size_t)length;
        if (width == 0) continue;
        if (used + width > room) break;
        if (width == 2 && (canvas->ascii || x + used + 1 >= canvas->width)) {
            oc_canvas_put(canvas, x + used, y, style, '?');
            oc_canvas_put(canvas, x + used + 1, y, style, ' ');
        } else {
            oc_canvas_put(canvas, x + used, y, style, code);
            struct oc_cell *half = width == 2 ? oc_canvas_at(canvas, x + used + 1, y) : NULL;
            if (half) *half = (struct oc_cell){0, style};
        }
        used += width;
    }
    if (cut) {
        while (used < limit - 1) oc_canvas_put(canvas, x + used++, y, style, ' ');
        oc_canvas_put(canvas, x + used++, y, style, '~');
    }
    return used;
}

int oc_canvas_print(struct oc_canvas *canvas, int x, int y, int limit, enum oc_role role, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return oc_canvas_text(canvas, x, y, limit, role, text);
}

int oc_canvas_right(struct oc_canvas *canvas, int x, int y, int limit, enum oc_role role, const char *text)
{
    int width = oc_text_width(text);
    int start = x + (width < limit ? limit - width : 0);
    oc_canvas_text(canvas, start, y, x + limit - start, role, text);
    return start;
}

/* The bytes of `text` that one row of `width` columns takes: whole words, or as much of one word as fits. */
static size_t row_length(const char *text, int width)
{
    size_t size = strlen(text), at = 0, good = 0;
    int used = 0, length;
    uint32_t code;
    while ((length = oc_utf8_read(text + at, size - at, &code)) > 0) {
        if (code == '\n') return at;
        if (code == ' ') good = at;
        used += oc_code_width(code);
        if (used > width) return code == ' ' ? at : good > 0 ? good : at > 0 ? at : (size_t)length;
        at += (size_t)length;
    }
    return at;
}

int oc_canvas_wrap(struct oc_canvas *canvas, struct oc_rect rect, int skip, enum oc_role role, const char *text)
{
    int row = 0;
    if (rect.w <= 0 || (canvas && rect.h <= 0)) return 0;
    while (*text) {
        size_t length = row_length(text, rect.w);
        const char *rest = text + length;
        if (*rest == '\n') rest++;
        while (*rest == ' ') rest++;
        if (canvas && row >= skip) {
            char line[1024];
            bool cut = row - skip == rect.h - 1 && *rest;
            if (cut && rect.w > 2)
                length = row_length(text, rect.w - 2); /* whole words, and a sign that there is more */
            snprintf(line, sizeof line, "%.*s%s", (int)(length < sizeof line - 4 ? length : sizeof line - 4), text,
                     cut ? " ~" : "");
            oc_canvas_text(canvas, rect.x, rect.y + row - skip, rect.w, role, line);
            if (cut) return rect.h;
        }
        row++;
        text = rest;
    }
    return canvas ? (row > skip ? row - skip : 0) : row;
}

void oc_canvas_fill(struct oc_canvas *canvas, struct oc_rect rect, enum oc_role role)
{
    struct oc_style style = oc_canvas_style(canvas, role);
    for (int y = rect.y; y < rect.y + rect.h; y++)
        for (int x = rect.x; x < rect.x + rect.w; x++) oc_canvas_put(canvas, x, y, style, ' ');
}

void oc_canvas_mark(struct oc_canvas *canvas, struct oc_rect rect, enum oc_role role)
{
    struct oc_style style = oc_canvas_style(canvas, role);
    for (int y = rect.y; y < rect.y + rect.h; y++) {
        for (int x = rect.x; x < rect.x + rect.w; x++) {
            struct oc_cell *cell = oc_canvas_at(canvas, x, y);
            if (!cell) continue;
            if (style.fg) cell->style.fg = style.fg;
            if (style.bg) cell->style.bg = style.bg;
            cell->style.attr |= style.attr;
        }
    }
}

void oc_canvas_hline(struct oc_canvas *canvas, int x, int y, int width)
{
    struct oc_style style = oc_canvas_style(canvas, OC_ROLE_BORDER);
    for (int i = 0; i < width; i++) oc_canvas_put(canvas, x + i, y, style, 0x2500);
}

void oc_canvas_vline(struct oc_canvas *canvas, int x, int y, int height)
{
    struct oc_style style = oc_canvas_style(canvas, OC_ROLE_BORDER);
    for (int i = 0; i < height; i++) oc_canvas_put(canvas, x, y + i, style, 0x2502);
}

void oc_canvas_write_row(const struct oc_canvas *canvas, int y, FILE *out)
{
    int end = canvas->width;
    while (end > 0 && oc_canvas_at(canvas, end - 1, y)->code == ' ') end--;
    for (int x = 0; x < end; x++) {
        char text[5];
        uint32_t code = oc_canvas_at(canvas, x, y)->code;
        if (code == 0) continue;
        oc_utf8_write(code, text);
        fputs(text, out);
    }
    fputc('\n', out);
}

void oc_canvas_write(const struct oc_canvas *canvas, FILE *out)
{
    static const char keys[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    struct oc_style seen[sizeof keys - 1];
    size_t n = 0;
    fprintf(out, "screen %dx%d\n", canvas->width, canvas->height);
    for (int y = 0; y < canvas->height; y++) oc_canvas_write_row(canvas, y, out);
    fputs("styles\n", out);
    for (int y = 0; y < canvas->height; y++) {
        for (int x = 0; x < canvas->width; x++) {
            struct oc_style style = oc_canvas_at(canvas, x, y)->style;
            size_t i = 0;
            if (!style.fg && !style.bg && !style.attr) {
                fputc('.', out);
                continue;
            }
            while (i < n && memcmp(&seen[i], &style, sizeof style) != 0) i++;
            if (i == n && n < sizeof keys - 1) seen[n++] = style;
            fputc(i < n ? keys[i] : '+', out);
        }
        fputc('\n', out);
    }
    for (size_t i = 0; i < n; i++) {
        const struct oc_colour *colours = canvas->theme->colours;
        fprintf(out, "%c %s on %s%s%s%s\n", keys[i], colours[seen[i].fg].name, colours[seen[i].bg].name,
                seen[i].attr & OC_ATTR_BOLD ? " bold" : "", seen[i].attr & OC_ATTR_REVERSE ? " reverse" : "",
                seen[i].attr & OC_ATTR_UNDERLINE ? " underline" : "");
    }
}
