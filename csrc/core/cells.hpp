// Names of a notebook's cells. Their files say nothing to a reader, and the number of a cell is known to IPython alone:
// it is asked before a fork, for what the child may have to report.
#pragma once

#include <cstddef>

namespace cfg {

// Ordinary context, with the GIL. `pairs`: file, name, file, name, … each ended by a zero byte, newest first; what
// doesn't fit is forgotten.
void set_cells(const char* pairs, std::size_t length) noexcept;

// "In[3]", or null if the file is no known cell. Any thread.
const char* cell_of(const char* file) noexcept;

} // namespace cfg
