"""A process that does one thing on command and says how long it took: ``python -m benchmarks.worker [MODULE]``.

Two of them, one with the guard and one without, are asked in turn: an audit hook can't be removed, so its cost shows
only beside a process that never had it. Commands are lines ``OPERATION COUNT``; the answer is nanoseconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable


def fork_and_wait(count: int) -> None:
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)


def getframe(count: int) -> None:
    get = sys._getframe
    for _ in range(count):
        get()


def code_attribute(count: int) -> None:
    for _ in range(count):
        getframe.__code__  # noqa: B018


def open_file(count: int) -> None:
    for _ in range(count):
        os.close(os.open("/dev/null", os.O_RDONLY))


def import_module(count: int) -> None:
    for _ in range(count):
        sys.modules.pop("this_is_no_module", None)
        try:
            import this_is_no_module  # type: ignore[import-not-found]  # noqa: F401
        except ImportError:
            pass


def nothing(count: int) -> None:
    for _ in range(count):
        pass


OPERATIONS: dict[str, Callable[[int], None]] = {
    "fork": fork_and_wait,
    "getframe": getframe,
    "code": code_attribute,
    "open": open_file,
    "import": import_module,
    "nothing": nothing,
}


def main() -> None:
    for module in sys.argv[1:]:
        __import__(module)
    for line in sys.stdin:
        name, count = line.split()
        operation = OPERATIONS[name]
        began = time.perf_counter_ns()
        operation(int(count))
        print(time.perf_counter_ns() - began, flush=True)


if __name__ == "__main__":
    main()
