// What is known of a fork just before it is made: written in ordinary context by whoever decided on it, confirmed by
// the child handler. An intention that no child confirms (the fork failed, or another hook refused it) is never
// recorded.
#pragma once

#include "core/platform.hpp"
#include "core/touch.hpp"

namespace cfg {

enum class ForkUse : int {
    unknown = 0, // an ordinary fork: the child may do anything
    exec,        // the child replaces itself at once: not recorded, nothing armed
    allowed,     // inside allow_fork
    quiet,       // a touch in the child is recorded, never reported (Inductor's compile workers)
    forkserver,  // a worker of a forkserver in which CUDA is up
};

struct ForkIntent {
    ForkSite site;
    char threads[512]; // names of the live threads, for the record
    ForkUse use;
};

// This thread's intention, taken from a fixed pool; null if the pool is used up (the fork is then recorded without its
// site). Ordinary context.
ForkIntent* begin_fork_intent() noexcept;

// Of this thread, or null. Async-signal-safe.
ForkIntent* current_fork_intent() noexcept;

// Parent handler, or when the fork turned out not to happen. Async-signal-safe.
void end_fork_intent() noexcept;

// Child handler: the intention becomes this process's own site. A null one is a native fork.
void adopt_fork_intent(pid_t parent) noexcept;

ForkUse own_fork_use() noexcept;
const char* own_fork_threads() noexcept;

// Who is named in a child of a native fork, and its "do:" line. Ordinary context.
void set_native_forker(const char* name, const char* advice) noexcept;

} // namespace cfg
