// Moments that last some microseconds: another thread is swapping pages, or was when this process was forked, and then
// nobody ends what was begun. They are set up here, mark by mark, instead of waited for.
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "core/tripwire_registry.hpp"
#include "harness.hpp"

using namespace harness;

namespace {
void mark(wire::Phase phase, pid_t pid) {
    wire::images()[0].phase.store(static_cast<std::uint64_t>(pid) << 2U | static_cast<std::uint64_t>(phase));
}

// What the other thread did just before the fork.
void move_copy(std::size_t which) {
    const wire::Image& image = wire::images()[0];
    const std::size_t length = image.stretch.length;
    CHECK(mremap(image.copies.load() + which * length, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
                 image.stretch.text) != MAP_FAILED);
}
} // namespace

SCENARIO(forked_while_arming) {
    CHECK(wire::prepare(on_touch));
    const pid_t parent = getpid();
    for (const bool moved : {false, true}) {
        touches().count = 0;
        CHECK(in_child([&] {
                  mark(wire::Phase::arming, parent);
                  if (moved) {
                      move_copy(0);
                  }
                  CHECK(wire::arm());
                  driver.device_count();
                  driver.current_context();
                  CHECK(touches().count == 1);
                  return 0;
              }) == 0);
    }
}

SCENARIO(forked_while_disarming) {
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              const pid_t parent = getpid();
              CHECK(in_child([&] {
                        mark(wire::Phase::restoring, parent);
                        CHECK(wire::arm());
                        driver.device_count();
                        driver.current_context();
                        return touches().count.load();
                    }) == 1);
              // The other thread has moved the pages back, and only its mark is left.
              driver.device_count();
              CHECK(touches().count == 2);
              return in_child([&] {
                  mark(wire::Phase::restoring, parent);
                  CHECK(!wire::arm());
                  CHECK(wire::state() == wire::State::tripped);
                  driver.device_count();
                  CHECK(touches().count == 2);
                  CHECK(wire::prepare(on_touch) && wire::arm());
                  driver.device_count();
                  return touches().count.load();
              });
          }) == 3);
}

// Without any handler of ours (a raw clone): the first call finds the mark.
SCENARIO(cloned_while_disarming) {
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              const pid_t parent = getpid();
              return in_child([&] {
                  mark(wire::Phase::restoring, parent);
                  driver.device_count();
                  driver.device_count();
                  return touches().count.load();
              });
          }) == 1);
}

// While a thread of this very process is at it, others wait.
SCENARIO(touch_waits_for_swap) {
    CHECK(wire::prepare(on_touch));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              mark(wire::Phase::restoring, getpid());
              std::atomic<bool> through{false};
              std::thread other([&] {
                  driver.device_count();
                  through.store(true);
              });
              while (wire::state() != wire::State::tripped) {
              }
              pause_for(3000);
              CHECK(!through.load());
              move_copy(1);
              wire::images()[0].copies.store(nullptr);
              mark(wire::Phase::pristine, 0);
              other.join();
              return touches().count.load();
          }) == 1);
}
