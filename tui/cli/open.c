/* `oomcast [FILE...]`: the screen, or the text report where there is no terminal to draw on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/cli/cli.h"
#include "tui/screen/screen.h"

bool oc_cli_has_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && term[0] && strcmp(term, "dumb");
}

static enum oc_exit open_screen(const struct oc_args *args, int lesson, struct oc_error *error)
{
    struct oc_input *input = malloc(sizeof *input);
    if (!input) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        return OC_EXIT_INTERNAL;
    }
    const struct oc_screen_options options = {.theme = args->theme,
                                              .depth = args->depth,
                                              .ascii = args->ascii,
                                              .no_live = args->no_live,
                                              .no_mouse = args->no_mouse,
                                              .no_display = args->no_display,
                                              .script = args->script,
                                              .lesson = lesson};
    int status = oc_cli_load(args, input, error) ? oc_screen_run(input, &options, error) : (int)oc_cli_status(error);
    free(input);
    return (enum oc_exit)status; /* or 128 + the signal that ended it */
}

enum oc_exit oc_cli_open(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    const bool on_screen = args->script || args->no_display || (oc_cli_has_terminal() && !args->plain);
    return on_screen ? open_screen(args, 0, error) : oc_cli_report(args, out, error);
}

/* What is open under a lesson is the built-in example: the word on the command line is the lesson's name. */
enum oc_exit oc_cli_open_lesson(const struct oc_args *args, int lesson, struct oc_error *error)
{
    struct oc_args without = *args;
    without.n_words = 0;
    return open_screen(&without, lesson + 1, error);
}
