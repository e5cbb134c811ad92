#include "core/tripwire_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "core/tripwire_arch.hpp"
#include "core/tripwire_file.hpp"
#include "core/tripwire_reason.hpp"

namespace cfg::tripwire {

namespace {
constexpr std::size_t kHookedBytes = 16; // a breakpoint takes one, the hooks of other tools up to 14

// Both copies side by side in one reservation, so that one atomic pointer stands for both; given back unless kept.
class Region {
  public:
    explicit Region(std::size_t length) noexcept
        : length_(length), begin_(static_cast<unsigned char*>(mmap(
                               nullptr, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
    ~Region() {
        if (valid() && !kept_) {
            munmap(begin_, 2 * length_);
        }
    }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    bool valid() const noexcept { return begin_ != MAP_FAILED; }
    unsigned char* patched() const noexcept { return begin_; }
    unsigned char* pristine() const noexcept { return begin_ + length_; }
    unsigned char* keep() noexcept {
        kept_ = true;
        return begin_;
    }

  private:
    std::size_t length_;
    unsigned char* begin_;
    bool kept_ = false;
};

std::uint64_t first_bytes(const unsigned char* at) noexcept {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, sizeof bytes);
    return bytes;
}

bool refuse(const char* text, int error) noexcept {
    set_reason(text, error);
    return false;
}

// Private mappings of the file, not anonymous memory: what is not written costs nothing, however far apart the entries
// are. The price: a uprobe set later goes into them as well, which is what patched_copy_is_intact looks for.
bool map_file(const Stretch& stretch, int descriptor, const Region& region) noexcept {
    if (mmap(region.patched(), stretch.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, descriptor,
             stretch.offset) == MAP_FAILED) {
        return refuse("the system refused to map a copy of libcuda's code: mmap", errno);
    }
    void* const pristine =
        mmap(nullptr, stretch.length, PROT_READ | PROT_EXEC, MAP_PRIVATE, descriptor, stretch.offset);
    if (pristine == MAP_FAILED) {
        return refuse("the system refused to map libcuda's code once more: mmap", errno);
    }
    // It could have been mapped in place. Moving it finds out, here and not in a child, whether this system lets pages
    // be moved at all.
    if (mremap(pristine, stretch.length, stretch.length, MREMAP_MAYMOVE | MREMAP_FIXED, region.pristine()) ==
        MAP_FAILED) {
        const int error = errno;
        munmap(pristine, stretch.length);
        return refuse("the system refused to move code pages: mremap", error);
    }
    return true;
}

// Compares one page of text with the file. What differs at the beginning of an entry is a breakpoint, a uprobe or
// somebody's hook: that entry is left alone. What differs elsewhere says that this is not the file, or not only the
// file.
bool compare_page(const Image& image, Entry*& from, const unsigned char* page, std::size_t size,
                  const unsigned char* file) noexcept {
    Entry* const end = image.entries + image.count;
    for (const unsigned char* text = page; text != page + size; ++text) {
        text = std::mismatch(text, page + size, file + (text - page)).first;
        if (text == page + size) {
            break;
        }
        while (from != end && from->address + kHookedBytes <= text) {
            ++from;
        }
        if (from == end || from->address > text) {
            return false;
        }
        for (Entry* entry = from; entry != end && entry->address <= text; ++entry) {
            entry->trapped = false; // of two short neighbours the hook may cover both
        }
    }
    return true;
}

bool compare_with_file(Image& image, bool same_file, const unsigned char* file) noexcept {
    const auto page_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const Stretch& stretch = image.stretch;
    for (std::size_t i = 0; i < image.count; ++i) {
        image.entries[i].trapped = true;
    }
    const Entry* next = image.entries; // the first entry that ends on this page or a later one
    Entry* suspect = image.entries;
    for (std::size_t offset = 0; offset < stretch.length; offset += page_size) {
        const unsigned char* const page = stretch.text + offset;
        while (next != image.entries + image.count && next->address + kHookedBytes <= page) {
            ++next;
        }
        const bool has_entries = next != image.entries + image.count && next->address < page + page_size;
        // Pages without entries stay the file's own: they need no reading if it is known to be the same file.
        if ((has_entries || !same_file) && !compare_page(image, suspect, page, page_size, file + offset)) {
            return refuse(
                "the code of libcuda in memory is not that of its file (replaced, or changed by another tool)", 0);
        }
    }
    return true;
}

std::size_t write_jumps(Image& image, unsigned char* patched) noexcept {
    std::size_t trapped = 0;
    for (std::size_t i = 0; i < image.count; ++i) {
        Entry& entry = image.entries[i];
        unsigned char* const at = patched + (entry.address - image.stretch.text);
        entry.trapped = entry.trapped && arch::jump_size(at) <= entry.room;
        if (entry.trapped) {
            entry.original = first_bytes(at);
            arch::write_jump(at, entry);
            entry.jump = first_bytes(at);
            ++trapped;
        }
    }
    return trapped;
}
} // namespace

unsigned char* build_copies(Image& image) noexcept {
    const Stretch& stretch = image.stretch;
    const File file(image.path);
    if (!file.holds(stretch)) {
        return nullptr;
    }
    Region region(stretch.length);
    if (!region.valid()) {
        set_reason("no address space for a copy of libcuda's code", errno);
        return nullptr;
    }
    if (!map_file(stretch, file.descriptor(), region) ||
        !compare_with_file(image, file.is_loaded_one(stretch), region.patched())) {
        return nullptr;
    }
    const std::size_t trapped = write_jumps(image, region.patched());
    if (trapped == 0) {
        set_reason("every driver function is already hooked by another tool", 0);
        return nullptr;
    }
    auto* const begin = reinterpret_cast<char*>(region.patched());
    __builtin___clear_cache(begin, begin + stretch.length);
    if (mprotect(region.patched(), stretch.length, PROT_READ | PROT_EXEC) != 0) {
        set_reason("the system refused to make a copy of libcuda's code executable: mprotect", errno);
        return nullptr;
    }
    image.trapped.store(trapped, std::memory_order_relaxed);
    return region.keep();
}

void unmap_copies(const Image& image, unsigned char* copies) noexcept {
    munmap(copies, 2 * image.stretch.length);
}

bool has_jump(const Entry& entry) noexcept {
    return first_bytes(entry.address) == entry.jump;
}

bool patched_copy_is_intact(const Image& image) noexcept {
    const unsigned char* const patched = image.copies.load(std::memory_order_acquire);
    return std::all_of(image.entries, image.entries + image.count, [&](const Entry& entry) {
        return !entry.trapped || first_bytes(patched + (entry.address - image.stretch.text)) == entry.jump;
    });
}

bool copies_are_current(const Image& image) noexcept {
    return patched_copy_is_intact(image) &&
           std::all_of(image.entries, image.entries + image.count, [](const Entry& entry) {
               return !entry.trapped || first_bytes(entry.address) == entry.original;
           });
}

} // namespace cfg::tripwire
