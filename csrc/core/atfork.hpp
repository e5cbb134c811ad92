// The three fork handlers.
//
// RULES for everything that runs inside them (and for every function they call): C prepare runs while the forking
// thread may hold any lock of the program, the driver's included (the driver forks a helper inside cuInit); C child
// runs in a process whose other threads vanished in the middle of whatever they did; in os.fork both run with the
// interpreter's import and runtime locks held. So: only the guard's own atomics and static buffers. No driver call, no
// dlopen, no malloc, no lock, no stdio, no Python, no thread-local that is not initial-exec. errno is kept. The one
// exception is the child's tripwire::arm(): one mremap per stretch of prepared pages.
#pragma once

namespace cfg {

// Registers once per process, never again in a child or by a second import. 0, or pthread_atfork's error number.
int register_fork_handlers() noexcept;

// Set for the next fork of this thread: subprocess forks natively and execs (preexec_fn=, user=), so not worth a
// record.
void announce_subprocess() noexcept;
void forget_subprocess() noexcept;

} // namespace cfg
