"""Which libcuda a fresh process will find: the system's, or the simulated one put on its loader path."""

from __future__ import annotations

import ctypes.util
import os
from dataclasses import dataclass, field

from cuda_fork_guard import testing

CHOICES = ("auto", "system", "simulated")


@dataclass(frozen=True)
class Driver:
    name: str  # "system" or "simulated"
    detail: str
    changes: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    def environment(self) -> dict[str, str]:
        """The environment of a process that is to find this driver."""
        return {**os.environ, **self.changes}


def system_library() -> str | None:
    """The libcuda that the loader would find, without loading it: None if there is none."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        path = os.path.join(folder, "libcuda.so.1")
        if folder and os.path.exists(path):
            return path
    if ctypes.util.find_library("cuda"):
        return ctypes.util.find_library("cuda")
    for path in ("/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"):
        if os.path.exists(path):
            return path
    return None


def choose(wanted: str) -> Driver:
    """:param wanted: one of CHOICES; ``auto`` takes the system's libcuda if there is one."""
    found = system_library() if wanted != "simulated" else None
    if found:
        return Driver("system", found)
    if wanted == "system":
        return Driver("system", "", problem="no libcuda.so.1 on the loader's path: try --driver simulated")
    folder = testing.driver_folder()
    former = os.environ.get("LD_LIBRARY_PATH")
    return Driver(
        "simulated",
        "no GPU is needed: a call of cuInit reaches the simulated driver, which has no device",
        {
            "LD_LIBRARY_PATH": f"{folder}:{former}" if former else str(folder),
            # As a machine without a GPU: what is imported falls back to the CPU instead of trying a device that is none.
            "CUDA_FORK_GUARD_SIM": "devices=0",
        },
    )
