#include "core/cells.hpp"

#include <atomic>
#include <cstring>

namespace cfg {

namespace {

// Two: one is read, on any thread, while the other is filled.
struct Names {
    std::size_t length;
    char pairs[12UL * 1024];
};
Names tables[2];
std::atomic<int> current{0};

} // namespace

void set_cells(const char* pairs, std::size_t length) noexcept {
    Names& next = tables[1 - current.load()];
    next.length = length < sizeof next.pairs ? length : sizeof next.pairs;
    std::memcpy(next.pairs, pairs, next.length);
    current.store(1 - current.load());
}

const char* cell_of(const char* file) noexcept {
    const Names& names = tables[current.load()];
    const char* const end = names.pairs + names.length;
    const char* at = names.pairs;
    while (at < end) {
        const char* const file_end =
            static_cast<const char*>(std::memchr(at, '\0', static_cast<std::size_t>(end - at)));
        if (file_end == nullptr) {
            break;
        }
        const char* const name = file_end + 1;
        const char* const name_end =
            static_cast<const char*>(std::memchr(name, '\0', static_cast<std::size_t>(end - name)));
        if (name_end == nullptr) {
            break;
        }
        if (std::strcmp(at, file) == 0) {
            return name;
        }
        at = name_end + 1;
    }
    return nullptr;
}

} // namespace cfg
