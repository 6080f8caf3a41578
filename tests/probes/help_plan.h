/* Plans for the probe's tests, made by hand: what oc_resolve() would decide for a small Llama under PyTorch. */
#ifndef OC_TESTS_HELP_PLAN_H
#define OC_TESTS_HELP_PLAN_H

#include "oomcast/plan.h"

/* 2 layers, hidden 32, 4 heads over 2 key heads of 8, ffn 48, vocabulary 67, 2 samples of 12 tokens; fp32, AdamW
 * foreach. */
struct oc_plan help_plan(void);

/* Sets the number formats of a precision. fp16 and bf16 are 16-bit weights with an fp32 master, pure-* are without. */
void help_precision(struct oc_plan *plan, enum oc_precision precision);

/* Sets the optimizer and the states that it keeps, in the type of what is updated. */
void help_optimizer(struct oc_plan *plan, enum oc_optimizer optimizer, enum oc_optimizer_impl impl, double momentum);

/* Configuration number `i` of a fixed, mixed list of shapes, precisions, optimizers and modes. */
struct oc_plan help_mixed_plan(int i);

enum { HELP_FAMILIES = 6 };

/* One rank alone of Megatron, number `i` of a mixed list: models, types, recompute, optimizers, the distributed
 * optimizer, attention, losses. */
struct oc_plan help_megatron_plan(int i);

/* One rank of FSDP2: number `i` of the plans above, over two to four ranks. */
struct oc_plan help_fsdp2_plan(int i);

/* A model of another family than Llama: GPT-2, OPT, BLOOM-like without alibi, and mixtures. */
struct oc_plan help_family_plan(int family);

#endif
