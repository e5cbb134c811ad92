// Puts the patched or the pristine pages of one image in place. Async-signal-safe; the caller blocks signals, since a
// handler that ran into a jump in the middle of it would wait for its own thread.
#pragma once

#include "core/tripwire_image.hpp"

namespace cfg::tripwire {

// True if the jumps of the image are in place. Otherwise `error` says why not, 0: there is no copy (or not an intact
// one).
bool swap_in(Image& image, int& error) noexcept;

// True if the pristine pages are in place. False: the system refused, the jumps are still there.
bool swap_out(Image& image) noexcept;

// Ordinary context. Gives the image a pair of copies or, with nullptr, takes it away; the former pair is unmapped.
// False if the image is armed: nothing has changed.
bool exchange_copies(Image& image, unsigned char* copies) noexcept;

// Ordinary context.
bool is_armed(Image& image) noexcept;

} // namespace cfg::tripwire
