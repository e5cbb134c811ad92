#include "core/descriptor_kind.hpp"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cfg {

namespace {

// By number: libcs older than the kernel's own header have no wrapper. AT_STATX_DONT_SYNC keeps a file on a dead
// network server from holding this thread up. A kernel or a filter without the call leaves the descriptor in question.
bool ask(int folder, const char* path, int flags, struct statx& answer) noexcept {
    constexpr int kDontSync = 0x4000; // AT_STATX_DONT_SYNC
    return syscall(SYS_statx, folder, path, flags | kDontSync, STATX_TYPE, &answer) == 0 &&
           (answer.stx_mask & STATX_TYPE) != 0;
}

} // namespace

DeviceFolder device_folder() noexcept {
    struct statx answer{};
    if (!ask(AT_FDCWD, "/dev", 0, answer)) {
        return {};
    }
    return {answer.stx_dev_major, answer.stx_dev_minor};
}

bool may_be_device(int descriptor, const DeviceFolder& folder) noexcept {
    struct statx answer{};
    if (!ask(descriptor, "", AT_EMPTY_PATH, answer) || (answer.stx_mode & S_IFMT) == S_IFCHR) {
        return true;
    }
    // A plain file that lies in /dev itself.
    return (answer.stx_mode & S_IFMT) == S_IFREG && answer.stx_dev_major == folder.major &&
           answer.stx_dev_minor == folder.minor;
}

} // namespace cfg
