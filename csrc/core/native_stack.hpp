// The native callers of this thread as text: "libcudart.so.12: cudaGetDeviceCount". Named at once, because a library
// may be unloaded the next moment (the CUDA runtime does that after a failed start) and its addresses given to another.
#pragma once

#include <cstddef>

namespace cfg {

struct NativeStack {
    static constexpr int kMax = 24;
    static constexpr std::size_t kName = 256; // C++ names stay mangled here
    int count;                                // innermost first
    char names[kMax][kName];
};

// Frames from this address' library outwards are left out: the Python stack says more. Null: none are.
void set_interpreter(const void* address) noexcept;

// Ordinary context, any thread: takes the loader's lock, as cuInit itself does. Leaves out the guard's own frames and
// the driver's, so that the first is who called the driver.
void capture_native_stack(NativeStack& stack) noexcept;

} // namespace cfg
