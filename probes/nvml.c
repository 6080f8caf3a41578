/* NVML through dlopen. The declarations are restated here, so that no header of it is needed to build. Source of the
 * names and layouts: nvml.h of CUDA 11 to 13. */
#include "probes/nvml.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

struct memory {
    unsigned long long total, free, used; /* `used` includes what the driver keeps for itself */
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct process {
    unsigned pid;
    unsigned long long used; /* ~0: not available */
    unsigned gpu_instance, compute_instance;
};

enum { MOST_PROCESSES = 64, SUCCESS = 0 };

/* A function of the library as the type that its slot has: ISO C has no cast from an object pointer to it. */
static void find(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
}

static void read_memory(void *library, void *device, struct oc_nvml *into)
{
    int (*get_v2)(void *, struct memory_v2 *), (*get)(void *, struct memory *);
    find(library, "nvmlDeviceGetMemoryInfo_v2", &get_v2);
    find(library, "nvmlDeviceGetMemoryInfo", &get);
    struct memory_v2 memory_v2 = {.version = (unsigned)sizeof memory_v2 | 2u << 24};
    struct memory memory;
    if (get_v2 && get_v2(device, &memory_v2) == SUCCESS)
        into->memory = true, into->used = memory_v2.used;
    else if (get && get(device, &memory) == SUCCESS)
        into->memory = true, into->used = memory.used;
}

/* More processes than fit are an error to NVML, and enough to know. */
static void count_others(void *library, void *device, struct oc_nvml *into)
{
    int (*get)(void *, unsigned *, struct process *);
    find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &get);
    struct process processes[MOST_PROCESSES];
    unsigned n = MOST_PROCESSES;
    if (!get || get(device, &n, processes) != SUCCESS || n > MOST_PROCESSES) return;
    into->others = 0;
    for (unsigned i = 0; i < n; i++) into->others += processes[i].pid != (unsigned)getpid();
}

bool oc_nvml_read(const char *bus_id, struct oc_nvml *into)
{
    *into = (struct oc_nvml){.others = -1};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *device = NULL;
    if (!library) return false;
    int (*init)(void), (*shut_down)(void), (*by_bus_id)(const char *, void **), (*get_driver)(char *, unsigned);
    find(library, "nvmlInit_v2", &init);
    find(library, "nvmlShutdown", &shut_down);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id);
    find(library, "nvmlSystemGetDriverVersion", &get_driver);
    bool found = false;
    if (init && shut_down && by_bus_id && init() == SUCCESS) {
        found = by_bus_id(bus_id, &device) == SUCCESS;
        if (found) {
            read_memory(library, device, into);
            count_others(library, device, into);
        }
        if (get_driver) get_driver(into->driver, sizeof into->driver);
        shut_down();
    }
    dlclose(library);
    return found;
}
