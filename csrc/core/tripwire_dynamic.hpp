// Finds the loaded libcudas and reads their dynamic sections, in memory, without opening a file. Every address and
// length taken from there is checked against the mapped segments: a broken library must not become a crash of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <link.h>

namespace cfg::tripwire {

struct Library {
    ElfW(Addr) base;
    const char* path; // as the loader names it
    const ElfW(Phdr) * headers;
    std::size_t header_count;
};

// How often anything was loaded or unloaded so far: the same numbers mean the same libraries.
struct LoaderChanges {
    unsigned long long loads = 0;
    unsigned long long unloads = 0;
    bool operator==(const LoaderChanges& other) const noexcept {
        return loads == other.loads && unloads == other.unloads;
    }
};
LoaderChanges loader_changes() noexcept;

// Those whose soname is libcuda.so.1, whatever their files are called. Returns how many it stored.
std::size_t find_libcudas(Library* found, std::size_t capacity) noexcept;

class Dynamic {
  public:
    explicit Dynamic(const Library& library) noexcept;

    // nullptr if it is not, NUL included, inside the string table.
    const char* string(std::size_t offset) const noexcept;
    const char* soname() const noexcept { return soname_ == kNone ? nullptr : string(soname_); }
    // nullptr if there is no table or it isn't inside a segment.
    const ElfW(Sym) * symbols(std::size_t& count) const noexcept;

  private:
    static constexpr std::size_t kNone = SIZE_MAX;

    void read(const ElfW(Phdr) & header) noexcept;
    ElfW(Addr) relocated(ElfW(Addr) address) const noexcept;
    // nullptr unless `count` aligned objects lie inside one readable segment.
    template <class T> const T* mapped(ElfW(Addr) address, std::size_t count) const noexcept;
    std::size_t count_by_hash() const noexcept;
    std::size_t count_by_gnu_hash() const noexcept;

    const Library& library_;
    const char* strings_ = nullptr;
    std::size_t strings_size_ = 0;
    std::size_t soname_ = kNone;
    ElfW(Addr) symbols_ = 0;
    ElfW(Addr) hash_ = 0;
    ElfW(Addr) gnu_hash_ = 0;
};

} // namespace cfg::tripwire
