// The first cuInit of this process: who called it. Filled by the injection hook on the calling thread, inside cuInit.
#pragma once

#include <atomic>
#include <sys/types.h>

#include "core/python_stack.hpp"

namespace cfg {

struct Origin {
    enum Phase : int { none = 0, capturing, captured };
    static constexpr int kMaxNative = 48;
    std::atomic<int> phase{none};
    PythonStack python;
    void* native[kMaxNative]; // return addresses, innermost first; named later, in ordinary context
    int native_count = 0;
    char thread[64] = "";
    pid_t pid = 0;
    pid_t tid = 0;
    double time = 0;
};

// Survives forks: in a child it is still the origin of the process that woke CUDA.
Origin& origin() noexcept;

// What the hook library calls on every cuInit. Counts the call; in an inherited process it is a touch (touch.hpp).
void on_cuinit() noexcept;

} // namespace cfg
