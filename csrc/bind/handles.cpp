#include "core/handles.hpp"
#include "bind/bindings.hpp"
#include "core/threads.hpp"

namespace py = pybind11;

namespace cfg::bind {

namespace {

struct Found {
    int descriptor;
    char path[256];
};

struct Collected {
    static constexpr int kMost = 1024;
    int count = 0;
    Found found[kMost];
};

void collect(int descriptor, const char* path, void* data) {
    auto* all = static_cast<Collected*>(data);
    if (all->count < Collected::kMost) {
        Found& entry = all->found[all->count++];
        entry.descriptor = descriptor;
        std::snprintf(entry.path, sizeof entry.path, "%s", path);
    }
}

void add_thread(pid_t tid, void* data) {
    char name[16];
    thread_name(tid, name);
    static_cast<py::list*>(data)->append(
        py::make_tuple(tid, py::reinterpret_steal<py::object>(PyUnicode_DecodeFSDefault(name))));
}

} // namespace

void add_handles(py::module_& module) {
    // (error number, [(tid, kernel's name), …])
    module.def("threads", [] {
        py::list rows;
        const int error = visit_threads(add_thread, &rows);
        return py::make_tuple(error, rows);
    });
    // (error number, ((descriptor, path), …))
    module.def("device_handles", [] {
        auto all = std::make_unique<Collected>();
        const int error = visit_device_handles(collect, all.get());
        py::tuple handles(all->count);
        for (int i = 0; i < all->count; ++i) {
            handles[static_cast<std::size_t>(i)] =
                py::make_tuple(all->found[i].descriptor,
                               py::reinterpret_steal<py::object>(PyUnicode_DecodeFSDefault(all->found[i].path)));
        }
        return py::make_tuple(error, handles);
    });
    module.def("release_device_handles", [] { return release_device_handles(); });
    module.def("forked_without_exec", [] { return forked_without_exec(); });
    module.def("is_cuda_device", [](const char* path) { return is_cuda_device(path); });
}

} // namespace cfg::bind
