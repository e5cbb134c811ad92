// Open descriptors of CUDA devices in this process, and what /proc says of its making. No malloc.
#pragma once

#include <cstddef>

namespace cfg {

// True for the device nodes that CUDA keeps open: NVIDIA's, WSL's and Jetson's.
bool is_cuda_device(const char* path) noexcept;

using HandleVisitor = void (*)(int descriptor, const char* path, void* data);

// Calls the visitor for each open device descriptor. 0, or the error number that kept it from looking.
int visit_device_handles(HandleVisitor visitor, void* data) noexcept;

// Puts /dev/null in the place of each device descriptor, so that the kernel sees the last close and the number cannot
// be reused under the driver's feet. Returns how many, or minus the error number.
int release_device_handles() noexcept;

// PF_FORKNOEXEC of this process: forked, and never exec'ed since. -1: /proc could not be read.
int forked_without_exec() noexcept;

} // namespace cfg
