/* Values of an option that the keys h l H L go through. Ownership: plain values. */
#ifndef OOMCAST_EDIT_H
#define OOMCAST_EDIT_H

#include "oomcast/config.h"

enum oc_step { OC_STEP_PREVIOUS, OC_STEP_NEXT, OC_STEP_HALVE, OC_STEP_DOUBLE };

/* Resolves a configuration: the decided options when it can be, else NULL with `error` filled. */
typedef const struct oc_config *(*oc_resolves)(const struct oc_config *config, struct oc_error *error, void *user);

/* Finds the nearest value of the option in that direction with which `config` resolves and which the framework does not
 * replace by another, and stores it in `*out` with its given bit. `resolved` holds the value it has now. False when
 * there is none: `error` then says why the nearest candidate does not do, or that there is no further value. */
bool oc_edit_step(const struct oc_config *config, const struct oc_config *resolved, enum oc_option_id id,
                  enum oc_step step, oc_resolves resolves, void *user, struct oc_config *out, struct oc_error *error);

/* The value as the panel shows it: booleans as [x] and [ ], byte counts with their unit, "auto" where it follows. */
const char *oc_edit_text(const struct oc_config *resolved, enum oc_option_id id, bool given, char *text, size_t size);

/* The choices of an enum or a set, "fp32 [fp16] bf16" with what is chosen in brackets, or the range of a number. */
const char *oc_edit_choices(const struct oc_config *resolved, enum oc_option_id id, char *text, size_t size);

#endif
