/* Finds the importer of an input, and merges what it read into what is there already. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/import/import.h"

static const struct oc_importer importers[] = {
    {"oomcast session", session_detect, session_read},
    {"Megatron-LM launch script", megatron_detect, megatron_read},
};
enum { IMPORTERS = sizeof importers / sizeof *importers };

static const struct oc_importer *find_importer(const char *text, size_t size)
{
    const struct oc_importer *best = NULL;
    int most = 0;
    for (int i = 0; i < IMPORTERS; i++) {
        int sure = importers[i].detect(text, size);
        if (sure > most) best = &importers[i], most = sure;
    }
    return best;
}

/* ---- merging: between files the earlier wins ---- */

static bool is_assumed(const struct oc_case *c, int option)
{
    return c->origin[option].from == OC_FROM_ASSUMED;
}

static void drop_assumption(struct oc_input *input, int option)
{
    int kept = 0;
    for (int i = 0; i < input->n_notes; i++)
        if (input->notes[i].kind != OC_NOTE_ASSUMED || input->notes[i].option != option)
            input->notes[kept++] = input->notes[i];
    input->n_notes = kept;
}

static void warn_of_conflict(struct oc_input *input, const struct oc_input *later, int option, int file)
{
    char mine[OC_NAME_MAX + 32], theirs[OC_NAME_MAX + 32];
    enum oc_option_id id = (enum oc_option_id)option;
    oc_option_text(&input->c.config, id, mine, sizeof mine);
    oc_option_text(&later->c.config, id, theirs, sizeof theirs);
    if (!strcmp(mine, theirs)) return;
    const struct oc_origin *origin = &input->c.origin[option];
    const char *from =
        origin->from == OC_FROM_FILE ? input->files[origin->file] : oc_from_name((enum oc_from)origin->from);
    oc_note_add(input, OC_NOTE_WARNING, option, oc_option(id)->key, file, later->c.origin[option].line,
                "%.40s says %s and %.40s says %s; the first counts", from, mine, input->files[file], theirs);
}

static void copy_value(struct oc_case *to, const struct oc_case *from, int option)
{
    const struct oc_option *row = oc_option((enum oc_option_id)option);
    size_t size = row->type == OC_T_STRING ? OC_NAME_MAX : sizeof(int64_t);
    memcpy((char *)&to->config + row->offset, (const char *)&from->config + row->offset, size);
    oc_set_given(&to->config, (enum oc_option_id)option, true);
    to->origin[option] = from->origin[option];
}

/* One option: a value that was only assumed gives way to one that is said, in whichever order they come. */
static void merge_option(struct oc_input *input, const struct oc_input *later, int option, int file)
{
    bool have = oc_given(&input->c.config, (enum oc_option_id)option),
         comes = oc_given(&later->c.config, (enum oc_option_id)option);
    bool have_assumed = is_assumed(&input->c, option), comes_assumed = is_assumed(&later->c, option);
    if (comes && (!have || (have_assumed && !comes_assumed))) {
        copy_value(&input->c, &later->c, option);
        if (have_assumed) drop_assumption(input, option);
    } else if (comes && !comes_assumed) {
        warn_of_conflict(input, later, option, file);
    } else if (!comes && comes_assumed && !have && !have_assumed) {
        input->c.origin[option] = later->c.origin[option];
    }
}

/* A later file's note about a value that an earlier one gives is of no use. */
static bool is_settled(const struct oc_input *before, const struct oc_note *note)
{
    if (note->kind != OC_NOTE_ASSUMED || note->option < 0 || note->option >= OC_OPTIONS) return false;
    return oc_given(&before->c.config, (enum oc_option_id)note->option) || is_assumed(&before->c, note->option);
}

static void merge(struct oc_input *input, const struct oc_input *later, int file)
{
    for (int i = 0; i < later->n_notes; i++) {
        const struct oc_note *note = &later->notes[i];
        if (is_settled(input, note)) continue;
        oc_note_add(input, (enum oc_note_kind)note->kind, note->option, note->name, note->file, note->line, "%s",
                    note->text);
    }
    input->notes_lost += later->notes_lost;
    for (int i = 0; i < OC_OPTIONS; i++) merge_option(input, later, i, file);
}

/* ---- reading ---- */

static bool refuse(const char *name, struct oc_error *error)
{
    oc_fail(error, OC_E_PARSE, "%s is nothing that oomcast can read", name);
    char kinds[200] = "";
    for (int i = 0; i < IMPORTERS; i++) {
        size_t used = strlen(kinds);
        snprintf(kinds + used, sizeof kinds - used, "%s%s", i ? ", " : "", importers[i].name);
    }
    oc_hint(error, "it reads: %s", kinds);
    return oc_at(error, name, 0, 0);
}

static bool check_text(const char *name, const char *text, size_t size, struct oc_error *error)
{
    if (size > OC_MAX_INPUT) {
        oc_fail(error, OC_E_IO, "%s is larger than %d MiB", name, OC_MAX_INPUT >> 20);
        oc_hint(error, "is it a log? give the part that has the launch command");
        return oc_at(error, name, 0, 0);
    }
    if (size && memchr(text, 0, size)) {
        oc_fail(error, OC_E_IO, "%s is a binary file", name);
        oc_hint(error, "give the script or the session as text");
        return oc_at(error, name, 0, 0);
    }
    return true;
}

bool oc_import_text(struct oc_input *input, const char *name, const char *text, size_t size, struct oc_error *error)
{
    if (!check_text(name, text, size, error)) return false;
    if (input->n_files == OC_MAX_FILES) return oc_fail(error, OC_E_LIMIT, "more than %d files", OC_MAX_FILES);
    const struct oc_importer *importer = find_importer(text, size);
    if (!importer) return refuse(name, error);
    struct oc_input *later = calloc(1, sizeof *later);
    if (!later) return oc_fail(error, OC_E_LIMIT, "out of memory");
    int file = input->n_files;
    later->c.config = oc_config_default();
    later->n_files = file + 1;
    snprintf(later->files[file], sizeof later->files[file], "%s", name);
    bool good = importer->read(later, file, text, size, error);
    if (good) {
        memcpy(input->files[file], later->files[file], sizeof input->files[file]);
        input->n_files++;
        merge(input, later, file);
    }
    free(later);
    return good;
}

/* Reads all of a stream; stops one byte after the limit. NULL when it cannot. */
static char *read_all(FILE *stream, size_t *size)
{
    size_t room = 64 * 1024, n = 0;
    char *text = malloc(room);
    while (text) {
        n += fread(text + n, 1, room - n, stream);
        if (n < room || n > OC_MAX_INPUT) break;
        char *more = realloc(text, room *= 2);
        if (!more) free(text);
        text = more;
    }
    if (text && ferror(stream)) {
        free(text);
        return NULL;
    }
    *size = n;
    return text;
}

static bool cannot_read(const char *path, const char *why, struct oc_error *error)
{
    oc_fail(error, OC_E_IO, "cannot read %s: %s", path, why);
    oc_hint(error, "give a launch script or a session, or - for standard input");
    return oc_at(error, path, 0, 0);
}

bool oc_import_file(struct oc_input *input, const char *path, struct oc_error *error)
{
    bool standard = !strcmp(path, "-");
    FILE *stream = standard ? stdin : fopen(path, "rb");
    struct stat status;
    if (!stream) return cannot_read(path, strerror(errno), error);
    if (!standard && !fstat(fileno(stream), &status) && S_ISDIR(status.st_mode)) {
        fclose(stream);
        return cannot_read(path, "it is a directory", error);
    }
    size_t size = 0;
    char *text = read_all(stream, &size);
    int why = errno;
    if (!standard) fclose(stream);
    if (!text) return cannot_read(path, strerror(why), error);
    bool good = oc_import_text(input, path, text, size, error);
    free(text);
    return good;
}
