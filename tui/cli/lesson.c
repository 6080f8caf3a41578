/* `oomcast lesson [NAME]`: the list, a lesson on the screen, or the whole of it as text. */
#include <stdlib.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "tui/views/lessons.h"

static void put_list(struct oc_buffer *out)
{
    for (int i = 0; i < oc_lesson_count(); i++) {
        struct oc_lesson lesson;
        if (!oc_lesson_open(i, &lesson, NULL)) continue;
        oc_putf(out, "%s%s\n    ", i ? "\n" : "", lesson.name);
        oc_put_wrapped(out, lesson.title, 4, 4, 79);
        oc_put(out, "    ");
        oc_put_wrapped(out, lesson.about, 4, 4, 79);
        oc_lesson_close(&lesson);
    }
    oc_put(out, "\n`oomcast lesson NAME` begins one; with --replay it is done and told here, without a screen.\n");
}

/* Everything that the lesson asks for is done by itself, in this process. */
static bool replay(int index, struct oc_buffer *out, struct oc_error *error)
{
    struct oc_input *input = calloc(1, sizeof *input);
    struct oc_app *app = calloc(1, sizeof *app);
    bool good = input && app;
    if (!good) oc_fail(error, OC_E_INTERNAL, "out of memory");
    if (good) {
        enum oc_option_id id;
        input->c.config = oc_config_default();
        good = oc_config_assign(&input->c.config, "model.name=gpt2", &id, error) &&
               oc_app_start(app, &oc_real_model, input, error);
        good = good && oc_lessons_replay(app, index, out, error);
        oc_app_end(app);
    }
    free(app);
    free(input);
    return good;
}

enum oc_exit oc_cli_lesson(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    if (!args->n_words) {
        put_list(out);
        return OC_EXIT_DONE;
    }
    int index = oc_lesson_find(args->words[0]);
    if (index < 0) {
        oc_fail(error, OC_E_KEY, "there is no lesson %.60s", args->words[0]);
        oc_hint(error, "`oomcast lesson` lists them");
        return OC_EXIT_USAGE;
    }
    if (args->replay || !oc_cli_has_terminal()) return replay(index, out, error) ? OC_EXIT_DONE : oc_cli_status(error);
    return oc_cli_open_lesson(args, index, error);
}
