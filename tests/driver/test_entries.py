"""The exported functions: there by name, found by cuGetProcAddress, and of a shape that a jump can be written over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.driver import lookup
from support.driver.elf import driver_entries, symbols
from support.driver.kinds import ROOT, Driver, simulated

UNSUFFIXED = """
    cuInit cuDriverGetVersion cuDeviceGet cuDeviceGetCount cuDevicePrimaryCtxRetain cuDevicePrimaryCtxGetState
    cuCtxGetCurrent cuCtxSetCurrent cuCtxGetDevice cuGetProcAddress cuGetExportTable cuGetErrorName cuGetErrorString"""
SECOND = "cuDevicePrimaryCtxRelease cuMemAlloc cuMemFree cuMemcpyDtoH cuMemGetInfo cuCtxPushCurrent cuCtxPopCurrent"
# Exported by real drivers, and given to nobody by cuGetProcAddress.
NOT_SIMULATED = {"cuEGLApiInit", "cuMemGetAttribute", "cuMemGetAttribute_v2"}


def test_names_that_programs_look_for(driver: Driver) -> None:
    names = {entry.name for entry in driver_entries(driver.path)}
    wanted = {*UNSUFFIXED.split(), *(f"{name}_v2" for name in SECOND.split())}
    assert wanted - names == set()
    # cuCtxGetId came with CUDA 12.
    assert ("cuCtxGetId" in names) == (driver.name != "470")


def test_the_simulated_driver_has_every_entry_of_a_real_one(real_driver: Driver) -> None:
    ours = {entry.name for entry in driver_entries(simulated(0).path)}
    theirs = {entry.name for entry in driver_entries(real_driver.path)}
    assert theirs - ours - NOT_SIMULATED == set()
    if real_driver.name == "555":
        assert ours - theirs == set()


def test_a_jump_fits_over_every_entry(driver: Driver) -> None:
    """16-byte aligned, so one 8-byte store is whole for other threads; at least as long as a jump."""
    entries = driver_entries(driver.path)
    assert len(entries) > 500
    least = 8 if driver.simulated else 6
    wrong = [entry for entry in entries if entry.address % 16 or entry.size < least]
    assert wrong == []
    assert len({entry.address for entry in entries}) == len(entries)


def test_lookup_gives_exported_entries(driver: Driver) -> None:
    """The address that a program gets and keeps is the exported one, so a jump there is met whichever way it came."""
    found = driver.observe(lookup.table)
    ours = simulated(0).observe(lookup.table)
    assert "internal" not in found.values()
    shared = found.keys() & ours.keys()
    assert len(shared) > 15000
    assert {key: found[key] for key in shared if found[key] != ours[key]} == {}


def test_lookup_with_status(driver: Driver) -> None:
    seen = driver.observe(lookup.second_form)
    if driver.name == "470":
        assert seen == []  # its cuGetProcAddress has one form only
        return
    ok, none, old = 0, 1, 2
    assert seen == [
        [0, "cuInit", ok],
        [0, None, old],
        [0, "cuInit", ok],
        [1, None, -1],
        [0, None, none],
        [0, None, none],
        [0, None, old],
        [0, None, none],
    ]


def test_real_drivers_want_fork_handlers_at_hand(real_driver: Driver) -> None:
    assert "__register_atfork" in symbols(real_driver.path).needed


def test_the_simulated_driver_exports_nothing_else() -> None:
    found = symbols(simulated(0).path)
    others = {entry.name for entry in found.functions if not entry.name.startswith("cu")}
    header = (ROOT / "csrc" / "sim" / "sim.h").read_text()
    assert others == set(re.findall(r"^SIM_CONTROL int (\w+)\(", header, re.M))
    # AddressSanitizer adds a name of its own for each object.
    objects = [name for name in found.objects if not name.startswith("__odr_asan.")]
    assert objects == ["cuda_fork_guard_simulated"]
    # Whatever begins with "cu" is trapped in children: no control function may.
    implemented = re.findall(r"SIM_API CUresult (\w+)\(", (ROOT / "csrc" / "sim" / "cuda_api.h").read_text())
    listed = re.findall(r"^X\((\w+), \d+\)", (ROOT / "csrc" / "sim" / "entries.inc").read_text(), re.M)
    assert implemented == listed


@pytest.mark.parametrize("name", ["entries.inc", "entries_refused.inc"])
def test_lists_of_entries_name_none_twice(name: str) -> None:
    names = re.findall(r"X\((\w+), \d+\)", Path(ROOT / "csrc" / "sim" / name).read_text())
    assert len(names) == len(set(names)) > 30
