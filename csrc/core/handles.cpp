#include "core/handles.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/device_filter.hpp"
#include "core/proc_folder.hpp"
#include "core/safe_output.hpp"

namespace cfg {

namespace {

// The one table of device nodes. A prefix ends in '*'.
constexpr const char* kDevices[] = {
    "/dev/nvidia*",  // nvidia0, nvidiactl, nvidia-uvm, nvidia-caps/…
    "/dev/dxg",      // WSL
    "/dev/nvmap",    // Jetson
    "/dev/nvhost-*", // Jetson
    "/dev/nvgpu/*",  // Jetson
};

constexpr const char* kDescriptors = "/proc/self/fd";
constexpr const char* kDeleted = " (deleted)"; // what the kernel adds for a node that was replaced while it was open
constexpr int kForkNoExec = 0x40;              // PF_FORKNOEXEC, linux/sched.h

struct Look {
    HandleVisitor visitor;
    void* data;
    DeviceFilter filter;
    int descriptors; // kDescriptors itself, opened: a path from there is shorter; -1 if it can't be opened
    int error;       // the last that kept it from looking at one
};

void look_at(int descriptor, void* data) {
    auto* look = static_cast<Look*>(data);
    if (!look->filter.worth_a_look(descriptor)) {
        return;
    }
    char link[64];
    Text text(link, sizeof link);
    if (look->descriptors < 0) {
        text.put(kDescriptors).put("/");
    }
    text.decimal(descriptor);
    char target[256];
    const ssize_t length = readlinkat(look->descriptors, link, target, sizeof target - 1);
    if (length < 0) {
        look->error = errno == ENOENT ? look->error : errno; // not open, or closed meanwhile
        return;
    }
    target[length] = '\0';
    if (is_cuda_device(target)) {
        look->visitor(descriptor, target, look->data);
    } else {
        look->filter.dismiss();
    }
}

// With no descriptor left to open the folder with, each number is asked for by its path: that needs none. Up to a fixed
// number, not to the limit: what was opened before the limit was lowered stays open above it.
int visit_by_number(Look& look) noexcept {
    constexpr int kMost = 65536;
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return errno;
    }
    if (limit.rlim_cur > kMost) {
        return EMFILE; // not all of them would be seen
    }
    for (int descriptor = 0; descriptor < kMost; ++descriptor) {
        look_at(descriptor, &look);
    }
    return access(kDescriptors, F_OK) == 0 ? look.error : errno;
}

struct Replacement {
    int null_descriptor;
    int replaced;
    int error;
};

void replace(int descriptor, const char*, void* data) {
    auto* work = static_cast<Replacement*>(data);
    if (dup3(work->null_descriptor, descriptor, O_CLOEXEC) < 0) {
        work->error = errno;
    } else {
        ++work->replaced;
    }
}

} // namespace

bool is_cuda_device(const char* path) noexcept {
    if (std::strncmp(path, "/dev/", 5) != 0) {
        return false; // nearly every descriptor: one comparison
    }
    for (const char* pattern : kDevices) {
        const std::size_t length = std::strlen(pattern);
        if (pattern[length - 1] == '*') {
            if (std::strncmp(path, pattern, length - 1) == 0) {
                return true;
            }
        } else if (std::strncmp(path, pattern, length) == 0 &&
                   (path[length] == '\0' || std::strcmp(path + length, kDeleted) == 0)) {
            return true;
        }
    }
    return false;
}

int visit_device_handles(HandleVisitor visitor, void* data) noexcept {
    Look look{visitor, data, DeviceFilter(), -1, 0};
    const int error = visit_numbers(kDescriptors, look_at, &look, &look.descriptors);
    if (error == EMFILE || error == ENFILE) {
        return visit_by_number(look);
    }
    return error != 0 ? error : look.error;
}

int release_device_handles() noexcept {
    Replacement work{open("/dev/null", O_RDWR | O_CLOEXEC), 0, 0};
    if (work.null_descriptor < 0) {
        return -errno;
    }
    const int error = visit_device_handles(replace, &work);
    close(work.null_descriptor);
    if (error != 0 || work.error != 0) {
        return -(error != 0 ? error : work.error);
    }
    return work.replaced;
}

int forked_without_exec() noexcept {
    const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    char text[1024];
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) {
        return -1;
    }
    text[length] = '\0';
    // The command name may hold spaces and parentheses: the fields start behind the last one (proc(5)).
    const char* at = std::strrchr(text, ')');
    for (int field = 2; at != nullptr && field < 9; ++field) {
        at = std::strchr(at + 1, ' ');
    }
    if (at == nullptr) {
        return -1;
    }
    unsigned long flags = 0;
    for (const char* digit = at + 1; *digit >= '0' && *digit <= '9'; ++digit) {
        flags = flags * 10 + static_cast<unsigned long>(*digit - '0');
    }
    return (flags & kForkNoExec) != 0 ? 1 : 0;
}

} // namespace cfg
