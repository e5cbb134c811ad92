"""Which open files keep a CUDA device: the one table of their paths. Pure; imports nothing."""

from __future__ import annotations

# A star at the end stands for any rest. The native core keeps the same table for its own process, and a test compares
# the two. `/dev/nvidia*` covers nvidiactl, nvidia0..., nvidia-uvm, nvidia-uvm-tools, nvidia-modeset and nvidia-caps/*;
# `/dev/nv*` would take every NVMe disk for a GPU.
DEVICE_NODES = (
    "/dev/nvidia*",
    "/dev/dxg",  # WSL: the only one there is
    "/dev/nvmap",  # Jetson, from here on
    "/dev/nvhost-*",
    "/dev/nvgpu/*",
)

# For a first look at thousands of descriptors: what every path above begins with.
COMMON_PREFIXES = ("/dev/nv", "/dev/dxg")

# NVML and display servers never open this one, so it tells CUDA (or NVIDIA's OpenCL) from monitoring.
CUDA_NODE = "/dev/nvidia-uvm"

# What the kernel adds to the name of a file it can no longer find there: a node replaced while it was open, or one in
# a mount that is gone. The descriptor holds the device all the same.
_DELETED = " (deleted)"
_UNREACHABLE = "(unreachable)"


def device_node(target: str) -> str | None:
    """The device node that a descriptor's link or a mapping's name stands for; None if it is no device of ours."""
    path = target.removeprefix(_UNREACHABLE).removesuffix(_DELETED)
    for name in DEVICE_NODES:
        if path.startswith(name[:-1]) if name.endswith("*") else path == name:
            return path
    return None
