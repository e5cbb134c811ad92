"""``Event``s: what the guard saw in this process and in its forked descendants."""

from __future__ import annotations

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

KINDS = ("fork", "origin", "touch", "worker", "allowed", "end")  # csrc/core/ring.hpp's EventKind
FORK, ORIGIN, TOUCH, WORKER, ALLOWED, END = range(6)

_SEPARATOR = "\x1f"  # between the fields of a fork's text


class Event(Value):
    """One thing seen.

    ``kind``: ``fork`` (an unsafe or doubtful fork, confirmed by its child), ``origin`` (a first ``cuInit``), ``touch``
    (CUDA used where it can't work), ``worker`` (a verified worker, or one that failed), ``allowed`` (a fork inside
    ``allow_fork``), ``end`` (CUDA touched while an inherited process was exiting: recorded, never reported).
    ``pid``: the process it happened in; for a fork the one that forked. ``time``: seconds since the epoch.
    """

    __slots__ = ("kind", "pid", "time", "text")
    kind: str
    pid: int
    time: float
    text: str

    def __str__(self) -> str:
        return f"[{self.kind}] pid {self.pid}: {self.text}"


class Events(tuple[Event, ...]):
    """The newest events that kept their text, oldest first.

    ``counts``: how many there were of each kind, exact in the process that installed the guard; a forked child, which
    shares the memory with its whole family, counts only the events it can still see. ``dropped``: how many events kept
    no text.
    """

    counts: dict[str, int]
    dropped: int


def read(native: ModuleType | None) -> Events:
    """All events that this process may see. Empty where there is no native module."""
    if native is None:
        return _events((), dict.fromkeys(KINDS, 0), 0)
    totals, own, rows = native.events()
    found = tuple(
        Event(kind=KINDS[kind], pid=pid, time=time, text=_readable(kind, text))
        for _ticket, kind, pid, time, text in rows
    )
    if own:
        counts = dict(zip(KINDS, totals, strict=True))
        return _events(found, counts, sum(totals) - len(found))
    seen = dict.fromkeys(KINDS, 0)
    for event in found:
        seen[event.kind] += 1
    return _events(found, seen, 0)


def _events(found: tuple[Event, ...], counts: dict[str, int], dropped: int) -> Events:
    events = Events(found)
    events.counts = counts
    events.dropped = dropped
    return events


def _readable(kind: int, text: str) -> str:
    if kind not in (FORK, ALLOWED) or text.count(_SEPARATOR) != 2:
        return text
    child, forked, threads = text.split(_SEPARATOR)
    return f"forked pid {child}: {forked}" + (f"; threads: {threads}" if threads else "")
