"""Which test a fork or a touch belongs to. No pytest in here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .event_log import Event, Events

_FORKED = re.compile(r"forked pid (\d+):")


@dataclass
class Told:
    """Findings: of the test that is running, and of tests that are over or of nobody known."""

    own: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)


class Ledger:
    """Follows children by their pids, so that a touch is charged to the test whose fork it came from."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._running = ""
        self._unsafe: list[str] = []
        self._owners: dict[int, str] = {}
        self._seen: set[Event] = set()

    def begin(self, test: str) -> None:
        self._running = test

    def forked_unsafely(self, text: str) -> None:
        """Heard from the guard, in this process only."""
        self._unsafe.append(text)

    def take(self, events: Events | tuple[Event, ...] = ()) -> Told:
        """What has come since the last time."""
        told = Told(own=list(dict.fromkeys(self._unsafe)))
        self._unsafe.clear()
        for event in events:
            if event in self._seen:
                continue
            self._seen.add(event)
            match = _FORKED.match(event.text) if event.kind in ("fork", "allowed") else None
            if match is not None:
                self._owners[int(match.group(1))] = self._owners.get(event.pid, self._running)
            elif event.kind == "touch":
                owner = self._owners.get(event.pid, "")
                (told.own if owner == self._running and owner else told.late).append(event.text)
        return told
