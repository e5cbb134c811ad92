// What the scenarios share. Each scenario runs in a process of its own, against the library named on the command line,
// and ends with exit code 0; a failed check says where and ends the process it happens in.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <string>
#include <sys/types.h>
#include <vector>

#include "core/tripwire.hpp"

namespace wire = cfg::tripwire;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            harness::failed(__FILE__, __LINE__, #condition);                                                           \
        }                                                                                                              \
    } while (false)

namespace harness {

constexpr int kFailed = 99;  // exit code: far from what the bodies of children return
constexpr int kSkipped = 77; // exit code: this can't be tried here; stdout says why

[[noreturn]] void failed(const char* file, int line, const char* condition) noexcept;
[[noreturn]] void skip(const char* why) noexcept;

// The library under test.
struct Driver {
    std::string path;
    void* handle = nullptr;
    std::vector<std::string> arguments; // what stands behind the scenario's name

    void* address(const char* name) const; // fails if there is none
    template <class Function> Function* function(const char* name) const {
        return reinterpret_cast<Function*>(address(name));
    }
    int device_count() const { // a function that every libcuda has and that is harmless to call
        int count = 0;
        return function<int(int*)>("cuDeviceGetCount")(&count);
    }
    int current_context() const {
        void* context = nullptr;
        return function<int(void**)>("cuCtxGetCurrent")(&context);
    }
};

// Touches of this process and of all its descendants, in shared memory.
struct Touches {
    std::atomic<int> count;
    pid_t last_pid;
    char last_name[64];
};
Touches& touches() noexcept;
void on_touch(const char* function) noexcept; // the handler

// Runs `body` in a forked child; what it returns is the exit code. fork_child doesn't wait.
template <class Body> int in_child(Body body);
int wait_for(pid_t pid) noexcept; // exit code, or 1000 + signal
pid_t checked_fork() noexcept;
[[noreturn]] void leave(int code) noexcept; // without destructors or exit handlers

template <class Body> int in_child(Body body) {
    const pid_t pid = checked_fork();
    if (pid == 0) {
        leave(body());
    }
    const int code = wait_for(pid);
    if (code == kSkipped) {
        leave(kSkipped);
    }
    return code;
}

// Busy at first, so that threads get away together; then it lets others run, where there are fewer processors than
// threads.
template <class Condition> void spin_while(Condition condition) {
    for (int turns = 0; condition(); ++turns) {
        if (turns > 2000) {
            sched_yield();
        }
    }
}

// Busy, since a sleep would be longer than what is to be hit.
void pause_for(int microseconds) noexcept;

// arm() in the C child handler of every fork from now on, as the guard does it.
void arm_in_every_child() noexcept;

// The bytes at a driver function's entry, now.
std::vector<unsigned char> entry_bytes(const Driver& driver, const char* name);

using Run = void (*)(const Driver&);
struct Scenario {
    Scenario(const char* name, Run run) noexcept;
    const char* name;
    Run run;
    Scenario* next;
};

} // namespace harness

#define SCENARIO(name)                                                                                                 \
    static void scenario_##name(const harness::Driver& driver);                                                        \
    static harness::Scenario registered_##name(#name, scenario_##name);                                                \
    static void scenario_##name([[maybe_unused]] const harness::Driver& driver)
