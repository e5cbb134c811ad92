"""The live threads of this process, by name."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def read(module: ModuleType) -> tuple[tuple[str, ...] | None, str]:
    """(the names, why there are none): Python's name where Python knows the thread, else the kernel's."""
    error, rows = module.threads()
    if error:
        return None, os.strerror(error)
    known: dict[int, str] = {}
    threading = sys.modules.get("threading")
    # Not threading.enumerate(): the lock that it takes may be held by the very thread that is forking.
    for thread in tuple(getattr(threading, "_active", {}).values()):
        known[thread.native_id] = thread.name
    # By its number, which is the process's: before 3.13 a forked child's main thread keeps its parent's native_id.
    main = getattr(threading, "_main_thread", None)
    known[module.state()["pid"]] = "MainThread" if main is None else main.name
    return tuple(known.get(tid, name) for tid, name in rows), ""
