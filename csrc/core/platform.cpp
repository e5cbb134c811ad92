#include "core/platform.hpp"

#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace cfg {

pid_t thread_id() noexcept {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

double wall_clock() noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

} // namespace cfg
