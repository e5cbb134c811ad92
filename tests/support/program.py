"""The type of the `program` fixture: it runs a text as a program of its own."""

from __future__ import annotations

from typing import Protocol

from support.child import Finished


class Program(Protocol):
    def __call__(
        self, code: str, *arguments: str, limit: float = 60, flags: tuple[str, ...] = (), **variables: str | None
    ) -> Finished: ...
