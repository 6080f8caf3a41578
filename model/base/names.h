/* Comparing names that people type with names that exist. */
#ifndef OC_MODEL_BASE_NAMES_H
#define OC_MODEL_BASE_NAMES_H

/* How many single-character edits turn `a` into `b` (Levenshtein). Only the first 47 characters of each count. */
int oc_name_distance(const char *a, const char *b);

#endif
