// What each file of the binding adds to the module. Functions only, no bound classes: the module can be initialised
// again (import after removal from sys.modules, a legacy subinterpreter), and a class would be registered twice.
#pragma once

#include <pybind11/pybind11.h>

namespace cfg::bind {

void add_state(pybind11::module_& module);
void add_driver(pybind11::module_& module);
void add_handles(pybind11::module_& module);
void add_events(pybind11::module_& module);
void add_fork(pybind11::module_& module);
void add_audit_hook(pybind11::module_& module);
void add_origin(pybind11::module_& module);

// Appends the guard's callback to gc.callbacks, so that a touch made by the collector is told as one. Needs the GIL.
void watch_collections() noexcept;

// On the audit events of a thread that is, or was just, inside cuInit: learns how it ended. Needs the GIL.
void settle_cuinit() noexcept;

// What the hook could not ask inside cuInit, asked on the same thread after it returned: how it ended, Python's name of
// the thread, outer frames that are missing. Needs the GIL; does nothing on any other thread.
void complete_own_origin(bool driver_is_up) noexcept;

// Makes ready what a forked child arms, if a child forked now would inherit CUDA. Needs the GIL, gives it up meanwhile.
void prepare_tripwire() noexcept;

// Asks the driver, giving the GIL up only where the loader has to be asked too.
struct Learned {
    bool up;
};
Learned learn_driver() noexcept;

} // namespace cfg::bind
