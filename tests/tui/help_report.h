/* A small run, made by hand, whose report can be checked by hand. */
#ifndef OC_TESTS_TUI_HELP_REPORT_H
#define OC_TESTS_TUI_HELP_REPORT_H

#include "tui/report/report.h"

struct help_run {
    struct oc_input input;
    struct oc_answer answer;
    struct oc_ledger ledger;
    struct oc_reason reason;
    struct oc_report report;
};

/* Weights 2,000,000 B, four layers of activations 3,000,001 B each, gradients 1,000,000 B a layer, an optimizer state
 * 8,000,000 B born in the first step, step scratch 5,000,000 B; 1,000,000 parameters on two ranks of one stage; the GPU
 * has 40,000,000 B. Free with help_run_free(). */
struct help_run *help_run(void);
void help_run_free(struct help_run *run);

#endif
