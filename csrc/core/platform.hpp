// The only place that asks which operating system, processor or C library this is.
#pragma once

#if !defined(__linux__)
#error "the native part of cuda_fork_guard is for Linux; elsewhere the package is pure Python"
#endif

#if defined(__x86_64__)
#define CFG_X86_64 1
#elif defined(__aarch64__)
#define CFG_AARCH64 1
#endif

#include <sys/types.h>

// A thread-local read inside a fork handler must not call __tls_get_addr, which may allocate on first use: the
// initial-exec model reads it at a fixed offset. Keep such variables few and small: they live in the loader's static
// surplus.
#define CFG_TLS thread_local __attribute__((tls_model("initial-exec")))

namespace cfg {
// The kernel's thread id; glibc has a wrapper only since 2.30.
pid_t thread_id() noexcept;
// Seconds since the epoch, as time.time() gives them. Async-signal-safe.
double wall_clock() noexcept;
} // namespace cfg
