#include "core/atfork.hpp"

#include <cerrno>
#include <pthread.h>
#include <unistd.h>

#include "core/fork_intent.hpp"
#include "core/fork_state.hpp"
#include "core/loaded_libraries.hpp"
#include "core/ring.hpp"
#include "core/safe_output.hpp"
#include "core/touch.hpp"
#include "core/tripwire.hpp"

namespace cfg {

namespace {

CFG_TLS bool tls_subprocess = false;
// What the child of the fork now being made on this thread will be. Decided in the parent: after the fork the answer
// would depend on what other threads did meanwhile.
CFG_TLS int tls_child_inherits = static_cast<int>(Inherited::no);

Inherited inheritance_of_a_child() noexcept {
    const ForkState& state = fork_state();
    const auto inherited = static_cast<Inherited>(state.inherited.load());
    const auto driver = static_cast<DriverKnown>(state.driver.load());
    if (inherited == Inherited::yes || driver == DriverKnown::up) {
        return Inherited::yes;
    }
    return inherited == Inherited::unknown || driver == DriverKnown::tried ? Inherited::unknown : Inherited::no;
}

void prepare() {
    tls_child_inherits = static_cast<int>(inheritance_of_a_child());
    if (tls_inside_cuinit) {
        fork_state().driver_helpers.fetch_add(1);
    }
}

void in_parent() {
    tls_subprocess = false;
    end_fork_intent();
}

void record_fork(pid_t child, pid_t parent) noexcept {
    const ForkUse use = own_fork_use();
    if (use == ForkUse::exec || tls_inside_cuinit || tls_subprocess) {
        return;
    }
    char buffer[2048];
    Text text(buffer, sizeof buffer);
    text.decimal(child).put("\x1f").put(own_fork_site().forked).put("\x1f").put(own_fork_threads());
    ring_push_as(use == ForkUse::allowed ? EventKind::allowed : EventKind::fork, parent, buffer, text.size());
}

void in_child() {
    const int saved = errno;
    ForkState& state = fork_state();
    const pid_t parent = state.pid.load();
    const pid_t self = getpid();
    const auto inherited = static_cast<Inherited>(tls_child_inherits);
    state.generation.fetch_add(1);
    state.parent.store(parent);
    state.pid.store(self);
    push_ancestor(parent);
    note_fork_for_loader();
    state.inherited.store(static_cast<int>(inherited));
    state.driver.store(static_cast<int>(DriverKnown::down));
    state.cuinit_calls.store(0);
    adopt_fork_intent(parent);
    const bool off = state.policy.load() == static_cast<int>(Policy::off);
    if (inherited != Inherited::no && !off) {
        record_fork(self, parent);
    }
    tls_subprocess = false;
    tls_inside_cuinit = false;
    tls_allowed_forks = 0;
    if (inherited == Inherited::yes && own_fork_use() != ForkUse::exec && state.tripwire.load() != 0 && !off) {
        note_stderr();
        tripwire::arm();
    }
    errno = saved;
}

} // namespace

int register_fork_handlers() noexcept {
    static std::atomic<bool> registered{false};
    if (registered.exchange(true)) {
        return 0;
    }
    fork_state().pid.store(getpid());
    const int error = pthread_atfork(prepare, in_parent, in_child);
    if (error != 0) {
        registered.store(false);
    }
    return error;
}

void announce_subprocess() noexcept {
    tls_subprocess = true;
}

void forget_subprocess() noexcept {
    tls_subprocess = false;
}

} // namespace cfg
