"""What is told of one program that forks."""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    id: str
    name: str  # of the forker in messages
    advice: str  # words that must be in the "do:" line
    source: str  # has a function main(), called after CUDA was woken
    needs: tuple[str, ...] = ()  # modules of packages that must be installed
    refused: str = "UnsafeForkError: [CFG101]"  # what `block` leaves on stderr
    warnings: int = 1  # a daemon forks twice
    chatty: bool = False  # the library itself writes to stderr
    limit: float = 100

    def text(self) -> str:
        return f"{self.source.strip()}\n\nif __name__ == '__main__':\n    wake()\n    main()\n"


OWN_START_METHOD = "multiprocess.set_start_method('spawn')"
