"""What is said of a server that died: its workers live on, but somebody killed a process of the program's."""

from __future__ import annotations

import os
import signal
import sys
import warnings

from cuda_fork_guard import fork_site
from cuda_fork_guard.errors import CudaForkGuardWarning


def ending(status: int | None) -> str:
    """A wait status in words."""
    if status is None:
        return "how is not known: its exit status was collected elsewhere"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def server_died(pid: int, status: int | None, *, may_raise: bool = True) -> None:
    """Warn, attributed to the user's line. Never an exception where it would reach nobody."""
    user = fork_site.user_frame(sys._getframe(1))  # not this frame, which would then hold itself alive
    text = (
        f"the forkserver (pid {pid}) is gone ({ending(status)}). Workers that it had made go on (a DataLoader's end by "
        "themselves), but with nobody to collect it their exit code will read 255. The next start makes another server "
        "with the same preload"
    )
    try:
        warnings.warn_explicit(
            text,
            CudaForkGuardWarning,
            filename=user.f_code.co_filename if user else "<unknown>",
            lineno=user.f_lineno if user else 0,
        )
    except CudaForkGuardWarning:
        if may_raise and not in_pool_supervisor():
            raise
        _tell(f"cuda_fork_guard[{os.getpid()}]: {text}\n")


def _tell(line: str) -> None:
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # the program has no stderr any more
        pass


def in_pool_supervisor() -> bool:
    """In the thread of a pool that replaces workers: an exception there ends it, and ``map()`` waits for ever."""
    return bool(fork_site.read(sys._getframe(1)).supervisor)
