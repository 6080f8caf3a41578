#include "oomcast/case.h"

#include <stdarg.h>
#include <stdio.h>

void oc_note_add(struct oc_input *input, enum oc_note_kind kind, int option, const char *name, int file, int line,
                 const char *format, ...)
{
    if (input->n_notes == OC_MAX_NOTES) {
        input->notes_lost++;
        return;
    }
    struct oc_note *note = &input->notes[input->n_notes++];
    *note = (struct oc_note){
        .kind = (uint8_t)kind, .file = (uint8_t)file, .option = (int16_t)option, .line = line > 0 ? line : 0};
    snprintf(note->name, sizeof note->name, "%s", name ? name : "");
    va_list args;
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
}

const char *oc_from_name(enum oc_from from)
{
    static const char *const names[] = {[OC_FROM_DEFAULT] = "default",
                                        [OC_FROM_ASSUMED] = "assumed",
                                        [OC_FROM_FILE] = "file",
                                        [OC_FROM_SET] = "set",
                                        [OC_FROM_EDITED] = "edited"};
    return (unsigned)from < sizeof names / sizeof *names ? names[from] : "?";
}
