"""Who called cuInit: on every driver, however the call was made."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.driver import native_libraries, start, waking
from support.driver.kinds import MAJORS, Driver, kinds, make
from support.driver.waking import functions


@pytest.fixture(params=kinds("sim2", *MAJORS, "gpu"))
def driver(request: pytest.FixtureRequest) -> Driver:
    return make(request.param)


@pytest.fixture
def helper(tmp_path: Path) -> str:
    return native_libraries.build("foreign_thread", tmp_path)


def is_named(found: dict[str, Any], *innermost: str) -> None:
    assert functions(found)[-len(innermost) :] == list(innermost)
    assert (found["how"], found["note"]) == ("hook", "")
    assert found["python"][-1]["file"] == waking.__file__


def result_of(driver: Driver) -> str:
    return "succeeded" if driver.simulated or driver.name == "gpu" else "failed"


@pytest.mark.parametrize("check", [waking.with_the_gil, waking.without_the_gil])
def test_the_line(driver: Driver, check: Any) -> None:
    found = driver.observe(check)
    is_named(found, "<module>", check.__name__, "wake")
    assert found["python"][0]["function"] == "<module>"
    assert found["thread"] == "MainThread" and found["result"] == result_of(driver)
    assert (
        "support/driver/waking.py" in found["line"]
        and "in wake  (int(library.cuInit(0)) -> cuInit, pid" in found["line"]
    )
    assert any("ffi_call" in caller for caller in found["native"])
    assert not any("libcuda" in caller or "_native" in caller or "hook" in caller for caller in found["native"])


@pytest.mark.parametrize("held", [True, False])
def test_another_thread(driver: Driver, held: bool) -> None:
    found = driver.observe(waking.on_another_thread, held)
    is_named(found, "run", "loader", "wake")
    assert found["thread"] == "loader-1" and "thread loader-1)" in found["line"]


def test_signals_blocked(driver: Driver) -> None:
    is_named(driver.observe(waking.with_every_signal_blocked), "run", "blocked", "wake")


def test_a_thread_python_never_saw(driver: Driver, helper: str) -> None:
    found = driver.observe(waking.on_a_thread_python_never_saw, helper)
    assert found["python"] == [] and found["note"] == "a thread Python never saw"
    assert found["native"][0] == "foreign_thread.so: call_the_driver"
    assert found["line"].startswith(
        "unknown: a thread Python never saw  (native: foreign_thread.so: call_the_driver, pid"
    )


def test_a_c_library_that_holds_the_gil(driver: Driver, helper: str) -> None:
    found = driver.observe(waking.by_a_wrapped_library, helper)
    is_named(found, "by_a_wrapped_library")
    assert found["native"][0] == "foreign_thread.so: call_the_driver"


def test_a_pending_exception_stays(driver: Driver, helper: str) -> None:
    found = driver.observe(waking.with_an_error_set, helper)
    assert found["arrived"] == ["its own"]
    is_named(found, "with_an_error_set")


def test_two_threads_at_once(driver: Driver) -> None:
    found = driver.observe(waking.two_threads_at_once)
    assert (
        "racer" in functions(found) or found["note"] == "the GIL was not held and another thread's stack was being read"
    )
    assert found["events"]["origin"] == 1


def test_a_subinterpreter_existed(driver: Driver) -> None:
    is_named(driver.observe(waking.after_a_subinterpreter), "<lambda>", "wake")


def test_every_descriptor_was_closed(driver: Driver) -> None:
    is_named(driver.observe(waking.after_closing_every_descriptor), "after_closing_every_descriptor", "wake")


def test_deep_recursion_with_the_gil(driver: Driver) -> None:
    """Both ends are kept, and the number of frames between them is right."""
    found = driver.observe(waking.recursion, 900, True)
    names = functions(found)
    assert names[0] == "<module>" and names[-1] == "wake" and len(names) == 193
    assert names[64] == f"({904 - 192} frames left out)"  # 901 descend, wake, recursion, <module>
    assert found["note"] == ""


def test_deep_recursion_without_the_gil(driver: Driver) -> None:
    """faulthandler shows the innermost 100; how many calls there were can't be known, where they began can."""
    found = driver.observe(waking.recursion, 900, False)
    names = functions(found)
    assert names[:2] == ["<module>", "recursion"] and names[-2:] == ["descend", "wake"]
    assert names[64] == "(frames left out)" and len(names) == 64 + 1 + 100 and found["note"] == ""


def test_a_hundred_frames_and_more_without_the_gil(driver: Driver) -> None:
    found = driver.observe(waking.through_many_functions, 150, True)
    expected = ["<module>", "through_many_functions", *(f"f{number}" for number in range(151)), "wake"]
    assert functions(found) == expected and found["note"] == ""


def test_outer_frames_that_returned_before_they_could_be_asked(driver: Driver) -> None:
    """Without an audit event in time they are gone: the origin says so and guesses nothing."""
    found = driver.observe(waking.through_many_functions, 150, False)
    assert functions(found) == ["(frames left out)", *(f"f{number}" for number in range(52, 151)), "wake"]
    assert found["note"] == "outer frames not known"


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", ["/d/prüfung/模型 😀.py", os.fsdecode(b"/d/\xff\xe9.py"), "/d/" + "x" * 600 + ".py"])
def test_file_names(driver: Driver, name: str, held: bool) -> None:
    found = driver.observe(waking.in_a_file_called, name, held)
    shown = name if held or len(name) <= 500 else name[:500] + "..."
    assert found["files"][-3:-1] == [ascii(shown)] * 2
    assert functions(found)[-3:] == ["<module>", "größe", "wake"]


def test_the_hooks_answer_has_no_other_effect(driver_without_gpu: Driver, hook: str) -> None:
    """What a cuInit without a device leaves in a process: alone, with a hook that says 0 as ours does, and one that says 1."""
    alone = _left_by_a_failed_init(driver_without_gpu)
    for answer in ("0", "1"):
        variables = {"CUDA_INJECTION64_PATH": hook, "HOOK_RETURNS": answer, "HOOK_SAYS": "2"}
        assert _left_by_a_failed_init(driver_without_gpu, **variables) == alone


def _left_by_a_failed_init(driver: Driver, **variables: str) -> dict[str, Any]:
    seen: dict[str, Any] = driver.observe(start.failed_init, **variables)
    kinds = sorted(re.sub(r"\d+", "", name) for name in seen["descriptors"])  # a pipe's number is never the same twice
    threads = sorted(re.sub(r"\d+", "", name) for name in seen["threads"])
    return {**seen, "descriptors": kinds, "threads": threads}


@pytest.mark.parametrize(
    ("ask", "result"),
    [(True, "failed"), (False, "unknown: CUDA came up; whether by this call or by a later one was not seen")],
)
def test_fails_first_and_works_later(ask: bool, result: str) -> None:
    """The origin is the first call, with its own result if anything could be asked in time; the driver is what it became."""
    driver = make("sim2")
    driver.variables["CUDA_FORK_GUARD_SIM"] += ";fail=cuInit:999:1"
    found = driver.observe(waking.fails_first_and_works_later, ask)
    assert found["codes"] == [999, 0, 0] and found["driver"] == "initialized"
    assert functions(found)[-2:] == ["first", "wake"] and found["result"] == result


def test_while_it_runs() -> None:
    driver = make("sim2")
    driver.variables["CUDA_FORK_GUARD_SIM"] += ";slow=cuInit:300"
    seen = driver.observe(waking.while_it_runs)
    assert seen["driver"] == "tried" and "still running" in seen["result"]
    assert "in wake  (" in seen["line"] and "thread slow)" in seen["line"]
    assert seen["later"]["result"] == "succeeded"
