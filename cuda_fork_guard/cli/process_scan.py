"""Looks at every process, without ever waiting for one that hangs.

A process whose thread is stuck in the driver while it changes its memory map is just what one searches with this, and
reading the files of such a process blocks until it comes back. So the looking is done by threads that can be given up.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import NamedTuple

from cuda_fork_guard.cli.process_facts import STUCK, Bystander, Process, Unreadable, look_at, look_at_mappings
from cuda_fork_guard.procfs import parse_stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Process | Bystander | Unreadable | None
    Look = Callable[[str, str], Answer]

STUCK_AFTER = 1.0  # seconds for one process, which takes some 50 microseconds
_MOST_THREADS = 2  # /proc is mostly the kernel's work, done without the GIL: two save a third of the time, more nothing


class Scan(NamedTuple):
    processes: tuple[Process, ...]
    unreadable: tuple[Unreadable, ...]
    looked_at: int


class _Looker(threading.Thread):
    """Takes one process after the other from the common list until it is empty or nobody waits for it any more."""

    def __init__(self, todo: deque[str], proc: str, look: Look) -> None:
        # A daemon: one that hangs must not keep the command from ending.
        super().__init__(name="cuda_fork_guard holders", daemon=True)
        self._todo = todo
        self._proc = proc
        self._look = look
        self.found: list[Process | Bystander | Unreadable] = []
        self.current = ""
        self.since = time.monotonic()
        self.given_up = threading.Event()

    def run(self) -> None:
        look, proc, clock = self._look, self._proc, time.monotonic
        while not self.given_up.is_set():
            try:
                pid = self._todo.popleft()
            except IndexError:
                return
            self.since = clock()
            self.current = pid
            answer = look(pid, proc)
            if self.given_up.is_set():
                return
            self.current = ""
            if answer is not None:
                self.found.append(answer)


def scan(proc: str = "/proc", stuck_after: float = STUCK_AFTER) -> Scan:
    """OSError if `proc` can't be listed."""
    names = os.listdir(proc)
    mine = os.readlink(f"{proc}/self") if "self" in names else ""  # not getpid(): `proc` may be the host's
    pids = [name for name in names if name.isdigit() and name != mine]
    answers = _look_at_all(pids, proc, look_at, stuck_after)
    bystanders = {answer.pid: answer for answer in answers if isinstance(answer, Bystander)}
    suspects = _may_have_mappings(bystanders)
    answers += _look_at_all([str(pid) for pid in suspects], proc, look_at_mappings, stuck_after)
    return Scan(
        processes=tuple(sorted((a for a in answers if isinstance(a, Process)), key=lambda process: process.pid)),
        unreadable=tuple(answer for answer in answers if isinstance(answer, Unreadable)),
        looked_at=len(pids),
    )


def _may_have_mappings(bystanders: dict[int, Bystander]) -> list[int]:
    """Those without a descriptor of a device that may still have one mapped.

    CUDA keeps its descriptors as long as its process lives, so only a forked child, whose inherited ones were closed
    to free the device, has mappings alone. It has no reason to if its parents, up to the one that exec'ed, are all
    there and hold nothing. Looking at the mappings of every process would take longer than all the rest.
    """
    stats = {pid: parse_stat(one.stat_line) for pid, one in bystanders.items() if one.forked_without_exec}
    images: dict[int, tuple[int, ...]] = {}  # of those who can't have passed a device on
    below: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        below.setdefault(stat.ppid, []).append(pid)
    todo: list[int] = []
    for pid in below.keys() & bystanders.keys() - stats.keys():
        images[pid] = parse_stat(bystanders[pid].stat_line).image
        todo.append(pid)
    while todo:
        parent = todo.pop()
        for pid in below.get(parent, ()):
            if stats[pid].image == images[parent] and any(images[parent]):
                images[pid] = images[parent]
                todo.append(pid)
    return [pid for pid in stats if pid not in images]


def _look_at_all(pids: list[str], proc: str, look: Look, stuck_after: float) -> list[Process | Bystander | Unreadable]:
    todo = deque(pids)
    lookers = [_Looker(todo, proc, look) for _ in range(min(_MOST_THREADS, os.cpu_count() or 1))]
    for looker in lookers:
        looker.start()
    unreadable: list[Process | Bystander | Unreadable] = []
    waiting = list(lookers)
    while waiting:
        looker = waiting.pop(0)
        looker.join(max(0.0, looker.since + stuck_after - time.monotonic()))
        if not looker.is_alive():
            continue
        pid = looker.current
        if not pid or time.monotonic() - looker.since < stuck_after:
            waiting.append(looker)
            continue
        looker.given_up.set()
        unreadable.append(Unreadable(int(pid), _owner(f"{proc}/{pid}"), STUCK))
        replacement = _Looker(todo, proc, look)
        lookers.append(replacement)
        waiting.append(replacement)
        replacement.start()
    return [answer for looker in lookers for answer in looker.found] + unreadable


def _owner(folder: str) -> int | None:
    try:
        return os.stat(folder).st_uid
    except OSError:
        return None
