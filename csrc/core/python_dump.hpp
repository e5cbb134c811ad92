// The Python stack of a thread that doesn't hold the GIL: the C handler that faulthandler.register installed is called
// as a plain function and writes to a memory file, which is read back. No signal is taken or sent: waiting for the GIL
// inside cuInit could deadlock, and a signal may be blocked, reset or somebody else's.
#pragma once

#include <cstddef>

#include "core/python_stack.hpp"

namespace cfg {

using DumpFunction = void (*)(int signum);

// Ordinary context, once a process. `function` is bound by faulthandler to file descriptor `descriptor`, a number that
// is open only while a stack is read. A null function takes it away; `why_not` (static text) then says why.
void set_python_dump(DumpFunction function, int signum, int descriptor, const char* why_not) noexcept;

// At the beginning of the interpreter's end, with the GIL: no dump begins any more, and the one being made is waited
// for. The end frees what a dump reads, so that one overtaken by it would crash. Waits for a dump's own length at most.
void end_python_dumps() noexcept;

// Any thread; never blocks. One stack at a time per process: a second thread is told so instead of waiting.
void dump_python_stack(PythonStack& stack) noexcept;

// One line of a dump without its line feed; decoded in place. True if it was a frame; then it was added.
enum class DumpLine : int { other = 0, frame, cut, full };
DumpLine read_dump_line(PythonStack& stack, char* line, std::size_t length) noexcept;

} // namespace cfg
