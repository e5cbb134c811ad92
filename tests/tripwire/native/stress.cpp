// Forks from two threads, beside threads that allocate and look libraries up; every child is armed in the C child
// handler, and four of its threads touch at once under a storm of signals, two of them with every signal blocked.
// Arguments: forks.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <string_view>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

#include "harness.hpp"

using namespace harness;

namespace {
constexpr int kTouching = 4;

struct Functions {
    const char* name;
    void* address;
    int expected;
};

std::atomic<int> g_signals{0};
void count_signal(int) {
    g_signals.fetch_add(1, std::memory_order_relaxed);
}

// Of this process alone: a touch that another one made would not be counted here.
std::atomic<int> g_touches_here{0};
std::string_view g_touched;
void count_touch(const char* function) noexcept {
    g_touched = function;
    g_touches_here.fetch_add(1);
    on_touch(function);
}

void storm_begins() {
    struct sigaction action{};
    action.sa_handler = count_signal;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, nullptr) == 0 && sigaction(SIGUSR1, &action, nullptr) == 0);
    const itimerval often{{0, 200}, {0, 200}};
    CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
}

int touch_from_four_threads(const Functions* functions) {
    storm_begins();
    std::atomic<int> waiting{kTouching};
    std::atomic<int> running{kTouching};
    std::atomic<int> wrong{0};
    std::thread threads[kTouching];
    for (int i = 0; i < kTouching; ++i) {
        threads[i] = std::thread([&, i] {
            sigset_t signals;
            sigfillset(&signals);
            pthread_sigmask(i % 2 == 0 ? SIG_BLOCK : SIG_UNBLOCK, &signals, nullptr);
            waiting.fetch_sub(1);
            spin_while([&] { return waiting.load() > 0; });
            int result[64] = {};
            wrong += reinterpret_cast<int (*)(void*)>(functions[i].address)(result) != functions[i].expected;
            running.fetch_sub(1);
        });
    }
    // Until they are through: before and behind the touch, and in the middle of it.
    do {
        for (std::thread& thread : threads) {
            pthread_kill(thread.native_handle(), SIGUSR1);
        }
        sched_yield();
    } while (running.load() > 0);
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(g_signals > 0);
    CHECK(g_touches_here == 1);
    CHECK(std::any_of(functions, functions + kTouching,
                      [](const Functions& function) { return function.name == g_touched; }));
    return wrong.load();
}

void make_noise(const std::atomic<bool>& stop) {
    unsigned seed = 1;
    while (!stop.load(std::memory_order_relaxed)) {
        void* const memory = std::malloc(100 + static_cast<std::size_t>(rand_r(&seed)) % 9000);
        void* const handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
        if (handle != nullptr) {
            dlclose(handle);
        }
        std::free(memory);
        sched_yield();
    }
}
} // namespace

SCENARIO(stress) {
    const int forks = driver.arguments.empty() ? 500 : std::atoi(driver.arguments[0].c_str());
    Functions functions[kTouching] = {{"cuDeviceGetCount", nullptr, 0},
                                      {"cuCtxGetCurrent", nullptr, 0},
                                      {"cuCtxGetDevice", nullptr, 0},
                                      {"cuDeviceGetCount", nullptr, 0}};
    driver.function<int(unsigned)>("cuInit")(0);
    for (Functions& function : functions) {
        function.address = driver.address(function.name);
        function.expected = in_child([&] {
            int result[64] = {};
            return reinterpret_cast<int (*)(void*)>(function.address)(result);
        });
    }
    CHECK(wire::prepare(count_touch));
    arm_in_every_child();

    std::atomic<bool> stop{false};
    std::atomic<int> left{forks};
    std::atomic<int> bad{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] { make_noise(stop); });
    }
    std::vector<std::thread> forkers;
    for (int i = 0; i < 2; ++i) {
        forkers.emplace_back([&] {
            while (left.fetch_sub(1) > 0) {
                const int code = in_child([&] { return touch_from_four_threads(functions); });
                if (code != 0) {
                    std::fprintf(stderr, "a child ended with %d\n", code);
                    bad.fetch_add(1);
                }
            }
        });
    }
    for (std::thread& thread : forkers) {
        thread.join();
    }
    stop.store(true);
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(g_touches_here == 0);
    std::printf("%d forks, %d touches, %d bad\n", forks, touches().count.load(), bad.load());
    CHECK(bad == 0);
    CHECK(touches().count == forks);
}
