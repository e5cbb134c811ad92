// The interpreter's lock (Python's GIL), as far as the core must know of it: it is given up where the loader's lock may
// be waited for, and only there.
#pragma once

namespace cfg {

// Called on threads that hold it. `give_up` returns what `take_back` needs.
struct InterpreterLock {
    void* (*give_up)() noexcept;
    void (*take_back)(void*) noexcept;
};

// Ordinary context, once. Without it there is no interpreter, as in a native test.
void set_interpreter_lock(InterpreterLock lock) noexcept;

// Around dlopen, dlsym and dlclose: a thread that loads a library holds the loader's lock, and the library's
// constructor may wait for the interpreter's. Not around dl_iterate_phdr: glibc (2.36 at least) does not free that
// one's own lock in a forked child, which would wait for it for ever, so no thread may be in there while another one
// can fork. Nobody waits for the interpreter in there.
class InterpreterUnlocked {
  public:
    InterpreterUnlocked() noexcept;
    ~InterpreterUnlocked();
    InterpreterUnlocked(const InterpreterUnlocked&) = delete;
    InterpreterUnlocked& operator=(const InterpreterUnlocked&) = delete;

  private:
    void* given_up_;
};

} // namespace cfg
