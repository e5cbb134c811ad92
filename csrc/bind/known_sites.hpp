// Fork sites that were judged before. In a process that has just forked, every page that is written to is copied first:
// judging a fork in Python touches some 130 of them and so costs more than the fork. A site that is known to the last
// frame, under the same circumstances, needs none of it.
#pragma once

#include <pybind11/pybind11.h>

namespace cfg::bind {

int instruction_of(PyFrameObject* frame) noexcept;

struct Place {
    PyCodeObject* code;
    int instruction;
};

// Everything that the judgement of a fork depended on. Borrowed references: good while the forking call lasts.
struct Circumstances {
    static constexpr int kDeepest = 96; // deeper stacks are judged each time
    bool whole = false;
    std::uint32_t generation;
    std::uint32_t cuinit_calls;
    int policy;
    int inherited;
    int driver;
    int wire;
    std::uint64_t threads; // sum over the thread ids, order does not matter
    int depth;
    Place stack[kDeepest];
};

// The intention of an earlier fork from this very stack, taken over for the fork about to be made. False if there is
// none: then the fork is judged, and remember_site() may keep what came of it. The circumstances are the caller's own:
// while a fork is judged other threads may fork too.
bool recall_site(PyFrameObject* frame, Circumstances& now) noexcept;

// After judging: keeps this thread's current intention for the circumstances in which recall_site() failed.
void remember_site(Circumstances& now) noexcept;

} // namespace cfg::bind
