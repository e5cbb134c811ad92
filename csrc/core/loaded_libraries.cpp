#include "core/loaded_libraries.hpp"

#include <atomic>
#include <cstring>

#include "core/safe_output.hpp"

namespace cfg {

namespace {

std::atomic<int> visits{0}; // threads of the guard's inside the loader's list now
std::atomic<bool> lock_lost{false};

int read_counters(dl_phdr_info* object, std::size_t size, void* out) noexcept {
    if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof object->dlpi_subs) {
        *static_cast<std::uint64_t*>(out) =
            (static_cast<std::uint64_t>(object->dlpi_adds) << 32U) ^ static_cast<std::uint64_t>(object->dlpi_subs);
    }
    return 1;
}

struct Search {
    LoadedPath* paths;
    int capacity;
    int found;
};

int collect(dl_phdr_info* object, std::size_t, void* data) noexcept {
    auto* search = static_cast<Search*>(data);
    if (is_libcuda(*object) && search->found < search->capacity) {
        LoadedPath& slot = search->paths[search->found++];
        copy_text(slot.path, sizeof slot.path, object->dlpi_name, std::strlen(object->dlpi_name));
    }
    return search->found == search->capacity ? 1 : 0;
}

} // namespace

void visit_libraries(LibraryVisitor visitor, void* data) noexcept {
    if (lock_lost.load()) {
        return;
    }
    visits.fetch_add(1);
    dl_iterate_phdr(visitor, data);
    visits.fetch_sub(1);
}

void note_fork_for_loader() noexcept {
    if (visits.exchange(0) > 0) {
        lock_lost.store(true);
    }
}

bool loader_lock_is_lost() noexcept {
    return lock_lost.load();
}

std::uint64_t loader_generation() noexcept {
    std::uint64_t counters = 0;
    visit_libraries(read_counters, &counters);
    return counters;
}

const char* soname_of(const dl_phdr_info& object) noexcept {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }
        const char* strings = nullptr;
        std::size_t offset = 0;
        bool named = false;
        const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_STRTAB) {
                // glibc relocates these in place; the vdso's and other loaders' stay relative.
                const auto value = static_cast<std::uintptr_t>(entry->d_un.d_ptr);
                strings = reinterpret_cast<const char*>(value < object.dlpi_addr ? object.dlpi_addr + value : value);
            } else if (entry->d_tag == DT_SONAME) {
                offset = entry->d_un.d_val;
                named = true;
            }
        }
        return named && strings != nullptr ? strings + offset : nullptr;
    }
    return nullptr;
}

bool is_libcuda(const dl_phdr_info& object) noexcept {
    if (object.dlpi_name == nullptr || object.dlpi_name[0] == '\0') {
        return false; // the program itself
    }
    const char* soname = soname_of(object);
    return soname != nullptr &&
           (std::strcmp(soname, "libcuda.so.1") == 0 || std::strcmp(soname, "libcuda.so.1.1") == 0);
}

int loaded_libcudas(LoadedPath* paths, int capacity) noexcept {
    Search search{paths, capacity, 0};
    visit_libraries(collect, &search);
    return search.found;
}

} // namespace cfg
