/* The probe's last words, read back. Ownership: plain values. */
#ifndef OOMCAST_RESULT_H
#define OOMCAST_RESULT_H

#include "oomcast/probe.h"

/* What a probe's child had to say about one plan. */
struct oc_result {
    uint64_t plan; /* hash of the plan that it ran */
    enum oc_probe_status status;
    char why[224]; /* unless DONE */
    enum oc_device device;
    char gpu[64];        /* its name; "" in host memory */
    char fallback[224];  /* why it ran in host memory and not on a GPU; "" where it did not have to */
    struct oc_rank rank; /* when DONE: peaks, moments and reserved */
    double seconds;      /* it took, start of the child included */
    double losses[OC_MAX_LOSSES];
    int n_losses;
    struct oc_result_numbers {
        bool known;
        double underflow, underflow_scaled; /* share of the gradients that fp16 holds as zero; with the loss scaled */
        double lost, lost_bf16, lost_fp16; /* share of the updates lost to rounding: in this run, with 16-bit weights */
    } numbers;
};

/* Reads the final line of `oomcast probe --json`. False when it is not one; `result` is then a FAILED one with the
 * reason. */
bool oc_result_read(const char *line, struct oc_result *result);

/* The same of a probe that ran in this process. */
void oc_result_take(const struct oc_probe_result *probe, struct oc_result *result);

/* Where it ran, and so what its bytes are: "measured in host memory", "measured on NVIDIA H200". */
const char *oc_result_where(const struct oc_result *result, char *text, size_t size);

#endif
