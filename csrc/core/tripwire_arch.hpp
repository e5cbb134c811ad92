// What the tripwire must know of the processor. One source file for each; one that fits no other says so in
// `unsupported`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tripwire_image.hpp"

namespace cfg::tripwire::arch {

extern const char* const unsupported;   // nullptr, or why there is no tripwire on this processor
extern const std::size_t alignment;     // of the start of a compiled function
extern const std::size_t shortest_jump; // the least a jump takes, and as much of an entry as jump_size looks at
extern const std::uintptr_t reach;      // how far a jump goes, either way
extern const std::uintptr_t step;       // between the addresses that are tried for the thunks

constexpr std::size_t kLongestJump = 9;

// Looks at the processor, before anything is armed. Slow where a hypervisor answers for it (5 us a question).
void measure() noexcept;

// Bytes that the jump takes at an entry which begins with these bytes (a landing pad for indirect calls stays in
// front).
std::size_t jump_size(const unsigned char* original) noexcept;
// Writes the jump of `entry` to `at`, a copy of its first bytes.
void write_jump(unsigned char* at, const Entry& entry) noexcept;

// The thunks of an image, each of which loads the address of its Entry and goes to the common code.
std::size_t thunks_size(std::size_t entries) noexcept;
void write_thunks(unsigned char* at, Entry* entries, std::size_t count) noexcept;

} // namespace cfg::tripwire::arch
