"""``Status`` from evidence, as JSON and as text."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from support.tables import LOADED, UP, evidence

from cuda_fork_guard import process_status
from cuda_fork_guard.process_status import Status

FIELDS = (
    "supported", "pid", "policy", "driver", "active_devices", "library", "driver_version", "simulated", "origin",
    "inherited", "handles", "threads", "tripwire", "fork_is_safe", "cuda_is_usable", "reasons",
)  # fmt: skip


def derived(threads: tuple[str, ...] | None = ("MainThread",), **changes: Any) -> Status:
    return process_status.derive(
        evidence(**changes),
        origin=None,
        origin_reason="",
        threads=threads,
        threads_reason="No such file or directory",
    )


def test_the_fields_are_the_contract_s() -> None:
    assert Status.__slots__ == FIELDS


@pytest.mark.parametrize(
    "changes",
    [{}, LOADED, UP, {**LOADED, "code": 999}, {"generation": 1, "inherited": 1}],
)
def test_json_is_plain_and_complete(changes: dict[str, Any]) -> None:
    status = derived(**changes)
    data = json.loads(json.dumps(status.as_dict()))
    assert data["schema"] == 1
    assert set(data) == {"schema", *FIELDS}
    assert data["active_devices"] == [] and data["driver"] == status.driver
    assert pickle.loads(pickle.dumps(status)) == status


def test_what_is_there_is_told() -> None:
    status = derived(
        **{
            **UP,
            "active": (0, 1),
            "simulated": True,
            "handles": ("4 -> /dev/nvidiactl",),
        }
    )
    assert (status.active_devices, status.library, status.driver_version) == (
        (0, 1),
        "/usr/lib/libcuda.so.1",
        12040,
    )
    assert (status.simulated, status.handles, status.cuda_is_usable) == (
        True,
        ("4 -> /dev/nvidiactl",),
        True,
    )
    text = str(status)
    assert "CUDA 12.4, simulated" in text and "active devices: 0, 1" in text and "fork is safe:   no" in text


def test_an_inherited_process_claims_no_active_device() -> None:
    status = derived(**{**UP, "active": (0,), "inherited": 1, "generation": 1})
    assert status.active_devices == () and status.driver == "inherited" and status.cuda_is_usable is False


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        (
            {"handles": None, "handles_error": "/proc/self/fd: Permission denied"},
            "handles",
            "Permission denied",
        ),
        ({"threads": None}, "threads", "No such file or directory"),
        ({**LOADED, "code": -1}, "driver", "does not export"),
        ({**LOADED, "code": -1}, "fork_is_safe", "unknown"),
        ({"forked_without_exec": None}, "inherited", "/proc/self/stat"),
    ],
)
def test_an_unknown_is_none_and_says_why(changes: dict[str, Any], field: str, reason: str) -> None:
    status = derived(**changes)
    assert getattr(status, field) is None
    assert any(field in one and reason in one for one in status.reasons)
    assert "unknown" in str(status)
    assert json.loads(json.dumps(status.as_dict()))[field] is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"python_forks_seen": False}, "Python's forks aren't seen"),
        ({"handlers_error": 12}, "pthread_atfork failed with error 12"),
        ({"ring": False}, "nothing is recorded"),
        (
            {"tripwire": "unavailable", "tripwire_reason": "mremap refused"},
            "tripwire: mremap refused",
        ),
    ],
)
def test_what_the_guard_can_not_do_is_told(changes: dict[str, Any], reason: str) -> None:
    assert any(reason in one for one in derived(**changes).reasons)


def test_an_origin_that_is_not_known_says_why() -> None:
    status = process_status.derive(
        evidence(),
        origin=None,
        origin_reason="nobody looked",
        threads=(),
        threads_reason="",
    )
    assert "origin: nobody looked" in status.reasons


def test_where_there_is_no_native_module_every_fact_is_unknown() -> None:
    status = process_status.unsupported(7, 3, "no native module for 'darwin'")
    assert (status.supported, status.pid, status.policy) == (False, 7, "block")
    unknown = (
        "driver",
        "library",
        "driver_version",
        "origin",
        "inherited",
        "handles",
        "threads",
        "fork_is_safe",
    )
    assert all(getattr(status, name) is None for name in unknown)
    assert status.reasons == ("no native module for 'darwin'",)
    assert "not supported here" in str(status)


def test_one_more_reason_changes_nothing_else() -> None:
    status = derived()
    more = status.with_reasons(("guard: it stumbled",))
    assert more.reasons == (*status.reasons, "guard: it stumbled")
    assert {**more.as_dict(), "reasons": []} == {**status.as_dict(), "reasons": []}
