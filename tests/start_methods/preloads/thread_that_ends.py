"""A thread that is let go, and ends within a moment."""

from __future__ import annotations

import threading

began = threading.Event()


def once() -> None:
    began.set()
    for _ in range(100_000):
        pass


threading.Thread(target=once).start()
began.wait()
