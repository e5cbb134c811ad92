"""The CUDA runtime, as PyTorch and others bring it, takes the simulated driver for a driver: it reaches its cuInit."""

from __future__ import annotations

import re
import site
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.driver import runtime, start
from support.driver.kinds import Driver, kinds, make, simulated

NO_DEVICE, DRIVER_TOO_OLD = 100, 35


def _runtimes() -> dict[int, str]:
    """Major version -> file, of every CUDA runtime that is installed here."""
    roots = [*Path("/usr/local").glob("cuda*/lib*"), *Path("/usr/lib").glob("*-linux-gnu")]
    roots += [Path(folder) / "nvidia" for folder in {*site.getsitepackages(), *sys.path} if folder]
    found = {}
    for root in roots:
        for file in root.glob("**/libcudart.so.*") if root.name == "nvidia" else root.glob("libcudart.so.*"):
            if match := re.search(r"\.so\.(\d+)$", file.name):
                found[int(match[1])] = str(file)
    return found


# What isn't installed is no test: CUDA's runtime comes with the toolkit, or as the wheel nvidia-cuda-runtime-cu12.
RUNTIMES = {major: file for major, file in sorted(_runtimes().items()) if major >= 12}


def _count(driver: Driver, library: str, hook: str, settings: str = "") -> dict[str, Any]:
    folder = str(Path(driver.path).parent)
    loaded = replace(
        driver, path=library, variables={"CUDA_FORK_GUARD_SIM": settings} if settings else driver.variables
    )
    seen: dict[str, Any] = loaded.observe(runtime.device_count, hook, LD_LIBRARY_PATH=folder)
    return seen


@pytest.mark.parametrize("major", RUNTIMES)
def test_reaches_the_simulated_cuinit(major: int, hook: str) -> None:
    """Without a device its code is the driver's; with one it goes as far as the tables that only a real driver has."""
    none = _count(simulated(0), RUNTIMES[major], hook, f"devices=0;version={major}000")
    assert (none["code"], none["hook"]) == (NO_DEVICE, 1)
    some = _count(simulated(1), RUNTIMES[major], hook, f"devices=1;version={major}000")
    assert some["hook"] == 1


@pytest.mark.parametrize("major", RUNTIMES)
@pytest.mark.parametrize("kind", kinds("sim0", "470", "535", "550", "555"))
def test_a_newer_runtime_refuses_an_older_driver_before_cuinit(kind: str, major: int, hook: str) -> None:
    driver = make(kind)
    version = driver.observe(start.driver_version)
    seen = _count(driver, RUNTIMES[major], hook)
    expected = (NO_DEVICE, 1) if version // 1000 >= major else (DRIVER_TOO_OLD, 0)
    assert (seen["code"], seen["hook"]) == expected
