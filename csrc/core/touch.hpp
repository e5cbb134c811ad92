// The report of the first use of CUDA in a process that must not use it: formatted, written and recorded here, once.
#pragma once

#include <cstddef>

namespace cfg {

// Lines of the report that are known before the fork, prepared in the parent in ordinary context: in the child nothing
// of Python may be asked any more. Plain text without the "  forked:  " label and without a line feed; two spaces and a
// parenthesis begin the detail ("train.py:41 in main  (torch DataLoader, from pid 4200)"), so that details can line up.
// An empty `woken` is made up from the inherited origin; other empty lines are left out.
struct ForkSite {
    static constexpr std::size_t kLine = 768;
    char forked[kLine];
    char woken[kLine];
    char advice[kLine];
};

// The site of the fork that made this process, or of the verify_worker("cpu-only") that armed it. Never null; its
// strings say what is not known.
ForkSite& own_fork_site() noexcept;

// Handler for the tripwire and for the hook in an inherited child: captures this thread's Python stack.
void touch_by_driver_call(const char* function) noexcept;

// For a refusal that never reaches the driver (torch's): `used` is the finished text of the "used:" line.
void touch_by_refusal(const char* used) noexcept;

// Async-signal-safe: called where the tripwire is armed, also inside the C child handler. If descriptor 2 is closed
// now, whatever gets that number later is not stderr, and no report is written to it.
void note_stderr() noexcept;

// Told by the thread that collects garbage, when it starts and when it ends.
void set_collecting(bool collecting) noexcept;

} // namespace cfg
