/* Device memory, kept on the host: a CUdeviceptr here is the address of ordinary memory. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const size_t device_memory = (size_t)1 << 30;
enum { ALIGNMENT = 256 };

struct allocation {
    struct allocation* next;
    char* base;
    size_t bytes;
    CUdevice device;
};
static struct allocation* allocations = NULL;
static size_t used[SIM_MAX_DEVICES];

size_t sim_device_memory(void) {
    return device_memory;
}

static void drop(struct allocation** link) {
    struct allocation* gone = *link;
    *link = gone->next;
    used[gone->device] -= gone->bytes;
    free(gone->base);
    free(gone);
}

void sim_free_device_memory(CUdevice device) {
    for (struct allocation** link = &allocations; *link != NULL;)
        if ((*link)->device == device)
            drop(link);
        else
            link = &(*link)->next;
}

/* Host memory for `bytes` bytes at a device pointer; null unless all of them lie in one allocation. */
static char* host_memory(CUdeviceptr pointer, size_t bytes) {
    for (const struct allocation* one = allocations; one != NULL; one = one->next) {
        CUdeviceptr base = (CUdeviceptr)(uintptr_t)one->base;
        if (pointer >= base && pointer - base <= one->bytes && bytes <= one->bytes - (pointer - base))
            return one->base + (pointer - base);
    }
    return NULL;
}

static CUresult allocate(size_t bytes, CUdeviceptr* pointer) {
    CUdevice device = -1;
    CUresult result = sim_current_device(&device);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > device_memory - used[device])
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct allocation* made = malloc(sizeof *made);
    char* base = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (made == NULL || base == NULL) {
        free(made);
        free(base);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct allocation){.next = allocations, .base = base, .bytes = bytes, .device = device};
    allocations = made;
    used[device] += bytes;
    *pointer = (CUdeviceptr)(uintptr_t)base;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
    SIM_ENTER(cuMemAlloc_v2);
    if (pointer == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result = allocate(bytes, pointer);
    sim_unlock();
    return result;
}

/* Only the pointer that an allocation returned frees it. */
static CUresult give_back(CUdeviceptr pointer) {
    CUdevice device = -1;
    CUresult result = sim_current_device(&device);
    if (result != CUDA_SUCCESS || pointer == 0)
        return result;
    for (struct allocation** link = &allocations; *link != NULL; link = &(*link)->next)
        if ((CUdeviceptr)(uintptr_t)(*link)->base == pointer) {
            drop(link);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    SIM_ENTER(cuMemFree_v2);
    sim_lock();
    CUresult result = give_back(pointer);
    sim_unlock();
    return result;
}

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    SIM_ENTER(cuMemGetInfo_v2);
    if (free_bytes == NULL || total_bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUdevice device = -1;
    sim_lock();
    CUresult result = sim_current_device(&device);
    if (result == CUDA_SUCCESS) {
        *total_bytes = device_memory;
        *free_bytes = device_memory - used[device];
    }
    sim_unlock();
    return result;
}

/* Finds the memory behind a device pointer for the calling thread; returns with the lock held, whatever the result. */
static CUresult lock_memory(CUdeviceptr pointer, size_t bytes, char** memory) {
    CUdevice device = -1;
    sim_lock();
    CUresult result = sim_current_device(&device);
    if (result != CUDA_SUCCESS)
        return result;
    *memory = host_memory(pointer, bytes);
    return *memory != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    SIM_ENTER(cuMemcpyHtoD_v2);
    char* memory = NULL;
    CUresult result = lock_memory(to, bytes, &memory);
    if (result == CUDA_SUCCESS && from == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(memory, from, bytes);
    sim_unlock();
    return result;
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    SIM_ENTER(cuMemcpyDtoH_v2);
    char* memory = NULL;
    CUresult result = lock_memory(from, bytes, &memory);
    if (result == CUDA_SUCCESS && to == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(to, memory, bytes);
    sim_unlock();
    return result;
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    SIM_ENTER(cuMemsetD8_v2);
    char* memory = NULL;
    CUresult result = lock_memory(to, count, &memory);
    if (result == CUDA_SUCCESS)
        memset(memory, value, count);
    sim_unlock();
    return result;
}
