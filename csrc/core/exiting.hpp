// Is this process on its way out? Destructors of the CUDA runtime call the driver then, which harms nobody any more.
#pragma once

namespace cfg {

// Ordinary context, the calling thread. Read off its native stack: exit(), or the interpreter's finalisation, has not
// returned. So nothing must be registered beforehand, which a forked child would pay for.
bool process_is_exiting() noexcept;

} // namespace cfg
