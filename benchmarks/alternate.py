"""Takes paired samples: two things in turn, and which of them goes first changes from pair to pair."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .installed import bare_python, installed_copy
from .table import Pairs

_WORKER = Path(__file__).with_name("worker.py")

Sample = Callable[[], float]


def alternate(off: Sample, on: Sample, pairs: int) -> Pairs:
    for sample in (off, on):
        for _ in range(min(20, pairs)):
            sample()
    offs: list[float] = []
    ons: list[float] = []
    for number in range(pairs):
        for first in (number % 2, 1 - number % 2):
            if first:
                offs.append(off())
            else:
                ons.append(on())
    return Pairs(offs, ons)


class Worker:
    """A ``benchmarks.worker`` process."""

    def __init__(self, folder: Path, *modules: str) -> None:
        program = f"exec(compile(open({str(_WORKER)!r}).read(), 'worker.py', 'exec'))"
        self._process = subprocess.Popen(
            [*bare_python(folder, program), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def sampler(self, operation: str, count: int) -> Sample:
        """Nanoseconds for one of ``count`` operations."""
        return lambda: self._ask(operation, count) / count

    def _ask(self, operation: str, count: int) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{operation} {count}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@contextmanager
def workers(*module_lists: tuple[str, ...]) -> Iterator[list[Worker]]:
    with installed_copy() as folder:
        made = [Worker(folder, *modules) for modules in module_lists]
        try:
            yield made
        finally:
            for worker in made:
                worker.end()
