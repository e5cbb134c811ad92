#include "bind/bindings.hpp"
#include "core/ring.hpp"

#include <algorithm>
#include <vector>

namespace py = pybind11;

namespace cfg::bind {

namespace {

py::object text_of(const RingEvent& event) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(event.text, static_cast<Py_ssize_t>(event.length), "replace"));
}

// (counts by kind, is this the process that made the ring, ((ticket, kind, pid, time, text), …) oldest first)
py::tuple read_events() {
    std::vector<std::pair<std::uint64_t, py::tuple>> found;
    auto event = std::make_unique<RingEvent>();
    for (std::size_t slot = 0; slot < kEventSlots; ++slot) {
        if (ring_read(slot, *event)) {
            found.emplace_back(event->ticket, py::make_tuple(event->ticket, static_cast<int>(event->kind), event->pid,
                                                             event->time, text_of(*event)));
        }
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    py::tuple events(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        events[i] = found[i].second;
    }
    // After the texts: what others write meanwhile is then counted as dropped, and never less than nothing is.
    const RingTotals totals = ring_totals();
    py::tuple counts(kEventKinds);
    for (std::size_t i = 0; i < kEventKinds; ++i) {
        counts[i] = totals.counts[i];
    }
    return py::make_tuple(counts, ring_is_own(), events);
}

} // namespace

void add_events(py::module_& module) {
    module.def("create_ring", [] { return ring_create(); });
    module.def("record", [](int kind, std::string_view text) {
        ring_push(static_cast<EventKind>(kind), text.data(), text.size());
    });
    module.def("events", read_events);
}

} // namespace cfg::bind
