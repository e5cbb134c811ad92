#include "core/tripwire_dynamic.hpp"

#include "core/loaded_libraries.hpp"

#include <algorithm>
#include <cstring>

namespace cfg::tripwire {

namespace {
constexpr std::size_t kMaxSymbols = 1U << 16U; // libcuda exports some 650; a table that claims more than this is broken
constexpr char kSoname[] = "libcuda.so.1";

struct Search {
    Library* found;
    std::size_t capacity;
    std::size_t count;
};

int read_changes(dl_phdr_info* info, std::size_t, void* data) noexcept {
    *static_cast<LoaderChanges*>(data) = {info->dlpi_adds, info->dlpi_subs};
    return 1; // every library carries the same two numbers
}

int look_at(dl_phdr_info* info, std::size_t, void* data) noexcept {
    auto& search = *static_cast<Search*>(data);
    const Library library{info->dlpi_addr, info->dlpi_name, info->dlpi_phdr, info->dlpi_phnum};
    const char* const soname = Dynamic(library).soname();
    constexpr std::size_t length = sizeof kSoname - 1;
    if (soname != nullptr && std::strncmp(soname, kSoname, length) == 0 &&
        (soname[length] == '\0' || soname[length] == '.') && search.count < search.capacity) {
        search.found[search.count++] = library;
    }
    return 0;
}
} // namespace

LoaderChanges loader_changes() noexcept {
    LoaderChanges changes;
    visit_libraries(read_changes, &changes);
    return changes;
}

std::size_t find_libcudas(Library* found, std::size_t capacity) noexcept {
    Search search{found, capacity, 0};
    visit_libraries(look_at, &search);
    return search.count;
}

template <class T> const T* Dynamic::mapped(ElfW(Addr) address, std::size_t count) const noexcept {
    for (std::size_t i = 0; i < library_.header_count; ++i) {
        const ElfW(Phdr) & header = library_.headers[i];
        const ElfW(Addr) begin = library_.base + header.p_vaddr;
        if (header.p_type == PT_LOAD && (header.p_flags & PF_R) != 0 && address % alignof(T) == 0 && address >= begin &&
            address - begin <= header.p_memsz && count <= (header.p_memsz - (address - begin)) / sizeof(T)) {
            return reinterpret_cast<const T*>(address);
        }
    }
    return nullptr;
}

Dynamic::Dynamic(const Library& library) noexcept : library_(library) {
    for (std::size_t i = 0; i < library.header_count; ++i) {
        if (library.headers[i].p_type == PT_DYNAMIC) {
            read(library.headers[i]);
        }
    }
}

const char* Dynamic::string(std::size_t offset) const noexcept {
    if (strings_ == nullptr || offset >= strings_size_) {
        return nullptr;
    }
    const char* const text = strings_ + offset;
    return std::memchr(text, '\0', strings_size_ - offset) == nullptr ? nullptr : text;
}

const ElfW(Sym) * Dynamic::symbols(std::size_t& count) const noexcept {
    count = std::min(hash_ != 0 ? count_by_hash() : count_by_gnu_hash(), kMaxSymbols);
    return mapped<ElfW(Sym)>(symbols_, count);
}

void Dynamic::read(const ElfW(Phdr) & header) noexcept {
    ElfW(Addr) strings = 0;
    const std::size_t room = header.p_memsz / sizeof(ElfW(Dyn));
    const auto* const entry = mapped<ElfW(Dyn)>(library_.base + header.p_vaddr, room);
    const std::size_t count = entry == nullptr ? 0 : room;
    for (std::size_t i = 0; i < count && entry[i].d_tag != DT_NULL; ++i) {
        const ElfW(Addr) address = relocated(entry[i].d_un.d_ptr);
        switch (entry[i].d_tag) {
        case DT_SONAME:
            soname_ = entry[i].d_un.d_val;
            break;
        case DT_STRTAB:
            strings = address;
            break;
        case DT_STRSZ:
            strings_size_ = entry[i].d_un.d_val;
            break;
        case DT_SYMTAB:
            symbols_ = address;
            break;
        case DT_HASH:
            hash_ = address;
            break;
        case DT_GNU_HASH:
            gnu_hash_ = address;
            break;
        default:
            break;
        }
    }
    strings_ = mapped<char>(strings, strings_size_);
}

// glibc writes run-time addresses into the section, musl leaves the file's.
ElfW(Addr) Dynamic::relocated(ElfW(Addr) address) const noexcept {
    return address < library_.base ? address + library_.base : address;
}

std::size_t Dynamic::count_by_hash() const noexcept {
    const std::uint32_t* const table = mapped<std::uint32_t>(hash_, 2);
    return table == nullptr ? 0 : table[1];
}

// This table has no count: the last symbol is the end of the chain that begins last.
std::size_t Dynamic::count_by_gnu_hash() const noexcept {
    const std::uint32_t* const table = mapped<std::uint32_t>(gnu_hash_, 4);
    if (table == nullptr) {
        return 0;
    }
    const std::size_t buckets = table[0];
    const std::size_t first = table[1];
    const ElfW(Addr) bucket_address = gnu_hash_ + 4 * sizeof(std::uint32_t) + table[2] * sizeof(ElfW(Addr));
    const std::uint32_t* const bucket = mapped<std::uint32_t>(bucket_address, buckets);
    const std::size_t last = bucket == nullptr || buckets == 0 ? 0 : *std::max_element(bucket, bucket + buckets);
    const ElfW(Addr) chains = bucket_address + buckets * sizeof(std::uint32_t);
    for (std::size_t symbol = last; symbol >= first && symbol < kMaxSymbols; ++symbol) {
        const std::uint32_t* const chain = mapped<std::uint32_t>(chains + (symbol - first) * sizeof(std::uint32_t), 1);
        if (chain == nullptr) {
            return 0;
        }
        if ((*chain & 1U) != 0) {
            return symbol + 1;
        }
    }
    return 0;
}

} // namespace cfg::tripwire
