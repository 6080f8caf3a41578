/* Rows of the measured small models (tests/data/saved_tensors.txt, steps.txt) and their configurations. */
#ifndef OOMCAST_HELP_FIXTURE_H
#define OOMCAST_HELP_FIXTURE_H

#include "help_model.h"

/* What was run: all but what was measured. */
struct help_row {
    char arch[8], mode[12], attention[8], recompute[8], masks[8], mean[12];
    int fp32_logits, tied;
    long b, s, h, a, kv, f, v, l;
    double attention_dropout, dropout;
};

/* Reads the first 18 columns of a line; `rest` then points behind them. False when it is no row. */
bool help_read_row(const char *line, struct help_row *row, const char **rest);

bool help_is(const char *a, const char *b);
bool help_is_gpt(const struct help_row *row);

/* Sets an option from a formatted value; fails the test on an error. */
void help_assign(struct oc_config *config, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The configuration that a row describes, on no GPU. */
struct oc_config help_row_config(const struct help_row *row);

#endif
