// The Python stack of the calling thread as text, whether or not this thread holds the GIL. The core has no Python in
// it: with the GIL the frames come from a walker that csrc/bind installs; without it from the C handler that
// faulthandler.register left behind, called as a plain function (python_dump.hpp).
#pragma once

#include <cstddef>

namespace cfg {

struct PythonFrame {
    const char* file; // UTF-8 (a file name that isn't keeps its raw bytes), in the stack's own arena
    const char* function;
    int line; // 0: not known
};

// Fixed storage, all zero when empty (so that static ones cost no space in the file): usable where nothing may be
// allocated. Innermost frame first. A stack that doesn't fit keeps both ends: the inner one shows who called, the outer
// one which script it was.
struct PythonStack {
    static constexpr int kMaxFrames = 192;
    static constexpr int kInner = 128; // of which at most so many from the inner end, if frames must be left out
    static constexpr std::size_t kArena = 24UL * 1024;
    static constexpr std::size_t kInnerArena = 16UL * 1024; // the rest of the arena is kept for the outer end
    static constexpr int kUnknownGap = -1;

    int count;
    bool complete;      // false: the outer frames are not known
    const char* reason; // why frames are missing, static text; null when there is nothing to say
    int gap_at;         // frames are left out before frames[gap_at]; 0: nowhere
    int gap;            // how many, or kUnknownGap
    std::size_t used;
    PythonFrame frames[kMaxFrames];
    char arena[kArena];

    void clear() noexcept;
    // False when there is no more room; the stack is then marked incomplete.
    bool add(const char* file, std::size_t file_length, const char* function, std::size_t function_length, int line,
             std::size_t arena_limit = kArena) noexcept;
    // Drops all frames from `new_count` on; their text stays in the arena for those that use it too.
    void cut(int new_count) noexcept { count = new_count < count ? new_count : count; }

  private:
    const char* keep(const char* text, std::size_t length, std::size_t arena_limit) noexcept;
};

enum class Walk : int {
    walked = 0,     // this thread holds the GIL, the stack is filled
    without_gil,    // Python knows this thread, but it doesn't hold the GIL
    unknown_thread, // a thread Python never saw
    no_interpreter, // not yet, or no more
};
using PythonWalker = Walk (*)(PythonStack& stack) noexcept;
void set_python_walker(PythonWalker walker) noexcept;

// Ordinary context, any thread. Never blocks: what can't be had is said in `reason`. Keeps errno.
void capture_python_stack(PythonStack& stack) noexcept;

} // namespace cfg
