// Every driver function the guard calls, declared once. No CUDA header is needed to build; a test compares these
// signatures with cuda.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cfg {

using CuResult = int;              // CUresult, an enum of int's size
using CuDevice = int;              // CUdevice
using CuContext = void*;           // CUcontext
using CuDevicePtr = std::uint64_t; // CUdeviceptr on 64-bit systems
struct CuUuid {
    unsigned char bytes[16];
};

// X(member, exported name, parameters)
#define CFG_DRIVER_FUNCTIONS(X)                                                                                        \
    X(init, cuInit, (unsigned int))                                                                                    \
    X(version, cuDriverGetVersion, (int*))                                                                             \
    X(device_count, cuDeviceGetCount, (int*))                                                                          \
    X(device, cuDeviceGet, (CuDevice*, int))                                                                           \
    X(uuid, cuDeviceGetUuid, (CuUuid*, CuDevice))                                                                      \
    X(primary_state, cuDevicePrimaryCtxGetState, (CuDevice, unsigned int*, int*))                                      \
    X(primary_retain, cuDevicePrimaryCtxRetain, (CuContext*, CuDevice))                                                \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (CuDevice))                                                       \
    X(push, cuCtxPushCurrent_v2, (CuContext))                                                                          \
    X(pop, cuCtxPopCurrent_v2, (CuContext*))                                                                           \
    X(allocate, cuMemAlloc_v2, (CuDevicePtr*, std::size_t))                                                            \
    X(release, cuMemFree_v2, (CuDevicePtr))                                                                            \
    X(to_device, cuMemcpyHtoD_v2, (CuDevicePtr, const void*, std::size_t))                                             \
    X(to_host, cuMemcpyDtoH_v2, (void*, CuDevicePtr, std::size_t))

// Null where the loaded libcuda does not export the name: a null pointer is never called.
struct DriverApi {
#define CFG_MEMBER(member, name, parameters) CuResult(*member) parameters;
    CFG_DRIVER_FUNCTIONS(CFG_MEMBER)
#undef CFG_MEMBER
};

// CUresult values that decide something here (cuda.h).
constexpr CuResult kSuccess = 0;
constexpr CuResult kNotInitialized = 3;

} // namespace cfg
