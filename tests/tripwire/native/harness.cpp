#include "harness.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace harness {

namespace {
Scenario* g_scenarios = nullptr;
Touches* g_touches = nullptr;
} // namespace

Scenario::Scenario(const char* its_name, Run its_run) noexcept : name(its_name), run(its_run), next(g_scenarios) {
    g_scenarios = this;
}

void failed(const char* file, int line, const char* condition) noexcept {
    std::fprintf(stderr, "%s:%d: pid %d: not true: %s (state %d, reason \"%s\")\n", file, line, getpid(), condition,
                 static_cast<int>(wire::state()), wire::reason());
    _exit(kFailed);
}

void skip(const char* why) noexcept {
    std::printf("skipped: %s\n", why);
    std::fflush(stdout);
    _exit(kSkipped);
}

void leave(int code) noexcept {
    std::fflush(stdout);
    _exit(code);
}

void* Driver::address(const char* name) const {
    void* const found = dlsym(handle, name);
    CHECK(found != nullptr);
    return found;
}

Touches& touches() noexcept {
    return *g_touches;
}

void on_touch(const char* function) noexcept {
    g_touches->last_pid = getpid();
    std::strncpy(g_touches->last_name, function, sizeof g_touches->last_name - 1);
    g_touches->count.fetch_add(1);
}

pid_t checked_fork() noexcept {
    std::fflush(stdout); // or the child prints it again
    const pid_t pid = fork();
    CHECK(pid >= 0);
    return pid;
}

int wait_for(pid_t pid) noexcept {
    int status = 0;
    pid_t got = 0;
    do {
        got = waitpid(pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    CHECK(got == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void pause_for(int microseconds) noexcept {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
    while (std::chrono::steady_clock::now() < end) {
    }
}

void arm_in_every_child() noexcept {
    CHECK(pthread_atfork(nullptr, nullptr, [] { wire::arm(); }) == 0);
}

std::vector<unsigned char> entry_bytes(const Driver& driver, const char* name) {
    const auto* const at = static_cast<const unsigned char*>(driver.address(name));
    return {at, at + 16};
}

} // namespace harness

int main(int count, char** arguments) {
    using namespace harness;
    if (count < 3) {
        std::fprintf(stderr, "usage: %s LIBCUDA SCENARIO [ARGUMENT...]\n", arguments[0]);
        for (const Scenario* scenario = g_scenarios; scenario != nullptr; scenario = scenario->next) {
            std::fprintf(stderr, "  %s\n", scenario->name);
        }
        return 2;
    }
    g_touches = static_cast<Touches*>(
        mmap(nullptr, sizeof(Touches), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK(g_touches != MAP_FAILED);
    Driver driver;
    driver.path = arguments[1];
    driver.arguments.assign(arguments + 3, arguments + count);
    driver.handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (driver.handle == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    for (const Scenario* scenario = g_scenarios; scenario != nullptr; scenario = scenario->next) {
        if (std::strcmp(scenario->name, arguments[2]) == 0) {
            scenario->run(driver);
            std::printf("ok\n");
            return 0;
        }
    }
    std::fprintf(stderr, "no scenario %s\n", arguments[2]);
    return 2;
}
