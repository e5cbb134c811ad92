// Others who change libcuda's code or its file: breakpoints, hooks, uprobes, driver updates.
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include "core/tripwire_registry.hpp"
#include "harness.hpp"

using namespace harness;

namespace {
constexpr unsigned char kForeign = 0xCC; // x86-64: int3; executed nowhere here

// Writes one byte of code the way a debugger does it: into this process alone.
void poke(void* at, unsigned char byte) {
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    CHECK(memory >= 0);
    CHECK(pwrite(memory, &byte, 1, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at))) == 1);
    close(memory);
}

unsigned char* code(const Driver& driver, const char* name) {
    return static_cast<unsigned char*>(driver.address(name));
}

void traps_others(const Driver& driver) {
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.current_context();
              return touches().count.load();
          }) == 1);
    touches().count = 0;
}
} // namespace

SCENARIO(breakpoint_on_entry) {
    CHECK(wire::prepare(on_touch));
    const std::size_t all = wire::entries();
    const std::size_t skipped = wire::skipped();
    wire::disarm();

    unsigned char* const entry = code(driver, "cuDeviceGetCount");
    const unsigned char original = *entry;
    poke(entry, kForeign);
    CHECK(wire::prepare(on_touch));
    CHECK(wire::entries() == all - 1 && wire::skipped() == skipped + 1);
    CHECK(*entry == kForeign);
    traps_others(driver);
    // A debugger takes its breakpoints out of a child it doesn't follow, and must find no jump there.
    CHECK(in_child([&] {
              CHECK(wire::arm());
              CHECK(*entry == original);
              driver.device_count();
              return touches().count.load();
          }) == 0);
    poke(entry, original);
    wire::disarm();
    CHECK(wire::prepare(on_touch) && wire::entries() == all);
}

SCENARIO(breakpoint_after_prepare) {
    CHECK(wire::prepare(on_touch));
    const std::size_t all = wire::entries();
    unsigned char* const entry = code(driver, "cuDeviceGetCount");
    poke(entry, kForeign);
    CHECK(wire::prepare(on_touch));
    CHECK(wire::state() == wire::State::prepared);
    CHECK(wire::entries() == all - 1);
    CHECK(*entry == kForeign);
    traps_others(driver);
}

// Behind the bytes that a hook at an entry may take, but on a page that would be swapped.
SCENARIO(breakpoint_inside) {
    CHECK(wire::prepare(on_touch));
    const wire::Image& image = wire::images()[0];
    unsigned char* inside = nullptr;
    for (std::size_t i = 0; i + 1 < image.count; ++i) {
        const wire::Entry& entry = image.entries[i];
        const bool same_page = (reinterpret_cast<std::uintptr_t>(entry.address) & 4095) < 4096 - 24;
        if (same_page && image.entries[i + 1].address - entry.address >= 24) {
            inside = entry.address + 20;
        }
    }
    CHECK(inside != nullptr);
    const auto foreign = static_cast<unsigned char>(*inside ^ 0xFF);
    poke(inside, foreign);
    wire::disarm();
    CHECK(!wire::prepare(on_touch));
    CHECK(wire::state() == wire::State::unavailable);
    CHECK(std::strstr(wire::reason(), "not that of its file") != nullptr);
    CHECK(*inside == foreign);
    CHECK(!wire::arm());
}

namespace {
// Where in the file a page lies that is swapped although it holds no entry; -1 if there is none.
off_t page_without_entries() {
    const wire::Image& image = wire::images()[0];
    constexpr std::size_t page = 4096;
    for (std::size_t i = 0; i + 1 < image.count; ++i) {
        if (image.entries[i + 1].address - image.entries[i].address > static_cast<std::ptrdiff_t>(3 * page)) {
            return image.stretch.offset + (image.entries[i].address - image.stretch.text) +
                   static_cast<off_t>(2 * page);
        }
    }
    return -1;
}
} // namespace

SCENARIO(replaced_file) {
    // Given: a copy of the library, loaded, that this scenario may do away with.
    CHECK(driver.arguments.size() == 1 && driver.arguments[0] == "disposable");
    std::ifstream file(driver.path, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto put = [&](const std::string& what) {
        std::ofstream(driver.path + ".new", std::ios::binary) << what;
        CHECK(rename((driver.path + ".new").c_str(), driver.path.c_str()) == 0);
    };
    const auto refused = [&](const char* reason) {
        CHECK(!wire::prepare(on_touch));
        CHECK(wire::state() == wire::State::unavailable);
        CHECK(std::strstr(wire::reason(), reason) != nullptr);
        wire::disarm();
    };
    put(content); // another file with the same code serves
    CHECK(wire::prepare(on_touch));
    traps_others(driver);
    const off_t unlisted = page_without_entries();
    wire::disarm();
    if (unlisted >= 0) {
        std::string changed = content;
        changed[static_cast<std::size_t>(unlisted)] ^= 1;
        put(changed);
        refused("not that of its file");
    }
    put(std::string(content.size(), 'x'));
    refused("not that of its file");
    put(content.substr(0, content.size() / 64));
    refused("shorter than what is loaded");
    CHECK(unlink(driver.path.c_str()) == 0);
    refused("can't be opened (ENOENT)");
    put(content);
    CHECK(wire::prepare(on_touch));
    traps_others(driver);
}
