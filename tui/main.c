/* oomcast: what training a transformer takes of a GPU's memory. This file only starts a command and says how it ended.
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tui/cli/cli.h"

/* Descriptors 0 to 2 are ours even where the caller closed them: no file that is opened later may take their place.
 * What was closed stays an error to write to. */
static void claim_standard_files(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

static enum oc_exit run(int argc, char *const argv[], struct oc_buffer *out, struct oc_error *error)
{
    struct oc_args args;
    if (!oc_args_read(&args, argc, argv, error)) return oc_cli_status(error);
    if (args.help) {
        oc_put_help(args.command, out);
        return OC_EXIT_DONE;
    }
    if (args.version) {
        oc_put(out, "oomcast " OOMCAST_VERSION "\n");
        return OC_EXIT_DONE;
    }
    return args.command->run(&args, out, error);
}

int main(int argc, char *argv[])
{
    struct oc_buffer out = {0};
    struct oc_error error = {0};
    claim_standard_files();
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is seen as EPIPE */
    setlocale(LC_CTYPE, "");

    enum oc_exit status = run(argc > 0 ? argc - 1 : 0, argv + (argc > 0), &out, &error);
    if (out.failed) {
        oc_fail(&error, OC_E_INTERNAL, "out of memory");
        status = OC_EXIT_INTERNAL;
    }
    if (error.code != OC_OK) {
        oc_cli_complain(&error);
    } else if (!oc_cli_print(out.data, out.size)) {
        perror("oomcast: cannot write to standard output");
        status = OC_EXIT_INTERNAL;
    }
    oc_buffer_free(&out);
    return status;
}
