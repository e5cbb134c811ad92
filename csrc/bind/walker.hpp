// Python's side of stack capture: the frame walk where the GIL is held, and what must be prepared for where it isn't.
#pragma once

#include <pybind11/pybind11.h>

#include "core/python_stack.hpp"

namespace cfg::bind {

// Walks the frames of this thread if it holds the GIL. Runs no user code, raises nothing, keeps a pending exception.
Walk walk_python_stack(PythonStack& stack) noexcept;

// Once a process, with the GIL: the walker, the interpreter's address, and faulthandler's C handler for threads without
// the GIL. Null if all is in place, else why the Python stack of such threads will not be known.
const char* install_stack_capture() noexcept;

// For the audit hook, when tls_inside_cuinit is set: the GIL is held and cuInit has returned. Completes the origin that
// was captured on this thread.
void origin_tick() noexcept;

// origin(), python_stack(), install_origin() and the setters.
void register_origin(pybind11::module_& module);

} // namespace cfg::bind
