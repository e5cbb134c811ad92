// The libcudas that the tripwire knows. Only prepare() adds to them, under its lock; everybody else may walk them any
// time.
#pragma once

#include <cstddef>

#include "core/tripwire_image.hpp"

namespace cfg::tripwire {

// In the order they were found; complete, and never taken away.
Image* images() noexcept;
std::size_t image_count() noexcept;

template <class Action> void for_each_image(Action action) noexcept {
    const std::size_t count = image_count();
    for (std::size_t i = 0; i < count; ++i) {
        action(images()[i]);
    }
}

enum class Readiness { none_loaded, refused, ready };

// Adds libcudas that are new and builds the copies that are missing or out of date. Ordinary context, under prepare()'s
// lock.
Readiness make_ready() noexcept;
// The next make_ready looks at everything anew.
void forget_refusals() noexcept;

} // namespace cfg::tripwire
