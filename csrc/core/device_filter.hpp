// Which open descriptors can be device nodes at all, asked without their paths: reading a path costs several times as
// much, and a server has thousands of sockets.
#pragma once

#include <cstdint>

namespace cfg {

// For one walk over the descriptors of this process. Async-signal-safe.
class DeviceFilter {
  public:
    DeviceFilter() noexcept;

    // False only if it is certain that the descriptor's path need not be read: it is a socket, a pipe or a file on a
    // disk, or it is the same file as the last one that was dismissed.
    bool worth_a_look(int descriptor) noexcept;

    // The path of the descriptor asked about last was read, and is no device that matters.
    void dismiss() noexcept { dismissed_ = last_; }

  private:
    // The mount tells a node from another one that was bind-mounted from it. 0: the kernel doesn't say (before 5.8).
    struct File {
        std::uint64_t mount = 0;
        std::uint64_t inode = 0;
        std::uint32_t major = 0;
        std::uint32_t minor = 0;
    };

    File device_folder_; // /dev itself: a plain file may lie in it
    File last_;
    File dismissed_;
};

} // namespace cfg
