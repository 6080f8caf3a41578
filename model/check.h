/* What a configuration must fulfil to run at all. Each check names the option and a value that would do. */
#ifndef OOMCAST_CHECK_H
#define OOMCAST_CHECK_H

#include "oomcast/model.h"

/* layers, hidden and heads are there when a shape is described by hand. */
bool oc_check_shape_given(const struct oc_config *c, struct oc_error *error);

/* The world is a positive multiple of the ranks that hold one copy of the model. */
bool oc_check_ranks(const struct oc_config *c, int64_t model_ranks, struct oc_error *error);

/* `divisor` divides `value`; the names are for the message. */
bool oc_check_divides(const char *divisor_name, int64_t divisor, const char *name, int64_t value,
                      struct oc_error *error);

/* Heads over tp, layers over stages, the sequence over cp, and so on. */
bool oc_check_plan(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error);

#endif
