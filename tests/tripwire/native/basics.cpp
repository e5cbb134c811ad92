// What every libcuda must pass: simulated, real, or made for the test.
#include <cstdlib>
#include <thread>
#include <unistd.h>

#include "harness.hpp"

using namespace harness;

SCENARIO(first_touch) {
    CHECK(wire::state() == wire::State::idle);
    CHECK(!wire::arm());
    const auto pristine = entry_bytes(driver, "cuDeviceGetCount");
    const int untrapped = in_child([&] { return driver.device_count(); });
    CHECK(wire::prepare(on_touch));
    CHECK(wire::state() == wire::State::prepared);
    CHECK(wire::entries() > 3);
    CHECK(entry_bytes(driver, "cuDeviceGetCount") == pristine);

    CHECK(in_child([&] {
              CHECK(wire::arm());
              CHECK(wire::state() == wire::State::armed);
              CHECK(entry_bytes(driver, "cuDeviceGetCount") != pristine);
              int version = 0;
              const char* name = nullptr;
              driver.function<int(int*)>("cuDriverGetVersion")(&version);
              driver.function<int(int, const char**)>("cuGetErrorName")(3, &name);
              CHECK(touches().count == 0);

              CHECK(driver.device_count() == untrapped);
              CHECK(touches().count == 1);
              CHECK(touches().last_pid == getpid());
              CHECK(std::string(touches().last_name) == "cuDeviceGetCount");
              CHECK(wire::state() == wire::State::tripped);
              CHECK(entry_bytes(driver, "cuDeviceGetCount") == pristine);
              driver.current_context();
              CHECK(driver.device_count() == untrapped);
              CHECK(touches().count == 1);
              CHECK(!wire::arm());
              return 0;
          }) == 0);
    CHECK(wire::state() == wire::State::prepared);
    driver.device_count();
    CHECK(touches().count == 1);
}

SCENARIO(idempotent) {
    CHECK(wire::prepare(on_touch));
    const std::size_t entries = wire::entries();
    const std::size_t skipped = wire::skipped();
    for (int i = 0; i < 100; ++i) {
        CHECK(wire::prepare(on_touch));
    }
    CHECK(wire::entries() == entries && wire::skipped() == skipped);
    CHECK(std::string(wire::reason()).empty());
    CHECK(in_child([&] {
              CHECK(wire::arm() && wire::arm());
              CHECK(wire::prepare(on_touch) && wire::state() == wire::State::armed);
              CHECK(wire::entries() == entries && wire::skipped() == skipped);
              driver.device_count();
              CHECK(touches().count == 1);
              return 0;
          }) == 0);
}

SCENARIO(disarm) {
    const auto pristine = entry_bytes(driver, "cuCtxGetCurrent");
    CHECK(wire::prepare(on_touch) && wire::arm());
    CHECK(entry_bytes(driver, "cuCtxGetCurrent") != pristine);
    wire::disarm();
    CHECK(wire::state() == wire::State::idle);
    CHECK(entry_bytes(driver, "cuCtxGetCurrent") == pristine);
    driver.current_context();
    CHECK(touches().count == 0);
    CHECK(!wire::arm());
    wire::disarm();
    CHECK(wire::prepare(on_touch) && wire::arm());
    driver.current_context();
    CHECK(touches().count == 1);
    wire::disarm();
    CHECK(wire::state() == wire::State::idle);
}

// The wire is armed again in a process that it has tripped in: by prepare(), from the pristine pages.
SCENARIO(prepared_again_after_touch) {
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              for (int round = 1; round <= 3; ++round) {
                  CHECK(wire::arm());
                  driver.device_count();
                  driver.device_count();
                  CHECK(touches().count == round);
                  CHECK(!wire::arm());
                  CHECK(wire::prepare(on_touch));
                  CHECK(wire::state() == wire::State::prepared);
              }
              return 0;
          }) == 0);
}

namespace {
const Driver* g_driver = nullptr;
void touch_from_handler(const char* function) noexcept {
    on_touch(function);
    g_driver->device_count();
    g_driver->current_context();
}
} // namespace

SCENARIO(handler_calls_driver) {
    g_driver = &driver;
    CHECK(wire::prepare(touch_from_handler));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.current_context();
              CHECK(touches().count == 1);
              return 0;
          }) == 0);
}

SCENARIO(threads_together) {
    CHECK(wire::prepare(on_touch));
    arm_in_every_child();
    const int expected = in_child([&] {
        wire::disarm();
        return driver.device_count();
    });
    CHECK(touches().count == 0);
    const int rounds = driver.arguments.empty() ? 100 : std::atoi(driver.arguments[0].c_str());
    for (int round = 1; round <= rounds; ++round) {
        CHECK(in_child([&] {
                  std::atomic<int> waiting{4};
                  std::atomic<int> wrong{0};
                  std::vector<std::thread> threads;
                  for (int i = 0; i < 4; ++i) {
                      threads.emplace_back([&] {
                          waiting.fetch_sub(1);
                          spin_while([&] { return waiting.load() > 0; });
                          wrong += driver.device_count() != expected;
                      });
                  }
                  for (std::thread& thread : threads) {
                      thread.join();
                  }
                  return wrong.load();
              }) == 0);
        CHECK(touches().count == round);
    }
}
