/* Arguments, from two tables: the commands, and the options with the commands that take them. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/base/names.h"

#include "tui/cli/cli.h"

/* ---- the commands ---- */

/* clang-format off */
const struct oc_command oc_commands[] = {
    {"", "[FILE...]", OC_UNIT_GIB, "the screen, opened on the files; without a terminal, the text report", oc_cli_open},
    {"report", "[FILE...]", OC_UNIT_GIB, "the same numbers without a screen", oc_cli_report},
    {"check", "[FILE...]", OC_UNIT_GIB, "one line: does it fit, by how much, on which stage, at which moment", oc_cli_check},
    {"advise", "[FILE...]", OC_UNIT_GIB, "the smallest changes that make it fit, cheapest first, with what each costs; what could be taken back where it fits", oc_cli_advise},
    {"compare", "[FILE [FILE]]", OC_UNIT_GIB, "two configurations, entry by entry, the largest difference first, each with its reason", oc_cli_compare},
    {"sweep", "[FILE...] KEY=V,V,...", OC_UNIT_GIB, "the peak over the values of one or two options", oc_cli_sweep},
    {"probe", "[FILE...]", OC_UNIT_MIB, "run a real training step of the workload, cut to a small size, and measure it", oc_cli_probe},
    {"options", "[NAME...]", OC_UNIT_GIB, "what --set takes; with names, only the keys that contain one of them", oc_cli_options},
    {"models", "[NAME...]", OC_UNIT_GIB, "the models that model.name knows", oc_cli_models},
    {"gpus", "[NAME...]", OC_UNIT_GIB, "the GPUs that gpu knows, and how much memory they really have", oc_cli_gpus},
    {"themes", "", OC_UNIT_GIB, "the colour themes of the screen", oc_cli_themes},
    {"lesson", "[NAME]", OC_UNIT_GIB, "a guided lesson on the screen; without a name, which there are", oc_cli_lesson},
    {0}};
/* clang-format on */

/* Bits of the commands, in their order. */
enum {
    OPEN = 1 << 0,
    REPORT = 1 << 1,
    CHECK = 1 << 2,
    ADVISE = 1 << 3,
    COMPARE = 1 << 4,
    SWEEP = 1 << 5,
    PROBE = 1 << 6,
    GPUS = 1 << 9,
    THEMES = 1 << 10,
    LESSON = 1 << 11,
    CASES = OPEN | REPORT | CHECK | ADVISE | COMPARE | SWEEP | PROBE,
    ALL = ~0
};

static unsigned mask_of(const struct oc_command *command)
{
    return 1u << (command - oc_commands);
}

/* ---- the options ---- */

/* Index of `name` in a list of names, or -1. */
static int index_of(const char *name, const char *const names[], int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

static const char *const format_names[] = {[OC_FORMAT_TEXT] = "text",
                                           [OC_FORMAT_JSON] = "json",
                                           [OC_FORMAT_CSV] = "csv",
                                           [OC_FORMAT_MARKDOWN] = "markdown",
                                           [OC_FORMAT_SVG] = "svg"};
static const char *const device_names[] = {
    [OC_DEVICE_AUTO] = "auto", [OC_DEVICE_CUDA] = "cuda", [OC_DEVICE_HOST] = "host", [OC_DEVICE_DRY] = "dry"};

const char *oc_device_name(enum oc_device device)
{
    return device_names[device];
}

static bool add_set(struct oc_args *args, const char *value)
{
    if (args->n_sets == OC_MAX_SETS) return false;
    args->sets[args->n_sets++] = value;
    return true;
}

static bool add_against(struct oc_args *args, const char *value)
{
    if (args->n_against == OC_MAX_SETS) return false;
    args->against[args->n_against++] = value;
    return true;
}

static bool set_moment(struct oc_args *args, const char *value)
{
    if (!strcmp(value, "peak")) return true;
    for (int m = OC_M_FORWARD; m < OC_MOMENTS; m++) {
        if (strcmp(value, oc_moment_name((enum oc_moment)m))) continue;
        args->moment = m;
        return true;
    }
    return false;
}

static bool set_format(struct oc_args *args, const char *value)
{
    const int at = index_of(value, format_names, sizeof format_names / sizeof format_names[0]);
    if (at >= 0) args->format = (enum oc_format)at;
    return at >= 0;
}

static bool set_unit(struct oc_args *args, const char *value)
{
    return oc_unit_find(value, &args->unit);
}

static bool set_margin(struct oc_args *args, const char *value)
{
    return oc_parse_integer(value, true, &args->margin) && args->margin >= 0;
}

static bool set_device(struct oc_args *args, const char *value)
{
    const int at = index_of(value, device_names, sizeof device_names / sizeof device_names[0]);
    if (at >= 0) args->device = (enum oc_device)at;
    return at >= 0;
}

static bool set_steps(struct oc_args *args, const char *value)
{
    int64_t steps;
    if (!oc_parse_integer(value, false, &steps) || steps < 2 || steps > OC_MAX_LOSSES) return false;
    args->steps = (int)steps;
    return true;
}

static bool set_limit(struct oc_args *args, const char *value)
{
    return oc_parse_integer(value, true, &args->limit) && args->limit > 0;
}

static bool set_parent(struct oc_args *args, const char *value)
{
    return oc_parse_integer(value, false, &args->parent) && args->parent > 0;
}

static bool set_quiet(struct oc_args *args, const char *value)
{
    return oc_parse_integer(value, false, &args->quiet) && args->quiet > 0 && args->quiet < 1000000;
}

static bool set_budget_bytes(struct oc_args *args, const char *value)
{
    return oc_parse_integer(value, true, &args->budget_bytes) && args->budget_bytes > 0;
}

static bool set_budget_seconds(struct oc_args *args, const char *value)
{
    return oc_parse_integer(value, false, &args->budget_seconds) && args->budget_seconds > 0;
}

static bool set_stage(struct oc_args *args, const char *value)
{
    return oc_parse_integer(value, false, &args->stage) && args->stage >= 0 && args->stage < OC_MAX_STAGES;
}

static bool set_out(struct oc_args *args, const char *value)
{
    args->out = value;
    return value[0] != '\0';
}

static bool set_merge(struct oc_args *args, const char *value)
{
    args->merge = value;
    return value[0] != '\0';
}

static bool set_depth(struct oc_args *args, const char *value)
{
    return oc_depth_find(value, &args->depth);
}

static bool set_script(struct oc_args *args, const char *value)
{
    args->script = value;
    return true;
}

static bool set_theme(struct oc_args *args, const char *value)
{
    args->theme = value;
    return value[0] != '\0';
}

struct flag {
    const char *name;
    char letter;                                           /* 'h' for -h, or 0 */
    const char *value;                                     /* what follows it; NULL for a switch */
    unsigned commands;                                     /* which take it */
    bool (*read)(struct oc_args *args, const char *value); /* false: the value is not one it takes; NULL for a switch */
    size_t on;                                             /* of a switch: the bool in struct oc_args that it sets */
    const char *help;                                      /* NULL: between our own processes, not shown */
};

#define ON(field) NULL, offsetof(struct oc_args, field)

/* clang-format off */
static const struct flag flags[] = {
    {"--set", 0, "KEY=VALUE", CASES, add_set, 0, "set an option (see `oomcast options`); may repeat, the last wins"},
    {"--units", 0, "gib|gb|bytes", CASES | GPUS, set_unit, 0, "unit of what is printed; gib unless given, mib for a probe"},
    {"--against", 0, "KEY=VALUE", COMPARE, add_against, 0, "set an option of the second configuration; the first is left as it is"},
    {"--format", 0, "text|json|csv|markdown|svg", REPORT, set_format, 0, "text for people, json for programs, csv for tables, markdown and svg for documents"},
    {"--entries", 0, NULL, REPORT | COMPARE, ON(entries), "with every ledger entry: what it is, when it lives, which rule says so"},
    {"--moment", 0, "NAME", COMPARE, set_moment, 0, "compare what is alive at a moment of a step (forward, loss, backward, step, idle, ...) instead of at each peak"},
    {"--margin", 0, "BYTES", CHECK, set_margin, 0, "it fits only if so much is left: 2GiB, 500MB"},
    {"--device", 0, "auto|cuda|host|dry", PROBE, set_device, 0, "where it runs; dry only allocates, in no memory"},
    {"--steps", 0, "N", PROBE, set_steps, 0, "optimizer steps, 2 to 64; 4 unless given"},
    {"--limit", 0, "BYTES", PROBE, set_limit, 0, "memory that it may take; 256MiB unless given or --full"},
    {"--budget-bytes", 0, "BYTES", PROBE, set_budget_bytes, 0, "cut the workload to this much memory: layers first, then what dominates"},
    {"--budget-seconds", 0, "N", PROBE, set_budget_seconds, 0, "... and to about this long on one core; 2 unless given"},
    {"--stage", 0, "N", PROBE, set_stage, 0, "the pipeline stage whose part runs; under a launcher each rank runs its own"},
    {"--out", 0, "DIR", PROBE, set_out, 0, "a file for each rank, with everything; standard output then has one short line"},
    {"--merge", 0, "DIR|FILE|-", PROBE, set_merge, 0, "run nothing: show what the ranks of a run have left, and who is missing"},
    {"--full", 0, NULL, PROBE, ON(full), "at full size, nothing cut; dry always is"},
    {"--json", 0, NULL, PROBE, ON(json), "one JSON object a line: progress, then the result"},
    {"--json", 0, NULL, ADVISE | COMPARE | SWEEP, ON(json), "for programs: one JSON document, bytes as they are"},
    {"--ppid", 0, "PID", PROBE, set_parent, 0, NULL},
    {"--polite", 0, NULL, PROBE, ON(polite), NULL},
    {"--quiet", 0, "SECONDS", PROBE, set_quiet, 0, NULL},
    {"--plain", 0, NULL, OPEN, ON(plain), "the text report, even in a terminal"},
    {"--no-live", 0, NULL, OPEN | LESSON, ON(no_live), "run the probe only when asked to, with p"},
    {"--no-mouse", 0, NULL, OPEN | LESSON, ON(no_mouse), "leave the mouse to the terminal, for selecting text"},
    {"--replay", 0, NULL, LESSON, ON(replay), "do the whole lesson without a screen, and tell it"},
    {"--check", 0, NULL, THEMES, ON(check), "how well each theme's colours are told apart, by everyone"},
    {"--theme", 0, "NAME|FILE", OPEN | LESSON, set_theme, 0, "colours of the screen (see `oomcast themes`)"},
    {"--color", 0, "auto|never|8|16|256|rgb", OPEN | LESSON, set_depth, 0, "how many colours"},
    {"--ascii", 0, NULL, OPEN | LESSON, ON(ascii), "draw with ASCII only"},
    {"--script", 0, "FILE", OPEN | LESSON, set_script, 0, "keys to begin with, for tests and pictures"},
    {"--no-display", 0, NULL, OPEN | LESSON, ON(no_display), "touch no terminal: a script draws on a canvas"},
    {"--help", 'h', NULL, ALL, ON(help), "this text"},
    {"--version", 'V', NULL, ALL, ON(version), "the version"},
};
/* clang-format on */

enum { FLAGS = sizeof flags / sizeof flags[0] };

/* ---- reading ---- */

/* The nearest option of this command, for a hint; NULL when none is near. `size` bytes of `name` count. */
static const char *nearest_flag(const struct oc_command *command, const char *name)
{
    const char *nearest = NULL;
    int best = 4;
    for (int i = 0; i < FLAGS; i++) {
        if (!flags[i].help || !(flags[i].commands & mask_of(command))) continue;
        int distance = oc_name_distance(name, flags[i].name);
        if (distance < best) best = distance, nearest = flags[i].name;
    }
    return nearest;
}

static bool unknown_flag(const struct oc_command *command, const char *name, struct oc_error *error)
{
    const char *of = command->name[0] ? " " : "", *nearest = nearest_flag(command, name);
    for (int i = 0; i < FLAGS; i++) {
        if (strcmp(flags[i].name, name) || !flags[i].help) continue; /* it exists, for another command */
        oc_fail(error, OC_E_USAGE, "oomcast%s%s does not take %s", of, command->name, name);
        return oc_hint(error, "`oomcast%s%s --help` lists what it takes", of, command->name);
    }
    oc_fail(error, OC_E_USAGE, "there is no option %.80s", name);
    if (nearest) return oc_hint(error, "did you mean %s? `oomcast%s%s --help` lists all", nearest, of, command->name);
    return oc_hint(error, "`oomcast%s%s --help` lists all; KEY=VALUE goes after --set", of, command->name);
}

/* Finds the option that an argument such as "--set", "--set=K=V" or "-h" names; `value` is what follows its '='. */
static const struct flag *find_flag(const struct oc_command *command, const char *argument, const char **value,
                                    struct oc_error *error)
{
    char name[80];
    const char *equals = strchr(argument, '=');
    size_t size = equals ? (size_t)(equals - argument) : strlen(argument);
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : (int)sizeof name - 1, argument);
    *value = equals ? equals + 1 : NULL;
    for (int i = 0; i < FLAGS; i++) {
        bool short_form = flags[i].letter && argument[1] == flags[i].letter && !argument[2];
        if ((!strcmp(flags[i].name, name) || short_form) && (flags[i].commands & mask_of(command))) return &flags[i];
    }
    unknown_flag(command, name, error);
    return NULL;
}

static bool add_word(struct oc_args *args, const char *word, struct oc_error *error)
{
    if (!args->command->words[0]) {
        oc_fail(error, OC_E_USAGE, "oomcast %s takes no names, and '%.80s' is one", args->command->name, word);
        return oc_hint(error, "`oomcast %s --help`", args->command->name);
    }
    if (args->n_words == OC_MAX_WORDS)
        return oc_fail(error, OC_E_USAGE, "too many files: at most %d", (int)OC_MAX_WORDS);
    args->words[args->n_words++] = word;
    return true;
}

bool oc_cli_is_file(const char *word)
{
    FILE *file = fopen(word, "rb");
    if (file) fclose(file);
    return file != NULL;
}

/* Whether the first word is a command that was mistyped rather than a file: near one, and no such file is there. */
static const char *mistyped_command(const char *word)
{
    if (oc_cli_is_file(word)) return NULL;
    for (const struct oc_command *command = oc_commands + 1; command->name; command++)
        if (oc_name_distance(word, command->name) <= 2) return command->name;
    return NULL;
}

static bool read_flag(struct oc_args *args, int argc, char *const argv[], int *at, struct oc_error *error)
{
    const char *value;
    const struct flag *flag = find_flag(args->command, argv[*at], &value, error);
    if (!flag) return false;
    if (!flag->value && value) return oc_fail(error, OC_E_USAGE, "%s takes no value", flag->name);
    if (flag->value && !value) {
        if (*at + 1 == argc) {
            oc_fail(error, OC_E_USAGE, "%s needs a value", flag->name);
            return oc_hint(error, "%s %s", flag->name, flag->value);
        }
        value = argv[++*at];
    }
    if (!flag->read) {
        *(bool *)((char *)args + flag->on) = true;
        return true;
    }
    if (flag->read(args, value)) return true;
    if (flag->read == add_set || flag->read == add_against)
        return oc_fail(error, OC_E_USAGE, "too many %s: at most %d", flag->name, (int)OC_MAX_SETS);
    oc_fail(error, OC_E_USAGE, "%s does not take '%.80s'", flag->name, value);
    return oc_hint(error, "%s %s: %s", flag->name, flag->value, flag->help ? flag->help : "a number");
}

/* Index of the first argument that is neither an option nor the value of one: where a command's name would stand. */
static int first_word(int argc, char *const argv[])
{
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-' || !argv[i][1]) return i;
        if (!strcmp(argv[i], "--")) break;
        for (int j = 0; j < FLAGS; j++)
            if (flags[j].value && !strcmp(flags[j].name, argv[i])) i++;
    }
    return argc;
}

/* Finds the command and where its name stands; argc when there is none, and the arguments are for the screen. */
static bool find_command(struct oc_args *args, int argc, char *const argv[], int *at, struct oc_error *error)
{
    const int word = first_word(argc, argv);
    *at = argc;
    if (word == argc) return true;
    for (const struct oc_command *command = oc_commands + 1; command->name; command++) {
        if (strcmp(command->name, argv[word])) continue;
        args->command = command;
        *at = word;
        return true;
    }
    const char *meant = mistyped_command(argv[word]);
    if (!meant) return true;
    oc_fail(error, OC_E_USAGE, "'%.80s' is neither a file nor a command", argv[word]);
    return oc_hint(error, "did you mean `oomcast %s`?", meant);
}

bool oc_args_read(struct oc_args *args, int argc, char *const argv[], struct oc_error *error)
{
    int command;
    *args = (struct oc_args){.command = oc_commands, .steps = 4, .moment = OC_AT_PEAK, .quiet = 60};
    if (!find_command(args, argc, argv, &command, error)) return false;
    args->unit = args->command->unit;
    bool options_ended = false;
    for (int i = 0; i < argc; i++) {
        if (i == command) continue;
        if (!options_ended && !strcmp(argv[i], "--"))
            options_ended = true;
        else if (options_ended || argv[i][0] != '-' || !argv[i][1]) { /* "-" is standard input */
            if (!add_word(args, argv[i], error)) return false;
        } else if (!read_flag(args, argc, argv, &i, error)) {
            return false;
        }
    }
    return true;
}

/* ---- help ---- */

static void put_flags(const struct oc_command *command, struct oc_buffer *out)
{
    enum { COLUMN = 31, WIDTH = 79 };
    for (int i = 0; i < FLAGS; i++) {
        char name[48];
        if (!flags[i].help || !(flags[i].commands & mask_of(command))) continue;
        snprintf(name, sizeof name, "%s%s%s", flags[i].name, flags[i].value ? " " : "",
                 flags[i].value ? flags[i].value : "");
        oc_putf(out, "  %-*s", COLUMN - 2, name);
        oc_put_wrapped(out, flags[i].help, COLUMN, COLUMN, WIDTH);
    }
}

void oc_put_help(const struct oc_command *command, struct oc_buffer *out)
{
    if (command->name[0]) {
        oc_putf(out, "usage: oomcast %s%s%s [OPTION...]\n\n", command->name, command->words[0] ? " " : "",
                command->words);
        oc_putf(out, "%c", toupper((unsigned char)command->help[0]));
        oc_put_wrapped(out, command->help + 1, 1, 0, 79);
        oc_put(out, "\n");
        put_flags(command, out);
        return;
    }
    oc_put(out, "oomcast shows how much GPU memory training a transformer takes, why, and\n"
                "whether it fits.\n\n"
                "usage: oomcast [FILE...] [OPTION...]\n"
                "       oomcast COMMAND [FILE...] [OPTION...]\n\n"
                "A FILE is a launch script or a session, and - is standard input. Between files\n"
                "the earlier wins, and --set wins over files. Without a FILE a built-in example\n"
                "opens.\n\n");
    for (const struct oc_command *each = oc_commands; each->name; each++) {
        oc_putf(out, "  %-8s %-10s ", each->name, strlen(each->words) <= 10 ? each->words : "FILE ...");
        oc_put_wrapped(out, each->help, 22, 22, 79);
    }
    oc_put(out, "\n");
    put_flags(command, out);
    oc_put(out, "\nEvery command has --help of its own. Exit status: 0 done or fits, 1 does not\n"
                "fit (check only), 2 bad usage or input, 3 the probe failed, 70 a defect.\n");
}
