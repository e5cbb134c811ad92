/* The least libcuda that a context can be proved with, and every way for one to be broken: -DINIT=999 makes cuInit
 * answer so, -DNO_cuMemAlloc_v2 leaves a function out, -DSPOIL returns other bytes than were written. */
#include <stdlib.h>
#include <string.h>

#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT (up ? 0 : 3)
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef COPY
#define COPY 0
#endif

static int up;
static int active;

#ifndef NO_cuInit
int cuInit(unsigned flags) {
    (void)flags;
    if (INIT == 0)
        up = 1;
    return INIT;
}
#endif
#ifndef NO_cuDriverGetVersion
int cuDriverGetVersion(int* version) {
    *version = 11040;
    return 0;
}
#endif
#ifndef NO_cuDeviceGetCount
int cuDeviceGetCount(int* count) {
    *count = DEVICES;
    return COUNT;
}
#endif
#ifndef NO_cuDeviceGet
int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return 0;
}
#endif
#ifndef NO_cuDeviceGetUuid
int cuDeviceGetUuid(unsigned char* uuid, int device) {
    memset(uuid, 0xAB + device, 16);
    return 0;
}
#endif
#ifndef NO_cuDevicePrimaryCtxGetState
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* is_active) {
    *flags = 0;
    *is_active = active && device == 0;
    return 0;
}
#endif
#ifndef NO_cuDevicePrimaryCtxRetain
int cuDevicePrimaryCtxRetain(void** context, int device) {
    active = 1 + device;
    *context = &active;
    return 0;
}
#endif
#ifndef NO_cuDevicePrimaryCtxRelease_v2
int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return 0;
}
#endif
#ifndef NO_cuCtxPushCurrent_v2
int cuCtxPushCurrent_v2(void* context) {
    (void)context;
    return 0;
}
#endif
#ifndef NO_cuCtxPopCurrent_v2
int cuCtxPopCurrent_v2(void** context) {
    *context = &active;
    return 0;
}
#endif
#ifndef NO_cuMemAlloc_v2
int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
    *memory = (unsigned long long)malloc(bytes);
    return 0;
}
#endif
#ifndef NO_cuMemFree_v2
int cuMemFree_v2(unsigned long long memory) {
    free((void*)memory);
    return 0;
}
#endif
#ifndef NO_cuMemcpyHtoD_v2
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
    memcpy((void*)to, from, bytes);
    return COPY;
}
#endif
#ifndef NO_cuMemcpyDtoH_v2
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
    memcpy(to, (void*)from, bytes);
#ifdef SPOIL
    ((unsigned char*)to)[bytes - 1] ^= 1;
#endif
    return 0;
}
#endif
