// What an open descriptor refers to, asked without its path: a path costs ten times as much.
#pragma once

namespace cfg {

// The device number of the file system that /dev lies on; 0 if there is none.
struct DeviceFolder {
    unsigned major = 0;
    unsigned minor = 0;
};

DeviceFolder device_folder() noexcept;

// False only if it is certain that the descriptor is no file below /dev: a socket, a pipe, a file on a disk.
bool may_be_device(int descriptor, const DeviceFolder& folder) noexcept;

} // namespace cfg
