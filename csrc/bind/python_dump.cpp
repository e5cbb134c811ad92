// Fetches the C handler of faulthandler.register: the one function that writes a Python stack without the GIL and is
// there in every build of CPython (_Py_DumpTraceback is exported by some only).
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bind/walker.hpp"
#include "core/python_dump.hpp"

namespace py = pybind11;

namespace cfg::bind {

namespace {

// The kernel's struct sigaction, whose first member is the handler on every processor. Kept as bytes and handled by the
// system call itself: the C library's sigaction adds a flag of its own, and what is put back must be what was there.
using Disposition = std::array<unsigned char, 64>;
constexpr std::size_t kSignalSetSize = 8;

bool read_disposition(int signum, Disposition& disposition) noexcept {
    return syscall(SYS_rt_sigaction, signum, nullptr, disposition.data(), kSignalSetSize) == 0;
}

bool put_back(int signum, const Disposition& disposition) noexcept {
    return syscall(SYS_rt_sigaction, signum, disposition.data(), nullptr, kSignalSetSize) == 0;
}

DumpFunction handler_of(const Disposition& disposition) noexcept {
    DumpFunction handler = nullptr;
    std::memcpy(&handler, disposition.data(), sizeof handler);
    return handler;
}

bool is_default(const Disposition& disposition) noexcept {
    return handler_of(disposition) == SIG_DFL;
}

// Real-time signals from the upper end, which no C library, debugger or profiler takes for itself; not the very last
// (Valgrind's). Only one at its default: whoever set it to something else uses it.
constexpr int kFirstSignal = 58;
constexpr int kLastSignal = 45;

// High, so that no program meets it by opening files one after the other; not higher, since the kernel's table grows
// with the number.
constexpr rlim_t kHighestDescriptor = 4096;
constexpr int kBelowTheLimit = 24;
constexpr int kDescriptorsTried = 64;

// An open descriptor on a free high number, or -1. It is closed again as soon as faulthandler has accepted the number.
int reserve_descriptor() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return -1;
    }
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0) {
        return -1;
    }
    const int highest = static_cast<int>(std::min(limit.rlim_cur, kHighestDescriptor)) - kBelowTheLimit;
    int placed = -1;
    for (int number = highest; placed < 0 && number > null && number > highest - kDescriptorsTried; --number) {
        placed = fcntl(null, F_DUPFD_CLOEXEC, number);
        if (placed >= 0 && placed != number) {
            close(placed);
            placed = -1;
        }
    }
    close(null);
    return placed;
}

// An alternate stack that somebody installed on this thread stays theirs: faulthandler would put its own in its place.
// Where there was none, faulthandler's stays, as after faulthandler.enable(): it believes that it is there.
class AlternateStack {
  public:
    AlternateStack() noexcept { known_ = sigaltstack(nullptr, &former_) == 0; }
    ~AlternateStack() {
        if (known_ && (former_.ss_flags & SS_DISABLE) == 0) {
            sigaltstack(&former_, nullptr);
        }
    }
    AlternateStack(const AlternateStack&) = delete;
    AlternateStack& operator=(const AlternateStack&) = delete;

  private:
    stack_t former_{};
    bool known_ = false;
};

bool in_python(DumpFunction function) noexcept {
    Dl_info found{};
    Dl_info python{};
    return dladdr(reinterpret_cast<void*>(function), &found) != 0 &&
           dladdr(reinterpret_cast<void*>(&Py_Initialize), &python) != 0 && found.dli_fbase == python.dli_fbase;
}

// The handler, or null if this signal is in use. The disposition is the former one again in either case.
DumpFunction fetch(const py::object& registrar, int signum, int descriptor) {
    Disposition former{};
    Disposition registered{};
    if (!read_disposition(signum, former) || !is_default(former)) {
        return nullptr;
    }
    registrar(signum, py::arg("file") = descriptor, py::arg("all_threads") = false, py::arg("chain") = false);
    read_disposition(signum, registered);
    put_back(signum, former);
    const DumpFunction handler = handler_of(registered);
    return !is_default(registered) && in_python(handler) ? handler : nullptr;
}

PyObject* at_exit(PyObject*, PyObject*) noexcept {
    end_python_dumps();
    Py_RETURN_NONE;
}

PyMethodDef at_exit_method = {"cuda_fork_guard_at_exit", at_exit, METH_NOARGS, nullptr};

const char* fetch_any(int descriptor) {
    // First: without it nothing is fetched. Anything later than an atexit callback is too late: the next thing that the
    // interpreter's end does is to free the other threads' states.
    const auto end = py::reinterpret_steal<py::object>(PyCFunction_New(&at_exit_method, nullptr));
    py::module_::import("atexit").attr("register")(end);
    const py::object registrar = py::module_::import("faulthandler").attr("register");
    const AlternateStack kept;
    for (int signum = kFirstSignal; signum >= kLastSignal; --signum) {
        if (const DumpFunction handler = fetch(registrar, signum, descriptor)) {
            set_python_dump(handler, signum, descriptor, nullptr);
            return nullptr;
        }
    }
    return "the GIL was not held, and faulthandler's handler could not be had: no signal was free";
}

const char* fetch_once() noexcept {
    const int descriptor = reserve_descriptor();
    if (descriptor < 0) {
        return "the GIL was not held, and no file descriptor number was free when the guard was installed";
    }
    const char* why = nullptr;
    try {
        why = fetch_any(descriptor);
    } catch (...) {
        why = "the GIL was not held, and this Python has no faulthandler.register";
    }
    close(descriptor);
    return why;
}

} // namespace

const char* install_python_dump() noexcept {
    static bool done = false; // a process' statics: neither a second import nor a child fetches it again
    static const char* why = nullptr;
    if (!done) {
        done = true;
        why = fetch_once();
        if (why != nullptr) {
            set_python_dump(nullptr, 0, -1, why);
        }
    }
    return why;
}

} // namespace cfg::bind
