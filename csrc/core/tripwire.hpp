// Traps the first call of an exported driver function in a process that must not use CUDA: no signals, no writable or
// non-executable live text. Prepared in the parent, switched on in the child by one mremap.
#pragma once

#include <cstddef>

#include "core/tripwire_reason.hpp" // reason()

namespace cfg::tripwire {

enum class State : int {
    idle = 0,    // nothing prepared
    unavailable, // preparing or arming was tried and refused; reason() says why
    prepared,    // private copies of the entry pages are ready, nothing is switched on
    armed,       // jumps are in place in this process
    tripped,     // they were, and the first call put the pristine pages back
};

// Called once, on the touching thread, after the pristine pages are back and before the driver function runs. Ordinary
// thread context, any thread, with or without the GIL; must not throw; may call the driver itself. `function` is the
// exported name, static storage.
using TouchHandler = void (*)(const char* function) noexcept;

// Ordinary context. Makes every loaded libcuda ready to be armed: those that are ready, or armed, stay as they are, one
// that was loaded since is added, one that a debugger, a uprobe or another hook has changed since is prepared anew
// without the functions concerned. A ready libcuda is held. What was refused is tried again when libraries were loaded
// or unloaded. In a tripped process it prepares anew: that, and another arm(), is how a child of a tripped process gets
// a tripwire. False, with reason(), if there is no libcuda or one of them was refused: for that one nothing has
// changed.
bool prepare(TouchHandler handler) noexcept;

// Async-signal-safe, keeps errno: one mremap for each libcuda. Called in the C child handler, or by verify_worker
// ("cpu-only") in ordinary context, where another thread must not be inside the first bytes of a driver function. True
// if everything that is prepared is armed, as in a child of an armed process, which inherits the jumps. False if
// nothing is prepared, in a child of a tripped process, or if the system refused (unavailable; nothing is trapped
// then).
bool arm() noexcept;

// Ordinary context: back to idle. Pristine pages in place, without a report; the copies are given back. libcuda stays
// held.
void disarm() noexcept;

State state() noexcept;
std::size_t entries() noexcept; // trapped functions, of all prepared libcudas
std::size_t skipped() noexcept; // exported functions that are not: too short, unaligned, unlike the file

} // namespace cfg::tripwire
