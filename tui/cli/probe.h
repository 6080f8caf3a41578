/* One run of `oomcast probe`, shared by the files that say what came of it.
 *
 * Ownership: a run is made and freed by oc_cli_probe(); the rest writes into the caller's buffer. */
#ifndef OC_TUI_CLI_PROBE_H
#define OC_TUI_CLI_PROBE_H

#include "tui/cli/cli.h"
#include "tui/report/report.h"

/* Large, so on the heap. */
struct oc_probe_run {
    const struct oc_args *args;
    struct oc_input input;
    struct oc_plan whole, plan; /* as it was given, and as it is cut */
    struct oc_probe_result result;
    struct oc_probe_result full; /* the same step at the whole number of layers, in no memory; */
    bool extrapolated;           /* ... only where nothing but layers was cut */
    struct oc_ledger ledger;     /* the model's, at the same shape */
    struct oc_rank model;
    struct oc_launch launch;
    char cut[224];  /* what was made smaller, "" if nothing */
    int file;       /* of --out; -1 = none */
    char phase[32]; /* of the last progress line, */
    double said;    /* and when it was written, seconds */
};

/* "done", "oom", "cancelled", "failed". */
const char *oc_probe_event(enum oc_probe_status status);

/* part / whole; 0 of nothing. */
double oc_probe_share(double part, double whole);

/* Everything, as one line of JSON; for people; and what fits in one write of a pipe that many ranks share. */
void oc_probe_put_json(const struct oc_probe_run *run, struct oc_buffer *out);
void oc_probe_put_text(const struct oc_probe_run *run, struct oc_buffer *out);
void oc_probe_put_short(const struct oc_probe_run *run, struct oc_buffer *out);

/* `--merge`: what the ranks of a run left behind, together. */
enum oc_exit oc_cli_merge(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error);

#endif
