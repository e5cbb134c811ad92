// A trapped call is the call that was made: arguments, results, registers. On the fake driver, whose functions are
// known.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

#include "fake_driver.hpp"
#include "harness.hpp"

using namespace harness;

extern "C" {
extern std::uint32_t cfg_tripwire_xsave_mask __attribute__((weak)); // x86-64 only
extern std::uint32_t cfg_tripwire_vector_room __attribute__((weak));
}

namespace {
// Runs the call in an armed child; it must trip the wire and be right.
template <class Body> void trapped(const char* name, Body body) {
    touches().count = 0;
    CHECK(in_child([&] {
              CHECK(wire::arm());
              CHECK(body());
              CHECK(touches().count == 1);
              CHECK(std::strcmp(touches().last_name, name) == 0);
              CHECK(body());
              CHECK(touches().count == 1);
              return 0;
          }) == 0);
}

// Uses every register that a handler may use, and then some.
void rude_handler(const char* function) noexcept {
    on_touch(function);
    errno = 4321;
    char text[256];
    std::snprintf(text, sizeof text, "%s %d %.3f", function, 12, static_cast<double>(touches().count) / 7);
    std::memset(text, 0, sizeof text);
#ifdef __x86_64__
    __asm__ volatile("xorl %%eax, %%eax; xorl %%edi, %%edi; xorl %%esi, %%esi; xorl %%edx, %%edx; xorl %%ecx, %%ecx;"
                     "xorl %%r8d, %%r8d; xorl %%r9d, %%r9d; xorl %%r10d, %%r10d; xorl %%r11d, %%r11d" ::
                         : "rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "cc");
    __asm__ volatile(
        "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3; pxor %%xmm4, %%xmm4;"
        "pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7; pxor %%xmm15, %%xmm15" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm15");
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile("vzeroall");
    }
#else
    __asm__ volatile(
        "movi v0.2d, #0; movi v1.2d, #0; movi v2.2d, #0; movi v3.2d, #0; movi v4.2d, #0; movi v5.2d, #0;"
        "movi v6.2d, #0; movi v7.2d, #0; mov x0, #0; mov x1, #0; mov x2, #0; mov x3, #0; mov x4, #0; mov x5, #0;"
        "mov x6, #0; mov x7, #0; mov x8, #0; mov x16, #0; mov x17, #0" ::
            : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x16", "x17", "v0", "v1", "v2", "v3", "v4", "v5",
              "v6", "v7");
#endif
}
} // namespace

SCENARIO(signatures) {
    CHECK(wire::prepare(rude_handler));
    trapped("cuTwelve", [&] {
        return driver.function<long(long, long, long, long, long, long, long, long, long, long, long, long)>(
                   "cuTwelve")(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) == 650;
    });
    trapped("cuTenDoubles", [&] {
        return driver.function<double(double, double, double, double, double, double, double, double, double, double)>(
                   "cuTenDoubles")(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 385.0;
    });
    trapped("cuLongDouble",
            [&] { return driver.function<long double(long double, float)>("cuLongDouble")(1.25L, 0.5F) == 3.0L; });
    trapped("cuFormat", [&] {
        char text[128];
        driver.function<int(char*, std::size_t, const char*, ...)>("cuFormat")(
            text, sizeof text, "%d %.2f %s %.1f %ld %d %d %.1f", 1, 2.5, "three", 4.5, 5L, 6, 7, 8.5);
        return std::strcmp(text, "1 2.50 three 4.5 5 6 7 8.5") == 0;
    });
    trapped("cuLarge", [&] {
        const Large large = driver.function<Large(long)>("cuLarge")(100);
        return large.values[0] == 100 && large.values[11] == 111;
    });
    trapped("cuSmall", [&] {
        const Small small = driver.function<Small(long, double)>("cuSmall")(6, 2.25);
        return small.whole == 7 && small.part == 4.5;
    });
    trapped("cuPair", [&] {
        const Pair pair = driver.function<Pair(float, float)>("cuPair")(1.5F, 2.5F);
        return pair.a == 2.5F && pair.b == 1.5F;
    });
    trapped("cuByValue", [&] {
        Large large{};
        large.values[11] = 5;
        return driver.function<long(Large, Small)>("cuByValue")(large, {6, 7.0}) == 18;
    });
    trapped("cuInit", [&] {
        errno = 1234;
        return driver.function<int(unsigned)>("cuInit")(0) == 3 && errno == 1234;
    });
}

namespace {
void fill(Registers& registers, unsigned seed) {
    auto* const bytes = reinterpret_cast<unsigned char*>(&registers);
    for (std::size_t i = 0; i < sizeof registers; ++i) {
        bytes[i] = static_cast<unsigned char>(i * 7 + seed + i / 251);
    }
#ifdef __x86_64__
    registers.control = 0x1F80U | 0x6000U | (std::uint64_t{0x0F7F} << 32U); // rounding of both set to an unusual way
#endif
}

// Calls with known values in all registers, and returns what the function found in them.
Registers seen_by_function(const Driver& driver, unsigned seed) {
    static Registers given;
    static Registers found;
    fill(given, seed);
    std::memset(&found, 0, sizeof found);
    *static_cast<Registers**>(driver.address("fake_registers")) = &found;
    driver.function<void(const Registers*, void*)>("fake_load_registers_and_call")(&given,
                                                                                   driver.address("cuStoreRegisters"));
    return found;
}

void compare_registers(const Driver& driver, bool without_xsave) {
    for (unsigned seed = 1; seed < 20; ++seed) {
        touches().count = 0;
        CHECK(in_child([&] {
                  CHECK(wire::arm());
                  if (without_xsave) {
                      cfg_tripwire_xsave_mask = 0;
                      cfg_tripwire_vector_room = 512;
                  }
                  Registers seen[2]; // same call site: same stack pointer
                  for (Registers& one : seen) {
                      one = seen_by_function(driver, seed);
                      CHECK(touches().count == 1);
                  }
                  if (without_xsave) {
                      for (int i = 0; i < 32; ++i) {
                          CHECK(std::memcmp(seen[0].vector[i], seen[1].vector[i], 16) == 0);
                      }
                      return 0;
                  }
                  CHECK(std::memcmp(&seen[0], &seen[1], sizeof(Registers)) == 0);
                  CHECK(seen[0].vector[3][15] != 0 || seen[0].vector[4][15] != 0);
                  return 0;
              }) == 0);
    }
}
} // namespace

SCENARIO(registers) {
    CHECK(wire::prepare(rude_handler));
    compare_registers(driver, false);
}

SCENARIO(registers_without_xsave) {
    if (&cfg_tripwire_xsave_mask == nullptr) {
        skip("for x86-64 only");
    }
    CHECK(wire::prepare(rude_handler));
    compare_registers(driver, true);
}

SCENARIO(odd_entries) {
    CHECK(wire::prepare(on_touch));
    using Plain = int();
#ifdef __x86_64__
    for (const char* name : {"cuShort", "cuUnaligned", "cuShortLandingPad", "cuOverlapped"}) {
        const auto pristine = entry_bytes(driver, name);
        CHECK(in_child([&] {
                  CHECK(wire::arm());
                  CHECK(entry_bytes(driver, name) == pristine);
                  driver.function<Plain>(name)();
                  return touches().count.load();
              }) == 0);
    }
    CHECK(wire::skipped() == 4);
    constexpr unsigned char landing_pad[] = {0xF3, 0x0F, 0x1E, 0xFA};
    trapped("cuFourByteNeighbour", [&] { return driver.function<Plain>("cuFourByteNeighbour")() == 31; });
#else
    CHECK(wire::skipped() == 1);
    constexpr unsigned char landing_pad[] = {0x5F, 0x24, 0x03, 0xD5};
    trapped("cuSigned", [&] { return driver.function<Plain>("cuSigned")() == 19; });
#endif
    trapped("cuLandingPad", [&] { return driver.function<Plain>("cuLandingPad")() == 17; });
    trapped("cuAcrossPages", [&] { return driver.function<Plain>("cuAcrossPages")() == 37; });
    trapped("cuFar", [&] { return driver.function<Plain>("cuFar")() == 41; });
    trapped("cuAliasA", [&] { return driver.function<Plain>("cuAliasB")() == 23; });
    trapped("cuMany377", [&] { return driver.function<Plain>("cuMany377")() == 377; });
    CHECK(in_child([&] {
              CHECK(wire::arm());
              CHECK(std::memcmp(driver.address("cuLandingPad"), landing_pad, 4) == 0);
              CHECK(driver.function<int(int)>("otherFunction")(4) == 5);
              CHECK(static_cast<int*>(driver.address("cuTable"))[3] == 4);
              CHECK(wire::state() == wire::State::armed);
              return 0;
          }) == 0);
}

SCENARIO(exception_through_callback) {
    CHECK(wire::prepare(rude_handler));
    trapped("cuCallback", [&] {
        try {
            driver.function<int(void (*)(void*), void*)>("cuCallback")(
                [](void* data) { throw std::runtime_error(static_cast<const char*>(data)); },
                const_cast<char*>("thrown"));
        } catch (const std::runtime_error& error) {
            return std::strcmp(error.what(), "thrown") == 0;
        }
        return false;
    });
}
