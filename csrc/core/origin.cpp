#include "core/origin.hpp"

#include <cerrno>
#include <cstring>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/fork_state.hpp"
#include "core/ring.hpp"
#include "core/safe_output.hpp"
#include "core/touch.hpp"
#include "core/user_frame.hpp"

namespace cfg {

namespace {

// Two, so that a child's own origin is written beside the inherited one while that can still be read.
Origin slots[2];
std::atomic<int> current_slot{0};
// Generation + 1 of the process whose first cuInit is being, or was, captured: a copy in a child doesn't bind the
// child.
std::atomic<std::uint32_t> claimed_by{0};

bool claim() noexcept {
    const std::uint32_t mine = fork_state().generation.load() + 1;
    return claimed_by.exchange(mine) != mine;
}

void record(const Origin& done) noexcept {
    char buffer[1024];
    Text text(buffer, sizeof buffer);
    text.put("first cuInit: ");
    put_user_place(text, done.python, kPlaceLimit);
    if (done.native.count > 0) {
        text.put(" (").put(done.native.names[0]).put(")");
    }
    ring_push(EventKind::origin, text.data(), text.size());
}

void capture(std::uint32_t call) noexcept {
    const int slot = 1 - current_slot.load();
    Origin& mine = slots[slot];
    mine.time = wall_clock();
    mine.pid = getpid();
    mine.tid = thread_id();
    mine.python_thread[0] = '\0';
    mine.call = call;
    mine.outcome.store(Origin::not_seen);
    if (prctl(PR_GET_NAME, mine.thread) != 0) {
        mine.thread[0] = '\0';
    }
    capture_python_stack(mine.python);
    capture_native_stack(mine.native);
    mine.phase.store(Origin::captured, std::memory_order_release);
    current_slot.store(slot, std::memory_order_release);
    fork_state().origin_pid.store(mine.pid);
    record(mine);
}

} // namespace

Origin& origin() noexcept {
    return slots[current_slot.load(std::memory_order_acquire)];
}

void on_cuinit() noexcept {
    const int saved_errno = errno;
    // A cancelled thread would unwind through here with the stack half read.
    int cancel_state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    ForkState& state = fork_state();
    const std::uint32_t call = state.cuinit_calls.fetch_add(1) + 1;
    int down = static_cast<int>(DriverKnown::down);
    state.driver.compare_exchange_strong(down, static_cast<int>(DriverKnown::tried));
    tls_inside_cuinit = true;
    if (state.inherited.load() == static_cast<int>(Inherited::yes) || state.cpu_only.load() != 0) {
        touch_by_driver_call("cuInit");
    } else if (claim()) {
        capture(call);
    }
    pthread_setcancelstate(cancel_state, nullptr);
    errno = saved_errno;
}

void capture_next_origin() noexcept {
    claimed_by.store(0);
}

Origin* own_origin() noexcept {
    Origin& one = origin();
    const bool own =
        one.phase.load(std::memory_order_acquire) == Origin::captured && one.pid == getpid() && one.tid == thread_id();
    return own ? &one : nullptr;
}

} // namespace cfg
