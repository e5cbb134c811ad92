#include "core/tripwire_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/safe_output.hpp"
#include "core/tripwire_reason.hpp"

namespace cfg::tripwire {

namespace {
Text& put_digits(Text& text, std::uintptr_t number) noexcept {
    char digits[24];
    Text(digits, sizeof digits).hex(number);
    return text.put(digits + 2); // /proc writes them without 0x
}
} // namespace

File::File(const char* path) noexcept : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}

File::~File() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

bool File::holds(const Stretch& stretch) const noexcept {
    struct stat about{};
    if (descriptor_ < 0 || fstat(descriptor_, &about) != 0) {
        set_reason("the file of libcuda can't be opened", errno);
        return false;
    }
    // The last page may be partly behind the file's end. A whole page behind it would answer a read with SIGBUS.
    const auto page = static_cast<off_t>(sysconf(_SC_PAGESIZE));
    if (about.st_size <= stretch.offset + static_cast<off_t>(stretch.length) - page) {
        set_reason("the file of libcuda is shorter than what is loaded", 0);
        return false;
    }
    return true;
}

// A driver update replaces the file under running programs: the name then belongs to another one, and /proc says
// "(deleted)" of the one that is loaded. Reading one link costs 20 us; /proc/self/maps costs 1 us a line, and may have
// thousands.
bool File::is_loaded_one(const Stretch& stretch) const noexcept {
    char link[96];
    char loaded[1024];
    char opened[sizeof loaded];
    Text mapping(link, sizeof link);
    put_digits(put_digits(mapping.put("/proc/self/map_files/"), stretch.segment_begin).put("-"), stretch.segment_end);
    const ssize_t loaded_length = readlink(link, loaded, sizeof loaded);
    Text(link, sizeof link).put("/proc/self/fd/").decimal(descriptor_);
    const ssize_t opened_length = readlink(link, opened, sizeof opened);
    return loaded_length > 0 && loaded_length < static_cast<ssize_t>(sizeof loaded) && loaded_length == opened_length &&
           std::memcmp(loaded, opened, static_cast<std::size_t>(loaded_length)) == 0;
}

} // namespace cfg::tripwire
