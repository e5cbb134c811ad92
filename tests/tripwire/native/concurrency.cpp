// Signals and threads that come in between.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

#include "harness.hpp"

using namespace harness;

namespace {
int (*g_count)(int*) = nullptr;

void touch_in_signal(int) {
    int devices = 0;
    g_count(&devices);
}
} // namespace

// Signal handlers that use the driver themselves: while the process is armed, while it trips, in any of its threads.
SCENARIO(signal_handler_touches) {
    g_count = driver.function<int(int*)>("cuDeviceGetCount");
    CHECK(wire::prepare(on_touch));
    const int rounds = driver.arguments.empty() ? 60 : std::atoi(driver.arguments[0].c_str());
    for (int round = 1; round <= rounds; ++round) {
        CHECK(in_child([&] {
                  struct sigaction action{};
                  action.sa_handler = touch_in_signal;
                  action.sa_flags = SA_RESTART;
                  CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
                  // Early, late, and again and again: it hits arm() in some rounds, the touch in others.
                  const itimerval storm{{0, 20}, {0, 1 + round % 90}};
                  CHECK(setitimer(ITIMER_REAL, &storm, nullptr) == 0);
                  wire::arm(); // false if a handler touched just then
                  std::thread other([&] { driver.current_context(); });
                  driver.device_count();
                  other.join();
                  CHECK(wire::state() == wire::State::tripped);
                  return 0;
              }) == 0);
        CHECK(touches().count == round);
    }
}

// prepare() and disarm() on one thread, forks on another: a child has the tripwire or it hasn't, and works in either
// case. (It can't prepare anew here: glibc leaves the lock of dl_iterate_phdr taken in a child, if the other thread was
// in there.)
SCENARIO(fork_while_preparing) {
    const int rounds = driver.arguments.empty() ? 100 : std::atoi(driver.arguments[0].c_str());
    std::atomic<bool> stop{false};
    std::thread preparing([&] {
        while (!stop.load()) {
            wire::prepare(on_touch);
            pause_for(200);
            wire::disarm();
        }
    });
    int armed = 0;
    for (int round = 0; round < rounds; ++round) {
        touches().count = 0;
        const int code = in_child([&] {
            const bool is_armed = wire::arm();
            driver.device_count();
            driver.current_context();
            CHECK(touches().count == (is_armed ? 1 : 0));
            wire::disarm(); // the lock that the other thread may hold is not this process's
            driver.current_context();
            CHECK(touches().count == (is_armed ? 1 : 0));
            return is_armed ? 1 : 0;
        });
        CHECK(code == 0 || code == 1);
        armed += code;
    }
    stop.store(true);
    preparing.join();
    std::printf("armed: %d of %d\n", armed, rounds);
}

SCENARIO(prepare_on_many_threads) {
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int turn = 0; turn < 50; ++turn) {
                refused += !wire::prepare(on_touch);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(refused == 0);
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.device_count();
              return touches().count.load();
          }) == 1);
}
