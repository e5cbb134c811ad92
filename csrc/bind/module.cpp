#include "bind/bindings.hpp"

PYBIND11_MODULE(_native, module, pybind11::mod_gil_used(), pybind11::multiple_interpreters::shared_gil()) {
    module.doc() = "Facts about CUDA, fork and this process. Private: use cuda_fork_guard.";
    cfg::bind::add_state(module);
    cfg::bind::add_driver(module);
    cfg::bind::add_handles(module);
    cfg::bind::add_events(module);
    cfg::bind::add_fork(module);
    cfg::bind::add_audit_hook(module);
    cfg::bind::add_origin(module);
}
