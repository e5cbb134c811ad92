#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

#include "core/tripwire_arch.hpp"
#include "core/tripwire_copy.hpp"
#include "core/tripwire_reason.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0 // an older libc: the address is a hint only, and what comes back is looked at anyway
#endif

namespace cfg::tripwire {

namespace {
bool in_reach(const Stretch& stretch, std::uintptr_t address, std::size_t length) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(stretch.text);
    const std::uintptr_t end = begin + stretch.length;
    const std::uintptr_t low = address < begin ? address : begin;
    const std::uintptr_t high = address + length > end ? address + length : end;
    return high - low < arch::reach;
}

unsigned char* try_at(const Stretch& stretch, std::uintptr_t address, std::size_t length, int flags) noexcept {
    void* const wanted = reinterpret_cast<void*>(address);
    void* const got = mmap(wanted, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (got == MAP_FAILED) {
        return nullptr;
    }
    if (!in_reach(stretch, reinterpret_cast<std::uintptr_t>(got), length)) {
        munmap(got, length);
        errno = 0;
        return nullptr;
    }
    return static_cast<unsigned char*>(got);
}

// The system's own choice is next to the libraries unless something huge was mapped since; then addresses around
// libcuda are tried.
unsigned char* map_near(const Stretch& stretch, std::size_t length) noexcept {
    unsigned char* got = try_at(stretch, 0, length, 0);
    const auto begin = reinterpret_cast<std::uintptr_t>(stretch.text);
    for (std::uintptr_t away = arch::step; got == nullptr && away < arch::reach; away += arch::step) {
        if (begin > away) {
            got = try_at(stretch, begin - away, length, MAP_FIXED_NOREPLACE);
        }
        if (got == nullptr) {
            got = try_at(stretch, begin + stretch.length + away, length, MAP_FIXED_NOREPLACE);
        }
    }
    return got;
}
} // namespace

bool build_thunks(Image& image) noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t length = (arch::thunks_size(image.count) + page - 1) & ~(page - 1);
    unsigned char* const thunks = map_near(image.stretch, length);
    if (thunks == nullptr) {
        set_reason("no memory near libcuda for the stubs", errno == EEXIST ? 0 : errno);
        return false;
    }
    arch::write_thunks(thunks, image.entries, image.count);
    __builtin___clear_cache(reinterpret_cast<char*>(thunks), reinterpret_cast<char*>(thunks + length));
    if (mprotect(thunks, length, PROT_READ | PROT_EXEC) != 0) {
        set_reason("the system refused to make stubs executable: mprotect", errno);
        munmap(thunks, length);
        return false;
    }
    image.thunks = thunks;
    image.thunks_length = length;
    return true;
}

} // namespace cfg::tripwire
