// The first cuInit of this process: who called it. Filled by the injection hook on the calling thread, inside cuInit.
#pragma once

#include <atomic>
#include <cstdint>
#include <sys/types.h>

#include "core/native_stack.hpp"
#include "core/python_stack.hpp"

namespace cfg {

struct Origin {
    enum Phase : int { none = 0, captured };
    enum Outcome : int { not_seen = 0, driver_up, driver_down }; // right after that call returned
    std::atomic<int> phase;
    PythonStack python;
    NativeStack native;
    char thread[16];        // the system's name for the thread
    char python_thread[64]; // Python's, if it was asked while the thread was alive; "" otherwise
    pid_t pid;
    pid_t tid;
    double time;
    std::uint32_t call;       // which cuInit of the process it was: 1 for the first that the hook saw
    std::atomic<int> outcome; // Outcome
};

// The newest one that is finished; phase `none` if there is none. Survives forks: in a child it is still the origin of
// the process that woke CUDA, unless the child calls cuInit for itself (a child of a parent whose driver was never up
// may).
Origin& origin() noexcept;

// What the hook library calls on every cuInit. Counts the call; in an inherited process it is a touch (touch.hpp).
void on_cuinit() noexcept;

// The next cuInit is captured too, although an earlier one of this process (that failed) already was.
void capture_next_origin() noexcept;

// The origin if it is this thread's own in this process, else null: what the hook could not ask inside cuInit is asked
// later, by the one writer that remains.
Origin* own_origin() noexcept;

} // namespace cfg
