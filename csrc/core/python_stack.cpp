#include "core/python_stack.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/python_dump.hpp"
#include "core/safe_output.hpp"

namespace cfg {

namespace {
std::atomic<PythonWalker> installed_walker{nullptr};

bool same_text(const char* kept, const char* text, std::size_t length) noexcept {
    return std::strncmp(kept, text, length) == 0 && kept[length] == '\0';
}
} // namespace

void PythonStack::clear() noexcept {
    count = 0;
    complete = false;
    reason = nullptr;
    gap_at = 0;
    gap = 0;
    used = 0;
}

// A text that the stack already has is kept once: deep stacks name few files.
const char* PythonStack::keep(const char* text, std::size_t length, std::size_t arena_limit) noexcept {
    for (int at = count - 1; at >= 0; --at) {
        if (same_text(frames[at].file, text, length)) {
            return frames[at].file;
        }
        if (same_text(frames[at].function, text, length)) {
            return frames[at].function;
        }
    }
    if (used + length + 1 > arena_limit) {
        return nullptr;
    }
    char* const kept = arena + used;
    copy_text(kept, length + 1, text, length);
    used += length + 1;
    return kept;
}

bool PythonStack::add(const char* file, std::size_t file_length, const char* function, std::size_t function_length,
                      int line, std::size_t arena_limit) noexcept {
    complete = false;
    if (count == kMaxFrames) {
        return false;
    }
    const std::size_t before = used;
    const char* const kept_file = keep(file, file_length, arena_limit);
    const char* const kept_function = kept_file == nullptr ? nullptr : keep(function, function_length, arena_limit);
    if (kept_function == nullptr) {
        used = before;
        return false;
    }
    frames[count] = PythonFrame{kept_file, kept_function, line};
    ++count;
    return true;
}

void set_python_walker(PythonWalker walker) noexcept {
    installed_walker.store(walker, std::memory_order_release);
}

void capture_python_stack(PythonStack& stack) noexcept {
    const int saved = errno;
    stack.clear();
    const PythonWalker walker = installed_walker.load(std::memory_order_acquire);
    switch (walker == nullptr ? Walk::no_interpreter : walker(stack)) {
    case Walk::walked:
        break;
    case Walk::without_gil:
        dump_python_stack(stack);
        break;
    case Walk::unknown_thread:
        stack.reason = "a thread Python never saw";
        break;
    case Walk::no_interpreter:
        stack.reason = "no Python interpreter is running";
        break;
    }
    errno = saved;
}

} // namespace cfg
