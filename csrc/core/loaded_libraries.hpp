// The libraries mapped into this process, read from the loader's own list: opens no file and takes no reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <link.h>

namespace cfg {

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
