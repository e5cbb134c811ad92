"""cuInit where there is no device: its code, what can be asked afterwards, and what it leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.driver import native_libraries, start
from support.driver.kinds import Driver

NOBODY = 65534
# Measured: how often one cuInit starts nvidia-modprobe where the device nodes are missing and it isn't root.
HELPER_FORKS = {"470": 26, "535": 22, "550": 14, "555": 8}


def test_fails_with_no_device_every_time(driver_without_gpu: Driver) -> None:
    seen = driver_without_gpu.observe(start.failed_init)
    assert seen["wrong flags"] == 1
    assert seen["cuInit"] == [100, 100]
    assert {name: code for name, code in seen["after"].items() if code != 3} == {}


def test_what_it_leaves_in_the_process(driver_without_gpu: Driver) -> None:
    seen = driver_without_gpu.observe(start.failed_init)
    if driver_without_gpu.name in ("550", "555"):
        assert len(seen["threads"]) == 1
        assert "anon_inode:[eventfd]" in seen["descriptors"]
    else:
        assert (seen["threads"], seen["descriptors"]) == ([], [])


def test_no_fork_handler_is_registered(driver_without_gpu: Driver, tmp_path: Path) -> None:
    watcher = native_libraries.build("atfork_watcher", tmp_path)
    # A sanitizer's run-time library has to stay the first.
    preload = f"{os.environ.get('LD_PRELOAD', '')} {watcher}".strip()
    seen = driver_without_gpu.observe(start.fork_handlers, watcher, LD_PRELOAD=preload)
    assert seen == [0, 0]


def _without_nodes(driver: Driver, tmp_path: Path, user: int) -> dict[str, object]:
    if os.geteuid() != 0:
        pytest.skip("only root can show a process another /dev")
    tmp_path.chmod(0o755)
    seen: dict[str, object] = driver.observe(
        start.init_without_nodes, native_libraries.build("fork_counter", tmp_path), user
    )
    if "refused" in seen:
        pytest.skip(f"no mount namespace here: {seen['refused']}")
    return seen


def test_forks_its_helper_inside_cuinit(driver_without_gpu: Driver, tmp_path: Path) -> None:
    seen = _without_nodes(driver_without_gpu, tmp_path, NOBODY)
    assert seen == {"cuInit": 100, "forks": HELPER_FORKS.get(driver_without_gpu.name, 0), "nodes": []}


def test_as_root_it_makes_a_device_node(driver_without_gpu: Driver, tmp_path: Path) -> None:
    """So a node in /dev proves nothing. The simulated driver touches nothing outside its process."""
    seen = _without_nodes(driver_without_gpu, tmp_path, 0)
    assert seen == {"cuInit": 100, "forks": 0, "nodes": [] if driver_without_gpu.simulated else ["nvidiactl"]}
