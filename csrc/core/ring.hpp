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

} // namespace cfg
