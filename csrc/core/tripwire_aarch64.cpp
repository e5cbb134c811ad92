#include "core/platform.hpp"

#ifdef CFG_AARCH64

#include <cstring>

#include "core/tripwire_arch.hpp"

extern "C" void cfg_tripwire_common() noexcept;

namespace cfg::tripwire::arch {

const char* const unsupported = nullptr;
const std::size_t alignment = 4;
const std::size_t shortest_jump = 4;
const std::uintptr_t reach = (std::uintptr_t{1} << 27U) - (std::uintptr_t{1} << 20U); // b: 128 MiB either way
const std::uintptr_t step = std::uintptr_t{1} << 20U;

namespace {
constexpr std::uint32_t kBtiC = 0xD503245F;
constexpr std::size_t kWord = sizeof(std::uint32_t);

struct Thunk {
    std::uint32_t code[4];
    std::uint64_t entry;
    std::uint64_t common;
};

std::uint32_t word_at(const unsigned char* at) noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// Where branch targets are enforced an indirect call must land on one of these. The pad that replaces it is always `bti
// c`: paciasp would sign the return address, and the real function would sign it again.
bool is_landing_pad(std::uint32_t instruction) noexcept {
    constexpr std::uint32_t kBtiJc = 0xD50324DF;
    constexpr std::uint32_t kPaciasp = 0xD503233F;
    constexpr std::uint32_t kPacibsp = 0xD503237F;
    return instruction == kBtiC || instruction == kBtiJc || instruction == kPaciasp || instruction == kPacibsp;
}
} // namespace

void measure() noexcept {}

std::size_t jump_size(const unsigned char* original) noexcept {
    return is_landing_pad(word_at(original)) ? 2 * kWord : kWord;
}

void write_jump(unsigned char* at, const Entry& entry) noexcept {
    std::uintptr_t from = reinterpret_cast<std::uintptr_t>(entry.address);
    if (is_landing_pad(word_at(at))) {
        std::memcpy(at, &kBtiC, sizeof kBtiC);
        at += kWord;
        from += kWord;
    }
    const std::uintptr_t words = (reinterpret_cast<std::uintptr_t>(entry.thunk) - from) >> 2U;
    const std::uint32_t jump = 0x14000000U | (static_cast<std::uint32_t>(words) & 0x03FFFFFFU); // b thunk
    std::memcpy(at, &jump, sizeof jump);
}

std::size_t thunks_size(std::size_t entries) noexcept {
    return entries * sizeof(Thunk);
}

// x16 and x17 are nobody's at a function's entry, and `br x17` may land on the `bti c` of the common code.
void write_thunks(unsigned char* at, Entry* entries, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const Thunk thunk{{0x58000090,  // ldr x16, entry
                           0x580000B1,  // ldr x17, common
                           0xD61F0220,  // br x17
                           0xD4200000}, // brk: never reached
                          reinterpret_cast<std::uint64_t>(&entries[i]),
                          reinterpret_cast<std::uint64_t>(&cfg_tripwire_common)};
        entries[i].thunk = at;
        std::memcpy(at, &thunk, sizeof thunk);
        at += sizeof thunk;
    }
}

} // namespace cfg::tripwire::arch

#endif
