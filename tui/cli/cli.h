/* The command line: subcommands, their options, and how what they say reaches the user.
 *
 * A command fills a buffer and returns its exit status; main prints the buffer, so that a command which fails has
 * printed nothing. Errors go to standard error, with a hint.
 *
 * Ownership: arguments point into argv; buffers belong to whoever made them. */
#ifndef OC_TUI_CLI_CLI_H
#define OC_TUI_CLI_CLI_H

#include "oomcast/model.h"
#include "oomcast/probe.h"

#include "tui/report/buffer.h"
#include "tui/report/units.h"
#include "tui/screen/screen.h"

/* A contract: scripts read these. */
enum oc_exit {
    OC_EXIT_DONE = 0,
    OC_EXIT_DOES_NOT_FIT = 1, /* check only */
    OC_EXIT_USAGE = 2,        /* bad usage or input; nothing is on standard output */
    OC_EXIT_PROBE = 3,        /* the probe failed; the reason is in its output */
    OC_EXIT_INTERNAL = 70
};

enum oc_format { OC_FORMAT_TEXT, OC_FORMAT_JSON, OC_FORMAT_CSV, OC_FORMAT_MARKDOWN, OC_FORMAT_SVG };

enum { OC_MAX_SETS = 256, OC_MAX_WORDS = OC_MAX_FILES };

/* What stands on the command line. */
struct oc_args {
    const struct oc_command *command;
    const char *words[OC_MAX_WORDS]; /* files, or names for the lists */
    int n_words;
    const char *sets[OC_MAX_SETS]; /* after --set, in order */
    int n_sets;
    const char *against[OC_MAX_SETS]; /* after --against, in order */
    int n_against;
    int moment; /* enum oc_moment, or OC_AT_PEAK */
    bool help, version;
    enum oc_format format;
    enum oc_unit unit;
    bool entries;
    int64_t margin; /* bytes */
    enum oc_device device;
    bool json, full;
    int steps;
    int64_t limit;                        /* bytes the probe may take; 0 = its own choice */
    int64_t budget_bytes, budget_seconds; /* what the workload is cut to; 0 = the probe's own choice */
    int64_t stage;                        /* of the pipeline */
    const char *out, *merge;              /* folder of the ranks' files; folder, file or "-"; NULL = none */
    bool polite;                          /* AUTO leaves a GPU alone that others use */
    int64_t quiet;                        /* seconds without progress after which a probe with a parent ends itself */
    int64_t parent;                       /* process id of the parent that a probe must not outlive; 0 = none */
    bool plain, no_live, no_mouse, ascii, no_display;
    bool check;          /* themes */
    bool replay;         /* lesson */
    enum oc_depth depth; /* colours */
    const char *theme;   /* NULL: the default */
    const char *script;  /* keys to begin with, for tests and pictures; NULL = none */
};

struct oc_command {
    const char *name;  /* "" is `oomcast [FILE...]` */
    const char *words; /* "[FILE...]", "[NAME...]", or "" when it takes none */
    enum oc_unit unit; /* unless --units says otherwise */
    const char *help;  /* one sentence */
    enum oc_exit (*run)(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
};

/* The subcommands, in the order of the help; ends with a row whose name is NULL. */
extern const struct oc_command oc_commands[];

/* Reads the arguments after the program's name. Options may stand before or after files; "--" ends them. */
bool oc_args_read(struct oc_args *args, int argc, char *const argv[], struct oc_error *error);

/* `oomcast --help`, or the help of one command. */
void oc_put_help(const struct oc_command *command, struct oc_buffer *out);

/* Reads the files, or the built-in example where there is none and --set describes no model of its own, and applies
 * --set over them: the last one wins, and all are in place before anything is validated. `input` is the caller's; it is
 * large. */
bool oc_cli_load(const struct oc_args *args, struct oc_input *input, struct oc_error *error);

/* Everything that a report says, from files to sentences. Free with oc_cli_release(). */
struct oc_session {
    struct oc_input input;
    struct oc_answer answer;
    struct oc_reason reason;
    struct oc_ledger *ledgers; /* one per stage; NULL unless asked for */
};
struct oc_session *oc_cli_answer(const struct oc_args *args, bool with_ledgers, struct oc_error *error);
void oc_cli_release(struct oc_session *session);

/* Writes all of it to standard output. False when it cannot be written; a reader that went away (EPIPE) is no failure.
 */
bool oc_cli_print(const char *text, size_t size);

/* Whether the word names a file that can be opened. */
bool oc_cli_is_file(const char *word);

/* "oomcast: what is wrong" and the hint, on standard error. */
void oc_cli_complain(const struct oc_error *error);

/* "auto", "cuda", "host", "dry": as --device takes them. */
const char *oc_device_name(enum oc_device device);

/* OC_EXIT_USAGE, or OC_EXIT_INTERNAL for a defect. */
enum oc_exit oc_cli_status(const struct oc_error *error);

/* Whether there is a terminal to draw on. */
bool oc_cli_has_terminal(void);

/* The screen, with a lesson begun on it. */
enum oc_exit oc_cli_open_lesson(const struct oc_args *args, int lesson, struct oc_error *error);

enum oc_exit oc_cli_open(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_report(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_check(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_advise(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_compare(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_sweep(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_probe(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_options(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_models(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_gpus(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_lesson(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);
enum oc_exit oc_cli_themes(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);

#endif
