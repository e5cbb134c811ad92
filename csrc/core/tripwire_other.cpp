#include "core/platform.hpp"

#if !defined(CFG_X86_64) && !defined(CFG_AARCH64)

#include "core/tripwire_arch.hpp"

namespace cfg::tripwire::arch {

const char* const unsupported = "there is no tripwire for this processor";
const std::size_t alignment = 1;
const std::size_t shortest_jump = 1;
const std::uintptr_t reach = 0;
const std::uintptr_t step = 1;

// prepare() never comes this far.
void measure() noexcept {}

std::size_t jump_size(const unsigned char*) noexcept {
    return kLongestJump;
}

void write_jump(unsigned char*, const Entry&) noexcept {}

std::size_t thunks_size(std::size_t) noexcept {
    return 0;
}

void write_thunks(unsigned char*, Entry*, std::size_t) noexcept {}

} // namespace cfg::tripwire::arch

#endif
