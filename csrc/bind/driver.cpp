#include "core/driver.hpp"
#include "bind/bindings.hpp"
#include "core/context_proof.hpp"
#include "core/fork_state.hpp"
#include "core/interpreter_lock.hpp"
#include "core/touch.hpp"
#include "core/tripwire.hpp"

namespace py = pybind11;

namespace cfg::bind {

namespace {

void* give_up_gil() noexcept {
    return PyEval_SaveThread();
}

void take_back_gil(void* state) noexcept {
    PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

py::dict driver_facts() {
    DriverAnswer answer;
    ask_driver(answer);
    py::dict facts;
    facts["libraries"] = answer.libraries;
    facts["up"] = answer.up;
    facts["code"] = answer.code;
    facts["devices"] = answer.devices;
    facts["version"] = answer.version;
    facts["simulated"] = answer.simulated;
    facts["path"] = py::reinterpret_steal<py::object>(PyUnicode_DecodeFSDefault(answer.path));
    facts["active"] = py::none();
    if (answer.up) {
        int ordinals[256];
        int found = 0;
        {
            py::gil_scoped_release released;
            found = active_primary_contexts(ordinals, 256);
        }
        if (found >= 0) {
            py::list active;
            for (int i = 0; i < found; ++i) {
                active.append(ordinals[i]);
            }
            facts["active"] = py::tuple(active);
        }
    }
    return facts;
}

py::dict prove(int ordinal, bool load) {
    char why[512] = "";
    const DriverLibrary* library = driver_to_use(load, why, sizeof why);
    ContextProof proof;
    if (library != nullptr) {
        py::gil_scoped_release released;
        proof = prove_primary_context(library->api, ordinal);
    }
    // Whatever cuInit did, it is over now: the answer settles it.
    settle_cuinit();
    learn_driver();
    py::dict facts;
    facts["found"] = library != nullptr;
    facts["why"] = py::reinterpret_steal<py::object>(PyUnicode_DecodeFSDefault(why));
    facts["result"] = static_cast<int>(proof.result);
    facts["function"] = proof.function;
    facts["code"] = proof.code;
    facts["devices"] = proof.devices;
    facts["other"] = proof.other;
    facts["uuid"] = proof.has_uuid ? py::object(py::bytes(reinterpret_cast<const char*>(proof.uuid.bytes), 16))
                                   : py::object(py::none());
    return facts;
}

} // namespace

Learned learn_driver() noexcept {
    const int quick = driver_is_up_quick();
    if (quick >= 0) {
        return Learned{quick == 1};
    }
    DriverAnswer answer;
    ask_driver(answer);
    return Learned{answer.up};
}

void prepare_tripwire() noexcept {
    const ForkState& state = fork_state();
    const bool needed = state.driver.load() == static_cast<int>(DriverKnown::up) ||
                        state.inherited.load() == static_cast<int>(Inherited::yes);
    if (!needed || state.tripwire.load() == 0 || state.policy.load() == static_cast<int>(Policy::off)) {
        return;
    }
    PyThreadState* saved = PyEval_SaveThread(); // it asks the loader
    tripwire::prepare(touch_by_driver_call);
    PyEval_RestoreThread(saved);
}

void settle_cuinit() noexcept {
    if (!tls_inside_cuinit) {
        return;
    }
    tls_inside_cuinit = false;
    complete_own_origin(learn_driver().up);
    // Now, and not at the first fork: that may be a native one, before which nothing can be prepared.
    prepare_tripwire();
}

void add_driver(py::module_& module) {
    set_interpreter_lock(InterpreterLock{give_up_gil, take_back_gil});
    // Whoever asks is not inside cuInit any more. Where the audit hook is not there nothing else tells.
    module.def("driver_up", [] {
        settle_cuinit();
        return learn_driver().up;
    });
    module.def("driver", driver_facts);
    // Before a fork that is unsafe, also for a libcuda that was loaded since; nothing where the driver is not up.
    module.def("prepare_tripwire", [] { prepare_tripwire(); });
    module.def("settle_cuinit", [] { settle_cuinit(); });
    module.def("prove_context", prove, py::arg("ordinal"), py::arg("load"));
}

} // namespace cfg::bind
