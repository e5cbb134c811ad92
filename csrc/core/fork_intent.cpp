#include "core/fork_intent.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "core/safe_output.hpp"

namespace cfg {

namespace {

// One per thread that is just forking. More threads than this forking in the same instant lose their fork sites, not
// their forks.
constexpr int kIntents = 32;

ForkIntent slots[kIntents];

// A bit for each slot that is taken. Not a mark in the slot itself: a child clears the marks of its parent's other
// threads, and would have each slot's page copied for that.
std::atomic<std::uint32_t> taken{0};
static_assert(kIntents <= 32, "a slot has a bit");

CFG_TLS int tls_slot = -1;

// A process's own site: the slot it was forked with (which stays taken in the child's copy of memory), or `native`.
ForkIntent native{};
std::atomic<ForkIntent*> own{&native};
char native_forker[64] = "a C library";
char native_advice[ForkSite::kLine] = "";

} // namespace

ForkIntent* begin_fork_intent() noexcept {
    end_fork_intent();
    for (int i = 0; i < kIntents; ++i) {
        const std::uint32_t bit = 1U << i;
        if ((taken.fetch_or(bit) & bit) == 0) {
            tls_slot = i;
            std::memset(&slots[i], 0, sizeof slots[i]);
            return &slots[i];
        }
    }
    return nullptr;
}

ForkIntent* current_fork_intent() noexcept {
    return tls_slot < 0 ? nullptr : &slots[tls_slot];
}

void end_fork_intent() noexcept {
    if (tls_slot >= 0) {
        taken.fetch_and(~(1U << tls_slot));
        tls_slot = -1;
    }
}

void adopt_fork_intent(pid_t parent) noexcept {
    // The other threads are gone, and with them whatever they were about to fork.
    taken.store(tls_slot >= 0 ? 1U << tls_slot : 0U);
    if (tls_slot >= 0) {
        own.store(&slots[tls_slot]);
        tls_slot = -1;
        return;
    }
    Text(native.site.forked, sizeof native.site.forked)
        .put("unknown: a native fork()  (")
        .put(native_forker)
        .put(", from pid ")
        .decimal(parent)
        .put(")");
    native.site.woken[0] = '\0';
    native.threads[0] = '\0';
    native.use = ForkUse::unknown;
    std::memcpy(native.site.advice, native_advice, sizeof native_advice);
    own.store(&native);
}

ForkSite& own_fork_site() noexcept {
    return own.load()->site;
}

ForkUse own_fork_use() noexcept {
    return own.load()->use;
}

const char* own_fork_threads() noexcept {
    return own.load()->threads;
}

void set_native_forker(const char* name, const char* advice) noexcept {
    copy_text(native_forker, sizeof native_forker, name, std::strlen(name));
    copy_text(native_advice, sizeof native_advice, advice, std::strlen(advice));
}

} // namespace cfg
