/* The part of the CUDA driver API that the simulated driver implements: types, codes and prototypes, declared once.
 * A test compiles this after the toolkit's own cuda.h, where that is installed: then the types are the toolkit's, and
 * the compiler refuses a prototype that differs. */
#ifndef CUDA_FORK_GUARD_SIM_CUDA_API_H
#define CUDA_FORK_GUARD_SIM_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

/* Aligned like the real library's entries, so that a jump written over one is a single store in a single cache line. */
#define SIM_API __attribute__((visibility("default"), aligned(16)))

#ifndef __cuda_cuda_h__
typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef enum CUdriverProcAddressQueryResult_enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} CUdriverProcAddressQueryResult;

typedef enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
} CUdevice_attribute;

typedef int CUdevice;
typedef struct CUctx_st* CUcontext;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;
#endif

/* What answers before cuInit. */
SIM_API CUresult cuInit(unsigned int flags);
SIM_API CUresult cuDriverGetVersion(int* version);
SIM_API CUresult cuGetErrorName(CUresult error, const char** name);
SIM_API CUresult cuGetErrorString(CUresult error, const char** text);
SIM_API CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
SIM_API CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status);
SIM_API CUresult cuGetExportTable(const void** table, const CUuuid* id);

SIM_API CUresult cuDeviceGet(CUdevice* device, int ordinal);
SIM_API CUresult cuDeviceGetCount(int* count);
SIM_API CUresult cuDeviceGetName(char* name, int length, CUdevice device);
SIM_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
SIM_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
SIM_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);
SIM_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);

SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
SIM_API CUresult cuDevicePrimaryCtxRelease(CUdevice device);
SIM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
SIM_API CUresult cuDevicePrimaryCtxReset(CUdevice device);
SIM_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
SIM_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active);

SIM_API CUresult cuCtxPushCurrent_v2(CUcontext context);
SIM_API CUresult cuCtxPopCurrent_v2(CUcontext* context);
SIM_API CUresult cuCtxSetCurrent(CUcontext context);
SIM_API CUresult cuCtxGetCurrent(CUcontext* context);
SIM_API CUresult cuCtxGetDevice(CUdevice* device);
SIM_API CUresult cuCtxGetId(CUcontext context, unsigned long long* id);
SIM_API CUresult cuCtxSynchronize(void);

SIM_API CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes);
SIM_API CUresult cuMemFree_v2(CUdeviceptr pointer);
SIM_API CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes);
SIM_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes);
SIM_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes);
SIM_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);

#endif
