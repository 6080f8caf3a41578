/* The tables that generate.c writes. */
#ifndef OOMCAST_MODEL_DATA_TABLES_H
#define OOMCAST_MODEL_DATA_TABLES_H

#include "oomcast/model.h"

extern const struct oc_model_row oc_model_rows[];
extern const int oc_model_count;
extern const struct oc_gpu_row oc_gpu_rows[];
extern const int oc_gpu_count;

#endif
