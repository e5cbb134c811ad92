// Which frame of a stack is the user's own line, and how a place is written.
#pragma once

#include <cstddef>

#include "core/python_stack.hpp"
#include "core/safe_output.hpp"

namespace cfg {

constexpr std::size_t kPlaceLimit = 400; // bytes of a place in a report: longer paths lose their beginning

// Ordinary context, at install. Two folders and the installed program that is running (bin/gunicorn: a package's, not
// the user's), "" for none. One that doesn't fit is left out: then its frames count as the user's.
void set_code_roots(const char* standard_library, const char* guard, const char* launcher) noexcept;

// The innermost frame outside the standard library, site-packages and the guard; if there is none, the innermost
// outside the standard library and the guard; else the innermost outside the guard; null if there is none at all.
const PythonFrame* user_frame(const PythonStack& stack) noexcept;

// "train.py:18 in __getitem__": relative to the current folder if the file is below it, else as it is. At most `limit`
// bytes, control characters replaced.
void put_place(Text& text, const PythonFrame& frame, std::size_t limit) noexcept;

// The same for the user's frame, or "unknown: " and why.
void put_user_place(Text& text, const PythonStack& stack, std::size_t limit) noexcept;

} // namespace cfg
