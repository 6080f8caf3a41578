#include "tui/screen/prompt.h"

#include <string.h>

#include "tui/screen/keys.h"

void oc_prompt_start(struct oc_prompt *prompt, const char *text)
{
    memset(prompt, 0, sizeof *prompt);
    snprintf(prompt->text, sizeof prompt->text, "%s", text);
    prompt->at = (int)strlen(prompt->text);
}

static int step_left(const struct oc_prompt *prompt, int at)
{
    if (at > 0) at--;
    while (at > 0 && ((unsigned char)prompt->text[at] & 0xc0) == 0x80) at--;
    return at;
}

static int step_right(const struct oc_prompt *prompt, int at)
{
    uint32_t code;
    return at + oc_utf8_read(prompt->text + at, strlen(prompt->text + at), &code);
}

static void cut(struct oc_prompt *prompt, int from, int to)
{
    memmove(prompt->text + from, prompt->text + to, strlen(prompt->text + to) + 1);
    prompt->at = from;
}

static void insert(struct oc_prompt *prompt, int key)
{
    char text[5];
    int length = oc_utf8_write((uint32_t)key, text), size = (int)strlen(prompt->text);
    if (size + length >= OC_PROMPT_MAX) return;
    memmove(prompt->text + prompt->at + length, prompt->text + prompt->at, (size_t)(size - prompt->at) + 1);
    memcpy(prompt->text + prompt->at, text, (size_t)length);
    prompt->at += length;
}

static int word_start(const struct oc_prompt *prompt)
{
    int at = prompt->at;
    while (at > 0 && prompt->text[at - 1] == ' ') at--;
    while (at > 0 && prompt->text[at - 1] != ' ') at--;
    return at;
}

enum oc_prompt_result oc_prompt_key(struct oc_prompt *prompt, int key)
{
    switch (key) {
    case OC_KEY_ENTER:
    case '\n': return OC_PROMPT_DONE;
    case OC_KEY_ESCAPE: return OC_PROMPT_CANCELLED;
    case OC_KEY_LEFT: prompt->at = step_left(prompt, prompt->at); break;
    case OC_KEY_RIGHT: prompt->at = step_right(prompt, prompt->at); break;
    case OC_KEY_HOME:
    case OC_KEY_CTRL('A'): prompt->at = 0; break;
    case OC_KEY_END:
    case OC_KEY_CTRL('E'): prompt->at = (int)strlen(prompt->text); break;
    case OC_KEY_BACKSPACE: cut(prompt, step_left(prompt, prompt->at), prompt->at); break;
    case OC_KEY_DELETE: cut(prompt, prompt->at, step_right(prompt, prompt->at)); break;
    case OC_KEY_CTRL('U'): cut(prompt, 0, prompt->at); break;
    case OC_KEY_CTRL('W'): cut(prompt, word_start(prompt), prompt->at); break;
    default:
        if (key >= 0x20 && key < OC_KEY_UP && !(key >= 0x7f && key < 0xa0) && !(key >= 0xd800 && key < 0xe000))
            insert(prompt, key);
    }
    return OC_PROMPT_OPEN;
}

void oc_prompt_draw(const struct oc_prompt *prompt, struct oc_canvas *canvas, int x, int y, int width,
                    const char *label)
{
    int start = x + oc_canvas_print(canvas, x, y, width, OC_ROLE_PROMPT, "%s%s", label, label[0] ? ": " : ":");
    int room = x + width - start - 1; /* the cursor may stand behind the text */
    if (room < 1) return;
    char before[OC_PROMPT_MAX];
    snprintf(before, sizeof before, "%.*s", prompt->at, prompt->text);
    int from = 0;
    while (oc_text_width(before + from) > room) from = step_right(prompt, from);
    oc_canvas_text(canvas, start, y, room + 1, OC_ROLE_TEXT, prompt->text + from);
    canvas->cursor_x = start + oc_text_width(before + from);
    canvas->cursor_y = y;
}
