// The libcudas that are loaded, with their tables of functions, looked up again only when the loader's list changed.
#pragma once

#include "core/driver.hpp"

namespace cfg {

// The libcudas seen at one moment. Never changed after it is published and never freed: another thread may be reading
// it, also in a child forked in between. A new one is made only when the set of libcudas changed.
struct LibcudaTable {
    // The loader's when the table was read. In here, so that of two threads that read at once neither can mark the
    // other one's table as newer than it is.
    std::atomic<std::uint64_t> generation;
    int count;
    // A reference is held from the moment a driver answered "up". Before that the library can be unloaded (the CUDA
    // runtime does so after a failed start), so each question takes a reference of its own and drops it.
    std::atomic<bool> held[kMaxDrivers];
    DriverLibrary libraries[kMaxDrivers];
};

// Reads the loader's list again if it changed. Null only if memory is out. Ordinary context, with the interpreter's
// lock.
LibcudaTable* libcudas() noexcept;

// The last table, whatever was loaded since: what is held in it can't have changed. Null if there is none yet.
LibcudaTable* last_libcudas() noexcept;

// The table if it is up to date and all of it is held, so that it can be used without the loader; else null.
const LibcudaTable* libcudas_without_loader() noexcept;

// False if libraries came or went since the table was read: addresses of what is not held may be stale.
bool is_current(const LibcudaTable& table) noexcept;

// A reference to a library that is loaded already, or null; and back.
void* hold_library(const char* path) noexcept;
void drop_library(void* handle) noexcept;

} // namespace cfg
