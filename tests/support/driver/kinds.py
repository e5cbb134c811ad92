"""The drivers that checks are run against: simulated, NVIDIA's own libraries without a GPU, and a GPU's own."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cuda_fork_guard.testing import driver_folder
from support.child import environment, run

ROOT = Path(__file__).resolve().parents[3]
CACHE = Path(os.environ.get("CUDA_FORK_GUARD_DRIVERS", ROOT / ".cache" / "drivers"))
MAJORS = ("470", "535", "550", "555")
RUNNER = Path(__file__).with_name("runner.py")


@dataclass(frozen=True)
class Driver:
    name: str
    path: str
    # Drivers since 550 answer 304 in a child of a process that has been in cuInit; earlier ones start anew there.
    remembers_cuinit_in_children: bool
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        return self.name.startswith("simulated")

    def observe(self, check: Callable[..., Any], *arguments: Any, limit: float = 60, **variables: str) -> Any:
        """Runs the check in a child program, and hands back what it returned."""
        command = [sys.executable, str(RUNNER), check.__module__, check.__name__, self.path, json.dumps(arguments)]
        finished = run(command, limit=limit, env=environment(**self.variables, **variables)).ok()
        # Programs that the check forked or started may have spoken before.
        return json.loads(finished.lines[-1])


def simulated(devices: int) -> Driver:
    return Driver(
        f"simulated with {devices} devices",
        str(Path(driver_folder()) / "libcuda.so.1"),
        remembers_cuinit_in_children=True,
        variables={"CUDA_FORK_GUARD_SIM": f"devices={devices}"},
    )


def real(major: str) -> Driver:
    """NVIDIA's library from the cache; skips where it isn't, or where the kernel has a driver that it could reach."""
    path = CACHE / major / "libcuda.so.1"
    if not path.is_file():
        pytest.skip(f"no driver {major} in {CACHE}: scripts/fetch_drivers.py fetches it")
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has NVIDIA's kernel driver: what its library answers without one can't be seen here")
    return Driver(major, str(path), remembers_cuinit_in_children=int(major) >= 550)


@functools.cache
def gpu() -> Driver | str:
    """The GPU's own driver, or why there is none."""
    from support.driver import start

    here = Driver("gpu", "libcuda.so.1", remembers_cuinit_in_children=True)
    seen = here.observe(start.loadable_and_up)
    if seen["error"]:
        return f"no GPU: {seen['error']}"
    if seen["cuInit"] != 0:
        return f"no GPU: cuInit of {seen['path']} returned {seen['cuInit']}"
    return Driver("gpu", seen["path"], remembers_cuinit_in_children=seen["version"] >= 12040)


def make(kind: str) -> Driver:
    if kind == "gpu":
        found = gpu()
        if isinstance(found, str):
            pytest.skip(found)
        return found
    if kind in MAJORS:
        return real(kind)
    return simulated({"sim0": 0, "sim2": 2}[kind])


def kinds(*names: str) -> list[Any]:
    """Parameters for a fixture; the GPU's are selected by ``-m gpu``."""
    return [pytest.param(name, id=name, marks=[pytest.mark.gpu] if name == "gpu" else []) for name in names]


def fetch_script() -> Any:
    """scripts/fetch_drivers.py as a module."""
    spec = importlib.util.spec_from_file_location("fetch_drivers", ROOT / "scripts" / "fetch_drivers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
