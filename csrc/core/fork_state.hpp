// The one global state of this process with regard to fork and CUDA. Everything here is atomics in static storage: it
// can be read and written inside fork handlers, is copied to a child by fork itself, and is never allocated or locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <sys/types.h>

#include "core/platform.hpp"

namespace cfg {

enum class Policy : int { off = 0, watch = 1, warn = 2, block = 3 };

// What this process knows of its own driver. `tried`: cuInit was called, and nobody has seen the driver up since.
enum class DriverKnown : int { down = 0, tried = 1, up = 2 };

enum class Inherited : int { no = 0, yes = 1, unknown = 2 };

struct ForkState {
    std::atomic<std::uint32_t> generation{0};   // forks between the process that loaded the guard and this one
    std::atomic<pid_t> pid{0};                  // this process
    std::atomic<pid_t> parent{0};               // who forked it; 0 in the process that loaded the guard
    std::atomic<int> inherited{0};              // Inherited
    std::atomic<int> driver{0};                 // DriverKnown, of this process alone
    std::atomic<std::uint32_t> cuinit_calls{0}; // seen by the hook in this process, failed ones included
    std::atomic<int> policy{0};                 // Policy
    std::atomic<int> tripwire{0};               // wanted (1) or switched off (0)
    std::atomic<int> cpu_only{0};               // verified as a process that must never use CUDA
    std::atomic<int> driver_helpers{0};         // forks made by the driver itself, inside cuInit
    std::atomic<pid_t> origin_pid{0};           // whose cuInit the recorded origin is: inherited over forks
};

ForkState& fork_state() noexcept;

// Set by the hook for the thread that is inside cuInit: a fork on it is the driver's own helper (nvidia-modprobe).
// Nothing tells when cuInit returns; the next audit event or question on the same thread does, and clears it.
extern CFG_TLS bool tls_inside_cuinit;

// How many allow_fork blocks this thread is in. A child is in none: they are its parent's intention.
extern CFG_TLS int tls_allowed_forks;

} // namespace cfg
