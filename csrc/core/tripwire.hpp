// Traps the first call of an exported driver function in a process that must not use CUDA: no signals, no writable or
// non-executable live text. Prepared in the parent, switched on in the child by one mremap.
#pragma once

#include <cstddef>

namespace cfg::tripwire {

enum class State : int {
    idle = 0,    // nothing prepared
    unavailable, // preparing was tried and refused; reason() says why
    prepared,    // a private copy of the entry pages is ready, nothing is switched on
    armed,       // jumps are in place in this process
    tripped,     // they were, and the first call put the pristine pages back
};

// Called once, on the touching thread, after the pristine pages are back and before the driver function runs. Ordinary
// thread context, any thread, with or without the GIL; must not throw. `function` is the exported name, static storage.
using TouchHandler = void (*)(const char* function) noexcept;

// Ordinary context. Finds the loaded libcuda at `library_path` (a dl_iterate_phdr name), builds stubs and the private
// copy, holds libcuda. Idempotent for the same library; a second library loaded later may be added by another call.
// False, with reason(), if anything is refused: then nothing has changed in this process.
bool prepare(TouchHandler handler) noexcept;

// Async-signal-safe, keeps errno: one mremap per mapped stretch. Called in the C child handler, or by verify_worker
// ("cpu-only") in ordinary context. False if nothing is prepared or the system refused (state() then says so).
bool arm() noexcept;

// Ordinary context: puts the pristine pages back without a report, if armed.
void disarm() noexcept;

State state() noexcept;
const char* reason() noexcept;  // static text or a static buffer; "" when there is none
std::size_t entries() noexcept; // trapped functions
std::size_t skipped() noexcept; // exported functions that could not be trapped (too short, unaligned, unlike the file)

} // namespace cfg::tripwire
