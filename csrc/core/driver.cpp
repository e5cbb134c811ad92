#include "core/driver.hpp"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>

#include "core/fork_state.hpp"
#include "core/loaded_libraries.hpp"
#include "core/safe_output.hpp"
#include "core/tripwire.hpp"

namespace cfg {

namespace {

// The libcudas seen at one moment. Never changed after it is published and never freed: another thread may be reading
// it, also in a child forked in between. A new one is made only when the set of libcudas changed.
struct Snapshot {
    int count;
    // A reference is held from the moment a driver answered "up". Before that the library can be unloaded (the CUDA
    // runtime does so after a failed start), so each question takes a reference of its own and drops it.
    std::atomic<bool> held[kMaxDrivers];
    DriverLibrary libraries[kMaxDrivers];
};

std::atomic<Snapshot*> current{nullptr};
std::atomic<std::uint64_t> seen_generation{0};

void* hold(const char* path) noexcept {
    return dlopen(path, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
}

void fill_api(void* handle, DriverLibrary& library) noexcept {
#define CFG_RESOLVE(member, name, parameters)                                                                          \
    library.api.member = reinterpret_cast<CuResult(*) parameters>(dlsym(handle, #name));
    CFG_DRIVER_FUNCTIONS(CFG_RESOLVE)
#undef CFG_RESOLVE
    library.simulated = dlsym(handle, "cuda_fork_guard_simulated") != nullptr;
}

bool same_libraries(const Snapshot& snapshot, const LoadedPath* paths, int count) noexcept {
    bool same = snapshot.count == count;
    for (int i = 0; same && i < count; ++i) {
        same = std::strcmp(snapshot.libraries[i].path, paths[i].path) == 0;
    }
    return same;
}

// Reads the loader's list again if it changed. Null only if memory is out.
Snapshot* refresh() noexcept {
    const std::uint64_t generation = loader_generation();
    Snapshot* known = current.load(std::memory_order_acquire);
    if (known != nullptr && seen_generation.load(std::memory_order_acquire) == generation) {
        return known;
    }
    LoadedPath paths[kMaxDrivers];
    const int count = loaded_libcudas(paths, kMaxDrivers);
    // A library that went and came back may lie elsewhere: keep the old table only if nothing in it can have moved.
    bool keep = known != nullptr && same_libraries(*known, paths, count);
    for (int i = 0; keep && i < count; ++i) {
        keep = known->held[i].load(std::memory_order_acquire);
    }
    if (!keep) {
        auto* fresh = static_cast<Snapshot*>(std::calloc(1, sizeof(Snapshot)));
        if (fresh == nullptr) {
            return known;
        }
        for (int i = 0; i < count; ++i) {
            DriverLibrary& library = fresh->libraries[fresh->count];
            void* handle = hold(paths[i].path);
            if (handle == nullptr) {
                continue; // unloaded since the list was read
            }
            copy_text(library.path, sizeof library.path, paths[i].path, std::strlen(paths[i].path));
            fill_api(handle, library);
            fresh->held[fresh->count].store(false, std::memory_order_relaxed);
            ++fresh->count;
            dlclose(handle);
        }
        current.store(fresh, std::memory_order_release);
        known = fresh;
    }
    seen_generation.store(generation, std::memory_order_release);
    return known;
}

// A stand-in code for "there is nobody to ask": no CUresult is negative.
constexpr int kNoLibrary = -1;

int count_of(const DriverLibrary& library, int& devices) noexcept {
    devices = 0;
    return library.api.device_count == nullptr ? -1 : library.api.device_count(&devices);
}

// The driver's own word replaces what was known. Another answer than "not initialized" (4 while the process ends) does
// not mean that the driver never was up.
void note(bool up, int code) noexcept {
    std::atomic<int>& known = fork_state().driver;
    if (up) {
        known.store(static_cast<int>(DriverKnown::up));
    } else if (code == kNotInitialized || code == kNoLibrary) {
        // Only a simulated driver goes down again.
        int was_up = static_cast<int>(DriverKnown::up);
        known.compare_exchange_strong(was_up, static_cast<int>(DriverKnown::down));
    }
}

bool all_held(const Snapshot& snapshot) noexcept {
    for (int i = 0; i < snapshot.count; ++i) {
        if (!snapshot.held[i].load(std::memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

const Snapshot* known_without_loader() noexcept {
    const Snapshot* known = current.load(std::memory_order_acquire);
    const bool fresh = known != nullptr && seen_generation.load(std::memory_order_acquire) == loader_generation();
    return fresh && all_held(*known) ? known : nullptr;
}

} // namespace

bool driver_may_be_asked() noexcept {
    return fork_state().inherited.load() != static_cast<int>(Inherited::yes) &&
           tripwire::state() != tripwire::State::armed;
}

int driver_is_up_quick() noexcept {
    if (!driver_may_be_asked()) {
        return 0;
    }
    const Snapshot* known = known_without_loader();
    if (known == nullptr) {
        return -1;
    }
    int code = kNoLibrary;
    for (int i = 0; i < known->count && code != kSuccess; ++i) {
        int devices = 0;
        code = count_of(known->libraries[i], devices);
    }
    note(code == kSuccess, code);
    return code == kSuccess ? 1 : 0;
}

bool ask_driver(DriverAnswer& answer, bool may_block) noexcept {
    answer = DriverAnswer{};
    if (!may_block && known_without_loader() == nullptr) {
        return false;
    }
    const bool asks = driver_may_be_asked();
    Snapshot* known = refresh();
    for (int i = 0; known != nullptr && i < known->count; ++i) {
        const DriverLibrary& library = known->libraries[i];
        void* handle = nullptr;
        if (!known->held[i].load(std::memory_order_acquire)) {
            handle = hold(library.path);
            if (handle == nullptr || loader_generation() != seen_generation.load()) {
                // Libraries came or went since the table was read: its addresses may be stale. Say nothing of this
                // one rather than call into the unknown; the next question reads the table anew.
                if (handle != nullptr) {
                    dlclose(handle);
                }
                continue;
            }
        }
        int devices = 0;
        const int code = asks ? count_of(library, devices) : kNotAsked;
        ++answer.libraries;
        if (answer.libraries == 1 || (code == kSuccess && !answer.up)) {
            answer.code = code;
            answer.up = code == kSuccess;
            answer.devices = answer.up ? devices : 0;
            answer.simulated = library.simulated;
            copy_text(answer.path, sizeof answer.path, library.path, std::strlen(library.path));
            if (library.api.version == nullptr || library.api.version(&answer.version) != kSuccess) {
                answer.version = 0;
            }
        }
        if (handle != nullptr && (code != kSuccess || known->held[i].exchange(true))) {
            dlclose(handle); // kept only by the first who saw it up
        }
    }
    if (asks) {
        note(answer.up, answer.libraries == 0 ? kNoLibrary : answer.code);
    }
    return true;
}

int active_primary_contexts(int* ordinals, int capacity) noexcept {
    // Whichever is up is held, so its table stays good whatever else comes and goes.
    const Snapshot* known = current.load(std::memory_order_acquire);
    for (int i = 0; known != nullptr && i < known->count; ++i) {
        const DriverApi& api = known->libraries[i].api;
        int devices = 0;
        if (!known->held[i].load(std::memory_order_acquire) || count_of(known->libraries[i], devices) != kSuccess) {
            continue;
        }
        if (api.device == nullptr || api.primary_state == nullptr) {
            return -1;
        }
        int found = 0;
        for (int ordinal = 0; ordinal < devices && found < capacity; ++ordinal) {
            CuDevice device = 0;
            unsigned int flags = 0;
            int active = 0;
            if (api.device(&device, ordinal) != kSuccess || api.primary_state(device, &flags, &active) != kSuccess) {
                return -1;
            }
            if (active != 0) {
                ordinals[found++] = ordinal;
            }
        }
        return found;
    }
    return -1;
}

const DriverLibrary* driver_to_use(bool load, char* why, std::size_t capacity) noexcept {
    DriverAnswer answer;
    ask_driver(answer, true);
    if (answer.libraries == 0) {
        // Never closed: a context made through it lives as long as the process.
        if (!load || dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) {
            const char* message = load ? dlerror() : "no libcuda is loaded";
            copy_text(why, capacity, message, std::strlen(message));
            return nullptr;
        }
        ask_driver(answer, true);
    }
    Snapshot* known = refresh();
    for (int i = 0; known != nullptr && i < known->count; ++i) {
        if (std::strcmp(known->libraries[i].path, answer.path) == 0) {
            if (!known->held[i].exchange(true) && hold(answer.path) == nullptr) {
                known->held[i].store(false);
                continue;
            }
            return &known->libraries[i];
        }
    }
    copy_text(why, capacity, "libcuda was unloaded meanwhile", 30);
    return nullptr;
}

} // namespace cfg
