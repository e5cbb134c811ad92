"""What holds for every libcuda: made for the test, simulated, NVIDIA's own. Each scenario is a process (native/*.cpp)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tripwire import Programs

BASICS = (
    "first_touch",
    "idempotent",
    "disarm",
    "prepared_again_after_touch",
    "handler_calls_driver",
    "threads_together",
)
LIFE = (
    "nested_forks",
    "child_of_tripped",
    "spawn_from_armed",
    "exec_of_armed",
    "vfork_child_touches",
    "ordinary_exit",
    "closed_by_program",
    "fork_while_tripping",
)
LEFT_OVER = ("forked_while_arming", "forked_while_disarming", "cloned_while_disarming", "touch_waits_for_swap")
CONCURRENCY = ("signal_handler_touches", "fork_while_preparing", "prepare_on_many_threads")
REFUSALS = (
    "memory_deny_write_execute",
    "seccomp_mprotect",
    "seccomp_mremap",
    "seccomp_mmap_executable",
    "seccomp_memfd_create",
    "no_descriptors",
    "address_space_used_up",
    "mremap_refused_in_child",
    "too_many_mappings",
    "no_way_back",
)
INTRUDERS = (
    "breakpoint_on_entry",
    "breakpoint_after_prepare",
    "breakpoint_inside",
    "uprobe_before_prepare",
    "uprobe_after_prepare",
)


@pytest.mark.parametrize("name", [*BASICS, *LIFE, *LEFT_OVER, *CONCURRENCY, *REFUSALS, *INTRUDERS, "backtrace"])
def test_scenario(programs: Programs, library: Path, name: str) -> None:
    programs.scenario(library, name)


def test_every_entry(programs: Programs, whole_driver: Path) -> None:
    programs.scenario(whole_driver, "every_entry")


@pytest.mark.parametrize("name", ["loaded_later", "one_of_two_refused"])
def test_two_of_them(programs: Programs, library: Path, tmp_path: Path, name: str) -> None:
    # Another file, so another library to the loader, which would find the first by its soname.
    second = tmp_path / "libcuda.so.1"
    second.write_bytes(programs.fake.read_bytes())
    programs.scenario(library, name, str(second))


def test_replaced_file(programs: Programs, library: Path, tmp_path: Path) -> None:
    copy = tmp_path / "libcuda.so.1"
    copy.write_bytes(library.read_bytes())
    programs.scenario(copy, "replaced_file", "disposable")


def test_other_file_name(programs: Programs, library: Path, tmp_path: Path) -> None:
    """The soname counts, not the name of the file."""
    copy = tmp_path / "libother.so"
    copy.write_bytes(library.read_bytes())
    programs.scenario(copy, "first_touch")


def test_little_stress(programs: Programs, library: Path) -> None:
    """tests/stress/tripwire.py is the long form."""
    finished = programs.scenario(library, "stress", "150")
    assert finished.lines[0] == "150 forks, 150 touches, 0 bad"
