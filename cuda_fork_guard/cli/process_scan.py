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

from cuda_fork_guard.cli.process_facts import STUCK, Process, Unreadable, look_at

STUCK_AFTER = 1.0  # seconds for one process, which takes some 50 microseconds
_MOST_THREADS = 4  # /proc is the kernel's work, done without the GIL: a second thread saves 40 % of the time


class Scan(NamedTuple):
    processes: tuple[Process, ...]
    unreadable: tuple[Unreadable, ...]
    looked_at: int


class _Looker(threading.Thread):
    """Takes one process after the other from the common list until it is empty or nobody waits for it any more."""

    def __init__(self, todo: deque[str], proc: str) -> None:
        # A daemon: one that hangs must not keep the command from ending.
        super().__init__(name="cuda_fork_guard holders", daemon=True)
        self._todo = todo
        self._proc = proc
        self.found: list[Process | Unreadable] = []
        self.looked_at = 0
        self.current = ""
        self.since = time.monotonic()
        self.given_up = False

    def run(self) -> None:
        while not self.given_up:
            try:
                pid = self._todo.popleft()
            except IndexError:
                return
            self.since = time.monotonic()
            self.current = pid
            answer = look_at(pid, self._proc)
            if self.given_up:
                return
            self.current = ""
            self.looked_at += 1
            if answer is not None:
                self.found.append(answer)


def scan(proc: str = "/proc", stuck_after: float = STUCK_AFTER) -> Scan:
    """OSError if `proc` can't be listed."""
    names = os.listdir(proc)
    mine = os.readlink(f"{proc}/self") if "self" in names else ""  # not getpid(): `proc` may be the host's
    todo = deque(name for name in names if name.isdigit() and name != mine)
    lookers = [_Looker(todo, proc) for _ in range(min(_MOST_THREADS, os.cpu_count() or 1))]
    for looker in lookers:
        looker.start()
    unreadable: list[Unreadable] = []
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
        looker.given_up = True
        unreadable.append(Unreadable(int(pid), _owner(f"{proc}/{pid}"), STUCK))
        replacement = _Looker(todo, proc)
        lookers.append(replacement)
        waiting.append(replacement)
        replacement.start()
    answers = [answer for looker in lookers for answer in looker.found]
    return Scan(
        processes=tuple(sorted((a for a in answers if isinstance(a, Process)), key=lambda process: process.pid)),
        unreadable=(*(a for a in answers if isinstance(a, Unreadable)), *unreadable),
        looked_at=sum(looker.looked_at for looker in lookers),
    )


def _owner(folder: str) -> int | None:
    try:
        return os.stat(folder).st_uid
    except OSError:
        return None
