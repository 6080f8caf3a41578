/* `oomcast compare`: two configurations, entry by entry. The first is FILE with --set, the second is the other FILE, or
 * the same one, with --against. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "tui/report/report.h"

enum { WIDTH = 79, FEW = 16 };

struct pair {
    struct oc_session *a, *b;
    struct oc_comparison *comparison;
    enum oc_unit unit;
    int width; /* columns of an amount */
};

static const struct oc_rank *worst(const struct oc_session *session)
{
    return &session->answer.ranks[session->answer.verdict.worst_stage];
}

static struct oc_side side_of(const struct oc_session *session)
{
    const int64_t stage = session->answer.verdict.worst_stage;
    return (struct oc_side){&session->answer.plan, &session->ledgers[stage], worst(session)};
}

/* ---- loading ---- */

/* The arguments of one side alone. */
static struct oc_args side_args(const struct oc_args *args, bool second)
{
    struct oc_args own = *args;
    const int file = second && args->n_words > 1 ? 1 : 0;
    own.words[0] = args->words[file];
    own.n_words = args->n_words ? 1 : 0;
    if (!second) return own;
    memcpy(own.sets, args->against, sizeof own.sets);
    own.n_sets = args->n_against;
    return own;
}

static bool check_words(const struct oc_args *args, struct oc_error *error)
{
    if (args->n_words > 2) {
        oc_fail(error, OC_E_USAGE, "compare takes one file or two, not %d", args->n_words);
        return oc_hint(error, "--set changes the first configuration, --against the second");
    }
    const bool input = args->n_words && !strcmp(args->words[0], "-");
    if (input && (args->n_words == 1 || !strcmp(args->words[1], "-")))
        return oc_fail(error, OC_E_USAGE, "standard input can be read once: one side must be a file");
    return true;
}

/* ---- text ---- */

static void put_side(struct oc_buffer *out, char letter, const struct oc_session *session, const char *const *sets,
                     int n_sets)
{
    struct oc_buffer line = {0};
    char at[96], bytes[OC_BYTES_TEXT];
    const struct oc_rank *rank = worst(session);
    oc_putf(&line, "%s", session->input.n_files ? session->input.files[0] : "no file");
    for (int i = 0; i < n_sets; i++) oc_putf(&line, " %s", sets[i]);
    if (session->answer.n_ranks > 1) oc_putf(&line, "; its fullest stage, %" PRId64, rank->stage);
    oc_place_text(&rank->peak.place, at, sizeof at);
    oc_putf(&line, "; peaks in %s%s%s, %s allocated", oc_moment_name(rank->peak.place.moment), at[0] ? ", " : "", at,
            oc_format_bytes(rank->peak.allocated, OC_UNIT_GIB, bytes, sizeof bytes));
    oc_putf(out, "  %c  ", letter);
    if (line.data) oc_put_wrapped(out, line.data, 5, 5, WIDTH);
    out->failed |= line.failed;
    oc_buffer_free(&line);
}

static void put_option(struct oc_buffer *out, const struct pair *pair, const struct oc_option_difference *difference)
{
    char a[OC_NAME_MAX + 16], b[OC_NAME_MAX + 16], alone[OC_BYTES_TEXT] = "not alone";
    const struct oc_comparison *c = pair->comparison;
    oc_option_text(&c->a.plan->c, difference->option, a, sizeof a);
    oc_option_text(&c->b.plan->c, difference->option, b, sizeof b);
    if (difference->alone) oc_format_signed(difference->change, pair->unit, 0, alone, sizeof alone);
    oc_putf(out, "  %-28s %14.14s %14.14s %17s\n", oc_option(difference->option)->key, a[0] ? a : "-", b[0] ? b : "-",
            alone);
}

static void put_options(struct oc_buffer *out, const struct pair *pair)
{
    const struct oc_comparison *c = pair->comparison;
    struct oc_buffer rest = {0};
    char head[40];
    if (!c->n_options) {
        oc_put(out, "\nNo option differs.\n");
        return;
    }
    snprintf(head, sizeof head, "A as B in it, %s", oc_unit_name(pair->unit));
    oc_putf(out, "\n  %-28s %14s %14s %17s\n", "option", "A", "B", head);
    for (int i = 0; i < c->n_options; i++) {
        if (c->options[i].given)
            put_option(out, pair, &c->options[i]);
        else
            oc_putf(&rest, "%s%s",
                    rest.size ? ", " : "and what follows from them: ", oc_option(c->options[i].option)->key);
    }
    if (rest.data) {
        oc_put(out, "  ");
        oc_put_wrapped(out, rest.data, 2, 2, WIDTH);
    }
    out->failed |= rest.failed;
    oc_buffer_free(&rest);
}

static void put_amounts(struct oc_buffer *out, const struct pair *pair, const char *name, uint64_t a, uint64_t b)
{
    char x[OC_BYTES_TEXT], y[OC_BYTES_TEXT], change[OC_BYTES_TEXT];
    const int width = pair->width;
    oc_putf(out, "  %-16s%*s%*s%*s\n", name, width, oc_format_amount(a, pair->unit, width - 1, x, sizeof x), width,
            oc_format_amount(b, pair->unit, width - 1, y, sizeof y), width,
            oc_format_change(b, a, pair->unit, width - 1, change, sizeof change));
}

static void put_classes(struct oc_buffer *out, const struct pair *pair)
{
    const struct oc_comparison *c = pair->comparison;
    char head[64];
    snprintf(head, sizeof head, "%s, %s", c->moment == OC_AT_PEAK ? "peak" : oc_moment_name((enum oc_moment)c->moment),
             oc_unit_name(pair->unit));
    oc_putf(out, "\n  %-16s%*s%*s%*s\n", head, pair->width, "A", pair->width, "B", pair->width, "A - B");
    for (int i = 0; i < OC_CLASSES; i++) {
        snprintf(head, sizeof head, "%c %s", oc_class_letter((enum oc_class)i), oc_class_name((enum oc_class)i));
        put_amounts(out, pair, head, c->at_a.classes[i], c->at_b.classes[i]);
    }
    put_amounts(out, pair, "= allocated", c->at_a.allocated, c->at_b.allocated);
    if (c->moment != OC_AT_PEAK) return;
    put_amounts(out, pair, "reserved", c->a.rank->reserved, c->b.rank->reserved);
    put_amounts(out, pair, "on the device", oc_device(c->a.plan, c->a.rank).high, oc_device(c->b.plan, c->b.rank).high);
}

/* Where the text of an entry begins: behind the amounts, or below them where these are whole byte counts. */
static int text_column(const struct pair *pair)
{
    return pair->unit == OC_UNIT_BYTES ? 6 : 3 * pair->width + 2;
}

/* A line, and the reason below it unless it is the one just given. */
static void put_entry(struct oc_buffer *out, const struct pair *pair, const struct oc_entry_difference *d, char *reason,
                      size_t size)
{
    char x[OC_BYTES_TEXT], y[OC_BYTES_TEXT], change[OC_BYTES_TEXT], text[400];
    const int width = pair->width, column = text_column(pair);
    const struct oc_entry *entry = d->a ? d->a : d->b;
    oc_putf(out, "%*s%*s%*s", width,
            oc_format_change(d->bytes_b, d->bytes_a, pair->unit, width - 1, change, sizeof change), width,
            oc_format_amount(d->bytes_a, pair->unit, width - 1, x, sizeof x), width,
            oc_format_amount(d->bytes_b, pair->unit, width - 1, y, sizeof y));
    if (column > 3 * width)
        oc_put(out, "  ");
    else
        oc_putf(out, "\n%*s", column, "");
    snprintf(text, sizeof text, "%c %s%s%s", oc_class_letter((enum oc_class)entry->class), d->name,
             entry->copy ? ", " : "", entry->copy ? entry->copy : "");
    oc_put_wrapped(out, text, column, column + 2, WIDTH);
    oc_difference_text(pair->comparison, d, text, sizeof text);
    if (!strcmp(text, reason)) return;
    snprintf(reason, size, "%s", text);
    oc_putf(out, "%*s", column + 2, "");
    oc_put_wrapped(out, text, column + 2, column + 2, WIDTH);
}

static void put_entries(struct oc_buffer *out, const struct pair *pair, bool all)
{
    const struct oc_comparison *c = pair->comparison;
    const int shown = all || c->n_entries <= FEW ? c->n_entries : FEW, width = pair->width;
    char reason[400] = "", text[OC_BYTES_TEXT];
    if (!c->n_entries) {
        oc_put(out, "\nEvery entry takes the same.\n");
        return;
    }
    oc_putf(out, "\n%*s%*s%*s  entry, %s\n", width, "A - B", width, "A", width, "B", oc_unit_name(pair->unit));
    for (int i = 0; i < shown; i++) put_entry(out, pair, &c->entries[i], reason, sizeof reason);
    uint64_t more = 0, less = 0;
    for (int i = shown; i < c->n_entries; i++) {
        more += c->entries[i].bytes_a;
        less += c->entries[i].bytes_b;
    }
    if (shown < c->n_entries)
        oc_putf(out, "%*s  in %d more that differ (--entries lists them)\n", width,
                oc_format_change(less, more, pair->unit, width - 1, text, sizeof text), c->n_entries - shown);
    oc_putf(out, "%*s  = in all; %d more take the same on both sides\n", width,
            oc_format_change(c->at_b.allocated, c->at_a.allocated, pair->unit, width - 1, text, sizeof text),
            c->n_same);
}

/* ---- JSON ---- */

static void put_side_json(struct oc_json *json, const char *key, const struct oc_session *session,
                          const char *const *sets, int n_sets, const struct oc_instant *at)
{
    const struct oc_rank *rank = worst(session);
    char where[96];
    oc_json_object(json, key, false);
    oc_json_array(json, "files", true);
    for (int i = 0; i < session->input.n_files; i++) oc_json_string(json, NULL, session->input.files[i]);
    oc_json_close(json);
    oc_json_array(json, "set", true);
    for (int i = 0; i < n_sets; i++) oc_json_string(json, NULL, sets[i]);
    oc_json_close(json);
    oc_json_signed(json, "stage", rank->stage);
    oc_json_string(json, "moment", oc_moment_name(at->place.moment));
    oc_json_string(json, "where", oc_place_text(&at->place, where, sizeof where));
    oc_json_unsigned(json, "allocated", at->allocated);
    oc_json_classes(json, "classes", at->classes);
    oc_json_unsigned(json, "reserved", rank->reserved);
    oc_json_unsigned(json, "device", oc_middle(oc_device(&session->answer.plan, rank)));
    oc_json_gpu(json, &session->answer.plan.c);
    oc_json_verdict(json, &session->answer.plan, &session->answer.verdict);
    oc_json_close(json);
}

/* Bytes that the option alone changes A's peak by; null where A does not resolve with B's value. */
static void put_option_json(struct oc_json *json, const struct oc_comparison *c,
                            const struct oc_option_difference *difference)
{
    oc_json_object(json, NULL, true);
    oc_json_string(json, "key", oc_option(difference->option)->key);
    oc_json_option(json, "a", &c->a.plan->c, difference->option);
    oc_json_option(json, "b", &c->b.plan->c, difference->option);
    oc_json_bool(json, "given", difference->given);
    if (difference->alone)
        oc_json_signed(json, "alone", difference->change);
    else
        oc_json_null(json, "alone");
    oc_json_close(json);
}

static void put_entry_json(struct oc_json *json, const struct oc_comparison *c, const struct oc_entry_difference *d)
{
    const struct oc_entry *entry = d->a ? d->a : d->b;
    char text[400];
    oc_json_object(json, NULL, true);
    oc_json_string(json, "class", oc_class_name((enum oc_class)entry->class));
    oc_json_string(json, "name", d->name);
    oc_json_string(json, "copy", entry->copy ? entry->copy : "");
    oc_json_unsigned(json, "a", d->bytes_a);
    oc_json_unsigned(json, "b", d->bytes_b);
    oc_json_signed(json, "difference", (int64_t)(d->bytes_a - d->bytes_b));
    oc_json_string(json, "why", oc_difference_text(c, d, text, sizeof text));
    oc_json_close(json);
}

static void put_json(struct oc_buffer *out, const struct oc_args *args, const struct pair *pair)
{
    struct oc_json json = {.out = out};
    const struct oc_comparison *c = pair->comparison;
    oc_json_begin(&json);
    oc_json_string(&json, "at", c->moment == OC_AT_PEAK ? "peak" : oc_moment_name((enum oc_moment)c->moment));
    put_side_json(&json, "a", pair->a, args->sets, args->n_sets, &c->at_a);
    put_side_json(&json, "b", pair->b, args->against, args->n_against, &c->at_b);
    oc_json_array(&json, "options", false);
    for (int i = 0; i < c->n_options; i++) put_option_json(&json, c, &c->options[i]);
    oc_json_close(&json);
    oc_json_array(&json, "entries", false); /* all that differ: they add up to a - b */
    for (int i = 0; i < c->n_entries; i++) put_entry_json(&json, c, &c->entries[i]);
    oc_json_close(&json);
    oc_json_signed(&json, "same", c->n_same);
    oc_json_close(&json);
}

static void put_all(struct oc_buffer *out, const struct oc_args *args, const struct pair *pair)
{
    oc_put(out, "oomcast " OOMCAST_VERSION ": A against B\n\n");
    put_side(out, 'A', pair->a, args->sets, args->n_sets);
    put_side(out, 'B', pair->b, args->against, args->n_against);
    put_options(out, pair);
    put_classes(out, pair);
    put_entries(out, pair, args->entries);
}

enum oc_exit oc_cli_compare(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    const struct oc_args first = side_args(args, false), second = side_args(args, true);
    struct pair pair = {.unit = args->unit, .width = args->unit == OC_UNIT_BYTES ? 19 : 10};
    enum oc_exit status = OC_EXIT_DONE;
    if (!check_words(args, error) || !(pair.a = oc_cli_answer(&first, true, error)) ||
        !(pair.b = oc_cli_answer(&second, true, error))) {
        status = oc_cli_status(error);
    } else if (!(pair.comparison = malloc(sizeof *pair.comparison))) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        status = OC_EXIT_INTERNAL;
    } else {
        const struct oc_side a = side_of(pair.a), b = side_of(pair.b);
        oc_compare(&a, &b, args->moment, pair.comparison);
        (args->json ? put_json : put_all)(out, args, &pair);
    }
    free(pair.comparison);
    oc_cli_release(pair.a);
    oc_cli_release(pair.b);
    return status;
}
