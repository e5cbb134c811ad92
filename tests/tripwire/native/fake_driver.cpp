// A stand-in for libcuda with every shape of function a trap must get right. Its soname is libcuda.so.1.
#include <cstdarg>
#include <cstdio>

#include "fake_driver.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int cuInit(unsigned) {
    return 3;
}
EXPORT int cuDeviceGetCount(int* count) {
    *count = 0;
    return 3;
}
EXPORT int cuCtxGetCurrent(void** context) {
    *context = nullptr;
    return 3;
}
EXPORT int cuCtxGetDevice(int* device) {
    *device = -1;
    return 3;
}
EXPORT int cuDriverGetVersion(int* version) {
    *version = 12080;
    return 0;
}
EXPORT int cuGetErrorName(int, const char** name) {
    *name = "CUDA_ERROR_NOT_INITIALIZED";
    return 0;
}

EXPORT long cuTwelve(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l;
}

EXPORT double cuTenDoubles(double a, double b, double c, double d, double e, double f, double g, double h, double i,
                           double j) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

EXPORT long double cuLongDouble(long double a, float b) {
    return a * 2 + static_cast<long double>(b);
}

EXPORT int cuFormat(char* to, std::size_t size, const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(to, size, format, arguments);
    va_end(arguments);
    return length;
}

EXPORT Large cuLarge(long seed) {
    Large large{};
    for (long& value : large.values) {
        value = seed++;
    }
    return large;
}

EXPORT Small cuSmall(long whole, double part) {
    return {whole + 1, part * 2};
}
EXPORT Pair cuPair(float a, float b) {
    return {b, a};
}
EXPORT long cuByValue(Large large, Small small) {
    return large.values[11] + small.whole + static_cast<long>(small.part);
}

EXPORT int cuCallback(void (*callback)(void*), void* data) {
    callback(data);
    return 0;
}

// Where cuStoreRegisters stores them, and what it may use to do it.
extern "C" {
__attribute__((visibility("default"))) Registers* fake_registers = nullptr;
extern int fake_has_avx;
extern int fake_has_avx512;
int fake_has_avx = 0;
int fake_has_avx512 = 0;
}
#ifdef __x86_64__
__attribute__((constructor)) static void look_at_processor() {
    fake_has_avx = __builtin_cpu_supports("avx");
    fake_has_avx512 = __builtin_cpu_supports("avx512f");
}
#endif

// Not functions of the driver's.
EXPORT int otherFunction(int number) {
    return number + 1;
}
EXPORT int cuTable[4];
int cuTable[4] = {1, 2, 3, 4};
