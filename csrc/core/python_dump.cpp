#include "core/python_dump.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/fork_state.hpp"
#include "core/safe_output.hpp"

namespace cfg {

namespace {

// faulthandler cuts names at 500 characters, each at most 10 bytes long when escaped.
constexpr std::size_t kLongestLine = 11UL * 1024;
constexpr int kFaulthandlersFrames = 100;
constexpr int kLongestWait = 10000; // turns of a tenth of a millisecond
constexpr const char kFileName[] = "cuda_fork_guard";
constexpr const char kLinkTarget[] = "/memfd:cuda_fork_guard ";

struct Dump {
    std::atomic<DumpFunction> function;
    int signum;
    int descriptor;
    // Generation + 1 of the process in which a stack is being read; 0: nobody. A fork in the middle of a reading leaves
    // its mark in the child, where the reader doesn't exist: the generation tells.
    std::atomic<std::uint32_t> reader;
    char line[kLongestLine];
};
Dump dump;
std::atomic<const char*> unavailable{"the GIL was not held, and no way to read the stack was prepared"};

// The kernel's name for an open descriptor proves that it is our memory file, left in a child by a fork in another
// thread.
bool is_our_file(int descriptor) noexcept {
    char link[32];
    Text(link, sizeof link).put("/proc/self/fd/").decimal(descriptor);
    char target[64];
    const ssize_t length = readlink(link, target, sizeof target);
    constexpr std::size_t kExpected = sizeof kLinkTarget - 1;
    return length >= static_cast<ssize_t>(kExpected) && std::memcmp(target, kLinkTarget, kExpected) == 0;
}

bool claim() noexcept {
    const std::uint32_t mine = fork_state().generation.load() + 1;
    std::uint32_t holder = 0;
    if (dump.reader.compare_exchange_strong(holder, mine)) {
        return true;
    }
    if (holder == mine || !dump.reader.compare_exchange_strong(holder, mine)) {
        return false;
    }
    if (is_our_file(dump.descriptor)) {
        close(dump.descriptor);
    }
    return true;
}

int memory_file() noexcept {
#if defined(MFD_NOEXEC_SEAL)
    constexpr unsigned kNoExec = MFD_NOEXEC_SEAL;
#else
    constexpr unsigned kNoExec = 0x0008U;
#endif
    // Hardened systems (vm.memfd_noexec=2) refuse the call without the flag, kernels before 6.3 refuse it with the
    // flag.
    const int file = memfd_create(kFileName, MFD_CLOEXEC | kNoExec);
    return file >= 0 || errno != EINVAL ? file : memfd_create(kFileName, MFD_CLOEXEC);
}

// Opens the memory file on the number that faulthandler was told; null, or why that can't be.
const char* open_file() noexcept {
    const int file = memory_file();
    if (file < 0) {
        return errno == EMFILE || errno == ENFILE ? "no file descriptor was free" : "the system refused memfd_create";
    }
    // Not dup2: that would close a descriptor which another thread opened a moment ago.
    const int placed = fcntl(file, F_DUPFD_CLOEXEC, dump.descriptor);
    const int error = errno;
    close(file);
    if (placed == dump.descriptor) {
        return nullptr;
    }
    if (placed >= 0) {
        close(placed);
        return "the program uses the file descriptor number reserved for it";
    }
    return error == EINVAL ? "the limit on open files was lowered" : "no file descriptor was free";
}

void read_back(PythonStack& stack) noexcept {
    off_t at = 0;
    bool cut = false;
    for (;;) {
        const ssize_t got = pread(dump.descriptor, dump.line, sizeof dump.line, at);
        if (got <= 0) {
            break;
        }
        char* const end = dump.line + got;
        char* line = dump.line;
        while (char* const line_end =
                   static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line)))) {
            const DumpLine kind = read_dump_line(stack, line, static_cast<std::size_t>(line_end - line));
            cut = cut || kind == DumpLine::cut || kind == DumpLine::full;
            line = line_end + 1;
        }
        if (line == dump.line) {
            break;
        }
        at += line - dump.line;
    }
    cut = cut || stack.count >= kFaulthandlersFrames; // 3.13 leaves out the line that says so
    stack.complete = stack.count > 0 && !cut;
    if (stack.count == 0) {
        stack.reason = "faulthandler gave nothing: it was busy, or its registration was changed";
    } else if (cut) {
        stack.reason = "outer frames not known";
    }
}

} // namespace

void set_python_dump(DumpFunction function, int signum, int descriptor, const char* why_not) noexcept {
    unavailable.store(why_not);
    if (function != nullptr) { // else a dump may be using them
        dump.signum = signum;
        dump.descriptor = descriptor;
    }
    dump.function.store(function);
}

void end_python_dumps() noexcept {
    set_python_dump(nullptr, 0, -1, "Python is ending");
    const std::uint32_t mine = fork_state().generation.load() + 1;
    // Bounded: a process copied behind the guard's back (_Fork) can have the mark of a reader that it doesn't have.
    for (int turn = 0; turn < kLongestWait && dump.reader.load() == mine; ++turn) {
        const timespec pause{0, 100000};
        nanosleep(&pause, nullptr);
    }
}

void dump_python_stack(PythonStack& stack) noexcept {
    if (!claim()) {
        stack.reason = "the GIL was not held and another thread's stack was being read";
        return;
    }
    // Behind the claim, so that end_python_dumps sees either the claim or its own word obeyed.
    const DumpFunction function = dump.function.load();
    stack.reason = function == nullptr ? unavailable.load() : open_file();
    if (function != nullptr && stack.reason == nullptr) {
        function(dump.signum);
        read_back(stack);
        close(dump.descriptor);
    }
    dump.reader.store(0);
}

} // namespace cfg
