// The stack as debuggers, profilers and backtrace() see it from inside the handler.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <unwind.h>

#include "harness.hpp"

using namespace harness;

namespace {
constexpr int kFrames = 32;
void* g_frames[kFrames];
int g_count = 0;
std::uintptr_t g_stack[kFrames];
int g_depth = 0;

_Unwind_Reason_Code note(_Unwind_Context* context, void*) {
    if (g_depth < kFrames) {
        g_stack[g_depth++] = _Unwind_GetCFA(context);
    }
    return _URC_NO_REASON;
}

void looks_back(const char* function) noexcept {
    on_touch(function);
    g_count = backtrace(g_frames, kFrames);
    _Unwind_Backtrace(note, nullptr);
}

const char* function_of(int frame) {
    Dl_info info{};
    // A return address may stand behind the end of a function that doesn't return.
    return dladdr(static_cast<char*>(g_frames[frame]) - 1, &info) != 0 && info.dli_sname != nullptr ? info.dli_sname
                                                                                                    : "";
}
} // namespace

extern "C" __attribute__((noinline, visibility("default"))) int first_caller(const Driver& driver) {
    return driver.device_count() + static_cast<int>(touches().count) * 100;
}

extern "C" __attribute__((noinline, visibility("default"))) int second_caller(const Driver& driver) {
    const int result = first_caller(driver);
    return result == 0 ? 1 : result;
}

// gdb stops here.
extern "C" __attribute__((noinline, visibility("default"))) void in_handler(const char* function) noexcept {
    looks_back(function);
}

SCENARIO(backtrace) {
    void* warm[2];
    ::backtrace(warm, 2); // loads the unwinder
    CHECK(wire::prepare(in_handler));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              CHECK(second_caller(driver) > 100);
              int first = -1;
              int second = -1;
              int main = -1;
              for (int i = 0; i < g_count; ++i) {
                  const char* const name = function_of(i);
                  first = std::strcmp(name, "first_caller") == 0 ? i : first;
                  second = std::strcmp(name, "second_caller") == 0 ? i : second;
                  main = std::strcmp(name, "main") == 0 ? i : main;
              }
              CHECK(first > 0 && second == first + 1 && main > second);
              CHECK(g_depth > main);
              for (int i = 1; i < g_depth && i <= main; ++i) {
                  CHECK(g_stack[i] > g_stack[i - 1]);
              }
              return 0;
          }) == 0);
}

// For a debugger: a child that stops, armed, until a line comes on stdin.
SCENARIO(waits_armed) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // inherited; fails where nothing forbids tracing
    CHECK(wire::prepare(in_handler));
    CHECK(in_child([&] {
              CHECK(wire::arm());
              std::printf("ready %d\n", getpid());
              std::fflush(stdout);
              CHECK(std::getchar() == '\n');
              CHECK(second_caller(driver) > 100);
              CHECK(driver.device_count() < 100);
              return 0;
          }) == 0);
}

// For a debugger that has a breakpoint on cuDeviceGetCount: it is the debugger's, everything else is trapped.
SCENARIO(beside_breakpoint) {
    driver.device_count();
    CHECK(wire::prepare(in_handler));
    CHECK(wire::skipped() > 0);
    driver.device_count();
    CHECK(in_child([&] {
              CHECK(wire::arm());
              driver.device_count();
              CHECK(touches().count == 0);
              driver.current_context();
              driver.device_count();
              return touches().count.load();
          }) == 1);
    driver.device_count();
}
