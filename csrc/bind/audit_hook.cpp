// The C audit hook: the one place where a Python fork can still be refused, since it runs before anything else of
// os.fork, in ordinary context, with the GIL. It sees every audited event of the process, for good (a hook can't be
// removed), so everything else leaves it within a few instructions.
#include "bind/bindings.hpp"
#include "bind/known_sites.hpp"
#include "core/atfork.hpp"
#include "core/fork_intent.hpp"
#include "core/fork_state.hpp"

#include <cstring>

namespace py = pybind11;

namespace cfg::bind {

namespace {

constexpr const char* kProbe = "cuda_fork_guard.probe";

bool hook_added = false;       // once per process, whatever is imported again
bool child_hook_added = false; // likewise
std::atomic<bool> probe_seen{false};
PyObject* on_fork = nullptr;  // called before an unsafe or doubtful fork; strong, main interpreter's
PyObject* on_child = nullptr; // called in an inherited child that has torch; likewise

CFG_TLS bool tls_deciding = false;               // a fork made while deciding (a showwarning that forks) passes
// Where subprocess said that it is about to fork, and where the pending intention was made: compared, never read.
CFG_TLS PyFrameObject* tls_subprocess_frame = nullptr;
CFG_TLS PyFrameObject* tls_fork_frame = nullptr;

bool finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

bool in_main_interpreter() noexcept {
    return PyInterpreterState_Get() == PyInterpreterState_Main();
}

bool is_fork(const char* event) noexcept {
    return std::strcmp(event, "os.fork") == 0 || std::strcmp(event, "os.forkpty") == 0;
}

// Is this thread in the call that the frame was marked in? Hooks that run before a fork do audited things too: their
// events come from frames above the one that forks.
bool inside(const PyFrameObject* marked) noexcept {
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(reinterpret_cast<PyObject*>(frame));
    bool found = frame == marked;
    while (frame != nullptr && !found) {
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(reinterpret_cast<PyObject*>(frame));
        frame = back;
        found = frame == marked;
    }
    Py_XDECREF(reinterpret_cast<PyObject*>(frame));
    return found;
}

// A fork that another hook refused never reaches the handlers, and its intention must not pass for the next native
// fork's.
void forget_stale_intent() noexcept {
    if (!inside(tls_fork_frame)) {
        end_fork_intent();
        tls_fork_frame = nullptr;
    }
}

void forget_stale_subprocess() noexcept {
    if (!inside(tls_subprocess_frame)) {
        forget_subprocess();
        tls_subprocess_frame = nullptr;
    }
}

// 0 lets the fork pass; -1 refuses it, with the exception set.
int before_fork(const char* event) noexcept {
    end_fork_intent();
    forget_subprocess(); // this one is no subprocess's, wherever it is called from
    learn_driver();
    const ForkState& state = fork_state();
    const bool up = state.driver.load() == static_cast<int>(DriverKnown::up);
    const bool inherited = state.inherited.load() == static_cast<int>(Inherited::yes);
    const bool doubtful = state.driver.load() == static_cast<int>(DriverKnown::tried);
    const int policy = state.policy.load();
    if (policy == static_cast<int>(Policy::off) || !(up || inherited || doubtful) || tls_deciding || finalizing()) {
        return 0;
    }
    if (!in_main_interpreter()) {
        // The guard's Python objects belong to the main interpreter and are not touched from another one.
        if (policy == static_cast<int>(Policy::block) && (up || inherited)) {
            PyErr_SetString(PyExc_RuntimeError, "[CFG101] fork refused: CUDA is up in this process, and the policy of "
                                                "cuda_fork_guard is \"block\" (asked from a subinterpreter)");
            return -1;
        }
        return 0;
    }
    if (on_fork == nullptr) {
        return 0;
    }
    // Under `watch` nothing is said before a fork, so nothing is lost where the judgement is already known.
    const bool silent = policy == static_cast<int>(Policy::watch) && tls_allowed_forks == 0;
    if (silent && recall_site(PyEval_GetFrame())) {
        tls_fork_frame = PyEval_GetFrame();
        return 0;
    }
    PyObject* callback = on_fork;
    Py_INCREF(callback);
    tls_deciding = true;
    PyObject* result = PyObject_CallFunction(callback, "s", event);
    tls_deciding = false;
    Py_DECREF(callback);
    if (result == nullptr) {
        end_fork_intent();
        return -1;
    }
    Py_DECREF(result);
    if (silent) {
        remember_site();
    }
    tls_fork_frame = PyEval_GetFrame();
    return 0;
}

int audit(const char* event, PyObject*, void*) noexcept {
    if (tls_inside_cuinit) {
        settle_cuinit();
    }
    if (tls_subprocess_frame != nullptr) {
        forget_stale_subprocess();
    }
    if (current_fork_intent() != nullptr && !tls_deciding) {
        forget_stale_intent();
    }
    if (event[0] == 'o' && is_fork(event)) {
        return before_fork(event);
    }
    if (event[0] == 's' && std::strcmp(event, "subprocess.Popen") == 0) {
        tls_subprocess_frame = PyEval_GetFrame();
        announce_subprocess();
    } else if (event[0] == 'c' && std::strcmp(event, kProbe) == 0) {
        probe_seen.store(true);
    }
    return 0;
}

// The child writes to as few pages as can be: each costs a copy. Python is asked only where torch is there to be asked.
void set_up_child() noexcept {
    const ForkState& state = fork_state();
    if (state.inherited.load() != static_cast<int>(Inherited::yes) || state.tripwire.load() == 0 ||
        state.policy.load() == static_cast<int>(Policy::off)) {
        return;
    }
    watch_collections();
    PyObject* modules = PyImport_GetModuleDict();
    if (on_child != nullptr && PyDict_GetItemString(modules, "torch.cuda") != nullptr) {
        PyObject* callback = on_child;
        Py_INCREF(callback);
        PyObject* result = PyObject_CallFunction(callback, nullptr);
        Py_DECREF(callback);
        if (result == nullptr) {
            // Never the program's concern: the guard's own hook keeps its errors to itself and records them.
            PyErr_Clear();
        }
        Py_XDECREF(result);
    }
}

PyObject* after_in_child(PyObject*, PyObject*) noexcept {
    if (in_main_interpreter() && !finalizing()) {
        set_up_child();
    }
    Py_RETURN_NONE;
}

PyMethodDef after_in_child_method = {"cuda_fork_guard_after_in_child", after_in_child, METH_NOARGS, nullptr};

// PySys_AddAuditHook reports success also when an existing hook vetoed the new one: only an event that the new hook
// saw proves that it is there.
bool add_hook_once() {
    if (!hook_added) {
        if (PySys_AddAuditHook(audit, nullptr) != 0) {
            PyErr_Clear();
            return false;
        }
        hook_added = true;
    }
    if (!probe_seen.load() && PySys_Audit(kProbe, nullptr) != 0) {
        PyErr_Clear(); // somebody's hook refuses unknown events; ours may have seen it all the same
    }
    if (!probe_seen.load()) {
        hook_added = false; // vetoed: a later install() may try again
    }
    return probe_seen.load();
}

void add_child_hook_once() {
    if (!child_hook_added) {
        const auto function = py::reinterpret_steal<py::object>(PyCFunction_New(&after_in_child_method, nullptr));
        py::module_::import("os").attr("register_at_fork")(py::arg("after_in_child") = function);
        child_hook_added = true;
    }
}

void replace(PyObject*& held, const py::object& callback) {
    PyObject* former = held;
    held = callback.is_none() ? nullptr : callback.inc_ref().ptr();
    Py_XDECREF(former);
}

} // namespace

void add_audit_hook(py::module_& module) {
    module.def(
        "hook_python_forks",
        [](const py::object& before, const py::object& child) {
            if (!in_main_interpreter()) {
                return probe_seen.load();
            }
            replace(on_fork, before);
            replace(on_child, child);
            add_child_hook_once();
            return add_hook_once();
        },
        py::arg("before"), py::arg("child"));
    module.def("python_forks_seen", [] { return probe_seen.load(); });
    module.def("in_main_interpreter", [] { return in_main_interpreter(); });
}

} // namespace cfg::bind
