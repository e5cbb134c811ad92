#include "core/device_filter.hpp"

#include <cstddef>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cfg {

namespace {

// struct statx of linux/stat.h as the kernel writes it, since the headers of a build machine may lack the mount id.
struct Answer {
    std::uint32_t mask;
    std::uint32_t unused1[6];
    std::uint16_t mode;
    std::uint16_t unused2;
    std::uint64_t inode;
    std::uint64_t unused3[11]; // sizes and times
    std::uint32_t device_major;
    std::uint32_t device_minor;
    std::uint32_t major;
    std::uint32_t minor;
    std::uint64_t mount;
    std::uint64_t unused4[13];
};
static_assert(sizeof(Answer) == 256 && offsetof(Answer, mode) == 0x1c && offsetof(Answer, inode) == 0x20 &&
                  offsetof(Answer, major) == 0x88 && offsetof(Answer, mount) == 0x90,
              "the kernel's layout");

constexpr unsigned kType = 0x1;          // STATX_TYPE
constexpr unsigned kInode = 0x100;       // STATX_INO
constexpr unsigned kMount = 0x1000;      // STATX_MNT_ID
constexpr int kEmptyPath = 0x1000;       // AT_EMPTY_PATH
constexpr int kDontSynchronize = 0x4000; // AT_STATX_DONT_SYNC: a file on a dead server must not hold this thread up

// By number: libcs before 2.28 have no wrapper.
bool ask(int folder, const char* path, Answer& answer) noexcept {
    return syscall(SYS_statx, folder, path, kEmptyPath | kDontSynchronize, kType | kInode | kMount, &answer) == 0 &&
           (answer.mask & (kType | kInode)) == (kType | kInode);
}

} // namespace

DeviceFilter::DeviceFilter() noexcept {
    Answer answer{};
    if (ask(AT_FDCWD, "/dev", answer)) {
        device_folder_ = File{0, answer.inode, answer.major, answer.minor};
    }
}

bool DeviceFilter::worth_a_look(int descriptor) noexcept {
    last_ = File{};
    Answer answer{};
    if (!ask(descriptor, "", answer)) {
        return true; // a kernel or a filter without this call leaves every descriptor in question
    }
    const unsigned type = answer.mode & S_IFMT;
    if (type != S_IFCHR) {
        return type == S_IFREG && answer.major == device_folder_.major && answer.minor == device_folder_.minor;
    }
    if ((answer.mask & kMount) != 0) {
        last_ = File{answer.mount, answer.inode, answer.major, answer.minor};
    }
    return last_.mount == 0 || last_.mount != dismissed_.mount || last_.inode != dismissed_.inode ||
           last_.major != dismissed_.major || last_.minor != dismissed_.minor;
}

} // namespace cfg
