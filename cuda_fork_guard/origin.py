"""``Origin``: the first ``cuInit`` of a process, and how its parts read in messages."""

from __future__ import annotations

import _thread
import os
import sys
import time

from . import frames, import_chain
from .frames import Frame
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

HOOK, OBSERVED = "hook", "observed"

_NOT_SEEN, _UP, _DOWN = range(3)  # csrc/core/origin.hpp's Outcome
_LONGEST_DETAIL = 240  # of a chain quoted in a message


class Origin(Value):
    """Who woke CUDA.

    ``how``: ``hook`` (the driver told of the call while it was made) or ``observed`` (CUDA was up before the guard, or the
    hook's place was taken: then everything here is about the moment when that was first seen). ``python``: the stack,
    outermost frame first; ``import_chain``: its imports, if any were under way; ``native``: the callers in C, innermost
    first. ``result``: how that ``cuInit`` ended. ``call``: what the user's line did. ``note``: what is missing, and why.
    """

    __slots__ = ("how", "python", "import_chain", "native", "thread", "pid", "time", "result", "call", "note")
    how: str
    python: tuple[Frame, ...]
    import_chain: tuple[str, ...]
    native: tuple[str, ...]
    thread: str
    pid: int
    time: float
    result: str
    call: str
    note: str

    def line(self) -> str:
        """``train.py:12 in main  (model.cuda() -> cuInit, pid 4200)``"""
        if self.how == OBSERVED:
            return f"unknown: {self.note}"
        frame = frames.user_frame(self.python)
        thread = "" if self.thread in ("", "MainThread") else f", thread {self.thread}"
        if frame is None:
            native = f"native: {self.native[0]}, " if self.native else ""
            return f"unknown: {self.note}  ({native}pid {self.pid}{thread})"
        return f"{frames.place(frame)}  ({self.call} -> cuInit, pid {self.pid}{thread})"

    def chain(self) -> str:
        """``train.py:3 -> pkg/__init__.py:10 -> pkg/ops.py:44 -> torch.cuda.is_available``"""
        return " -> ".join(self.import_chain)

    def __str__(self) -> str:
        return self.line()


_cache: tuple[tuple[Any, ...], Origin] | None = None


def read(native: ModuleType) -> Origin | None:
    """The recorded origin: of this process, or the one that it inherited. None if no ``cuInit`` was seen."""
    global _cache
    native.settle_cuinit()
    version = native.origin_version()
    if not version:
        return None
    state = native.state()
    key = (version, state["driver"], state["inherited"], state["cuinit_calls"])
    if _cache is not None and _cache[0] == key:
        return _cache[1]
    raw = native.origin()
    found = _from_raw(raw, _result_of(raw, state))
    if "still running" not in found.result:
        _cache = (key, found)
    return found


def _from_raw(raw: tuple[Any, ...], result: str) -> Origin:
    stack, callers, thread, pid, tid, when, _outcome = raw
    python, note = _stack(stack)
    called = next((name for name in map(_symbol, callers[:1]) if name.startswith("cu")), "cuInit")
    chain = import_chain.read(python, called)
    return Origin(
        how=HOOK,
        python=python,
        import_chain=chain,
        native=callers,
        thread="MainThread" if tid == pid else thread,
        pid=pid,
        time=when,
        result=result,
        call=_call(python, chain, called),
        note=note,
    )


def _stack(raw: tuple[Any, ...]) -> tuple[tuple[Frame, ...], str]:
    rows, gap_at, left_out, complete, reason = raw
    found = frames.from_raw(rows, gap_at, left_out)
    if found and not complete:
        found = (frames.gap(-1), *found)
    return found, reason


def _symbol(native: str) -> str:
    return native.rpartition(": ")[2]


def _call(python: tuple[Frame, ...], chain: tuple[str, ...], called: str) -> str:
    """What the user's line did: its text, and the imports that it led to; else the function that it called."""
    user = frames.user_frame(python)
    if user is None:
        return called
    text = frames.source(user)
    if frames.where(user) in chain[:-2]:
        rest = chain[chain.index(frames.where(user)) + 1 :]
        text = " -> ".join([text, *rest] if text else rest)
        return text if len(text) <= _LONGEST_DETAIL else "... " + text[-_LONGEST_DETAIL:]
    if text:
        return text
    inner = next((at for at, frame in enumerate(python) if frame is user), len(python)) + 1
    return frames.dotted(python[inner]) if inner < len(python) else called


def observed(native: ModuleType, why: str) -> Origin:
    """The first observation of a driver that is up, where nobody told of its ``cuInit``.

    :param why: what happened, with ``{place}`` where this moment's line belongs.
    """
    raw = native.python_stack()
    python, _note = _stack(raw) if raw is not None else ((), "")
    user = frames.user_frame(python)
    return Origin(
        how=OBSERVED,
        python=python,
        import_chain=(),
        native=(),
        thread=_thread_name(),
        pid=os.getpid(),
        time=time.time(),
        result="succeeded",
        call="",
        note=why.format(place=frames.where(user) if user is not None else "no Python line"),
    )


def _thread_name() -> str:
    threading = sys.modules.get("threading")
    known = getattr(threading, "_active", {}).get(_thread.get_ident())
    return "MainThread" if threading is None else "" if known is None else known.name


UP_BEFORE = "CUDA was up before cuda_fork_guard was imported ({place}); import it first"


def place_taken(variable: str, value: str) -> str:
    """For ``observed``: somebody else's library is told of ``cuInit``."""
    quoted = value.replace("{", "{{").replace("}", "}}")
    return f"{variable} was already set, to {quoted!r}; CUDA was first seen up at {{place}}"


def _result_of(raw: tuple[Any, ...], state: dict[str, int]) -> str:
    _stack, _callers, _thread, pid, tid, _time, outcome = raw
    own = state["pid"] == pid
    return result(
        outcome,
        # A child is inherited only if the driver was up in the process that this origin is of.
        up=state["driver"] == 2 if own else state["inherited"] == 1,
        calls=state["cuinit_calls"] if own else None,
        ended=not os.path.exists(f"/proc/self/task/{tid}") if own and os.path.exists("/proc/self/task") else None,
        devices=devices_shown(),
    )


def result(outcome: int, *, up: bool, calls: int | None, ended: bool | None, devices: int | None) -> str:
    """How that ``cuInit`` ended, as far as the facts tell: nothing marks its end.

    :param outcome: what the driver said on the calling thread right after it (0: it was not asked in time).
    :param up: the driver was seen up since.
    :param calls: how often this process has called ``cuInit``; None: not known.
    :param ended: the calling thread has ended; None: not known.
    :param devices: NVIDIA devices that the kernel shows; None: it can't be known.
    """
    if outcome == _UP or (outcome == _NOT_SEEN and up and calls == 1):
        return "succeeded"
    if outcome == _NOT_SEEN and up:
        return "unknown: CUDA came up; whether by this call or by a later one was not seen"
    if outcome == _NOT_SEEN and ended is None:
        return "unknown: CUDA was not seen up in that process"
    if outcome == _NOT_SEEN and not ended:
        return "unknown: still running, or failed and not seen to end"
    return "failed: no NVIDIA device on this machine" if devices == 0 else "failed"


def devices_shown() -> int | None:
    """How many NVIDIA devices the kernel's driver shows; None where it shows no list (no such driver, WSL, Jetson)."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0 if os.path.isdir("/proc/driver/nvidia") else None
