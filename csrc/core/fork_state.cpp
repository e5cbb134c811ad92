#include "core/fork_state.hpp"

namespace cfg {

namespace {
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free,
              "fork handlers must not take a lock");
// At namespace scope and constant-initialised: a function-local static's guard would be a lock inside a fork handler.
ForkState global_state;
} // namespace

CFG_TLS bool tls_inside_cuinit = false;
CFG_TLS int tls_allowed_forks = 0;

ForkState& fork_state() noexcept {
    return global_state;
}

} // namespace cfg
