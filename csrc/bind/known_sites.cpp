#include "bind/known_sites.hpp"

#include "core/fork_intent.hpp"
#include "core/fork_state.hpp"
#include "core/origin.hpp"
#include "core/threads.hpp"
#include "core/tripwire.hpp"

#include <cstring>

namespace cfg::bind {

namespace {

constexpr int kSites = 8;

struct KnownSite {
    Circumstances when; // with strong references: an address that is held can't become another function's
    ForkIntent intent;
};

// Guarded by the GIL.
KnownSite* sites[kSites];
int next_site = 0;

void add_thread(pid_t tid, void* data) {
    auto* sum = static_cast<std::uint64_t*>(data);
    const auto id = static_cast<std::uint64_t>(tid);
    *sum += id * id * 0x9E3779B97F4A7C15ULL + id;
}

bool read_stack(PyFrameObject* frame, Circumstances& now) noexcept {
    now.depth = 0;
    Py_XINCREF(reinterpret_cast<PyObject*>(frame));
    while (frame != nullptr && now.depth < Circumstances::kDeepest) {
        PyCodeObject* code = PyFrame_GetCode(frame);
        now.stack[now.depth++] = Place{code, instruction_of(frame)};
        Py_DECREF(reinterpret_cast<PyObject*>(code)); // the running frame holds it
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(reinterpret_cast<PyObject*>(frame));
        frame = back;
    }
    const bool whole = frame == nullptr;
    Py_XDECREF(reinterpret_cast<PyObject*>(frame));
    return whole;
}

bool same(const Circumstances& a, const Circumstances& b) noexcept {
    if (a.generation != b.generation || a.cuinit_calls != b.cuinit_calls || a.policy != b.policy ||
        a.inherited != b.inherited || a.driver != b.driver || a.wire != b.wire || a.threads != b.threads ||
        a.depth != b.depth) {
        return false;
    }
    for (int i = 0; i < a.depth; ++i) {
        if (a.stack[i].code != b.stack[i].code || a.stack[i].instruction != b.stack[i].instruction) {
            return false;
        }
    }
    return true;
}

bool read_circumstances(PyFrameObject* frame, Circumstances& now) noexcept {
    const ForkState& state = fork_state();
    now.generation = state.generation.load();
    now.cuinit_calls = state.cuinit_calls.load();
    now.policy = state.policy.load();
    now.inherited = state.inherited.load();
    now.driver = state.driver.load();
    now.wire = static_cast<int>(tripwire::state());
    now.threads = 0;
    return visit_threads(add_thread, &now.threads) == 0 && read_stack(frame, now);
}

} // namespace

int instruction_of(PyFrameObject* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti;
#endif
}

bool recall_site(PyFrameObject* frame, Circumstances& now) noexcept {
    now.whole = read_circumstances(frame, now);
    for (int i = 0; now.whole && i < kSites; ++i) {
        const KnownSite* site = sites[i];
        if (site != nullptr && same(site->when, now)) {
            ForkIntent* intent = begin_fork_intent();
            if (intent != nullptr) {
                std::memcpy(intent, &site->intent, sizeof *intent);
            }
            return true;
        }
    }
    return false;
}

void remember_site(Circumstances& now) noexcept {
    const ForkIntent* intent = current_fork_intent();
    if (!now.whole || intent == nullptr) {
        return;
    }
    now.wire = static_cast<int>(tripwire::state()); // judging may have prepared it
    KnownSite*& slot = sites[next_site];
    next_site = (next_site + 1) % kSites;
    if (slot == nullptr) {
        slot = static_cast<KnownSite*>(PyMem_RawCalloc(1, sizeof(KnownSite)));
        if (slot == nullptr) {
            return;
        }
    }
    for (int i = 0; i < now.depth; ++i) {
        Py_INCREF(reinterpret_cast<PyObject*>(now.stack[i].code));
    }
    const Circumstances former = slot->when;
    slot->when = now;
    slot->intent = *intent;
    for (int i = 0; i < former.depth; ++i) {
        Py_DECREF(reinterpret_cast<PyObject*>(former.stack[i].code));
    }
}

} // namespace cfg::bind
