#include "core/ring.hpp"

#include <atomic>
#include <cstring>
#include <sys/mman.h>

#include "core/fork_state.hpp"
#include "core/safe_output.hpp"

namespace cfg {

namespace {

constexpr int kLineage = 8; // how many generations up an event is shown

struct Slot {
    // 2 * ticket + 1 while it is being written, 2 * ticket + 2 when whole, 0 if never used.
    std::atomic<std::uint64_t> sequence;
    std::uint32_t checksum;
    EventKind kind;
    pid_t pid;
    pid_t lineage[kLineage];
    double time;
    std::uint32_t length;
    char text[kEventText];
};

struct Ring {
    std::atomic<std::uint64_t> head;
    std::atomic<std::uint64_t> counts[kEventKinds];
    Slot slots[kEventSlots];
};

// One mapping for the whole family: created once, inherited by fork, never replaced.
std::atomic<Ring*> ring{nullptr};
std::atomic<pid_t> maker{0};
std::atomic<pid_t> ancestors[kLineage];

std::uint32_t checksum_of(const Slot& slot) noexcept {
    std::uint32_t sum = 2166136261U; // FNV-1a: two writers' mixed bytes must not pass for an event
    const auto add = [&sum](const void* bytes, std::size_t length) {
        for (std::size_t i = 0; i < length; ++i) {
            sum = (sum ^ static_cast<const unsigned char*>(bytes)[i]) * 16777619U;
        }
    };
    add(&slot.kind, sizeof slot.kind);
    add(&slot.pid, sizeof slot.pid);
    add(slot.lineage, sizeof slot.lineage);
    add(&slot.time, sizeof slot.time);
    add(&slot.length, sizeof slot.length);
    add(slot.text, slot.length < kEventText ? slot.length : kEventText);
    return sum;
}

// A slot whose writer died stays "being written". It is taken over once the ring has gone round twice since: a writer
// that is merely stopped that long leaves mixed bytes, which the checksum finds.
bool claim(Slot& slot, std::uint64_t ticket) noexcept {
    std::uint64_t seen = slot.sequence.load(std::memory_order_acquire);
    const bool busy = (seen & 1U) != 0U;
    if (busy && ticket < (seen >> 1U) + 2 * kEventSlots) {
        return false;
    }
    return seen <= 2 * ticket && slot.sequence.compare_exchange_strong(seen, 2 * ticket + 1, std::memory_order_acq_rel);
}

bool visible(const RingEvent& event, const pid_t* lineage, pid_t self) noexcept {
    if (event.pid == self || ring_is_own()) {
        return true;
    }
    for (int i = 0; i < kLineage; ++i) {
        if (lineage[i] == self) {
            return true;
        }
    }
    return false;
}

} // namespace

bool ring_create() noexcept {
    if (ring.load() != nullptr) {
        return true;
    }
    void* memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    maker.store(fork_state().pid.load());
    ring.store(static_cast<Ring*>(memory));
    return true;
}

bool ring_is_own() noexcept {
    return maker.load() == fork_state().pid.load();
}

void ring_push(EventKind kind, const char* text, std::size_t length) noexcept {
    ring_push_as(kind, fork_state().pid.load(), text, length);
}

void ring_push_as(EventKind kind, pid_t pid, const char* text, std::size_t length) noexcept {
    Ring* shared = ring.load();
    if (shared == nullptr) {
        return;
    }
    shared->counts[static_cast<std::size_t>(kind)].fetch_add(1);
    const std::uint64_t ticket = shared->head.fetch_add(1);
    Slot& slot = shared->slots[ticket % kEventSlots];
    if (!claim(slot, ticket)) {
        return; // counted; its text is lost
    }
    slot.kind = kind;
    slot.pid = pid;
    for (int i = 0; i < kLineage; ++i) {
        slot.lineage[i] = ancestors[i].load(std::memory_order_relaxed);
    }
    slot.time = wall_clock();
    copy_text(slot.text, sizeof slot.text, text, length);
    slot.length = static_cast<std::uint32_t>(std::strlen(slot.text));
    slot.checksum = checksum_of(slot);
    std::uint64_t writing = 2 * ticket + 1;
    slot.sequence.compare_exchange_strong(writing, 2 * ticket + 2, std::memory_order_release);
}

void push_ancestor(pid_t parent) noexcept {
    for (int i = kLineage - 1; i > 0; --i) {
        ancestors[i].store(ancestors[i - 1].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    ancestors[0].store(parent, std::memory_order_relaxed);
}

RingTotals ring_totals() noexcept {
    RingTotals totals{};
    const Ring* shared = ring.load();
    for (std::size_t i = 0; shared != nullptr && i < kEventKinds; ++i) {
        totals.counts[i] = shared->counts[i].load();
        totals.written += totals.counts[i];
    }
    return totals;
}

bool ring_read(std::size_t slot_index, RingEvent& event) noexcept {
    const Ring* shared = ring.load();
    if (shared == nullptr || slot_index >= kEventSlots) {
        return false;
    }
    const Slot& slot = shared->slots[slot_index];
    const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
    if (before == 0 || (before & 1U) != 0U) {
        return false;
    }
    pid_t lineage[kLineage];
    event.ticket = before / 2 - 1;
    event.kind = slot.kind;
    event.pid = slot.pid;
    event.time = slot.time;
    event.length = slot.length < kEventText ? slot.length : kEventText - 1;
    std::memcpy(event.text, slot.text, event.length);
    event.text[event.length] = '\0';
    std::memcpy(lineage, slot.lineage, sizeof lineage);
    const bool whole = slot.checksum == checksum_of(slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    return whole && slot.sequence.load(std::memory_order_relaxed) == before &&
           visible(event, lineage, fork_state().pid.load());
}

} // namespace cfg
