// Asks an already loaded libcuda whether it is up, without loading or waking it.
#pragma once

#include <atomic>
#include <cstddef>

#include "core/driver_api.hpp"

namespace cfg {

constexpr int kMaxDrivers = 4;
constexpr int kNotAsked = -2; // DriverAnswer::code of a process in which the driver's word would mean nothing

struct DriverLibrary {
    char path[512];
    DriverApi api;
    bool simulated;
};

struct DriverAnswer {
    int libraries = 0; // libcudas loaded in this process
    bool up = false;   // one of them answered "up"
    int code = -1;     // cuDeviceGetCount's answer of that one, else of the first; -1: it exports none
    int devices = 0;   // if up
    int version = 0;   // cuDriverGetVersion's; 0: unknown
    bool simulated = false;
    char path[512] = "";
};

// False in an inherited process, where answers mean nothing, and while the tripwire is armed, which a question would
// trip.
bool driver_may_be_asked() noexcept;

// Ordinary context, with the interpreter's lock held. Updates fork_state().driver.
void ask_driver(DriverAnswer& answer) noexcept;

// The plain question, as cheap as it gets. -1: only ask_driver can tell.
int driver_is_up_quick() noexcept;

// Ordinary context; active primary contexts of the driver that is up, as a list of ordinals. -1: it could not be asked.
int active_primary_contexts(int* ordinals, int capacity) noexcept;

// The libcuda to use for bringing a context up: the loaded one (the one that is up, if any), else, if `load`, the
// loader's "libcuda.so.1". Held for the life of the process. Null: there is none; `why` is the loader's message.
const DriverLibrary* driver_to_use(bool load, char* why, std::size_t capacity) noexcept;

} // namespace cfg
