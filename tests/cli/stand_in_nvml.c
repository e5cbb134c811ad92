// As much of NVML as nvidia-ml-py asks for a list of processes. What runs where is read from the file that
// STAND_IN_NVML names: lines of "device list pid bytes", the list being c (compute) or g (graphics), -1 bytes meaning
// "not available".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9 };

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    const char* world = getenv("STAND_IN_NVML");
    if (world != NULL && strcmp(world, "hangs") == 0) {
        pause();
    }
    return world == NULL ? DRIVER_NOT_LOADED : OK;
}
int nvmlShutdown(void) {
    return OK;
}
const char* nvmlErrorString(int code) {
    return code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Other Error";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = 2;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    *device = (void*)(size_t)(index + 1);
    return OK;
}
// As on a real machine, device order is not the order of the nodes.
int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) {
    *minor = 2 - (unsigned)(size_t)device;
    return OK;
}

static int list(char wanted, void* device, unsigned* count, struct process* out) {
    FILE* file = fopen(getenv("STAND_IN_NVML"), "r");
    unsigned found = 0, pid, index;
    long long bytes;
    char kind;
    while (fscanf(file, "%u %c %u %lld", &index, &kind, &pid, &bytes) == 4) {
        if (kind != wanted || index + 1 != (unsigned)(size_t)device) {
            continue;
        }
        if (out != NULL && found < *count) {
            out[found] = (struct process){pid, (unsigned long long)bytes, ~0u, ~0u};
        }
        ++found;
    }
    fclose(file);
    const int enough = found <= *count;
    *count = found;
    return enough ? OK : INSUFFICIENT_SIZE;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process* out) {
    return list('c', device, count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count, struct process* out) {
    return (size_t)device == 2 ? NOT_SUPPORTED : list('g', device, count, out);
}
