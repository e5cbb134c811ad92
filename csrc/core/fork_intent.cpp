#include "core/fork_intent.hpp"

#include <atomic>
#include <cstring>

#include "core/safe_output.hpp"

namespace cfg {

namespace {

// One per thread that is just forking. More threads than this forking in the same instant lose their fork sites, not
// their forks.
constexpr int kIntents = 32;

struct Slot {
    std::atomic<bool> taken;
    ForkIntent intent;
};
Slot slots[kIntents];

CFG_TLS int tls_slot = -1;

// A process's own site: the slot it was forked with (which stays taken in the child's copy of memory), or `native`.
Slot native{};
std::atomic<Slot*> own{&native};
char native_forker[64] = "a C library";
char native_advice[ForkSite::kLine] = "";

} // namespace

ForkIntent* begin_fork_intent() noexcept {
    end_fork_intent();
    for (int i = 0; i < kIntents; ++i) {
        if (!slots[i].taken.exchange(true)) {
            tls_slot = i;
            std::memset(&slots[i].intent, 0, sizeof slots[i].intent);
            return &slots[i].intent;
        }
    }
    return nullptr;
}

ForkIntent* current_fork_intent() noexcept {
    return tls_slot < 0 ? nullptr : &slots[tls_slot].intent;
}

void end_fork_intent() noexcept {
    if (tls_slot >= 0) {
        slots[tls_slot].taken.store(false);
        tls_slot = -1;
    }
}

void adopt_fork_intent(pid_t parent) noexcept {
    // The other threads are gone, and with them whatever they were about to fork.
    for (int i = 0; i < kIntents; ++i) {
        if (i != tls_slot) {
            slots[i].taken.store(false);
        }
    }
    if (tls_slot >= 0) {
        own.store(&slots[tls_slot]);
        tls_slot = -1;
        return;
    }
    Text(native.intent.site.forked, sizeof native.intent.site.forked)
        .put("unknown: a native fork()  (")
        .put(native_forker)
        .put(", from pid ")
        .decimal(parent)
        .put(")");
    native.intent.site.woken[0] = '\0';
    native.intent.threads[0] = '\0';
    native.intent.use = ForkUse::unknown;
    std::memcpy(native.intent.site.advice, native_advice, sizeof native_advice);
    own.store(&native);
}

ForkSite& own_fork_site() noexcept {
    return own.load()->intent.site;
}

ForkUse own_fork_use() noexcept {
    return own.load()->intent.use;
}

const char* own_fork_threads() noexcept {
    return own.load()->intent.threads;
}

void set_native_forker(const char* name, const char* advice) noexcept {
    copy_text(native_forker, sizeof native_forker, name, std::strlen(name));
    copy_text(native_advice, sizeof native_advice, advice, std::strlen(advice));
}

} // namespace cfg
