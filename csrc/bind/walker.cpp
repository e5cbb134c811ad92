#include "bind/walker.hpp"

#include <cstring>

#include "core/utf8.hpp"

namespace cfg::bind {

namespace {

// A walk over more frames than this would cost too much inside cuInit; the outer end is then not known.
constexpr int kDeepest = 20000;

PyThreadState* attached_thread_state() noexcept {
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

// The walk may run inside a garbage collection, between an error and its report, anywhere a C function may be called.
class Undisturbed {
  public:
    Undisturbed() noexcept : collecting_(PyGC_Disable() != 0) {
#if PY_VERSION_HEX >= 0x030c0000
        pending_ = PyErr_GetRaisedException();
#else
        PyErr_Fetch(&type_, &pending_, &traceback_);
#endif
    }
    ~Undisturbed() {
#if PY_VERSION_HEX >= 0x030c0000
        PyErr_SetRaisedException(pending_);
#else
        PyErr_Restore(type_, pending_, traceback_);
#endif
        if (collecting_) {
            PyGC_Enable();
        }
    }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

  private:
    bool collecting_; // frame objects are allocated: up to 3.11 that could start a collection, and with it user code
    PyObject* pending_ = nullptr;
#if PY_VERSION_HEX < 0x030c0000
    PyObject* type_ = nullptr;
    PyObject* traceback_ = nullptr;
#endif
};

// Not PyUnicode_AsUTF8: it allocates, and fails for file names that aren't UTF-8.
std::size_t copy_utf8(char* to, std::size_t capacity, PyObject* string) noexcept {
    if (string == nullptr || !PyUnicode_Check(string) || PyUnicode_READY(string) != 0) {
        return 0;
    }
    std::size_t used = 0;
    const Py_ssize_t length = PyUnicode_GET_LENGTH(string);
    for (Py_ssize_t at = 0; at < length && used + kUtf8Longest <= capacity; ++at) {
        const Py_UCS4 character = PyUnicode_READ_CHAR(string, at);
        const std::size_t size = put_utf8(to + used, character);
        if (size == 0) {
            to[used] = '?'; // a lone surrogate that stands for no byte
        }
        used += size == 0 ? 1 : size;
    }
    return used;
}

bool add_frame(PythonStack& stack, PyFrameObject* frame, std::size_t arena_limit) noexcept {
    char file[4096];
    char function[512];
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const std::size_t file_length = copy_utf8(file, sizeof file, code->co_filename);
    const std::size_t function_length = copy_utf8(function, sizeof function, code->co_name);
    Py_DECREF(code);
    const int line = PyFrame_GetLineNumber(frame);
    return stack.add(file, file_length, function, function_length, line < 0 ? 0 : line, arena_limit);
}

// Steps outwards and gives the reference up: the frame stays alive, it is running.
PyFrameObject* outer(PyFrameObject* frame) noexcept {
    PyFrameObject* const next = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    return next;
}

int count_frames(PyThreadState* thread) noexcept {
    int depth = 0;
    for (PyFrameObject* frame = PyThreadState_GetFrame(thread); frame != nullptr; frame = outer(frame)) {
        if (++depth > kDeepest) {
            Py_DECREF(frame);
            break;
        }
    }
    return depth;
}

// The frames of the outer end have a part of the arena for themselves: however long the inner names are, they fit.
void walk(PythonStack& stack, PyThreadState* thread) noexcept {
    constexpr int kOuter = PythonStack::kMaxFrames - PythonStack::kInner;
    const int depth = count_frames(thread);
    const bool end_known = depth <= kDeepest;
    const int outer_from = !end_known ? depth : depth > kOuter ? depth - kOuter : 0;
    bool room = true;
    int at = 0;
    for (PyFrameObject* frame = PyThreadState_GetFrame(thread); frame != nullptr; frame = outer(frame), ++at) {
        if (at < outer_from) {
            room = room && at < PythonStack::kInner && add_frame(stack, frame, PythonStack::kInnerArena);
            if (!room && !end_known) {
                Py_DECREF(frame);
                break;
            }
            continue;
        }
        if (at == outer_from && stack.count < at) {
            stack.gap_at = stack.count;
            stack.gap = at - stack.count;
        }
        room = at == outer_from || room;
        room = room && add_frame(stack, frame, PythonStack::kArena);
    }
    stack.complete = end_known && room && depth > 0;
    if (!stack.complete) {
        stack.reason = depth == 0 ? "no Python frame on this thread" : "outer frames not known";
    }
}

} // namespace

Walk walk_python_stack(PythonStack& stack) noexcept {
    if (Py_IsInitialized() == 0) {
        return Walk::no_interpreter;
    }
    PyThreadState* const mine = PyGILState_GetThisThreadState();
    if (mine == nullptr) {
        return Walk::unknown_thread;
    }
    // Not PyGILState_Check: it answers 1 for ever once a subinterpreter existed.
    if (attached_thread_state() != mine) {
        return Walk::without_gil;
    }
    const Undisturbed undisturbed;
    stack.clear();
    walk(stack, mine);
    return Walk::walked;
}

} // namespace cfg::bind
