// Every driver function by itself: called once in an armed child and once in one that isn't, with zeros for arguments.
// What it answers (or how it dies) must be the same, and the touch must bear its name.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "core/tripwire_registry.hpp"
#include "harness.hpp"

using namespace harness;

namespace {
using AnyFunction = int(long, long, long, long, long, long, long, long, long, long, long, long);

int call(const wire::Entry& entry) {
    alarm(5); // a function that waits for a device waits for ever
    std::signal(SIGSEGV, SIG_DFL);
    return reinterpret_cast<AnyFunction*>(entry.address)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) & 255;
}
} // namespace

SCENARIO(every_entry) {
    CHECK(wire::prepare(on_touch));
    const wire::Image& image = wire::images()[0];
    int called = 0;
    for (std::size_t i = 0; i < image.count; ++i) {
        const wire::Entry& entry = image.entries[i];
        // The functions for a debugger (cudbg...) stop and wait for one.
        if (entry.name[2] < 'A' || entry.name[2] > 'Z') {
            continue;
        }
        touches().count = 0;
        const int expected = in_child([&] { return call(entry); });
        CHECK(touches().count == 0);
        const int got = in_child([&] {
            CHECK(wire::arm());
            return call(entry);
        });
        if (got != expected || touches().count != 1 || std::strcmp(touches().last_name, entry.name) != 0) {
            std::fprintf(stderr, "%s: %d instead of %d, %d touches, the last of %s\n", entry.name, got, expected,
                         touches().count.load(), touches().last_name);
            CHECK(false);
        }
        ++called;
    }
    std::printf("%d driver functions called\n", called);
    CHECK(called > 3);
}
