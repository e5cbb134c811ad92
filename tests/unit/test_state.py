"""What evidence means: every driver state, and every unknown with its reason."""

from __future__ import annotations

from typing import Any

import pytest
from support.tables import LOADED, UP, UVM, evidence

from cuda_fork_guard import state

FORKED: dict[str, Any] = {"forked_without_exec": True}
CHILD: dict[str, Any] = {"generation": 1}


def judged(
    **changes: Any,
) -> tuple[bool | None, str | None, bool | None, bool | None, list[str]]:
    """(inherited, driver, fork_is_safe, cuda_is_usable, reasons)"""
    found = evidence(**changes)
    reasons: list[str] = []
    inherited = state.inherited_of(found, reasons.append)
    driver = state.driver_of(found, inherited, reasons.append)
    safe = state.fork_is_safe_of(found, inherited, driver, reasons.append)
    return inherited, driver, safe, state.usable_of(inherited, driver), reasons


@pytest.mark.parametrize(
    ("seen", "driver", "safe", "usable"),
    [
        ({}, "absent", True, None),
        (LOADED, "loaded", True, None),
        # It was up, and a simulated driver can be taken down again.
        ({**LOADED, "cuinit_calls": 1}, "loaded", True, None),
        ({**LOADED, "known": 1}, "tried", True, None),
        # 100 before anyone saw cuInit, or an old stub: not up, and said in words.
        ({**LOADED, "known": 1, "hook_watching": "taken"}, "tried", True, None),
        (UP, "initialized", False, None),
        ({**UP, "active": (0,)}, "active", False, True),
        ({**UP, "active": (0, 1), "known": 0}, "active", False, True),
        # The wire is on: the driver is not asked (code -2), and can't have come up without tripping it.
        ({**LOADED, "code": -2, "tripwire": "armed"}, "loaded", True, None),
        ({**LOADED, "code": -2, "tripwire": "armed", "known": 1}, "tried", True, None),
        ({**UP, "tripwire": "tripped"}, "initialized", False, None),
    ],
)
def test_known_states_of_an_own_driver(seen: dict[str, Any], driver: str, safe: bool, usable: bool | None) -> None:
    inherited, found, is_safe, is_usable, reasons = judged(**seen)
    assert (inherited, found, is_safe, is_usable) == (False, driver, safe, usable)
    assert reasons == []


@pytest.mark.parametrize("driver_seen", [{}, LOADED, {**LOADED, "code": -2}, UP, {**LOADED, "code": 304}])
@pytest.mark.parametrize("generation", [1, 5])
def test_inherited_wins_over_whatever_the_driver_says(driver_seen: dict[str, Any], generation: int) -> None:
    inherited, driver, safe, usable, _ = judged(**{**driver_seen, "generation": generation, "inherited": 1})
    assert (inherited, driver, safe, usable) == (True, "inherited", False, False)


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (4, "4 (CUDA_ERROR_DEINITIALIZED)"),
        (34, "34 (CUDA_ERROR_STUB_LIBRARY)"),
        (100, "100 (CUDA_ERROR_NO_DEVICE)"),
        (304, "304 (CUDA_ERROR_OPERATING_SYSTEM)"),
        (803, "803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"),
        (999, "999 (CUDA_ERROR_UNKNOWN)"),
        (7777, "7777"),
    ],
)
def test_an_unusual_answer_is_told_by_name(code: int, named: str) -> None:
    _, driver, safe, _, reasons = judged(**{**LOADED, "code": code})
    assert driver == "loaded" and safe is True
    assert any(named in reason and "/usr/lib/libcuda.so.1" in reason for reason in reasons)


def test_a_driver_that_is_being_taken_down_is_unknown_and_never_safe() -> None:
    _, driver, safe, usable, reasons = judged(**{**LOADED, "code": 4, "known": 2})
    assert (driver, safe, usable) == (None, False, None)
    assert any("taken down" in reason for reason in reasons)


def test_a_driver_that_is_up_but_can_not_tell_its_contexts() -> None:
    _, driver, safe, usable, reasons = judged(**{**UP, "active": None})
    assert (driver, safe, usable) == (None, False, None)
    assert any("primary context" in reason for reason in reasons)


def test_a_library_that_lacks_the_question() -> None:
    _, driver, safe, usable, reasons = judged(**{**LOADED, "code": -1})
    assert (driver, safe, usable) == (None, None, None)
    assert any("does not export cuDeviceGetCount" in reason for reason in reasons)
    assert any(reason.startswith("fork_is_safe: unknown") for reason in reasons)


def test_without_the_hook_a_failed_cuinit_can_not_be_told_from_none() -> None:
    _, driver, safe, _, reasons = judged(**{**LOADED, "hook_watching": "CUDA_INJECTION64_PATH is taken"})
    assert driver is None and safe is True
    assert any("CUDA_INJECTION64_PATH is taken" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("seen", "inherited", "reason"),
    [
        # Forked with no exec before the guard was loaded: only an open nvidia-uvm tells CUDA.
        ({**FORKED, **LOADED, "handles": UVM}, True, "nvidia-uvm"),
        ({**FORKED, "handles": UVM}, True, "nvidia-uvm"),
        (
            {
                **FORKED,
                **LOADED,
                "handles": ("5 -> /dev/nvidia0", "6 -> /dev/nvidiactl"),
            },
            None,
            "before cuda_fork_guard",
        ),
        (
            {**FORKED, **LOADED, "handles": None, "handles_error": "no /proc"},
            None,
            "before cuda_fork_guard",
        ),
        # Handles of its own: its driver is up, or was tried here.
        ({**FORKED, **UP, "handles": UVM}, None, "before cuda_fork_guard"),
        (
            {**FORKED, **LOADED, "handles": UVM, "cuinit_calls": 1},
            None,
            "before cuda_fork_guard",
        ),
        ({"forked_without_exec": None}, None, "/proc/self/stat"),
        (
            {"forked_without_exec": None, **LOADED, "handles": UVM},
            None,
            "/proc/self/stat",
        ),
        # A child of a guarded process knows it from its parent.
        ({**CHILD, "inherited": 2}, None, "cuInit had been called in its parent"),
    ],
)
def test_inheritance_is_never_guessed(seen: dict[str, Any], inherited: bool | None, reason: str) -> None:
    found, _driver, _safe, _usable, reasons = judged(**seen)
    assert found is inherited
    assert any(reason in one for one in reasons if one.startswith("inherited: "))


@pytest.mark.parametrize("handles", [(), UVM])
def test_an_execed_process_is_not_inherited_whatever_it_holds(
    handles: tuple[str, ...],
) -> None:
    inherited, _, _, _, reasons = judged(**{**LOADED, "handles": handles})
    assert inherited is False and reasons == []


@pytest.mark.parametrize("forked", [None, True, False])
def test_a_child_of_a_guarded_clean_process_is_clean(forked: bool | None) -> None:
    inherited, _, safe, _, reasons = judged(**{**CHILD, "forked_without_exec": forked})
    assert inherited is False and safe is True and reasons == []


@pytest.mark.parametrize("seen", [FORKED, {**CHILD, "inherited": 2}, {"forked_without_exec": None}])
def test_a_fork_is_not_called_safe_where_inheritance_is_unknown(
    seen: dict[str, Any],
) -> None:
    _, _, safe, _, reasons = judged(**{**seen, **LOADED})
    assert safe is None
    assert any(reason.startswith("fork_is_safe: unknown") for reason in reasons)


@pytest.mark.parametrize("seen", [FORKED, {**CHILD, "inherited": 2}])
def test_but_it_is_called_unsafe_where_the_driver_is_up_anyway(
    seen: dict[str, Any],
) -> None:
    assert judged(**{**UP, **seen})[2] is False


def test_a_list_that_can_not_be_read_is_not_taken_for_an_empty_one() -> None:
    reasons: list[str] = []
    assert state.driver_of(evidence(loader_lost=True), False, reasons.append) is None
    assert "can't read it any more" in reasons[0]
