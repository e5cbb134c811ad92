#include "bind/bindings.hpp"
#include "core/fork_state.hpp"
#include "core/loaded_libraries.hpp"
#include "core/touch.hpp"
#include "core/tripwire.hpp"

namespace py = pybind11;

namespace cfg::bind {

void add_state(py::module_& module) {
    module.def("state", [] {
        const ForkState& state = fork_state();
        py::dict facts;
        facts["generation"] = state.generation.load();
        facts["pid"] = state.pid.load();
        facts["parent"] = state.parent.load();
        facts["inherited"] = state.inherited.load();
        facts["driver"] = state.driver.load();
        facts["cuinit_calls"] = state.cuinit_calls.load();
        facts["policy"] = state.policy.load();
        facts["tripwire_wanted"] = state.tripwire.load() != 0;
        facts["driver_helpers"] = state.driver_helpers.load();
        facts["loader_lost"] = loader_lock_is_lost();
        facts["inside_cuinit"] = tls_inside_cuinit;
        return facts;
    });
    module.def("generation", [] { return fork_state().generation.load(); });
    module.def("inherited", [] { return fork_state().inherited.load(); });
    // For a process that was forked before the guard was loaded in it: what its descriptors tell, for its children.
    module.def("set_inherited", [](int inherited) { fork_state().inherited.store(inherited); });
    // One dictionary for every copy of the package in this process: after removal from sys.modules and a second import
    // the first copy's functions are still in use by whoever imported them. For the main interpreter only.
    module.def("shared", [] {
        static PyObject* const shared = PyDict_New();
        return py::reinterpret_borrow<py::object>(shared);
    });
    module.def("policy", [] { return fork_state().policy.load(); });
    module.def("set_policy", [](int policy) { fork_state().policy.store(policy); });
    module.def("set_tripwire_wanted", [](bool wanted) { fork_state().tripwire.store(wanted ? 1 : 0); });
    module.def("set_cpu_only", [] { fork_state().cpu_only.store(1); });
    module.def("tripwire", [] {
        return py::make_tuple(static_cast<int>(tripwire::state()), tripwire::reason(), tripwire::entries(),
                              tripwire::skipped());
    });
    module.attr("TRIPWIRE_ARMED") = static_cast<int>(tripwire::State::armed);
    // For a process that must not use CUDA from now on, whoever forked it.
    module.def("arm_tripwire", [] { return tripwire::prepare(touch_by_driver_call) && tripwire::arm(); });
    module.def("disarm_tripwire", [] { tripwire::disarm(); });
}

} // namespace cfg::bind
