"""Which libcuda a fresh process will find: the system's, or the simulated one put on its loader path."""

from __future__ import annotations

import os
from typing import NamedTuple

from cuda_fork_guard import testing
from cuda_fork_guard.testing import simulation

CHOICES = ("auto", "system", "simulated")


class Driver(NamedTuple):
    name: str  # "system" or "simulated"
    detail: str
    changes: dict[str, str]
    problem: str = ""

    def environment(self) -> dict[str, str]:
        """The environment of a process that is to find this driver."""
        return {**os.environ, **self.changes}


def choose(wanted: str) -> Driver:
    """:param wanted: one of CHOICES; ``auto`` takes the system's libcuda if there is one."""
    found = _system_library() if wanted != "simulated" else None
    if found:
        return Driver("system", found, {})
    if wanted == "system":
        return Driver("system", "", {}, problem="no libcuda.so.1 on the loader's path: try --driver simulated")
    folder = testing.driver_folder()
    former = os.environ.get("LD_LIBRARY_PATH")
    return Driver(
        "simulated",
        "no GPU is needed: a call of cuInit reaches the simulated driver, which has no device",
        {
            "LD_LIBRARY_PATH": f"{folder}:{former}" if former else str(folder),
            # As a machine without a GPU: what is imported falls back to the CPU instead of trying a device that is none.
            simulation.SETTINGS: "devices=0",
        },
    )


def _system_library() -> str | None:
    from cuda_fork_guard.cli.facts import loader_path  # asks ldconfig: only for who needs it

    real = [str(library["path"]) for library in loader_path.libcuda_found() if not library["stub"]]
    return real[0] if real else None
