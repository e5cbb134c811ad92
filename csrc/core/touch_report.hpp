// The text of a touch report: a pure function of what is known.
#pragma once

#include <cstddef>
#include <sys/types.h>

#include "core/touch.hpp"

namespace cfg {

struct TouchFacts {
    pid_t pid;
    bool inherited;   // else: a worker that was verified as cpu-only
    const char* used; // the lines' contents, without their labels; an empty one is left out
    const char* forked;
    const char* woken;
    const char* advice;
};

constexpr std::size_t kReportSize = 4096; // one write of so many bytes is atomic on a pipe

// Returns the length. Always whole lines: every line has a limit of its own, and together they fit.
std::size_t format_touch_report(char (&report)[kReportSize], const TouchFacts& facts) noexcept;

} // namespace cfg
