// Runs the reading of a stack as a program: a "handler" of its own in faulthandler's place, which waits in the middle
// of a dump. Prints what each reader was told.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fork_state.hpp"
#include "core/python_dump.hpp"

namespace {

constexpr int kDescriptor = 900;
constexpr const char* kText = "Stack (most recent call first):\n  File \"train.py\", line 12 in main\n";

bool waits = true; // in the middle of its dump
std::atomic<bool> inside{false};
std::atomic<bool> go_on{false};
std::atomic<bool> ending{false};

void handler(int) {
    if (waits) {
        inside = true;
        while (!go_on) {
            sched_yield();
        }
    }
    if (write(kDescriptor, kText, std::strlen(kText)) < 0) {
        std::perror("write");
    }
}

void read_and_print(const char* who) {
    static cfg::PythonStack stack; // one reader at a time prints
    stack.clear();
    cfg::dump_python_stack(stack);
    std::printf("%s: %d frames, %s, open afterwards: %d\n", who, stack.count,
                stack.reason == nullptr ? "no reason" : stack.reason, fcntl(kDescriptor, F_GETFD) != -1 ? 1 : 0);
    std::fflush(stdout);
}

void* read_on_a_thread(void*) {
    read_and_print("reader");
    return nullptr;
}

pthread_t reader_in_the_middle() {
    pthread_t reader{};
    pthread_create(&reader, nullptr, read_on_a_thread, nullptr);
    while (!inside) {
        sched_yield();
    }
    return reader;
}

// A fork by another thread in the middle of a dump: in the child the reader's mark and its open file are there, the
// reader is not. `taken`: the child has put a file of its own on that number.
int fork_in_the_middle(bool taken) {
    const pthread_t reader = reader_in_the_middle();
    const pid_t child = fork();
    if (child == 0) {
        cfg::fork_state().generation.fetch_add(1);
        waits = false;
        if (taken) {
            dup2(0, kDescriptor);
        }
        read_and_print("child");
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    go_on = true;
    pthread_join(reader, nullptr);
    return 0;
}

int two_readers() {
    const pthread_t reader = reader_in_the_middle();
    static cfg::PythonStack second;
    second.clear();
    cfg::dump_python_stack(second);
    std::printf("second: %d frames, %s\n", second.count, second.reason);
    go_on = true;
    pthread_join(reader, nullptr);
    return 0;
}

void* let_go(void*) {
    while (!ending) {
        sched_yield();
    }
    for (int turn = 0; turn < 2000; ++turn) {
        sched_yield(); // long enough for an end that doesn't wait to be over
    }
    go_on = true;
    return nullptr;
}

// The interpreter's end waits for the reader, and no other begins.
int end_in_the_middle() {
    const pthread_t reader = reader_in_the_middle();
    pthread_t releaser{};
    pthread_create(&releaser, nullptr, let_go, nullptr);
    ending = true;
    cfg::end_python_dumps();
    std::printf("end came after the reader was let go: %d\n", go_on.load() ? 1 : 0);
    std::fflush(stdout);
    pthread_join(reader, nullptr);
    pthread_join(releaser, nullptr);
    waits = false;
    read_and_print("after the end");
    return 0;
}

} // namespace

int main(int, char** words) {
    cfg::set_python_dump(handler, 58, kDescriptor, nullptr);
    const char* const what = words[1];
    if (std::strcmp(what, "end") == 0) {
        return end_in_the_middle();
    }
    return std::strcmp(what, "two readers") == 0 ? two_readers() : fork_in_the_middle(std::strcmp(what, "taken") == 0);
}
