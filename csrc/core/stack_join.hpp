// Puts the outer frames of a later stack of the same thread behind an earlier one that was cut.
#pragma once

#include "core/python_stack.hpp"

namespace cfg {

// The frames outside of the cut have not returned yet, so both stacks have them; the frames just inside it are the
// proof of where they belong. Without that proof `cut` stays as it was.
void join_outer_frames(PythonStack& cut, const PythonStack& later) noexcept;

} // namespace cfg
