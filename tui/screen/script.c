#include "tui/screen/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/screen/canvas.h"
#include "tui/screen/keys.h"

enum { MAX_LINE = 1024 };

static bool run_command(const char *line, const struct oc_script_target *target, struct oc_error *error)
{
    char name[32], argument[MAX_LINE];
    int width, height, n = sscanf(line, ":%31s %1023s", name, argument);
    if (n == 2 && strcmp(name, "save-screen") == 0) return target->save(target->user, argument, false, error);
    if (n == 2 && strcmp(name, "save-picture") == 0) return target->save(target->user, argument, true, error);
    if (sscanf(line, ":size %d %d", &width, &height) == 2) return target->size(target->user, width, height, error);
    if (n == 1 && strcmp(name, "wait") == 0) {
        target->wait(target->user);
        return true;
    }
    if (n == 1 && strcmp(name, "quit") == 0) {
        target->quit(target->user);
        return true;
    }
    return target->command(target->user, line + 1, error);
}

static bool run_keys(const char *line, const struct oc_script_target *target, struct oc_error *error)
{
    size_t left = strlen(line);
    while (left > 0) {
        uint32_t code;
        int length = oc_utf8_read(line, left, &code);
        const char *end = code == '<' ? strchr(line, '>') : NULL;
        if (end) {
            char name[32];
            snprintf(name, sizeof name, "%.*s", (int)(end - line - 1), line + 1);
            int key = oc_key_find(name);
            if (key == OC_KEY_NONE) return oc_fail(error, OC_E_PARSE, "<%s> is not a key", name);
            length = (int)(end - line) + 1;
            code = (uint32_t)key;
        }
        target->key(target->user, (int)code);
        line += length, left -= (size_t)length;
    }
    return true;
}

bool oc_script_run(const char *path, const struct oc_script_target *target, struct oc_error *error)
{
    char line[MAX_LINE];
    int number = 0;
    FILE *file = fopen(path, "r");
    if (!file) {
        oc_fail(error, OC_E_IO, "the script cannot be opened");
        return oc_at(error, path, 0, 0);
    }
    bool good = true;
    while (good && fgets(line, sizeof line, file)) {
        number++;
        line[strcspn(line, "\r\n")] = '\0';
        if (!line[0] || line[0] == '#') continue;
        good = line[0] == ':' ? run_command(line, target, error) : run_keys(line, target, error);
        if (!good) oc_at(error, path, number, 0);
    }
    fclose(file);
    return good;
}
