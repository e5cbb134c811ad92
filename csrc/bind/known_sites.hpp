// Fork sites that were judged before. In a process that has just forked, every page that is written to is copied first:
// judging a fork in Python touches some 130 of them and so costs more than the fork. A site that is known to the last
// frame, under the same circumstances, needs none of it.
#pragma once

#include <pybind11/pybind11.h>

namespace cfg::bind {

// The intention of an earlier fork from this very stack, taken over for the fork about to be made. False if there is
// none: then the fork is judged, and remember_site() may keep what came of it.
bool recall_site(PyFrameObject* frame) noexcept;

// After judging: keeps this thread's current intention for the stack of the last recall_site() that failed.
void remember_site() noexcept;

} // namespace cfg::bind
