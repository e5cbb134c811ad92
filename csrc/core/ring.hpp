// Events in memory that a process shares with all its forked descendants: whoever forks or touches writes here, and the
// parent can read it even if the child died the next moment. No locks: a writer can be killed at any instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace cfg {

enum class EventKind : std::uint8_t { fork = 0, origin, touch, worker, allowed, end };
constexpr std::size_t kEventKinds = 6;
constexpr std::size_t kEventText = 4096; // bytes of text an event keeps, terminator included
constexpr std::size_t kEventSlots = 256;

// Maps the shared memory; once per process family, ordinary context. False if the system refuses.
bool ring_create() noexcept;

// Async-signal-safe: may be called inside a fork handler. Counted always; the text is kept for the newest 256.
void ring_push(EventKind kind, const char* text, std::size_t length) noexcept;
// The same for something that happened in another process (a fork, told by the child).
void ring_push_as(EventKind kind, pid_t pid, const char* text, std::size_t length) noexcept;

// Child handler: this process descends from `parent`, so the parent's events() shows what happens here.
void push_ancestor(pid_t parent) noexcept;

struct RingEvent {
    std::uint64_t ticket; // order of the events in the family
    EventKind kind;
    pid_t pid;
    double time;
    std::size_t length;
    char text[kEventText];
};

struct RingTotals {
    std::uint64_t counts[kEventKinds]; // exact, of the whole family
    std::uint64_t written;             // sum of the counts
};

RingTotals ring_totals() noexcept;
// One slot's event if it is whole and happened in this process or a descendant of it. False otherwise.
bool ring_read(std::size_t slot, RingEvent& event) noexcept;
// True in the process that made the ring: its counts cover exactly what it may see.
bool ring_is_own() noexcept;

} // namespace cfg
