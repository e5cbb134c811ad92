#include "core/platform.hpp"

#ifdef CFG_X86_64

#include <cpuid.h>
#include <cstring>
#include <initializer_list>

#include "core/tripwire_arch.hpp"

extern "C" {
// Read by the common code in assembly: which state XSAVE keeps, and the room it needs; 0: FXSAVE instead.
__attribute__((visibility("hidden"))) std::uint32_t cfg_tripwire_xsave_mask = 0;
__attribute__((visibility("hidden"))) std::uint32_t cfg_tripwire_vector_room = 512;
void cfg_tripwire_common() noexcept;
}

namespace cfg::tripwire::arch {

const char* const unsupported = nullptr;
// The mechanism would do with any address (nothing is stored into live text). But compilers align functions to 16; what
// is not even aligned to 8 is hand-made or points into the middle of another function.
const std::size_t alignment = 8;
const std::size_t shortest_jump = 5;
const std::uintptr_t reach = (std::uintptr_t{1} << 31U) - (std::uintptr_t{1} << 20U);
const std::uintptr_t step = std::uintptr_t{1} << 24U;

namespace {
constexpr unsigned char kEndbr64[] = {0xF3, 0x0F, 0x1E, 0xFA};
constexpr std::size_t kJump = 5; // jmp rel32
constexpr std::size_t kThunk = 16;
// x87, SSE, AVX and the three parts of AVX-512: everything an argument can be passed in. Not AMX tiles (8 KiB, no
// arguments) nor PKRU, which a handler may mean to change.
constexpr std::uint32_t kWanted = 0xE7;
constexpr std::uint32_t kHeaderEnd = 576;

std::uint32_t enabled_state() noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

std::size_t pad_size(const unsigned char* original) noexcept {
    return std::memcmp(original, kEndbr64, sizeof kEndbr64) == 0 ? sizeof kEndbr64 : 0;
}

unsigned char* put(unsigned char* at, std::initializer_list<unsigned char> bytes) noexcept {
    for (const unsigned char byte : bytes) {
        *at++ = byte;
    }
    return at;
}

unsigned char* put_distance(unsigned char* at, std::uintptr_t from, std::uintptr_t to) noexcept {
    const auto distance = static_cast<std::int32_t>(to - from);
    std::memcpy(at, &distance, sizeof distance);
    return at + sizeof distance;
}

std::uintptr_t number(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}
} // namespace

void measure() noexcept {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    std::uint32_t c = 0;
    std::uint32_t d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) {
        return;
    }
    const std::uint32_t mask = enabled_state() & kWanted;
    std::uint32_t room = kHeaderEnd;
    for (std::uint32_t part = 2; part < 8; ++part) {
        if ((mask >> part & 1U) != 0 && __get_cpuid_count(0xD, part, &a, &b, &c, &d) != 0 && a + b > room) {
            room = a + b;
        }
    }
    cfg_tripwire_vector_room = room;
    cfg_tripwire_xsave_mask = mask;
}

std::size_t jump_size(const unsigned char* original) noexcept {
    return pad_size(original) + kJump;
}

void write_jump(unsigned char* at, const Entry& entry) noexcept {
    const std::size_t pad = pad_size(at);
    at[pad] = 0xE9;
    put_distance(at + pad + 1, number(entry.address) + pad + kJump, number(entry.thunk));
}

// The address of the common code stands behind the last thunk.
std::size_t thunks_size(std::size_t entries) noexcept {
    return entries * kThunk + sizeof(void*);
}

void write_thunks(unsigned char* at, Entry* entries, std::size_t count) noexcept {
    unsigned char* const slot = at + count * kThunk;
    void (*const common)() noexcept = cfg_tripwire_common;
    std::memcpy(slot, &common, sizeof common);
    for (std::size_t i = 0; i < count; ++i) {
        entries[i].thunk = at;
        const std::uintptr_t self = number(&entries[i]);
        // r11 is nobody's at a function's entry, and a jump leaves the stack as the caller made it: to an unwinder the
        // common code looks as if it had been called directly.
        at = put(at, {0x49, 0xBB}); // movabs $self, %r11
        std::memcpy(at, &self, sizeof self);
        at = put(at + sizeof self, {0xFF, 0x25}); // jmp *slot(%rip)
        at = put_distance(at, number(at) + 4, number(slot));
    }
}

} // namespace cfg::tripwire::arch

#endif
