// What is decided on an os.fork before it is made, and the marks that wait for the fork: called by the audit hook, with
// the GIL, on the forking thread.
#pragma once

#include <pybind11/pybind11.h>

namespace cfg::bind {

bool finalizing() noexcept;
bool in_main_interpreter() noexcept;

// 0 lets the fork pass; -1 refuses it, with the exception set.
int before_fork(const char* event) noexcept;

// subprocess is about to fork and exec.
void mark_subprocess() noexcept;

// At each audited event: drops the marks of forks that were announced and never made.
void forget_stale_marks() noexcept;

// The function of the guard's that judges a fork; None takes it away.
void call_before_forks(const pybind11::object& callback);

// Puts one strong reference in another one's place.
void replace_held(PyObject*& held, const pybind11::object& callback);

} // namespace cfg::bind
