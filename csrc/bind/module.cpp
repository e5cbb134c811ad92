#include "bind/bindings.hpp"

// Not named as the file is: PyInit__native below stands before it.
PYBIND11_MODULE(_native_checked, module, pybind11::mod_gil_used(), pybind11::multiple_interpreters::shared_gil()) {
    module.doc() = "Facts about CUDA, fork and this process. Private: use cuda_fork_guard.";
    cfg::bind::add_state(module);
    cfg::bind::add_driver(module);
    cfg::bind::add_handles(module);
    cfg::bind::add_events(module);
    cfg::bind::add_fork(module);
    cfg::bind::add_audit_hook(module);
    cfg::bind::add_origin(module);
}

// pybind11 asks for its internals with PyGILState_Ensure. Before 3.12 that waits for ever in a subinterpreter, since
// the GIL is held by this very thread, under another thread state.
extern "C" PYBIND11_EXPORT PyObject* PyInit__native() {
#if PY_VERSION_HEX < 0x030C0000
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "before Python 3.12 it works in the main interpreter only");
        return nullptr;
    }
#endif
    return PyInit__native_checked();
}
