/* The model's answers to the corpus, and what is good enough.
 *
 * Ownership: score_run() fills rows that the caller owns; they point into the corpus. */
#ifndef OOMCAST_SCORE_H
#define OOMCAST_SCORE_H

#include "corpus.h"

/* One measured quantity of one run, and what the model says of it. */
struct row {
    const struct corpus_case *c;
    const struct measurement *run;
    enum quantity quantity;
    uint64_t measured, predicted; /* bytes */
    bool answered;
    double error;  /* (predicted - measured) / measured; without an answer UNANSWERED */
    char why[320]; /* without an answer: the reason */
};

/* What a case counts for that the model cannot answer: 999 %, never nothing. */
#define UNANSWERED 9.99

struct score {
    struct row *rows;
    int n_rows;
};

/* Answers every case whose id contains `only`. False when out of memory. */
bool score_run(const struct corpus *corpus, const char *only, struct score *score);
void score_free(struct score *score);

/* Statistics of the absolute errors of a set of rows. */
struct spread {
    int n, failed;
    double bias; /* mean error of those that were answered */
    double median, p90, most;
    double within[4]; /* share within 1, 2, 5 and 10 % */
};
struct spread score_spread(const struct row *const *rows, int n);

/* One row of the contract: how exact a kind of figure must be. */
struct promise {
    const char *name;
    double median, p90;
};
enum { PROMISES = 6 };
const struct promise *score_promise(int index);

/* Index of the promise that covers a row, or -1: of tier `trend` only the order counts. */
int score_promise_of(const struct row *row);

/* Within a pair group, every two runs whose measurements differ by more than 2 % must come out in the same order. */
struct pairs {
    int right, total;
};
struct pairs score_pairs(const struct score *score);

/* Whether two rows are such a pair, and whether they came out in the order in which they were measured. */
bool score_is_pair(const struct row *a, const struct row *b);
bool score_is_ordered(const struct row *a, const struct row *b);
#define PAIRS_PROMISED 0.97

/* Rows that are shown together. */
struct group {
    char name[96];
    const struct row **rows;
    int n;
};

/* Groups rows by tier, source and quantity, sorted by name. Returns how many; the caller frees them with
 * score_free_groups(). */
int score_groups(const struct score *score, struct group **groups);
void score_free_groups(struct group *groups, int n);

/* Answered rows of a tier (NULL: all), the largest error first. Returns how many; the caller frees `sorted`. */
int score_sorted(const struct score *score, const char *tier, const struct row ***sorted);

/* The rows under a promise. Returns how many; the caller frees `rows`. */
int score_rows_under(const struct score *score, int promise, const struct row ***rows);

bool score_is_kept(const struct promise *promise, const struct spread *spread);

#endif
