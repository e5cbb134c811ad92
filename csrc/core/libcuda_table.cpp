#include "core/libcuda_table.hpp"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "core/interpreter_lock.hpp"
#include "core/loaded_libraries.hpp"
#include "core/safe_output.hpp"

namespace cfg {

namespace {

std::atomic<LibcudaTable*> current{nullptr};

void fill_api(void* handle, DriverLibrary& library) noexcept {
    const InterpreterUnlocked unlocked;
#define CFG_RESOLVE(member, name, parameters)                                                                          \
    library.api.member = reinterpret_cast<CuResult(*) parameters>(dlsym(handle, #name));
    CFG_DRIVER_FUNCTIONS(CFG_RESOLVE)
#undef CFG_RESOLVE
    library.simulated = dlsym(handle, "cuda_fork_guard_simulated") != nullptr;
}

bool same_libraries(const LibcudaTable& table, const LoadedPath* paths, int count) noexcept {
    bool same = table.count == count;
    for (int i = 0; same && i < count; ++i) {
        same = std::strcmp(table.libraries[i].path, paths[i].path) == 0;
    }
    return same;
}

bool all_held(const LibcudaTable& table) noexcept {
    for (int i = 0; i < table.count; ++i) {
        if (!table.held[i].load(std::memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

} // namespace

void* hold_library(const char* path) noexcept {
    const InterpreterUnlocked unlocked;
    return dlopen(path, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
}

void drop_library(void* handle) noexcept {
    const InterpreterUnlocked unlocked;
    dlclose(handle);
}

LibcudaTable* libcudas() noexcept {
    LibcudaTable* known = current.load(std::memory_order_acquire);
    if (loader_lock_is_lost()) {
        return known; // as it was before the fork
    }
    const std::uint64_t generation = loader_generation();
    if (known != nullptr && known->generation.load(std::memory_order_acquire) == generation) {
        return known;
    }
    LoadedPath paths[kMaxDrivers];
    const int count = loaded_libcudas(paths, kMaxDrivers);
    // A library that went and came back may lie elsewhere: keep the old table only if nothing in it can have moved.
    bool keep = known != nullptr && same_libraries(*known, paths, count);
    for (int i = 0; keep && i < count; ++i) {
        keep = known->held[i].load(std::memory_order_acquire);
    }
    if (keep) {
        known->generation.store(generation, std::memory_order_release);
    } else {
        auto* fresh = static_cast<LibcudaTable*>(std::calloc(1, sizeof(LibcudaTable)));
        if (fresh == nullptr) {
            return known;
        }
        for (int i = 0; i < count; ++i) {
            DriverLibrary& library = fresh->libraries[fresh->count];
            void* handle = hold_library(paths[i].path);
            if (handle == nullptr) {
                continue; // unloaded since the list was read
            }
            copy_text(library.path, sizeof library.path, paths[i].path, std::strlen(paths[i].path));
            fill_api(handle, library);
            fresh->held[fresh->count].store(false, std::memory_order_relaxed);
            ++fresh->count;
            drop_library(handle);
        }
        fresh->generation.store(generation, std::memory_order_relaxed);
        current.store(fresh, std::memory_order_release);
        known = fresh;
    }
    return known;
}

LibcudaTable* last_libcudas() noexcept {
    return current.load(std::memory_order_acquire);
}

const LibcudaTable* libcudas_without_loader() noexcept {
    const LibcudaTable* known = current.load(std::memory_order_acquire);
    return known != nullptr && is_current(*known) && all_held(*known) ? known : nullptr;
}

bool is_current(const LibcudaTable& table) noexcept {
    return loader_lock_is_lost() || table.generation.load(std::memory_order_acquire) == loader_generation();
}

} // namespace cfg
