// Python's side of stack capture: the frame walk where the GIL is held, and what must be prepared for where it isn't.
#pragma once

#include <pybind11/pybind11.h>

#include "core/python_stack.hpp"

namespace cfg::bind {

// Walks the frames of this thread if it holds the GIL. Runs no user code, raises nothing, keeps a pending exception.
Walk walk_python_stack(PythonStack& stack) noexcept;

// Once a process, with the GIL: has faulthandler install its C handler for a moment and keeps the address. Null if that
// worked, else why the Python stack of a thread without the GIL won't be known.
const char* install_python_dump() noexcept;

} // namespace cfg::bind
