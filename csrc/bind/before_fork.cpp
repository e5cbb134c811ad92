#include "bind/before_fork.hpp"
#include "bind/bindings.hpp"
#include "bind/known_sites.hpp"
#include "core/atfork.hpp"
#include "core/fork_intent.hpp"
#include "core/fork_state.hpp"
#include "core/safe_output.hpp"

namespace py = pybind11;

namespace cfg::bind {

namespace {

PyObject* on_fork = nullptr; // called before an unsafe or doubtful fork; strong, main interpreter's

CFG_TLS bool tls_deciding = false; // a fork made while deciding (a showwarning that forks) passes
// Where subprocess said that it is about to fork, and where the pending intention was made: compared, never read.
CFG_TLS PyFrameObject* tls_subprocess_frame = nullptr;
CFG_TLS PyFrameObject* tls_fork_frame = nullptr;
CFG_TLS int tls_fork_instruction = 0; // a frame goes on after a fork that failed

// Is this thread in the call that the frame was marked in (and, unless it is -1, still at this instruction of it)?
// Hooks that run before a fork do audited things too: their events come from frames above the one that forks.
bool inside(const PyFrameObject* marked, int instruction) noexcept {
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(reinterpret_cast<PyObject*>(frame));
    bool found = frame == marked;
    while (frame != nullptr && !found) {
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(reinterpret_cast<PyObject*>(frame));
        frame = back;
        found = frame == marked;
    }
    found = found && (frame == nullptr || instruction < 0 || instruction_of(frame) == instruction);
    Py_XDECREF(reinterpret_cast<PyObject*>(frame));
    return found;
}

// A fork that failed or that another hook refused may never reach the handlers, and its intention must not pass for the
// next native fork's.
void forget_stale_intent() noexcept {
    if (!inside(tls_fork_frame, tls_fork_instruction)) {
        end_fork_intent();
        tls_fork_frame = nullptr;
    }
}

void mark_fork() noexcept {
    tls_fork_frame = PyEval_GetFrame();
    tls_fork_instruction = tls_fork_frame == nullptr ? -1 : instruction_of(tls_fork_frame);
}

int refuse_without_python(const char* when) noexcept {
    PyErr_Format(PyExc_RuntimeError,
                 "[CFG101] fork refused: CUDA is up in this process, and the policy of cuda_fork_guard is 'block' "
                 "(os.fork %s)",
                 when);
    return -1;
}

// The record then at least says that it was no C library's fork.
int intend_without_python(const char* when) noexcept {
    if (ForkIntent* intent = begin_fork_intent()) {
        intent->use = tls_allowed_forks > 0 ? ForkUse::allowed : ForkUse::unknown;
        Text(intent->site.forked, sizeof intent->site.forked)
            .put("unknown: os.fork ")
            .put(when)
            .put(", in pid ")
            .decimal(fork_state().pid.load());
        mark_fork();
    }
    return 0;
}

} // namespace

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

int before_fork(const char* event) noexcept {
    end_fork_intent();
    forget_subprocess(); // this one is no subprocess's, wherever it is called from
    learn_driver();
    const ForkState& state = fork_state();
    const bool up = state.driver.load() == static_cast<int>(DriverKnown::up);
    const bool inherited = state.inherited.load() == static_cast<int>(Inherited::yes);
    const bool doubtful = state.driver.load() == static_cast<int>(DriverKnown::tried) ||
                          state.inherited.load() == static_cast<int>(Inherited::unknown);
    const int policy = state.policy.load();
    if (policy == static_cast<int>(Policy::off) || !(up || inherited || doubtful)) {
        return 0;
    }
    const bool block = policy == static_cast<int>(Policy::block) && (up || inherited) && tls_allowed_forks == 0;
    if (tls_deciding) {
        return intend_without_python("while another fork was being decided on");
    }
    // The guard's Python objects belong to the main interpreter, and at its end they are half gone.
    if (!in_main_interpreter()) {
        return block ? refuse_without_python("in a subinterpreter") : intend_without_python("in a subinterpreter");
    }
    if (finalizing() || on_fork == nullptr) {
        return block ? refuse_without_python("at shutdown") : intend_without_python("at shutdown");
    }
    // Under `watch` nothing is said before a fork, so nothing is lost where the judgement is already known.
    const bool silent = policy == static_cast<int>(Policy::watch) && tls_allowed_forks == 0;
    Circumstances now;
    if (silent && recall_site(PyEval_GetFrame(), now)) {
        mark_fork();
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
        remember_site(now);
    }
    mark_fork();
    return 0;
}

void forget_stale_marks() noexcept {
    if (tls_subprocess_frame != nullptr && !inside(tls_subprocess_frame, -1)) {
        forget_subprocess();
        tls_subprocess_frame = nullptr;
    }
    if (current_fork_intent() != nullptr && !tls_deciding) {
        forget_stale_intent();
    }
}

void mark_subprocess() noexcept {
    tls_subprocess_frame = PyEval_GetFrame();
    announce_subprocess();
}

void call_before_forks(const py::object& callback) {
    replace_held(on_fork, callback);
}

void replace_held(PyObject*& held, const py::object& callback) {
    PyObject* former = held;
    held = callback.is_none() ? nullptr : callback.inc_ref().ptr();
    Py_XDECREF(former);
}

} // namespace cfg::bind
