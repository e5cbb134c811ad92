"""The aarch64 form, built with a cross-compiler and run by QEMU's user emulation where both are installed."""

from __future__ import annotations

import platform
import shutil

import pytest
from support import tripwire

COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
pytestmark = [
    pytest.mark.skipif(platform.machine() == "aarch64", reason="this machine runs it as it is: the other tests do"),
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"no {COMPILER}"),
    pytest.mark.skipif(EMULATOR is None, reason="no qemu-aarch64"),
]

# Not what needs seccomp, uprobes, /proc/self/mem or many threads that fork at once, which the emulator lacks.
SCENARIOS = (
    "first_touch",
    "idempotent",
    "disarm",
    "prepared_again_after_touch",
    "handler_calls_driver",
    "nested_forks",
    "child_of_tripped",
    "ordinary_exit",
    "closed_by_program",
    "forked_while_arming",
    "forked_while_disarming",
    "breakpoint_on_entry",
    "signatures",
    "registers",
    "odd_entries",
    "exception_through_callback",
    "backtrace",
)


@pytest.fixture(scope="module")
def programs() -> tripwire.Programs:
    assert EMULATOR is not None
    return tripwire.build(COMPILER, (EMULATOR, "-L", "/usr/aarch64-linux-gnu"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(programs: tripwire.Programs, name: str) -> None:
    programs.scenario(programs.fake, name)


def test_threads_together(programs: tripwire.Programs) -> None:
    programs.scenario(programs.fake, "threads_together", "10")
