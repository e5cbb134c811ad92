#include "core/interpreter_lock.hpp"

namespace cfg {

namespace {
InterpreterLock interpreter{nullptr, nullptr};
} // namespace

void set_interpreter_lock(InterpreterLock lock) noexcept {
    interpreter = lock;
}

InterpreterUnlocked::InterpreterUnlocked() noexcept
    : given_up_(interpreter.give_up == nullptr ? nullptr : interpreter.give_up()) {}

InterpreterUnlocked::~InterpreterUnlocked() {
    if (interpreter.take_back != nullptr) {
        interpreter.take_back(given_up_);
    }
}

} // namespace cfg
