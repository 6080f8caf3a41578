/* Tables of a score: as text for a terminal, and as the page docs/accuracy.md.
 *
 * Ownership: nothing is kept. */
#ifndef OOMCAST_PRINT_H
#define OOMCAST_PRINT_H

#include <stdio.h>

#include "score.h"

/* Figures by tier, source and quantity; the `worst` largest errors; why cases were not answered. */
void print_summary(const struct score *score, int worst);

/* One line a row: id, GPU, quantity, measured, predicted, error. */
void print_rows(const struct score *score);

/* The pairs that came out in the wrong order, one line each. */
void print_wrong_pairs(const struct score *score);

/* Holds the score against the contract, one line a promise. Returns whether all are kept. */
bool print_contract(const struct score *score);

/* The page: contract, figures, the five worst cases of each tier with what `notes` knows of them. `notes` is a file of
 * lines "PATTERN: sentence" whose patterns are matched against case ids; it may be missing. */
void print_page(const struct score *score, const char *notes);

#endif
