/* Primary contexts, one a device, and each thread's stack of current ones. */
#include <pthread.h>
#include <stdatomic.h>

#include "sim.h"

struct CUctx_st {
    unsigned references; /* retained and not yet released */
    bool active;
    unsigned long long id; /* new each time it becomes active */
};

/* Never taken in a child of a process that was up: there every call is refused before. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st primary[SIM_MAX_DEVICES];
static unsigned long long last_id = 0;
/* Bumped by a shutdown: the stacks of all threads are void then. */
static _Atomic unsigned epoch = 0;

enum { STACK_DEPTH = 64 };
static _Thread_local struct {
    unsigned epoch;
    int depth;
    CUcontext contexts[STACK_DEPTH];
} stack;

void sim_lock(void) {
    pthread_mutex_lock(&lock);
}
void sim_unlock(void) {
    pthread_mutex_unlock(&lock);
}

/* The device of a handle; -1 for what isn't one, or whose context is not active. With the lock. */
static CUdevice device_of(CUcontext context) {
    for (CUdevice device = 0; sim_is_device(device); device++)
        if (context == &primary[device])
            return primary[device].active ? device : -1;
    return -1;
}

static CUcontext current(void) {
    if (stack.epoch != atomic_load(&epoch)) {
        stack.epoch = atomic_load(&epoch);
        stack.depth = 0;
    }
    return stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
}

CUresult sim_current_device(CUdevice* device) {
    CUcontext context = current();
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = device_of(context);
    return *device >= 0 ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static void destroy(CUdevice device) {
    primary[device].active = false;
    sim_free_device_memory(device);
}

void sim_destroy_contexts(void) {
    sim_lock();
    for (CUdevice device = 0; device < SIM_MAX_DEVICES; device++) {
        destroy(device);
        primary[device].references = 0;
    }
    atomic_fetch_add(&epoch, 1);
    sim_unlock();
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    SIM_ENTER(cuDevicePrimaryCtxRetain);
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    primary[device].references++;
    if (!primary[device].active) {
        primary[device].active = true;
        primary[device].id = ++last_id;
    }
    sim_unlock();
    *context = &primary[device];
    return CUDA_SUCCESS;
}

static CUresult release(CUdevice device) {
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    bool retained = primary[device].references > 0;
    if (retained && --primary[device].references == 0)
        destroy(device);
    sim_unlock();
    return retained ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    SIM_ENTER(cuDevicePrimaryCtxRelease);
    return release(device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    SIM_ENTER(cuDevicePrimaryCtxRelease_v2);
    return release(device);
}

/* Takes the context away under its users' feet; who retained it still has to release it. */
static CUresult reset(CUdevice device) {
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    destroy(device);
    sim_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    SIM_ENTER(cuDevicePrimaryCtxReset);
    return reset(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    SIM_ENTER(cuDevicePrimaryCtxReset_v2);
    return reset(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    SIM_ENTER(cuDevicePrimaryCtxGetState);
    if (flags == NULL || active == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    sim_lock();
    *flags = 0;
    *active = primary[device].active;
    sim_unlock();
    return CUDA_SUCCESS;
}

static bool is_active(CUcontext context) {
    sim_lock();
    bool found = device_of(context) >= 0;
    sim_unlock();
    return found;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    SIM_ENTER(cuCtxPushCurrent_v2);
    if (!is_active(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    (void)current();
    if (stack.depth == STACK_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack.contexts[stack.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    SIM_ENTER(cuCtxPopCurrent_v2);
    CUcontext top = current();
    if (top == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (context != NULL)
        *context = top;
    return CUDA_SUCCESS;
}

/* Replaces the top of the stack; null takes it off. */
CUresult cuCtxSetCurrent(CUcontext context) {
    SIM_ENTER(cuCtxSetCurrent);
    if (context != NULL && !is_active(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current() != NULL)
        stack.depth--;
    if (context != NULL)
        stack.contexts[stack.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
    SIM_ENTER(cuCtxGetCurrent);
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = current();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    SIM_ENTER(cuCtxGetDevice);
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUdevice found = -1;
    sim_lock();
    CUresult result = sim_current_device(&found);
    sim_unlock();
    if (result == CUDA_SUCCESS)
        *device = found;
    return result;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
    SIM_ENTER(cuCtxGetId);
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUcontext asked = context != NULL ? context : current();
    sim_lock();
    CUdevice device = device_of(asked);
    if (device >= 0)
        *id = primary[device].id;
    sim_unlock();
    return device >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* Everything here is done when it returns. */
CUresult cuCtxSynchronize(void) {
    SIM_ENTER(cuCtxSynchronize);
    CUdevice device = -1;
    sim_lock();
    CUresult result = sim_current_device(&device);
    sim_unlock();
    return result;
}
