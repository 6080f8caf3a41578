/* Runs the real program, as a user does. */
#ifndef OC_TESTS_TUI_HELP_CLI_H
#define OC_TESTS_TUI_HELP_CLI_H

#include <stddef.h>

/* What it wrote and how it ended; 128 + the signal when one ended it. */
struct help_output {
    char *out, *err;
    int status;
};

enum { HELP_ARGS = 32 };

/* Runs oomcast with the arguments (NULL-terminated), with `input` on its standard input, and no terminal. */
struct help_output help_cli(const char *input, const char *const argv[]);
void help_cli_free(struct help_output *output);

/* oomcast with arguments written out: HELP_CLI("report", "--format", "json"). */
#define HELP_CLI(...) help_cli("", (const char *const[]){__VA_ARGS__, NULL})

/* Writes a file of `size` bytes in the temporary directory and returns its path, to be removed and freed by the caller.
 */
char *help_file(const char *bytes, size_t size);

#endif
