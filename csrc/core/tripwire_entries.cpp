#include "core/tripwire_entries.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <unistd.h>

#include "core/tripwire_arch.hpp"
#include "core/tripwire_reason.hpp"

namespace cfg::tripwire {

namespace {
// They change nothing, and a program may call them to word an error message or to look up functions it never calls.
constexpr const char* kHarmless[] = {
    "cuDriverGetVersion", "cuGetErrorName",      "cuGetErrorString",
    "cuGetProcAddress",   "cuGetProcAddress_v2", "cuGetExportTable",
};

bool is_wanted(const char* name) noexcept {
    return std::strncmp(name, "cu", 2) == 0 &&
           std::none_of(std::begin(kHarmless), std::end(kHarmless),
                        [name](const char* harmless) { return std::strcmp(name, harmless) == 0; });
}

const ElfW(Phdr) * executable_segment(const Library& library, ElfW(Addr) address) noexcept {
    for (std::size_t i = 0; i < library.header_count; ++i) {
        const ElfW(Phdr) & header = library.headers[i];
        const ElfW(Addr) begin = library.base + header.p_vaddr;
        // What lies behind the file's part is no function, and what can't be read can't be compared with the file.
        if (header.p_type == PT_LOAD && (header.p_flags & (PF_X | PF_R | PF_W)) == (PF_X | PF_R) && address >= begin &&
            address - begin < header.p_filesz) {
            return &header;
        }
    }
    return nullptr;
}

// Every exported function, wanted or not: the unwanted ones end the room of their neighbours.
std::size_t collect(const Library& library, const Dynamic& dynamic, const ElfW(Sym) * symbols, std::size_t count,
                    Entry* into) noexcept {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const ElfW(Sym) & symbol = symbols[i];
        const unsigned binding = symbol.st_info >> 4U;
        if ((symbol.st_info & 15U) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
            (binding != STB_GLOBAL && binding != STB_WEAK)) {
            continue;
        }
        const ElfW(Addr) address = library.base + symbol.st_value;
        const char* const name = dynamic.string(symbol.st_name);
        if (name != nullptr && executable_segment(library, address) != nullptr) {
            into[found++] = {reinterpret_cast<unsigned char*>(address),
                             name,
                             nullptr,
                             nullptr,
                             symbol.st_size,
                             is_wanted(name),
                             0,
                             0};
        }
    }
    return found;
}

// One entry for each address; of several names the first in the alphabet, unless one of them is harmless.
std::size_t merge_aliases(Entry* entries, std::size_t count) noexcept {
    std::sort(entries, entries + count, [](const Entry& a, const Entry& b) {
        return a.address != b.address ? a.address < b.address : std::strcmp(a.name, b.name) < 0;
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (kept > 0 && entries[kept - 1].address == entries[i].address) {
            entries[kept - 1].trapped = entries[kept - 1].trapped && entries[i].trapped;
        } else {
            entries[kept++] = entries[i];
        }
    }
    for (std::size_t i = 0; i + 1 < kept; ++i) {
        const auto gap = static_cast<std::size_t>(entries[i + 1].address - entries[i].address);
        entries[i].room = std::min(entries[i].room, gap);
    }
    return kept;
}

bool jump_fits(const Library& library, const Entry& entry) noexcept {
    const auto address = reinterpret_cast<ElfW(Addr)>(entry.address);
    const ElfW(Phdr) & header = *executable_segment(library, address);
    const ElfW(Addr) left = library.base + header.p_vaddr + header.p_filesz - address;
    // The jump's size depends on the first bytes, of which there must be enough to look at.
    return address % arch::alignment == 0 && entry.room >= arch::shortest_jump && left >= sizeof entry.original &&
           arch::jump_size(entry.address) <= entry.room;
}

void measure_stretch(const Library& library, const Entry* entries, std::size_t count, Stretch& stretch) noexcept {
    const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<ElfW(Addr)>(entries[0].address);
    const auto last = reinterpret_cast<ElfW(Addr)>(entries[count - 1].address);
    const ElfW(Addr) begin = first & ~(page - 1);
    const ElfW(Addr) end = (last + arch::kLongestJump + page - 1) & ~(page - 1);
    const ElfW(Phdr) & header = *executable_segment(library, first);
    const ElfW(Addr) segment = library.base + header.p_vaddr;
    stretch.text = reinterpret_cast<unsigned char*>(begin);
    stretch.length = end - begin;
    stretch.offset = static_cast<off_t>(header.p_offset + (first - segment) - (first - begin));
    stretch.segment_begin = segment & ~(page - 1);
    stretch.segment_end = (segment + header.p_filesz + page - 1) & ~(page - 1);
}
} // namespace

bool list_entries(const Library& library, Image& image) noexcept {
    const Dynamic dynamic(library);
    std::size_t count = 0;
    const ElfW(Sym)* const symbols = dynamic.symbols(count);
    if (symbols == nullptr || count == 0) {
        set_reason("the symbol table of libcuda can't be read", 0);
        return false;
    }
    auto* const entries = static_cast<Entry*>(std::calloc(count, sizeof(Entry)));
    if (entries == nullptr) {
        set_reason("no memory for the list of driver functions", ENOMEM);
        return false;
    }
    const std::size_t functions = merge_aliases(entries, collect(library, dynamic, symbols, count, entries));
    image.count = 0;
    image.untrappable = 0;
    const ElfW(Phdr)* segment = nullptr;
    for (std::size_t i = 0; i < functions; ++i) {
        if (!entries[i].trapped) {
            continue;
        }
        const ElfW(Phdr)* const own = executable_segment(library, reinterpret_cast<ElfW(Addr)>(entries[i].address));
        // One stretch can't span two segments; libcuda has one with code.
        if (jump_fits(library, entries[i]) && (segment == nullptr || segment == own)) {
            segment = own;
            entries[image.count] = entries[i];
            entries[image.count++].image = &image;
        } else {
            ++image.untrappable;
        }
    }
    if (image.count == 0) {
        std::free(entries);
        set_reason("libcuda exports no function that can be trapped", 0);
        return false;
    }
    image.entries = entries;
    measure_stretch(library, entries, image.count, image.stretch);
    return true;
}

} // namespace cfg::tripwire
