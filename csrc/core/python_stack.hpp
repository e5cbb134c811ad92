// The Python stack of the calling thread as text, whether or not this thread holds the GIL. The core has no Python in
// it: with the GIL the frames come from a walker that csrc/bind installs; without it from the C handler that
// faulthandler.register left behind, called as a plain function.
#pragma once

#include <cstddef>

namespace cfg {

struct PythonFrame {
    const char* file; // UTF-8, in the stack's own arena
    const char* function;
    int line;
};

// Fixed storage: usable where nothing may be allocated. Innermost frame first.
struct PythonStack {
    static constexpr int kMaxFrames = 192;
    static constexpr std::size_t kArena = 24 * 1024;
    int count = 0;
    bool complete = false;   // false: the outer frames are not known
    const char* reason = ""; // why frames are missing, static text; "" when they are not
    std::size_t used = 0;
    PythonFrame frames[kMaxFrames];
    char arena[kArena];

    // False when there is no more room; the stack is then marked incomplete.
    bool add(const char* file, std::size_t file_length, const char* function, std::size_t function_length,
             int line) noexcept;
};

// True if the GIL was held by this thread and the stack was walked; false if it must be got another way.
using PythonWalker = bool (*)(PythonStack& stack) noexcept;
void set_python_walker(PythonWalker walker) noexcept;

void capture_python_stack(PythonStack& stack) noexcept;

} // namespace cfg
