// The file that libcuda was loaded from.
#pragma once

#include "core/tripwire_image.hpp"

namespace cfg::tripwire {

class File {
  public:
    explicit File(const char* path) noexcept;
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    // False, with the reason set, if it can't be opened or ends before the stretch does.
    bool holds(const Stretch& stretch) const noexcept;
    // True if this is known to be the file that is mapped; false says nothing.
    bool is_loaded_one(const Stretch& stretch) const noexcept;

  private:
    int descriptor_;
};

} // namespace cfg::tripwire
