/* A libnvidia-ml.so.1 that says what FAKE_NVML tells it: "used=BYTES,others=N,v1=1" (v1: an older library, which
 * knows neither the second version of memory nor processes). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3]);
int nvmlDeviceGetMemoryInfo_v2(void *device, void *memory);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes);

static unsigned long long setting(const char *name)
{
    const char *text = getenv("FAKE_NVML"), *at = text ? strstr(text, name) : NULL;
    return at ? (unsigned long long)strtod(at + strlen(name) + 1, NULL) : 0;
}

int nvmlInit_v2(void)
{
    return getenv("FAKE_NVML") ? SUCCESS : NOT_FOUND;
}

int nvmlShutdown(void)
{
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "580.00");
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    *device = (void *)(size_t)1;
    return strcmp(bus_id, "0000:01:00.0") == 0 ? SUCCESS : NOT_FOUND;
}

/* total, free, used */
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3])
{
    (void)device;
    memory[2] = setting("used");
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, void *memory)
{
    (void)device;
    struct {
        unsigned version;
        unsigned long long total, reserved, free, used;
    } info = {.version = (unsigned)sizeof info | 2u << 24, .used = setting("used")};
    if (setting("v1") || memcmp(memory, &info.version, sizeof info.version) != 0) return NOT_SUPPORTED;
    memcpy(memory, &info, sizeof info);
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes)
{
    (void)device;
    struct process {
        unsigned pid;
        unsigned long long used;
        unsigned gpu_instance, compute_instance;
    } *list = processes;
    const unsigned others = (unsigned)setting("others");
    if (setting("v1") || others + 1 > *count) return NOT_SUPPORTED;
    memset(list, 0, (others + 1) * sizeof *list);
    list[0].pid = (unsigned)getpid();
    for (unsigned i = 1; i <= others; i++) list[i].pid = 1;
    *count = others + 1;
    return SUCCESS;
}
