/* UTF-8 and column widths, without asking the locale: what is drawn must not depend on where it is drawn. */
#include "tui/screen/canvas.h"

#include <string.h>

int oc_utf8_read(const char *text, size_t size, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    if (size == 0 || s[0] == 0) return 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    int length = s[0] >= 0xf0 && s[0] < 0xf5   ? 4
                 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                                               : 0;
    uint32_t value = length == 4 ? s[0] & 0x07u : length == 3 ? s[0] & 0x0fu : s[0] & 0x1fu;
    bool good = length > 0 && (size_t)length <= size;
    for (int i = 1; good && i < length; i++) {
        good = (s[i] & 0xc0) == 0x80;
        value = value << 6 | (s[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!good || value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        *code = 0xfffd;
        return 1;
    }
    *code = value;
    return length;
}

int oc_utf8_write(uint32_t code, char text[5])
{
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = length - 1; i > 0; i--) {
        text[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    text[0] = (char)(lead[length] | code);
    text[length] = '\0';
    return length;
}

int oc_code_width(uint32_t code)
{
    /* Wide blocks of Unicode 15 (East Asian Width W or F), coarse: a file name needs no more. */
    static const struct {
        uint32_t first, last;
    } wide[] = {{0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},  {0x4e00, 0x9fff},
                {0xa000, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe4f},  {0xff00, 0xff60},
                {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    static const struct {
        uint32_t first, last;
    } combining[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x64b, 0x65f},
                     {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064}, {0x20d0, 0x20ff},
                     {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
    for (size_t i = 0; i < sizeof combining / sizeof combining[0]; i++)
        if (code >= combining[i].first && code <= combining[i].last) return 0;
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (code >= wide[i].first && code <= wide[i].last) return 2;
    return 1;
}

int oc_text_width(const char *text)
{
    size_t size = strlen(text);
    int width = 0, length;
    uint32_t code;
    while ((length = oc_utf8_read(text, size, &code)) > 0) {
        width += oc_code_width(code);
        text += length, size -= (size_t)length;
    }
    return width;
}
