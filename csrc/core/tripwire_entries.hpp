// Lists the exported functions of a libcuda that can be trapped.
#pragma once

#include "core/tripwire_dynamic.hpp"
#include "core/tripwire_image.hpp"

namespace cfg::tripwire {

// Fills entries, count, untrappable and stretch of `image`; its entries come from calloc. False, with the reason set,
// if there are none or the tables don't hold together; `image` then owns nothing.
bool list_entries(const Library& library, Image& image) noexcept;

} // namespace cfg::tripwire
