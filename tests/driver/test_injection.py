"""CUDA_INJECTION64_PATH: the library it names is called inside cuInit, on the calling thread, before any device."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.driver import injection, native_libraries
from support.driver.kinds import Driver, kinds, make


@pytest.fixture(params=kinds("sim0", "sim2", "470", "535", "550", "555", "gpu"))
def driver(request: pytest.FixtureRequest) -> Driver:
    return make(request.param)


def _code(driver: Driver) -> int:
    return 0 if driver.name == "gpu" or "2" in driver.variables.get("CUDA_FORK_GUARD_SIM", "") else 100


@pytest.mark.parametrize("answer", [1, 2, -1])
def test_accepting_hook_is_called_once(driver: Driver, hook: str, answer: int) -> None:
    seen = driver.observe(injection.calls, hook, answer)
    assert seen["wrong flags"] == [1, 0]
    assert seen["codes"] == [_code(driver)] * 4
    assert seen["counts"] == [1, 0, 0, 0]
    assert seen["own thread"] == [True]
    assert seen["mapped"] == [True] * 4


def test_declining_hook_is_unloaded_and_called_at_every_cuinit(driver: Driver, hook: str) -> None:
    seen = driver.observe(injection.calls, hook, 0)
    assert seen["codes"] == [_code(driver)] * 4
    assert seen["counts"] == [1, 1, 1, 1]
    assert seen["own thread"] == [True] * 4
    assert seen["mapped"] == [False] * 4


def test_accepted_hook_is_not_replaced(driver: Driver, hook: str, tmp_path: Path) -> None:
    other = tmp_path / "other.so"
    shutil.copy(hook, other)
    assert driver.observe(injection.another_path_later, hook, str(other)) == [1, 0, 0]


def _useless(tmp_path: Path) -> list[str]:
    garbage = tmp_path / "garbage.so"
    garbage.write_text("this is no library")
    no_hook = native_libraries.build("not_a_hook", tmp_path)
    return ["", "none", str(tmp_path / "missing.so"), str(garbage), str(tmp_path), no_hook]


def test_useless_values_are_ignored(driver: Driver, tmp_path: Path, hook: str) -> None:
    useless = _useless(tmp_path)
    assert driver.observe(injection.ignored, useless) == [_code(driver)] * len(useless)
    assert driver.observe(injection.works_after_bad_values, useless, hook) == 1


def test_hook_may_call_cuinit(driver: Driver, hook: str) -> None:
    assert driver.observe(injection.reenters, hook) == {"outer": _code(driver), "inner": [_code(driver)]}


def test_hook_in_forked_children(driver: Driver, hook: str) -> None:
    seen = driver.observe(injection.in_children, hook)
    # A child of a process that has been in cuInit is refused before the hook by drivers since 550.
    assert seen == {"fresh": 1, "parent": 1, "child": 0 if driver.remembers_cuinit_in_children else 1}


def test_while_another_thread_is_inside(driver: Driver, hook: str) -> None:
    """Questions are answered at once, a second cuInit waits, a forked child is refused and doesn't hang."""
    seen = driver.observe(injection.while_inside, hook)
    assert {name: code for name, code in seen["questions"].items() if code != 3} == {}
    assert seen["second waits"]
    assert seen["codes"] == {"first": _code(driver), "second": _code(driver)}
    assert seen["child"]["count"] == 3
    assert seen["child"]["cuInit"] == [304 if driver.remembers_cuinit_in_children else 100] * 2
