"""What "clean" means for a server: CUDA was never called, no GPU device is open, no Python thread is running."""

from __future__ import annotations

import sys
import threading
import time

from cuda_fork_guard import guard, paths, status, waking
from cuda_fork_guard.errors import ForkServerNotCleanError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuda_fork_guard import Status

_LEAVE_WITHIN = 0.5  # seconds that a thread which a preload let go may still take to end
_WOKEN = ("tried", "initialized", "active", "inherited")


def no_cuda(module: str | None) -> None:
    """After the import of ``module`` (None: after Python's own start).

    :raises ForkServerNotCleanError: ``cuInit`` was called, failed calls included, or a GPU device is open.
    """
    seen = status()
    # An unknown alone is no evidence: where another tool has CUDA_INJECTION64_PATH, a cuInit that failed is not seen.
    if seen.driver in _WOKEN or seen.fork_is_safe is False:
        raise ForkServerNotCleanError(_text(module, f"woke CUDA (driver: {seen.driver or 'up'})", _woken(seen)))
    if seen.handles:
        raise ForkServerNotCleanError(
            _text(
                module,
                "left GPU devices open, which every worker would inherit",
                f"  open:    {', '.join(seen.handles)}",
            )
        )


def no_threads(module: str | None) -> None:
    """A forked child gets the locks of other threads without the threads that would release them. Python's threads
    only: every numpy has a native one of OpenBLAS, every pyarrow one of jemalloc, and those see to their forks.

    :raises ForkServerNotCleanError: a thread is running.
    """
    end = time.monotonic() + _LEAVE_WITHIN
    for thread in _others():
        thread.join(max(0.0, end - time.monotonic()))
    alive = [_described(thread) for thread in _others()]
    if alive:
        raise ForkServerNotCleanError(
            _text(
                module, "left threads running, whose locks every worker would inherit", f"  threads: {'; '.join(alive)}"
            )
        )


def _others() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread is not threading.main_thread()]


def _described(thread: threading.Thread) -> str:
    """``Thread-1 (poll) at my/pkg.py:12 in poll``: its outermost line that is not the threading module's."""
    frame = sys._current_frames().get(thread.ident or 0)
    place = ""
    while frame is not None:
        if not paths.is_stdlib(frame.f_code.co_filename):
            place = f" at {paths.shown(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return f"{thread.name}{place}"


def _woken(seen: Status) -> str:
    line = f"  woken:   {waking.woken_line(guard.native)}" if guard.native is not None else ""
    chain = seen.origin.import_chain if seen.origin is not None else ()
    return f"{line}\n  imports: {' -> '.join(chain)}" if chain else line


def _text(module: str | None, did: str, detail: str) -> str:
    who = f"the preload {module!r}" if module else "Python's own start (a .pth file or sitecustomize)"
    do = (
        f"take that out of the import of {module!r} (into a function that workers call), or leave it out of preload"
        if module
        else "start the program without it, or use cuda_fork_guard.get_context('spawn')"
    )
    return (
        f"[CFG302] the forkserver is not clean: {who} {did}. Every worker forked from it would be broken; none was "
        f"started.\n{detail}\n  do:      {do}"
    )
