/* What NVIDIA's management library knows of a GPU, without a CUDA context: it is looked for at run time, and where it
 * is missing nothing is known and nothing is said. */
#ifndef OC_PROBES_NVML_H
#define OC_PROBES_NVML_H

#include <stdbool.h>
#include <stdint.h>

struct oc_nvml {
    bool memory;     /* `used` was read */
    uint64_t used;   /* bytes on the whole device, of every process */
    int others;      /* other processes that compute on it; -1 = unknown */
    char driver[24]; /* "580.82.07", or "" */
};

/* Reads the device at this PCI address ("0000:1b:00.0"). False when there is no library or it does not know the
 * device; `into` then says that nothing is known. */
bool oc_nvml_read(const char *bus_id, struct oc_nvml *into);

#endif
