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
        frame = frames.user_frame(self.python)
        if self.how == OBSERVED:
            return f"unknown: {self.note or f'its cuInit was not seen; first seen up at {self.place()}'}"
        thread = "" if self.thread in ("", "MainThread") else f", thread {self.thread}"
        if frame is None:
            native = f"native: {self.native[0]}, " if self.native else ""
            return f"unknown: {self.note}  ({native}pid {self.pid}{thread})"
        call = "" if self.call == "cuInit" else f"{self.call} -> "
        return f"{frames.place(frame)}  ({call}cuInit, pid {self.pid}{thread})"

    def place(self) -> str:
        """``train.py:12``"""
        frame = frames.user_frame(self.python)
        return frames.where(frame) if frame is not None else "no line of Python"

    def chain_text(self) -> str:
        """``train.py:3 -> pkg/__init__.py:10 -> pkg/ops.py:44 -> torch.cuda.is_available``"""
        return " -> ".join(self.import_chain)

    def __str__(self) -> str:
        return self.line()


_last: tuple[object, Origin] | None = None
_names: dict[tuple[int, int], str] = {}  # messages stay the same when the thread has ended


def from_native(raw: tuple[Any, ...], up: bool | None) -> Origin:
    """The origin that the native module recorded.

    :param raw: what ``_native.origin()`` gave.
    :param up: the driver was seen up in the process that it is of; None: not asked.
    """
    global _last
    stack, callers, thread, pid, tid, when, outcome, later = raw
    own = pid == os.getpid()
    ended = not os.path.exists(f"/proc/self/task/{tid}") if own and os.path.exists("/proc/self/task") else None
    key = (raw, up, ended)
    if _last is not None and _last[0] == key:
        return _last[1]  # reading source lines again and again would cost more than all the rest
    python, note = _stack(stack)
    called = next((name for name in map(_symbol, callers[:1]) if name.startswith("cu")), "cuInit")
    chain = import_chain.read(python, called)
    found = Origin(
        how=HOOK,
        python=python,
        import_chain=chain,
        native=callers,
        thread=_thread_name(pid, tid, thread),
        pid=pid,
        time=when,
        result=result(outcome, up=up, later=later, ended=ended, devices=devices_shown()),
        call=_call(python, chain, called),
        note=note,
    )
    _last = key, found
    return found


def observed(stack: tuple[Any, ...] | None, pid: int, why: str = "") -> Origin:
    """The first observation of a driver that is up, where nobody told of its ``cuInit``.

    :param stack: what ``_native.python_stack()`` gave.
    :param why: what is unknown, for messages.
    """
    return Origin(
        how=OBSERVED,
        python=_stack(stack)[0] if stack is not None else (),
        import_chain=(),
        native=(),
        thread=_thread_name(pid, _thread.get_native_id(), ""),
        pid=pid,
        time=time.time(),
        result="succeeded",
        call="",
        note=why,
    )


def _thread_name(pid: int, tid: int, name: str) -> str:
    """Python's name if the thread was there when it was first asked for; else the system's, unless that is just the
    program's."""
    if tid == pid:
        return "MainThread"
    if pid == os.getpid():
        for thread in tuple(getattr(sys.modules.get("threading"), "_active", {}).values()):
            if thread.native_id == tid:
                _names[pid, tid] = str(thread.name)
    return _names.get((pid, tid)) or (name if name not in ("", _program()) else f"tid {tid}")


def _program() -> str:
    try:
        with open("/proc/self/comm", encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


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


def result(outcome: int, *, up: bool | None, later: int, ended: bool | None, devices: int | None) -> str:
    """How that ``cuInit`` ended, as far as the facts tell: nothing marks its end.

    :param outcome: what the driver said on the calling thread right after it (0: it was not asked in time).
    :param up: the driver was seen up since; None: it was not asked.
    :param later: calls of ``cuInit`` after this one; negative: not known.
    :param ended: the calling thread has ended; None: not known.
    :param devices: NVIDIA devices that the kernel shows; None: it can't be known.
    """
    if outcome == _UP or (outcome == _NOT_SEEN and up and later == 0):
        return "succeeded"
    if outcome == _NOT_SEEN and up:
        return "unknown: CUDA came up; whether by this call or by a later one was not seen"
    if outcome == _NOT_SEEN and (up is None or ended is None):
        return "unknown: not seen to end"
    if outcome == _NOT_SEEN and not ended:
        return "unknown: still running, or failed and not seen to end"
    return "failed: no NVIDIA device on this machine" if devices == 0 else "failed"


def devices_shown() -> int | None:
    """How many NVIDIA devices the kernel's driver shows; None where it shows no list (no such driver, WSL, Jetson)."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0 if os.path.isdir("/proc/driver/nvidia") else None
