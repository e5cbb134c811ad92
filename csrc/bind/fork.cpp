#include "bind/bindings.hpp"
#include "core/atfork.hpp"
#include "core/fork_intent.hpp"
#include "core/fork_state.hpp"
#include "core/safe_output.hpp"

#include <string_view>

namespace py = pybind11;

namespace cfg::bind {

namespace {

template <std::size_t Size> void keep(char (&to)[Size], std::string_view text) noexcept {
    copy_text(to, Size, text.data(), text.size());
}

} // namespace

void add_fork(py::module_& module) {
    module.def("register_fork_handlers", [] { return register_fork_handlers(); });
    // False if the pool of intentions is used up: the fork will be recorded without its site.
    module.def(
        "intend_fork",
        [](int use, std::string_view forked, std::string_view woken, std::string_view advice,
           std::string_view threads) {
            ForkIntent* intent = begin_fork_intent();
            if (intent == nullptr) {
                return false;
            }
            intent->use = static_cast<ForkUse>(use);
            keep(intent->site.forked, forked);
            keep(intent->site.woken, woken);
            keep(intent->site.advice, advice);
            keep(intent->threads, threads);
            return true;
        },
        py::arg("use"), py::arg("forked"), py::arg("woken"), py::arg("advice"), py::arg("threads"));
    module.def("allowed_forks", [] { return tls_allowed_forks; });
    module.def("enter_allowed", [] { ++tls_allowed_forks; });
    // Never below none: a child leaves blocks that it never entered.
    module.def("leave_allowed", [] { tls_allowed_forks -= tls_allowed_forks > 0 ? 1 : 0; });
    module.def(
        "set_native_forker", [](const char* name, const char* advice) { set_native_forker(name, advice); },
        py::arg("name"), py::arg("advice"));
    module.def("own_site", [] {
        const ForkSite& site = own_fork_site();
        return py::make_tuple(site.forked, site.woken, site.advice, static_cast<int>(own_fork_use()));
    });
    module.def(
        "set_own_site",
        [](std::string_view forked, std::string_view woken, std::string_view advice) {
            ForkSite& site = own_fork_site();
            keep(site.forked, forked);
            keep(site.woken, woken);
            keep(site.advice, advice);
        },
        py::arg("forked"), py::arg("woken"), py::arg("advice"));
}

} // namespace cfg::bind
