// Measures; checks nothing but that it measured the right thing. Arguments: how many pairs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness.hpp"

using namespace harness;

namespace {
double now() noexcept {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

void print(const char* what, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) {
        return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
    };
    std::printf("%-44s median %8.1f us   90%% %8.1f us   99%% %8.1f us\n", what, at(0.5), at(0.9), at(0.99));
}

template <class Body> double timed(Body body) {
    const double begin = now();
    body();
    return now() - begin;
}

std::vector<double> differences(const std::vector<double>& with, const std::vector<double>& without) {
    std::vector<double> result;
    for (std::size_t i = 0; i < with.size(); ++i) {
        result.push_back(with[i] - without[i]);
    }
    return result;
}
} // namespace

SCENARIO(speed) {
    const int pairs = driver.arguments.empty() ? 300 : std::atoi(driver.arguments[0].c_str());
    driver.function<int(unsigned)>("cuInit")(0);
    std::vector<double> first{timed([] { CHECK(wire::prepare(on_touch)); })};
    print("prepare, the first time", first);

    // A child tells its parent through shared memory.
    auto* const told =
        static_cast<double*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK(told != MAP_FAILED);
    std::vector<double> prepare, again, arm, touch, off, off_too, ready, armed;
    for (int i = 0; i < pairs; ++i) {
        wire::disarm();
        off.push_back(timed([&] { in_child([] { return 0; }); }));
        off_too.push_back(timed([&] { in_child([] { return 0; }); }));
        prepare.push_back(timed([] { CHECK(wire::prepare(on_touch)); }));
        again.push_back(timed([] { CHECK(wire::prepare(on_touch)); }));
        ready.push_back(timed([&] { in_child([] { return 0; }); }));
        armed.push_back(timed([&] {
            CHECK(in_child([&] {
                      told[0] = timed([] { CHECK(wire::arm()); });
                      return 0;
                  }) == 0);
        }));
        CHECK(in_child([&] {
                  CHECK(wire::arm());
                  told[1] = timed([&] { driver.device_count(); });
                  return 0;
              }) == 0);
        arm.push_back(told[0]);
        touch.push_back(told[1]);
    }
    CHECK(touches().count == pairs);
    std::printf("%zu driver functions, %zu skipped\n", wire::entries(), wire::skipped());
    print("prepare, from nothing", prepare);
    print("prepare, when it is prepared", again);
    print("arm, in a fresh child", arm);
    print("the first touch, with an empty handler", touch);
    print("fork and wait, not prepared", off);
    print("  more: not prepared either (noise)", differences(off_too, off));
    print("  more: prepared, not armed", differences(ready, off));
    print("  more: prepared and armed", differences(armed, off));
}
