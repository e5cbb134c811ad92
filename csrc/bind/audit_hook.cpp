// The C audit hook: the one place where a Python fork can still be refused, since it runs before anything else of
// os.fork, in ordinary context, with the GIL. It sees every audited event of the process, for good (a hook can't be
// removed), so everything else leaves it within a few instructions.
#include "bind/before_fork.hpp"
#include "bind/bindings.hpp"
#include "core/fork_state.hpp"

#include <cstring>

namespace py = pybind11;

namespace cfg::bind {

namespace {

constexpr const char* kProbe = "cuda_fork_guard.probe";

bool hook_added = false;       // once per process, whatever is imported again
bool child_hook_added = false; // likewise
std::atomic<bool> probe_seen{false};
PyObject* on_child = nullptr; // called in an inherited child that has torch; strong, main interpreter's

bool is_fork(const char* event) noexcept {
    return std::strcmp(event, "os.fork") == 0 || std::strcmp(event, "os.forkpty") == 0;
}

int audit(const char* event, PyObject*, void*) noexcept {
    if (tls_inside_cuinit) {
        settle_cuinit();
    }
    forget_stale_marks();
    if (event[0] == 'o' && is_fork(event)) {
        return before_fork(event);
    }
    if (event[0] == 's' && std::strcmp(event, "subprocess.Popen") == 0) {
        mark_subprocess();
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

} // namespace

void add_audit_hook(py::module_& module) {
    module.def(
        "hook_python_forks",
        [](const py::object& before, const py::object& child) {
            if (!in_main_interpreter()) {
                return probe_seen.load();
            }
            call_before_forks(before);
            replace_held(on_child, child);
            add_child_hook_once();
            return add_hook_once();
        },
        py::arg("before"), py::arg("child"));
    module.def("python_forks_seen", [] { return probe_seen.load(); });
    module.def("in_main_interpreter", [] { return in_main_interpreter(); });
}

} // namespace cfg::bind
