// Armed processes that fork, spawn, exec and end.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/tripwire_registry.hpp"
#include "harness.hpp"

extern char** environ;

using namespace harness;

namespace {
int touched_by(const Driver& driver, int expected) {
    driver.device_count();
    CHECK(touches().count == expected);
    CHECK(touches().last_pid == getpid());
    return 0;
}
} // namespace

SCENARIO(nested_forks) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    CHECK(in_child([&] {
              CHECK(wire::state() == wire::State::armed);
              CHECK(in_child([&] {
                        CHECK(wire::state() == wire::State::armed && wire::arm());
                        CHECK(in_child([&] { return touched_by(driver, 1); }) == 0);
                        CHECK(wire::state() == wire::State::armed);
                        return touched_by(driver, 2);
                    }) == 0);
              CHECK(wire::state() == wire::State::armed);
              return touched_by(driver, 3);
          }) == 0);
}

// A child of a process that has touched: nothing is trapped in it until it is prepared anew.
SCENARIO(child_of_tripped) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    CHECK(in_child([&] {
              touched_by(driver, 1);
              return in_child([&] {
                  CHECK(wire::state() == wire::State::tripped);
                  CHECK(!wire::arm());
                  driver.device_count();
                  CHECK(touches().count == 1);
                  CHECK(wire::prepare(on_touch) && wire::arm());
                  return touched_by(driver, 2);
              });
          }) == 0);
}

SCENARIO(spawn_from_armed) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    CHECK(in_child([&] {
              char program[] = "/bin/true";
              char* arguments[] = {program, nullptr};
              pid_t pid = 0;
              CHECK(posix_spawn(&pid, program, nullptr, nullptr, arguments, environ) == 0);
              CHECK(wait_for(pid) == 0);
              CHECK(std::system("true") == 0);
              pid = vfork();
              if (pid == 0) {
                  execv(program, arguments);
                  _exit(9);
              }
              CHECK(wait_for(pid) == 0);
              pid = fork();
              if (pid == 0) {
                  execv(program, arguments);
                  _exit(9);
              }
              CHECK(wait_for(pid) == 0);
              CHECK(touches().count == 0);
              CHECK(wire::state() == wire::State::armed);
              return touched_by(driver, 1);
          }) == 0);
}

SCENARIO(exec_of_armed) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    CHECK(in_child([&] {
              char program[] = "/bin/true";
              char* arguments[] = {program, nullptr};
              execv(program, arguments);
              return 9;
          }) == 0);
    CHECK(touches().count == 0);
}

// Documented: a vfork child shares the memory, so its touch disarms the parent too.
SCENARIO(vfork_child_touches) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    CHECK(in_child([&] {
              auto* const count = driver.function<int(int*)>("cuDeviceGetCount");
              int devices = 0;
              const pid_t pid = vfork();
              if (pid == 0) {
                  count(&devices);
                  _exit(0);
              }
              CHECK(wait_for(pid) == 0);
              CHECK(touches().count == 1);
              CHECK(touches().last_pid == pid);
              CHECK(wire::state() == wire::State::tripped);
              driver.device_count();
              CHECK(touches().count == 1);
              return 0;
          }) == 0);
}

SCENARIO(ordinary_exit) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    CHECK(in_child([&]() -> int { std::exit(5); }) == 5);
    CHECK(touches().count == 0);
}

// A second libcuda, loaded when the first is armed: prepared and armed beside it, and the first touch disarms both.
SCENARIO(loaded_later) {
    CHECK(driver.arguments.size() == 1);
    CHECK(wire::prepare(on_touch));
    const std::size_t entries = wire::entries();
    arm_in_every_child();
    const auto body = [&](bool touch_second) {
        Driver second;
        second.handle = dlopen(driver.arguments[0].c_str(), RTLD_NOW | RTLD_LOCAL);
        CHECK(second.handle != nullptr && second.handle != driver.handle);
        second.device_count();
        CHECK(touches().count == 0);
        const auto pristine = entry_bytes(second, "cuDeviceGetCount");
        CHECK(wire::prepare(on_touch));
        CHECK(wire::state() == wire::State::armed);
        CHECK(wire::entries() > entries);
        CHECK(wire::arm());
        CHECK(entry_bytes(second, "cuDeviceGetCount") != pristine);
        (touch_second ? second : driver).device_count();
        CHECK(touches().count == 1);
        CHECK(entry_bytes(second, "cuDeviceGetCount") == pristine);
        second.device_count();
        driver.device_count();
        CHECK(touches().count == 1);
        touches().count = 0;
        return 0;
    };
    CHECK(in_child([&] { return body(true); }) == 0);
    CHECK(in_child([&] { return body(false); }) == 0);
}

// Two libcudas of which one can't be armed: then none is.
SCENARIO(one_of_two_refused) {
    CHECK(driver.arguments.size() == 1);
    Driver second;
    second.handle = dlopen(driver.arguments[0].c_str(), RTLD_NOW | RTLD_LOCAL);
    CHECK(second.handle != nullptr && second.handle != driver.handle);
    CHECK(wire::prepare(on_touch));
    CHECK(wire::image_count() == 2);
    const auto pristine = entry_bytes(driver, "cuDeviceGetCount");
    CHECK(in_child([&] {
              // As if the second had been changed since.
              for (std::size_t i = 0; i < wire::images()[1].count; ++i) {
                  wire::images()[1].entries[i].jump ^= 1;
              }
              CHECK(!wire::arm());
              CHECK(wire::state() == wire::State::unavailable);
              CHECK(entry_bytes(driver, "cuDeviceGetCount") == pristine);
              driver.device_count();
              second.device_count();
              return touches().count.load();
          }) == 0);
}

// The guard must not depend on the program's own reference.
SCENARIO(closed_by_program) {
    CHECK(wire::prepare(on_touch));
    auto* const count = driver.function<int(int*)>("cuDeviceGetCount");
    CHECK(dlclose(driver.handle) == 0);
    CHECK(in_child([&] {
              CHECK(wire::arm());
              int devices = 0;
              count(&devices);
              CHECK(touches().count == 1);
              return 0;
          }) == 0);
}

// A process is forked while another of its threads is in the middle of tripping. What that thread began is not finished
// by anybody in the child: it must neither wait for it nor crash.
SCENARIO(fork_while_tripping) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    constexpr int kRounds = 100;
    int reported_twice = 0;
    for (int round = 0; round < kRounds; ++round) {
        touches().count = 0;
        CHECK(in_child([&] {
                  std::atomic<bool> go{false};
                  std::thread toucher([&] {
                      spin_while([&] { return !go.load(); });
                      driver.device_count();
                  });
                  go.store(true);
                  pause_for(round % 50 * 3);
                  const pid_t pid = fork();
                  if (pid == 0) {
                      driver.device_count();
                      driver.current_context();
                      CHECK(wire::state() == wire::State::tripped);
                      leave(0);
                  }
                  toucher.join();
                  return wait_for(pid);
              }) == 0);
        // Its own touch is reported if it was forked before the other one.
        const int count = touches().count;
        CHECK(count == 1 || count == 2);
        reported_twice += count == 2;
    }
    std::printf("forked before the touch: %d of %d\n", reported_twice, kRounds);
}
