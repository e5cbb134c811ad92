#include "core/tripwire.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <sched.h>
#include <unistd.h>

#include "core/tripwire_arch.hpp"
#include "core/tripwire_registry.hpp"
#include "core/tripwire_swap.hpp"

namespace cfg::tripwire {

namespace {
std::atomic<State> g_state{State::idle};
std::atomic<TouchHandler> g_handler{nullptr};
std::atomic<pid_t> g_lock{0};
static_assert(std::atomic<State>::is_always_lock_free, "the state is read in fork handlers");

bool change_state(State from, State to) noexcept {
    return g_state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

// For prepare() and disarm(). A mutex would stay locked for ever in a child that another thread forks meanwhile; the
// pid says whose lock it is.
class Lock {
  public:
    Lock() noexcept {
        const pid_t self = getpid();
        pid_t holder = 0;
        while (!g_lock.compare_exchange_weak(holder, self, std::memory_order_acquire)) {
            if (holder == self) {
                sched_yield();
                holder = 0;
            }
        }
    }
    ~Lock() { g_lock.store(0, std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

// While pages are swapped: a signal handler that called the driver just then would wait for its own thread.
class SignalsBlocked {
  public:
    SignalsBlocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

void swap_out_all() noexcept {
    for_each_image([](Image& image) { swap_out(image); });
}
} // namespace

bool prepare(TouchHandler handler) noexcept {
    g_handler.store(handler, std::memory_order_release);
    if (arch::unsupported != nullptr) {
        set_reason(arch::unsupported, 0);
        change_state(State::idle, State::unavailable);
        return false;
    }
    const Lock lock;
    const Readiness readiness = make_ready();
    bool can_arm = false;
    for_each_image([&](Image& image) { can_arm = can_arm || (!is_armed(image) && image.copies.load() != nullptr); });
    if (can_arm) {
        for (const State state : {State::idle, State::unavailable, State::tripped}) {
            change_state(state, State::prepared);
        }
    } else if (readiness == Readiness::refused) {
        change_state(State::idle, State::unavailable);
        change_state(State::prepared, State::unavailable);
    }
    if (readiness == Readiness::none_loaded) {
        set_reason("no libcuda is loaded", 0);
    } else if (readiness == Readiness::ready) {
        set_reason("", 0);
    }
    return readiness == Readiness::ready;
}

bool arm() noexcept {
    const State before = state();
    if (before != State::prepared && before != State::armed) {
        return false;
    }
    const int saved = errno;
    const SignalsBlocked quiet;
    // First the state, then the pages: a thread that runs into a jump must find the wire armed.
    change_state(State::prepared, State::armed);
    bool complete = true;
    for_each_image([&](Image& image) {
        int error = 0;
        if (state() == State::armed && !swap_in(image, error)) {
            complete = false;
            set_reason(error != 0                       ? "the system refused to put the tripwire in place: mremap"
                       : image.copies.load() == nullptr ? "no copy of libcuda's code was ready at the fork"
                                                        : "driver functions were changed by another tool since the "
                                                          "tripwire was prepared",
                       error);
        }
    });
    if (!complete && before == State::prepared) {
        swap_out_all();
        change_state(State::armed, State::unavailable);
    } else if (state() != State::armed) {
        swap_out_all(); // touched, on another thread, before the last image was armed
    }
    errno = saved;
    return complete && state() == State::armed;
}

void disarm() noexcept {
    const Lock lock;
    const SignalsBlocked quiet;
    g_state.store(State::idle, std::memory_order_release);
    set_reason("", 0);
    for_each_image([](Image& image) {
        if (swap_out(image)) {
            exchange_copies(image, nullptr);
        } else {
            change_state(State::idle, State::unavailable);
            set_reason("the system refused to put the pages of libcuda back: mremap", 0);
        }
    });
    forget_refusals();
}

State state() noexcept {
    return g_state.load(std::memory_order_acquire);
}

std::size_t entries() noexcept {
    std::size_t total = 0;
    for_each_image([&](const Image& image) { total += image.trapped.load(std::memory_order_relaxed); });
    return total;
}

std::size_t skipped() noexcept {
    std::size_t total = 0;
    for_each_image([&](const Image& image) {
        total += image.untrappable + image.count - image.trapped.load(std::memory_order_relaxed);
    });
    return total;
}

} // namespace cfg::tripwire

// Called by the common code in assembly for a thread that ran into a jump. Where to go on; nullptr if the system
// doesn't let the pristine pages back (a seccomp filter since, vm.max_map_count): the real function can't be reached
// then.
extern "C" __attribute__((visibility("hidden"))) const void*
cfg_tripwire_hit(const cfg::tripwire::Entry* entry) noexcept {
    using namespace cfg::tripwire;
    const int saved = errno;
    bool first = false;
    bool reachable = false;
    {
        const SignalsBlocked quiet;
        first = change_state(State::armed, State::tripped);
        if (first) {
            swap_out_all();
        }
        reachable = swap_out(*entry->image);
    }
    if (first) {
        const TouchHandler handler = g_handler.load(std::memory_order_acquire);
        if (handler != nullptr) {
            handler(entry->name);
        }
    }
    errno = saved;
    return reachable ? entry->address : nullptr;
}
