/* The accuracy corpus: memory measured in real training runs, and the configuration that produced it. tests/corpus/
 * README.md says how the files are written.
 *
 * Ownership: corpus_read() allocates, corpus_free() releases; texts point into the corpus. */
#ifndef OOMCAST_CORPUS_H
#define OOMCAST_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quantity { Q_AFTER_STEP, Q_FIRST_PEAK, Q_PEAK, Q_IDLE, Q_RESERVED, Q_DEVICE, QUANTITIES };

/* One run of a case that was measured. */
struct measurement {
    const char *rank;           /* "last" (pipeline stage), "stage:N", or "worst" */
    const char *gpu, *stack;    /* or NULL: as the case has it */
    uint64_t bytes[QUANTITIES]; /* 0 = not measured */
};

enum { MOST_SETS = 64, MOST_RUNS = 8 };

struct corpus_case {
    const char *id, *source, *tier;
    const char *pair;            /* group within which the order of cases counts, or NULL */
    const char *sets[MOST_SETS]; /* KEY=VALUE, in order */
    int n_sets;
    const char *doubt;        /* what an independent look at the source left open, or NULL */
    const char *world;        /* ranks that the script starts on, or NULL */
    const char *env, *launch; /* of the launch script, or NULL when the case has none */
    const char *flags;
    struct measurement runs[MOST_RUNS];
    int n_runs;
};

struct corpus {
    struct corpus_case *cases;
    int n_cases;
    char **texts; /* the files, cut into words */
    int n_texts;
};

/* Reads every *.txt file of a folder, in the order of their names. False with one line in `why`. */
bool corpus_read(struct corpus *corpus, const char *folder, char *why, size_t size);
void corpus_free(struct corpus *corpus);

/* The key as the files have it ("peak_allocated"), and a short form for tables. */
const char *quantity_key(enum quantity quantity);
const char *quantity_short(enum quantity quantity);

#endif
