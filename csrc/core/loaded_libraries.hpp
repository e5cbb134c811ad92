// The libraries mapped into this process, read from the loader's own list: opens no file and takes no reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <link.h>

namespace cfg {

// dl_iterate_phdr, unless its lock was lost (below): then nothing is visited. The guard's only way to the loader's
// list.
using LibraryVisitor = int (*)(dl_phdr_info* object, std::size_t size, void* data);
void visit_libraries(LibraryVisitor visitor, void* data) noexcept;

// Child handler. glibc (2.36) does not give a forked child the lock of dl_iterate_phdr back if another thread was
// inside it: waiting for that thread, which does not exist in the child, would be for ever.
void note_fork_for_loader() noexcept;
bool loader_lock_is_lost() noexcept;

// Changes whenever a library was loaded or unloaded; costs one callback.
std::uint64_t loader_generation() noexcept;

// DT_SONAME of a mapped object, or null.
const char* soname_of(const dl_phdr_info& object) noexcept;

// libcuda.so.1, also where its file has another name; WSL's second stage is libcuda.so.1.1.
bool is_libcuda(const dl_phdr_info& object) noexcept;

struct LoadedPath {
    char path[512];
};

// Paths of the loaded libcudas, as the loader knows them. Returns how many were stored.
int loaded_libcudas(LoadedPath* paths, int capacity) noexcept;

} // namespace cfg
