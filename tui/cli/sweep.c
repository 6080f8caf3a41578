/* `oomcast sweep`: the peak over the values of one or two options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "tui/report/report.h"

enum { AXES = 2, VALUES = 64, TEXT = 24 };

struct axis {
    enum oc_option_id option;
    char values[VALUES][TEXT];
    int n;
};

struct sweep {
    struct axis axes[AXES];
    int n_axes;
    struct oc_config config;
    struct oc_alloc *alloc;
    struct oc_answer answer;
    enum oc_unit unit;
    bool any_over, any_refused;
};

/* ---- the axes ---- */

/* One value of a list; '+' joins the members of a set, because ',' separates values. */
static bool add_value(struct axis *axis, const char *text, size_t size, struct oc_error *error)
{
    struct oc_config scratch = oc_config_default();
    if (axis->n == VALUES)
        return oc_fail(error, OC_E_USAGE, "%s has too many values: at most %d", oc_option(axis->option)->key,
                       (int)VALUES);
    if (size >= TEXT)
        return oc_fail(error, OC_E_VALUE, "%s: '%.*s' is too long", oc_option(axis->option)->key, (int)TEXT, text);
    char *value = axis->values[axis->n++];
    memcpy(value, text, size);
    value[size] = '\0';
    if (oc_option(axis->option)->type == OC_T_SET)
        for (char *c = value; *c; c++)
            if (*c == '+') *c = ',';
    return oc_option_set(&scratch, axis->option, value, error);
}

/* "parallel.tp=1,2,4" */
static bool read_axis(struct axis *axis, const char *text, struct oc_error *error)
{
    char key[64];
    const char *equals = strchr(text, '=');
    snprintf(key, sizeof key, "%.*s", (int)(equals - text < 63 ? equals - text : 63), text);
    if (!oc_option_find(key, &axis->option, error)) return false;
    for (const char *at = equals + 1;; at++) {
        const size_t size = strcspn(at, ",");
        if (!add_value(axis, at, size, error)) return false;
        at += size;
        if (!*at) return true;
    }
}

/* Words with '=' that name no file are the axes; the others stay files. */
static bool read_axes(struct sweep *sweep, struct oc_args *args, struct oc_error *error)
{
    int files = 0;
    for (int i = 0; i < args->n_words; i++) {
        if (!strchr(args->words[i], '=') || oc_cli_is_file(args->words[i])) {
            args->words[files++] = args->words[i];
            continue;
        }
        if (sweep->n_axes == AXES) return oc_fail(error, OC_E_USAGE, "sweep takes one option or two");
        if (!read_axis(&sweep->axes[sweep->n_axes++], args->words[i], error)) return false;
    }
    args->n_words = files;
    if (!sweep->n_axes) {
        oc_fail(error, OC_E_USAGE, "sweep needs the values of an option");
        return oc_hint(error, "oomcast sweep run.sh batch.micro=1,2,4,8");
    }
    if (sweep->n_axes == AXES && sweep->axes[0].option == sweep->axes[1].option)
        return oc_fail(error, OC_E_USAGE, "%s stands twice", oc_option(sweep->axes[0].option)->key);
    return true;
}

/* ---- one point ---- */

/* Answers with the values at these indices. False, with the reason, where that is refused. */
static bool answer_at(struct sweep *sweep, int row, int column, struct oc_error *error)
{
    struct oc_config config = sweep->config;
    const int at[AXES] = {row, column};
    for (int i = 0; i < sweep->n_axes; i++)
        if (!oc_option_set(&config, sweep->axes[i].option, sweep->axes[i].values[at[i]], error)) return false;
    if (oc_answer(&config, &sweep->answer, NULL, sweep->alloc, error)) return true;
    sweep->any_refused = true;
    return false;
}

static const struct oc_rank *worst(const struct sweep *sweep)
{
    return &sweep->answer.ranks[sweep->answer.verdict.worst_stage];
}

/* Whether the answer does not fit, for the sign behind it. */
static char sign_of(struct sweep *sweep)
{
    const bool over = sweep->answer.verdict.known && !sweep->answer.verdict.fits;
    sweep->any_over = sweep->any_over || over;
    return over ? '!' : ' ';
}

/* ---- tables ---- */

static void put_row(struct oc_buffer *out, struct sweep *sweep, int row)
{
    struct oc_error error = {0};
    char allocated[OC_BYTES_TEXT], reserved[OC_BYTES_TEXT], device[OC_BYTES_TEXT];
    oc_putf(out, "  %-24s", sweep->axes[0].values[row]);
    if (!answer_at(sweep, row, 0, &error)) {
        oc_putf(out, "%12s  ", "-");
        oc_put_wrapped(out, error.message, 40, 40, 79);
        return;
    }
    const char sign = sign_of(sweep);
    oc_format_amount(worst(sweep)->peak.allocated, sweep->unit, 11, allocated, sizeof allocated);
    oc_format_amount(worst(sweep)->reserved, sweep->unit, 11, reserved, sizeof reserved);
    oc_format_amount(sweep->answer.verdict.device.high, sweep->unit, 11, device, sizeof device);
    oc_putf(out, "%12s%12s%12s%c  %s", allocated, reserved, device, sign,
            oc_moment_name(worst(sweep)->peak.place.moment));
    if (sweep->answer.n_ranks > 1) oc_putf(out, ", stage %d", (int)sweep->answer.verdict.worst_stage);
    oc_put(out, "\n");
}

static void put_list(struct oc_buffer *out, struct sweep *sweep)
{
    const char *unit = oc_unit_name(sweep->unit);
    char head[OC_NAME_MAX];
    snprintf(head, sizeof head, "%.24s", oc_option(sweep->axes[0].option)->key);
    oc_putf(out, "  %-24s%12s%12s%12s   peaks in\n", head, "allocated", "reserved", "on device");
    oc_putf(out, "  %-24s%12s%12s%12s\n", "", unit, unit, unit);
    for (int row = 0; row < sweep->axes[0].n; row++) put_row(out, sweep, row);
}

/* Columns `first` to `end` of a table of two options. */
static void put_columns(struct oc_buffer *out, struct sweep *sweep, int first, int end)
{
    enum { CELL = 11 };
    char text[OC_BYTES_TEXT];
    oc_putf(out, "  %16s", "");
    for (int column = first; column < end; column++)
        oc_putf(out, "%*.*s ", CELL - 1, CELL - 2, sweep->axes[1].values[column]);
    oc_put(out, "\n");
    for (int row = 0; row < sweep->axes[0].n; row++) {
        oc_putf(out, "  %-16.15s", sweep->axes[0].values[row]);
        for (int column = first; column < end; column++) {
            if (!answer_at(sweep, row, column, NULL)) {
                oc_putf(out, "%*s ", CELL - 1, "-");
                continue;
            }
            const char sign = sign_of(sweep);
            oc_putf(out, "%*s%c", CELL - 1,
                    oc_format_amount(worst(sweep)->peak.allocated, sweep->unit, CELL - 2, text, sizeof text), sign);
        }
        oc_put(out, "\n");
    }
}

static void put_table(struct oc_buffer *out, struct sweep *sweep)
{
    enum { FIT = 5 };
    oc_putf(out, "  peak allocated, %s: %s down, %s across\n", oc_unit_name(sweep->unit),
            oc_option(sweep->axes[0].option)->key, oc_option(sweep->axes[1].option)->key);
    for (int first = 0; first < sweep->axes[1].n; first += FIT)
        put_columns(out, sweep, first, first + FIT < sweep->axes[1].n ? first + FIT : sweep->axes[1].n);
}

static void put_legend(struct oc_buffer *out, const struct sweep *sweep)
{
    if (sweep->any_over) oc_put(out, "\n  ! does not fit with what is reserved, the CUDA context and NCCL\n");
    if (sweep->any_refused) oc_putf(out, "%s  - is refused\n", sweep->any_over ? "" : "\n");
}

/* ---- JSON ---- */

static void put_point(struct oc_json *json, struct sweep *sweep, int row, int column)
{
    const int at[AXES] = {row, column};
    struct oc_config config = sweep->config;
    struct oc_error error = {0};
    oc_json_object(json, NULL, false);
    oc_json_object(json, "values", true);
    for (int i = 0; i < sweep->n_axes; i++) {
        const enum oc_option_id id = sweep->axes[i].option;
        oc_option_set(&config, id, sweep->axes[i].values[at[i]], NULL);
        oc_json_option(json, oc_option(id)->key, &config, id);
    }
    oc_json_close(json);
    if (answer_at(sweep, row, column, &error)) {
        const struct oc_rank *rank = worst(sweep);
        oc_json_signed(json, "worst_stage", sweep->answer.verdict.worst_stage);
        oc_json_string(json, "moment", oc_moment_name(rank->peak.place.moment));
        oc_json_unsigned(json, "allocated", rank->peak.allocated);
        oc_json_unsigned(json, "reserved", rank->reserved);
        oc_json_unsigned(json, "device", oc_middle(sweep->answer.verdict.device));
        oc_json_classes(json, "classes", rank->peak.classes);
        oc_json_verdict(json, &sweep->answer.plan, &sweep->answer.verdict);
    } else {
        oc_json_string(json, "refused", error.message);
    }
    oc_json_close(json);
}

static void put_json(struct oc_buffer *out, struct sweep *sweep)
{
    struct oc_json json = {.out = out};
    const int columns = sweep->n_axes == AXES ? sweep->axes[1].n : 1;
    oc_json_begin(&json);
    oc_json_array(&json, "options", true);
    for (int i = 0; i < sweep->n_axes; i++) oc_json_string(&json, NULL, oc_option(sweep->axes[i].option)->key);
    oc_json_close(&json);
    oc_json_array(&json, "points", false);
    for (int row = 0; row < sweep->axes[0].n; row++)
        for (int column = 0; column < columns; column++) put_point(&json, sweep, row, column);
    oc_json_close(&json);
    oc_json_close(&json);
}

static void put_text(struct oc_buffer *out, struct sweep *sweep)
{
    if (sweep->n_axes == 1)
        put_list(out, sweep);
    else
        put_table(out, sweep);
    put_legend(out, sweep);
}

enum oc_exit oc_cli_sweep(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    struct oc_args files = *args;
    struct sweep *sweep = calloc(1, sizeof *sweep);
    struct oc_input *input = malloc(sizeof *input);
    struct oc_alloc *alloc = oc_alloc_create(NULL);
    bool done = sweep && input && alloc;
    if (!done) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
    } else {
        sweep->unit = args->unit;
        sweep->alloc = alloc;
        done = read_axes(sweep, &files, error) && oc_cli_load(&files, input, error);
    }
    if (done) {
        sweep->config = input->c.config;
        (args->json ? put_json : put_text)(out, sweep);
    }
    oc_alloc_destroy(alloc);
    free(input);
    free(sweep);
    return done ? OC_EXIT_DONE : oc_cli_status(error);
}
