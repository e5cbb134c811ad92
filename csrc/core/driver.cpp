#include "core/driver.hpp"

#include <cstring>
#include <dlfcn.h>

#include "core/fork_state.hpp"
#include "core/interpreter_lock.hpp"
#include "core/libcuda_table.hpp"
#include "core/safe_output.hpp"
#include "core/tripwire.hpp"

namespace cfg {

namespace {

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

} // namespace

bool driver_may_be_asked() noexcept {
    return fork_state().inherited.load() != static_cast<int>(Inherited::yes) &&
           tripwire::state() != tripwire::State::armed;
}

int driver_is_up_quick() noexcept {
    if (!driver_may_be_asked()) {
        return 0;
    }
    const LibcudaTable* known = libcudas_without_loader();
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

void ask_driver(DriverAnswer& answer) noexcept {
    answer = DriverAnswer{};
    const bool asks = driver_may_be_asked();
    // Where it is not asked it is held by then: its table is still good, and a forked child need not trust the loader's
    // locks.
    LibcudaTable* last = asks ? nullptr : last_libcudas();
    LibcudaTable* known = last != nullptr ? last : libcudas();
    for (int i = 0; known != nullptr && i < known->count; ++i) {
        const DriverLibrary& library = known->libraries[i];
        void* handle = nullptr;
        if (known != last && !known->held[i].load(std::memory_order_acquire)) {
            handle = hold_library(library.path);
            if (handle == nullptr || !is_current(*known)) {
                // Libraries came or went since the table was read: its addresses may be stale. Say nothing of this
                // one rather than call into the unknown; the next question reads the table anew.
                if (handle != nullptr) {
                    drop_library(handle);
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
            drop_library(handle); // kept only by the first who saw it up
        }
    }
    if (asks) {
        note(answer.up, answer.libraries == 0 ? kNoLibrary : answer.code);
    }
}

int active_primary_contexts(int* ordinals, int capacity) noexcept {
    // Whichever is up is held, so its table stays good whatever else comes and goes.
    const LibcudaTable* known = last_libcudas();
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

namespace {
bool load_libcuda(bool wanted, char* why, std::size_t capacity) noexcept {
    const InterpreterUnlocked unlocked;
    // Never closed: a context made through it lives as long as the process.
    if (!wanted || dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) {
        const char* message = wanted ? dlerror() : "no libcuda is loaded";
        copy_text(why, capacity, message, std::strlen(message));
        return false;
    }
    return true;
}
} // namespace

const DriverLibrary* driver_to_use(bool load, char* why, std::size_t capacity) noexcept {
    DriverAnswer answer;
    ask_driver(answer);
    if (answer.libraries == 0) {
        if (!load_libcuda(load, why, capacity)) {
            return nullptr;
        }
        ask_driver(answer);
    }
    LibcudaTable* known = libcudas();
    for (int i = 0; known != nullptr && i < known->count; ++i) {
        if (std::strcmp(known->libraries[i].path, answer.path) == 0) {
            if (!known->held[i].exchange(true) && hold_library(answer.path) == nullptr) {
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
