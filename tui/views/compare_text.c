/* What the compare view says of the row that has the focus. */
#include "tui/views/compare.h"

#include <inttypes.h>
#include <stdio.h>

#include "tui/report/units.h"

int oc_compare_rows(const struct oc_compare_state *state)
{
    return state->n_given + state->comparison.n_entries;
}

/* The option or the entry of a row; NULL when it is the other. */
const struct oc_option_difference *oc_compare_option(const struct oc_compare_state *state, int row)
{
    return row < state->n_given ? &state->comparison.options[row] : NULL;
}

const struct oc_entry_difference *oc_compare_entry(const struct oc_compare_state *state, int row)
{
    return row >= state->n_given ? &state->comparison.entries[row - state->n_given] : NULL;
}

static void write_option(const struct oc_option_difference *d, char *text, size_t size)
{
    const struct oc_option *option = oc_option(d->option);
    char change[OC_BYTES_TEXT], alone[160] = "With this one option as in B, A does not resolve.";
    oc_format_signed(d->change, OC_UNIT_GIB, 0, change, sizeof change);
    if (d->alone && d->change)
        snprintf(alone, sizeof alone, "With this one option as in B, A would peak %s GiB.", change);
    else if (d->alone)
        snprintf(alone, sizeof alone, "By itself it changes nothing of A's peak.");
    snprintf(text, size, "%s\n%s: %s.", alone, option->key, option->help);
}

/* "32 alive x 4,194,304 B bf16" */
static void write_side(const struct oc_entry *entry, uint64_t bytes, uint64_t instances, char *text, size_t size)
{
    char exact[OC_BYTES_TEXT];
    if (!bytes)
        snprintf(text, size, "nothing");
    else
        snprintf(text, size, "%s B, %" PRIu64 " alive, %s", oc_format_count(bytes, exact, sizeof exact), instances,
                 oc_dtype_name((enum oc_dtype)entry->dtype));
}

static void write_entry(const struct oc_compare_state *state, const struct oc_entry_difference *d, char *text,
                        size_t size)
{
    char reason[400], a[120], b[120];
    const struct oc_entry *entry = d->a ? d->a : d->b;
    oc_difference_text(&state->comparison, d, reason, sizeof reason);
    write_side(d->a, d->bytes_a, d->instances_a, a, sizeof a);
    write_side(d->b, d->bytes_b, d->instances_b, b, sizeof b);
    snprintf(text, size, "%s.\nA: %s.\nB: %s.\n%s%s%s", reason, a, b, entry->why ? entry->why : "",
             entry->source && entry->source[0] ? "\nSource: " : "", entry->source ? entry->source : "");
}

void oc_compare_tell(const struct oc_compare_state *state, char *text, size_t size)
{
    text[0] = '\0';
    if (state->focus >= oc_compare_rows(state))
        snprintf(text, size, "Nothing differs.");
    else if (oc_compare_option(state, state->focus))
        write_option(oc_compare_option(state, state->focus), text, size);
    else
        write_entry(state, oc_compare_entry(state, state->focus), text, size);
}
