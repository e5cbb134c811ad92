// The two copies of an image's stretch that wait to be swapped in, and the thunks its jumps go to.
#pragma once

#include "core/tripwire_image.hpp"

namespace cfg::tripwire {

// Ordinary context. Maps both copies from the file, after comparing it with what is in memory, and writes the jumps of
// all entries that are like the file. nullptr, with the reason set, if anything is refused: then nothing is left
// mapped.
unsigned char* build_copies(Image& image) noexcept;
void unmap_copies(const Image& image, unsigned char* copies) noexcept;

// False if a debugger, a uprobe or another hook has changed an entry, in the text or in the copies, since they were
// built.
bool copies_are_current(const Image& image) noexcept;
// The part of it that costs no page faults in a forked child: a uprobe is written into the copy as well as into the
// text.
bool patched_copy_is_intact(const Image& image) noexcept;

// Async-signal-safe. Whether the jump of `entry` is in place.
bool has_jump(const Entry& entry) noexcept;

// Ordinary context. Memory for the thunks, within reach of every entry, filled and made executable.
bool build_thunks(Image& image) noexcept;

} // namespace cfg::tripwire
