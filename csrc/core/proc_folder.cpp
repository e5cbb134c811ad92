#include "core/proc_folder.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cfg {

namespace {

struct DirectoryEntry { // what getdents64 writes (getdents(2)); glibc's readdir would allocate
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[1];
};

int number_of(const char* name) noexcept {
    int value = 0;
    for (; *name != '\0'; ++name) {
        if (*name < '0' || *name > '9' || value > 100000000) {
            return -1;
        }
        value = value * 10 + (*name - '0');
    }
    return value;
}

} // namespace

int visit_numbers(const char* folder, NumberVisitor visitor, void* data, int* opened) noexcept {
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        return errno;
    }
    if (opened != nullptr) {
        *opened = descriptor;
    }
    alignas(DirectoryEntry) char buffer[4096];
    int error = 0;
    for (;;) {
        const long got = syscall(SYS_getdents64, descriptor, buffer, sizeof buffer);
        if (got <= 0) {
            error = got < 0 ? errno : 0;
            break;
        }
        for (long at = 0; at < got;) {
            const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
            const int number = number_of(entry->name);
            if (number >= 0 && number != descriptor) {
                visitor(number, data);
            }
            at += entry->length;
        }
    }
    close(descriptor);
    return error;
}

} // namespace cfg
