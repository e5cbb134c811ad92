#include "core/touch.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "core/exiting.hpp"
#include "core/fork_intent.hpp"
#include "core/fork_state.hpp"
#include "core/native_stack.hpp"
#include "core/origin.hpp"
#include "core/python_stack.hpp"
#include "core/ring.hpp"
#include "core/safe_output.hpp"
#include "core/touch_report.hpp"
#include "core/user_frame.hpp"

namespace cfg {

namespace {

constexpr int kStderr = 2;

std::atomic<bool> stderr_was_closed{false};
std::atomic<pid_t> collecting_thread{0};
// Generation + 1 of the process that has told of its touch: what a child inherits doesn't silence the child.
std::atomic<std::uint32_t> told_by{0};

// Only the one thread that may tell uses these.
PythonStack stack;
NativeStack callers;
char report[kReportSize];

bool may_tell() noexcept {
    if (fork_state().policy.load() == static_cast<int>(Policy::off)) {
        return false;
    }
    const std::uint32_t mine = fork_state().generation.load() + 1;
    return told_by.exchange(mine) != mine;
}

// For a child of a native fork nobody could prepare the line.
void put_woken(Text& woken) noexcept {
    const Origin& first = origin();
    if (first.phase.load(std::memory_order_acquire) != Origin::captured) {
        woken.put("unknown");
        return;
    }
    put_user_place(woken, first.python, kPlaceLimit);
    woken.put("  (cuInit, pid ").decimal(first.pid).put(")");
}

void tell(const char* used) noexcept {
    const ForkState& state = fork_state();
    const ForkSite& site = own_fork_site();
    char buffer[ForkSite::kLine] = "";
    TouchFacts facts{getpid(),   state.inherited.load() == static_cast<int>(Inherited::yes),
                     used,       site.forked,
                     site.woken, site.advice};
    if (facts.inherited && facts.woken[0] == '\0') {
        Text woken(buffer, sizeof buffer);
        put_woken(woken);
        facts.woken = buffer;
    }
    const std::size_t length = format_touch_report(report, facts);
    const bool exiting = process_is_exiting();
    // The record first: the process may die at any moment.
    ring_push(exiting ? EventKind::end : EventKind::touch, report, length - 1);
    if (own_fork_use() != ForkUse::quiet && !exiting && !stderr_was_closed.load()) {
        write_once(kStderr, report, length);
    }
}

void put_used(Text& used, const char* function) noexcept {
    put_user_place(used, stack, kPlaceLimit);
    if (stack.count == 0) {
        capture_native_stack(callers);
        if (callers.count > 0) {
            used.put(" (native: ").put(callers.names[0]).put(")");
        }
    }
    used.put("  (").put(function);
    if (collecting_thread.load() == thread_id()) {
        used.put(", during garbage collection");
    }
    used.put(")");
}

} // namespace

void touch_by_driver_call(const char* function) noexcept {
    if (!may_tell()) {
        return;
    }
    const int saved_errno = errno;
    // A cancelled thread would unwind through here with the stack half read.
    int cancel_state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    char buffer[ForkSite::kLine];
    Text used(buffer, sizeof buffer);
    capture_python_stack(stack);
    put_used(used, function);
    tell(used.data());
    pthread_setcancelstate(cancel_state, nullptr);
    errno = saved_errno;
}

void touch_by_refusal(const char* used) noexcept {
    if (may_tell()) {
        tell(used);
    }
}

void note_stderr() noexcept {
    const int saved_errno = errno;
    stderr_was_closed.store(fcntl(kStderr, F_GETFD) == -1 && errno == EBADF);
    errno = saved_errno;
}

void set_collecting(bool collecting) noexcept {
    collecting_thread.store(collecting ? thread_id() : 0);
}

} // namespace cfg
