// Who woke CUDA, as Python sees it: plain tuples, which cuda_fork_guard/origin.py makes values of.
#include <dlfcn.h>
#include <memory>
#include <new>
#include <unistd.h>

#include "bind/bindings.hpp"
#include "bind/walker.hpp"
#include "core/cells.hpp"
#include "core/fork_state.hpp"
#include "core/origin.hpp"
#include "core/safe_output.hpp"
#include "core/stack_join.hpp"
#include "core/touch.hpp"
#include "core/user_frame.hpp"

#include <cstring>
#include <string>
#include <string_view>

namespace py = pybind11;

namespace cfg::bind {

namespace {

using Listen = void (*)(void (*)());
Listen listen = nullptr; // the hook library's, once it is loaded

py::object text(const char* bytes) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(std::strlen(bytes)), "surrogateescape"));
}

// What text() makes readable, back as it was.
std::string bytes_of(const py::str& string) {
    return py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(string.ptr(), "utf-8", "surrogateescape"));
}

// (((file, line, function), …) innermost first, where frames are left out or 0, how many or -1, complete, reason)
py::tuple stack_tuple(const PythonStack& stack) {
    py::tuple frames(static_cast<std::size_t>(stack.count));
    for (int at = 0; at < stack.count; ++at) {
        const PythonFrame& frame = stack.frames[at];
        frames[static_cast<std::size_t>(at)] = py::make_tuple(text(frame.file), frame.line, text(frame.function));
    }
    return py::make_tuple(frames, stack.gap_at, stack.gap, stack.complete, stack.reason == nullptr ? "" : stack.reason);
}

py::object native_name(const char* name) {
    const char* const symbol = std::strstr(name, ": _Z");
    if (symbol == nullptr) {
        return text(name);
    }
    std::string demangled = symbol + 2;
    py::detail::clean_type_id(demangled);
    return py::str(std::string(name, symbol + 2) + demangled);
}

// None, or (stack, native callers, thread, pid, tid, time, outcome: 0 not seen, 1 the driver was up then, 2 it was not,
// calls of cuInit in this process since; -1 if it was another process')
py::object origin_tuple() {
    settle_cuinit();
    const Origin& one = origin();
    if (one.phase.load(std::memory_order_acquire) != Origin::captured) {
        return py::none();
    }
    py::tuple callers(static_cast<std::size_t>(one.native.count));
    for (int at = 0; at < one.native.count; ++at) {
        callers[static_cast<std::size_t>(at)] = native_name(one.native.names[at]);
    }
    const char* const thread = one.python_thread[0] != '\0' ? one.python_thread : one.thread;
    const auto later = static_cast<std::int64_t>(fork_state().cuinit_calls.load()) - one.call;
    return py::make_tuple(stack_tuple(one.python), callers, text(thread), one.pid, one.tid, one.time,
                          one.outcome.load(), one.pid == getpid() ? later : -1);
}

std::unique_ptr<PythonStack> walked_now() noexcept {
    std::unique_ptr<PythonStack> stack(new (std::nothrow) PythonStack());
    return stack != nullptr && walk_python_stack(*stack) == Walk::walked ? std::move(stack) : nullptr;
}

// Python's own name of this thread, if the threading module knows it. Not current_thread(): that would register it.
void name_thread(Origin& own) {
    const auto modules = py::reinterpret_borrow<py::dict>(PyImport_GetModuleDict());
    if (!modules.contains("threading")) {
        return;
    }
    const auto known = py::dict(modules["threading"].attr("_active"));
    const auto id = py::int_(PyThread_get_thread_ident());
    if (known.contains(id)) {
        const std::string name = bytes_of(py::str(known[id].attr("name")));
        copy_text(own.python_thread, sizeof own.python_thread, name.data(), name.size());
    }
}

void complete(Origin& own, bool driver_is_up) {
    if (own.outcome.load() == Origin::not_seen && fork_state().cuinit_calls.load() == own.call) {
        own.outcome.store(driver_is_up ? Origin::driver_up : Origin::driver_down);
    }
    if (own.python.count > 0 && !own.python.complete) {
        if (const auto now = walked_now()) {
            join_outer_frames(own.python, *now);
        }
    }
    if (own.python_thread[0] == '\0') {
        name_thread(own);
    }
}

// Loads the hook library and names the function that every cuInit calls. "" or why not.
std::string listen_to(const py::str& file) {
    const std::string path = bytes_of(file);
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return dlerror();
    }
    listen = reinterpret_cast<Listen>(dlsym(library, "cuda_fork_guard_hook_listen"));
    if (listen == nullptr) {
        return path + " is not the hook library of cuda_fork_guard";
    }
    listen(on_cuinit);
    return "";
}

PyObject* on_collection(PyObject*, PyObject* arguments) noexcept {
    // ("start" or "stop", a dict)
    PyObject* const phase =
        PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) > 0 ? PyTuple_GET_ITEM(arguments, 0) : nullptr;
    set_collecting(phase != nullptr && PyUnicode_Check(phase) && PyUnicode_CompareWithASCIIString(phase, "start") == 0);
    Py_RETURN_NONE;
}

PyMethodDef on_collection_method = {"cuda_fork_guard_on_collection", on_collection, METH_VARARGS, nullptr};

} // namespace

void watch_collections() noexcept {
    static bool watching = false; // inherited by children together with the list it stands in
    PyObject* const callbacks = PyDict_GetItemString(PyModule_GetDict(PyImport_AddModule("gc")), "callbacks");
    if (watching || callbacks == nullptr || !PyList_Check(callbacks)) {
        return;
    }
    PyObject* const function = PyCFunction_New(&on_collection_method, nullptr);
    watching = function != nullptr && PyList_Append(callbacks, function) == 0;
    Py_XDECREF(function);
    PyErr_Clear();
}

void complete_own_origin(bool driver_is_up) noexcept {
    Origin* const own = own_origin();
    // The last audit event comes when the interpreter has no modules any more.
    if (own == nullptr || Py_IsInitialized() == 0) {
        return;
    }
    const py::error_scope pending;
    try {
        complete(*own, driver_is_up);
    } catch (...) {
        PyErr_Clear(); // the system's name of the thread has to do
    }
}

void add_origin(py::module_& module) {
    // "" or why there will be no Python stack where the GIL is not held.
    module.def(
        "install_stack_capture",
        [](const py::str& standard_library, const py::str& guard, const py::str& launcher) {
            set_code_roots(bytes_of(standard_library).c_str(), bytes_of(guard).c_str(), bytes_of(launcher).c_str());
            set_interpreter(reinterpret_cast<const void*>(&Py_Initialize));
            set_python_walker(walk_python_stack);
            const char* const why = install_python_dump();
            return why == nullptr ? "" : why;
        },
        py::arg("standard_library"), py::arg("guard"), py::arg("launcher"));
    module.def("listen", listen_to, py::arg("hook"));
    module.def("stop_listening", [] {
        if (listen != nullptr) {
            listen(nullptr);
        }
    });
    module.def("capture_next_origin", [] { capture_next_origin(); });
    module.def("origin", origin_tuple);
    // The stack of the calling thread, as in origin(); None if there is no memory for it.
    module.def("python_stack", []() -> py::object {
        const auto stack = walked_now();
        return stack == nullptr ? py::object(py::none()) : py::object(stack_tuple(*stack));
    });
    // A tuple of file, name, file, name, …
    module.def("set_cells", [](const py::tuple& names) {
        std::string pairs;
        for (const py::handle& name : names) {
            pairs += bytes_of(py::reinterpret_borrow<py::str>(name));
            pairs += '\0';
        }
        set_cells(pairs.data(), pairs.size());
    });
    module.def(
        "touch_by_refusal", [](const py::str& used) { touch_by_refusal(bytes_of(used).c_str()); }, py::arg("used"));
    module.def("note_stderr", [] { note_stderr(); });
    module.def("watch_collections", [] { watch_collections(); });
}

} // namespace cfg::bind
