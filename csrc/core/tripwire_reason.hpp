// Why there is no tripwire, as a sentence. Written by prepare() in ordinary context and by arm() inside a fork handler.
#pragma once

namespace cfg::tripwire {

// Async-signal-safe. `error` is an errno, or 0.
void set_reason(const char* text, int error) noexcept;
const char* reason() noexcept;

} // namespace cfg::tripwire
