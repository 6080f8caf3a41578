/* The importers that import.c chooses from. */
#ifndef OC_MODEL_IMPORT_IMPORT_H
#define OC_MODEL_IMPORT_IMPORT_H

#include "oomcast/import.h"

/* model/import/megatron.c */
int megatron_detect(const char *text, size_t size);
bool megatron_read(struct oc_input *input, int file, const char *text, size_t size, struct oc_error *error);

/* model/import/session.c */
int session_detect(const char *text, size_t size);
bool session_read(struct oc_input *input, int file, const char *text, size_t size, struct oc_error *error);

#endif
