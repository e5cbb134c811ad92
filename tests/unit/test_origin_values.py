"""``Origin`` out of what the native module recorded, and how it reads."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from cuda_fork_guard import origin
from cuda_fork_guard.origin import Origin

NOT_SEEN, UP, DOWN = range(3)
GONE = 2**22 + 1  # beyond the kernel's highest thread id


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"outcome": UP}, "succeeded"),
        ({"up": True}, "succeeded"),
        ({"up": True, "later": 1}, "unknown: CUDA came up; whether by this call or by a later one was not seen"),
        ({"up": True, "later": -1}, "unknown: CUDA came up; whether by this call or by a later one was not seen"),
        ({"outcome": DOWN, "up": True, "later": 1}, "failed"),
        ({"outcome": DOWN}, "failed"),
        ({"outcome": DOWN, "devices": 0}, "failed: no NVIDIA device on this machine"),
        ({"outcome": DOWN, "devices": 2}, "failed"),
        ({"ended": True}, "failed"),
        ({"ended": True, "devices": 0}, "failed: no NVIDIA device on this machine"),
        ({"ended": False}, "unknown: still running, or failed and not seen to end"),
        ({"ended": None}, "unknown: not seen to end"),
        ({"ended": True, "up": None}, "unknown: not seen to end"),
    ],
)
def test_result(facts: dict[str, Any], expected: str) -> None:
    defaults = {"outcome": NOT_SEEN, "up": False, "later": 0, "ended": False, "devices": None}
    assert origin.result(**{**defaults, **facts}) == expected


def raw(
    rows: tuple[tuple[str, int, str], ...] = (("/home/u/train.py", 12, "main"),),
    *,
    native: tuple[str, ...] = ("libcudart.so.12: cudaGetDeviceCount",),
    thread: str = "pt_autograd_0",
    pid: int = GONE,
    tid: int = GONE + 1,
    complete: bool = True,
    reason: str = "",
) -> tuple[Any, ...]:
    return (rows, 0, 0, complete, reason), native, thread, pid, tid, 1700000000.5, UP, -1


def test_line_without_source_names_the_called_function() -> None:
    stack = (("/py/site-packages/torch/cuda/__init__.py", 174, "is_available"), ("/home/u/train.py", 12, "main"))
    found = origin.from_native(raw(stack), None)
    assert (
        found.line()
        == f"/home/u/train.py:12 in main  (torch.cuda.is_available -> cuInit, pid {GONE}, thread pt_autograd_0)"
    )
    assert str(found) == found.line()


def test_line_with_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import x\nmodel.cuda()\n")
    found = origin.from_native(raw(((str(tmp_path / "train.py"), 2, "<module>"),)), None)
    assert found.line().startswith("train.py:2 in <module>  (model.cuda() -> cuInit, pid")


def test_line_of_a_call_from_c() -> None:
    found = origin.from_native(raw(()), None)
    assert found.call == "cudaGetDeviceCount"
    assert origin.from_native(raw(native=("libffi.so.8: ffi_call",)), None).call == "cuInit"


def test_line_of_a_thread_python_never_saw() -> None:
    found = origin.from_native(raw((), complete=False, reason="a thread Python never saw"), None)
    assert found.python == ()
    assert found.line() == (
        "unknown: a thread Python never saw  (native: libcudart.so.12: cudaGetDeviceCount, "
        f"pid {GONE}, thread pt_autograd_0)"
    )


def test_line_of_an_import_shows_where_it_led() -> None:
    importing = "<frozen importlib._bootstrap>"
    stack = (
        ("/py/site-packages/torch/cuda/__init__.py", 174, "is_available"),
        ("/py/site-packages/pkg/ops.py", 44, "<module>"),
        (importing, 241, "_call_with_frames_removed"),
        ("/home/u/train.py", 3, "<module>"),
    )
    found = origin.from_native(raw(stack), None)
    assert found.chain_text() == "/home/u/train.py:3 -> pkg/ops.py:44 -> torch.cuda.is_available"
    assert "  (pkg/ops.py:44 -> torch.cuda.is_available -> cuInit, pid" in found.line()


def test_outer_frames_that_are_not_known_leave_a_mark() -> None:
    found = origin.from_native(raw(complete=False, reason="outer frames not known"), None)
    assert [str(frame) for frame in found.python] == ["(frames left out)", "/home/u/train.py:12 in main"]
    assert found.note == "outer frames not known"


def test_threads() -> None:
    own = os.getpid()
    assert origin.from_native(raw(pid=own, tid=own), None).thread == "MainThread"
    assert origin.from_native(raw(pid=own), None).thread == "pt_autograd_0"
    program = Path("/proc/self/comm").read_text().strip()
    assert origin.from_native(raw(pid=own, thread=program), None).thread == f"tid {GONE + 1}"
    assert origin.from_native(raw(pid=own, thread=""), None).thread == f"tid {GONE + 1}"


def test_observed() -> None:
    stack = ((("/home/u/train.py", 9, "<module>"),), 0, 0, True, "")
    late = origin.observed(stack, os.getpid(), "CUDA was up before cuda_fork_guard was imported (train.py:9)")
    assert (late.how, late.thread, late.result) == ("observed", "MainThread", "succeeded")
    assert late.line() == "unknown: CUDA was up before cuda_fork_guard was imported (train.py:9)"
    assert origin.observed(stack, 1).line() == "unknown: its cuInit was not seen; first seen up at /home/u/train.py:9"
    assert origin.observed(None, 1).line() == "unknown: its cuInit was not seen; first seen up at no line of Python"


def test_an_origin_is_a_frozen_value() -> None:
    found = origin.from_native(raw(), None)
    assert isinstance(found, Origin) and pickle.loads(pickle.dumps(found)) == found
    assert found.as_dict() == {
        "how": "hook",
        "python": [{"file": "/home/u/train.py", "line": 12, "function": "main"}],
        "import_chain": [],
        "native": ["libcudart.so.12: cudaGetDeviceCount"],
        "thread": "pt_autograd_0",
        "pid": GONE,
        "time": 1700000000.5,
        "result": "succeeded",
        "call": "cudaGetDeviceCount",
        "note": "",
    }
